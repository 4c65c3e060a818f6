//! The verdicts on web addresses (C7.5).

use std::net::IpAddr;

use collieclaw_gate::{
    AutonomyLevel, GateDecision, GatePolicy, GateRequest, HttpMethod, UrlHost, UrlScheme, WebAddress,
    is_public, judge,
};

use crate::test_machine::{GateTestMachine, heaviest_reasons, policy};

/// Addresses, each with the code of its heaviest reason.
const ADDRESSES: &[(&str, &str)] = &[
    ("https://example.org", "allowed-domain"),
    ("https://example.org/", "allowed-domain"),
    ("https://EXAMPLE.org/path?q=1#x", "allowed-domain"),
    ("HTTPS://example.org./", "allowed-domain"),
    ("http://example.org:80/", "allowed-domain"),
    ("https://example.org:443/", "allowed-domain"),
    ("https://a.docs.example/", "allowed-domain"),
    ("https://a.b.docs.example/", "allowed-domain"),
    ("http://127.0.0.1:8080/health", "allowed-domain"),
    ("https://docs.example/", "unlisted-domain"),
    ("https://evildocs.example/", "unlisted-domain"),
    ("https://other.org/", "unlisted-domain"),
    ("https://www.example.org/", "unlisted-domain"),
    ("https://example.org.evil.com/", "unlisted-domain"),
    ("https://evil.com/?example.org", "unlisted-domain"),
    ("https://evil.com#example.org", "unlisted-domain"),
    ("https://xn--exmple-cua.org/", "unlisted-domain"),
    ("https://8.8.8.8/", "unlisted-domain"),
    ("https://[2606:4700::1111]/", "unlisted-domain"),
    ("https://example.org:8443/", "odd-port"),
    ("http://other.org:22/", "odd-port"),
    // Text that is not a web address.
    ("", "not-an-address"),
    ("example.org", "not-an-address"),
    ("//example.org/", "not-an-address"),
    ("ftp://example.org/", "not-an-address"),
    ("file:///etc/passwd", "not-an-address"),
    ("gopher://example.org/", "not-an-address"),
    ("javascript://example.org/", "not-an-address"),
    ("https://kim@example.org/", "not-an-address"),
    ("https://kim:secret@example.org/", "not-an-address"),
    ("https://example.org@evil.com/", "not-an-address"),
    ("https://example.org%40evil.com/", "not-an-address"),
    ("https://exa mple.org/", "not-an-address"),
    ("https://example.org\\@evil.com/", "not-an-address"),
    ("https://exam\tple.org/", "not-an-address"),
    ("https://example.org\n.evil.com/", "not-an-address"),
    ("https:///path", "not-an-address"),
    ("https://.example.org/", "not-an-address"),
    ("https://example..org/", "not-an-address"),
    ("https://example.org:0/", "not-an-address"),
    ("https://example.org:65536/", "not-an-address"),
    ("https://example.org:x/", "not-an-address"),
    ("https://[::1/", "not-an-address"),
    ("https://[fe80::1%25eth0]/", "not-an-address"),
    ("https://exämple.org/", "not-an-address"),
    ("https://1.2.3.4.5/", "not-an-address"),
    ("https://256.1.1.1/", "not-an-address"),
    ("https://0x1ffffffff/", "not-an-address"),
    // This machine and its network, in every notation.
    ("http://localhost/", "private-address"),
    ("http://LOCALHOST./", "private-address"),
    ("http://a.localhost/", "private-address"),
    ("http://router/", "private-address"),
    ("http://nas.local/", "private-address"),
    ("http://metadata.google.internal/", "private-address"),
    ("http://127.0.0.1/", "private-address"),
    ("http://127.0.0.1:8081/", "private-address"),
    ("http://127.1/", "private-address"),
    ("http://127.0.1/", "private-address"),
    ("http://2130706433/", "private-address"),
    ("http://0x7f000001/", "private-address"),
    ("http://0x7f.1/", "private-address"),
    ("http://0177.0.0.1/", "private-address"),
    ("http://017700000001/", "private-address"),
    ("http://0/", "private-address"),
    ("http://0.0.0.0/", "private-address"),
    ("http://10.1.2.3/", "private-address"),
    ("http://172.16.0.1/", "private-address"),
    ("http://192.168.1.1/", "private-address"),
    ("http://168.63.129.16/", "private-address"),
    ("http://169.254.169.254/latest/meta-data/", "private-address"),
    ("http://0xa9fea9fe/", "private-address"),
    ("http://2852039166/", "private-address"),
    ("http://100.64.0.1/", "private-address"),
    ("http://[::1]/", "private-address"),
    ("http://[::]/", "private-address"),
    ("http://[::ffff:127.0.0.1]/", "private-address"),
    ("http://[::ffff:7f00:1]/", "private-address"),
    ("http://[::127.0.0.1]/", "private-address"),
    ("http://[64:ff9b::7f00:1]/", "private-address"),
    ("http://[2002:7f00:1::]/", "private-address"),
    ("http://[2001::1]/", "private-address"),
    ("http://[fe80::1]/", "private-address"),
    ("http://[fd00::1]/", "private-address"),
    ("http://[ff02::1]/", "private-address"),
];

#[test]
fn addresses_are_judged_by_where_they_lead() {
    let policy = policy("");
    let mut wrong = Vec::new();
    for (address, code) in ADDRESSES {
        let outcome = judge(GateRequest::Http(HttpMethod::Get, address), &policy, &GateTestMachine::new());
        let verdict = outcome.verdict();
        let (_, codes) = heaviest_reasons(verdict);
        let decision = match *code {
            "allowed-domain" => GateDecision::Allow,
            "unlisted-domain" => GateDecision::Ask,
            _ => GateDecision::Deny,
        };
        if codes != [*code] || verdict.decision != decision {
            wrong.push(format!("{address:?}: {} {codes:?}, not {code}", verdict.decision));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(ADDRESSES.len() >= 60, "{}", ADDRESSES.len());
}

#[test]
fn a_post_weighs_more_than_a_get() {
    let policy = policy("");
    let judge_post = |address| {
        judge(GateRequest::Http(HttpMethod::Post, address), &policy, &GateTestMachine::new())
            .verdict()
            .clone()
    };
    assert_eq!(judge_post("https://example.org/").decision, GateDecision::Ask);
    assert_eq!(judge_post("https://other.org/").decision, GateDecision::Deny);
}

#[test]
fn no_level_reaches_this_machine() {
    let policy = GatePolicy { autonomy: AutonomyLevel::Full, ..policy("") };
    let outcome = judge(
        GateRequest::Http(HttpMethod::Get, "http://169.254.169.254/"),
        &policy,
        &GateTestMachine::new(),
    );
    assert_eq!(outcome.verdict().decision, GateDecision::Deny);
}

#[test]
fn public_and_private_ip_addresses_are_distinguished() {
    for public in [
        "1.1.1.1",
        "9.9.9.9",
        "168.63.129.17",
        "172.32.0.1",
        "100.128.0.1",
        "192.0.1.1",
        "2606:4700::1",
        "2a00:1450::1",
        "2a00:100::1",
        "2606:db8::1",
        "2001:200::1",
        "2001:db9::1",
        "2003::1",
        "3ffe::1",
        "3fff:1000::1",
    ] {
        assert!(is_public(public.parse().expect("an IP address")), "{public}");
    }
    for other in [
        "255.255.255.255",
        "198.18.0.1",
        "203.0.113.9",
        "168.63.129.16",
        "::ffff:10.0.0.1",
        "1fff::1",
        "4000::1",
        "2001:1ff::1",
        "2001:db8::1",
        "2002:808::1",
        "3fff::1",
        "3fff:fff::1",
        "e001::1",
    ] {
        assert!(!is_public(other.parse().expect("an IP address")), "{other}");
    }
}

#[test]
fn an_ip_address_has_many_notations() {
    let host = |text: &str| WebAddress::parse(&format!("http://{text}/")).map(|address| address.host);
    for text in ["1.2.3.4", "1.2.772", "1.131844", "16909060", "0x1.2.0x3.4", "01.02.03.04", "0x01020304"] {
        assert_eq!(host(text), Ok(UrlHost::Ip(IpAddr::from([1, 2, 3, 4]))), "{text}");
    }
    for (text, expected) in [
        ("255.255.255.255", [255; 4]),
        ("4294967295", [255; 4]),
        ("1.2.65535", [1, 2, 255, 255]),
        ("1.16777215", [1, 255, 255, 255]),
        ("255.1", [255, 0, 0, 1]),
        ("010.0.0.1", [8, 0, 0, 1]),
        ("0", [0; 4]),
        ("0x", [0; 4]),
    ] {
        assert_eq!(host(text), Ok(UrlHost::Ip(IpAddr::from(expected))), "{text}");
    }
    for text in [
        "256.1",
        "1.256.1",
        "1.2.3.256",
        "1.2.65536",
        "1.16777216",
        "4294967296",
        "1.2.3.4.5",
        "08",
        "1.0xg",
        "a.1",
        "a.0x1",
        "1..2",
    ] {
        assert!(host(text).is_err(), "{text}");
    }
    assert_eq!(host("a.x1"), Ok(UrlHost::Name("a.x1".to_owned())));
    assert_eq!(host("1.a"), Ok(UrlHost::Name("1.a".to_owned())));
}

#[test]
fn an_address_is_split_into_scheme_host_and_port() {
    for (text, scheme, shown) in [
        ("https://example.org", UrlScheme::Https, "example.org:443"),
        ("HTTP://Example.ORG./x", UrlScheme::Http, "example.org:80"),
        ("https://a_b-c.example:8443?x", UrlScheme::Https, "a_b-c.example:8443"),
        ("http://[2606:4700::1]:8080/", UrlScheme::Http, "[2606:4700::1]:8080"),
        ("http://[2606:4700::1]", UrlScheme::Http, "[2606:4700::1]:80"),
        ("http://[::ffff:1.2.3.4]/", UrlScheme::Http, "1.2.3.4:80"),
        ("http://example.org:65535#x", UrlScheme::Http, "example.org:65535"),
    ] {
        let address = WebAddress::parse(text).unwrap();
        assert_eq!((address.scheme, address.host_and_port().as_str()), (scheme, shown), "{text}");
    }
    for (text, what) in [
        ("http://[::1]x/", "only a port can follow the closing bracket"),
        ("http://[1.2.3.4]/", "this is not an IPv6 address"),
        ("http://[::1/", "the closing bracket of the IPv6 address is missing"),
        ("http://a+b/", "this is not a host name; write names with other letters as `xn--…`"),
        ("http://a/\u{7f}", "an address can't contain blanks, control characters or backslashes"),
    ] {
        assert_eq!(WebAddress::parse(text), Err(what), "{text}");
    }
}

#[test]
fn a_rule_names_a_host_its_subdomains_or_a_host_with_a_port() {
    let check = |rule: &str, address: &str| {
        let policy = GatePolicy { allowed_domains: vec![rule.to_owned()], ..policy("") };
        let outcome = judge(GateRequest::Http(HttpMethod::Get, address), &policy, &GateTestMachine::new());
        heaviest_reasons(outcome.verdict()).1.join("+")
    };
    for (rule, address, expected) in [
        ("Example.ORG", "https://example.org/", "allowed-domain"),
        ("*.Example.org", "https://a.example.org/", "allowed-domain"),
        ("*.example.org", "https://example.org/", "unlisted-domain"),
        ("*.example.org", "https://xexample.org/", "unlisted-domain"),
        ("1.1.1.1", "https://1.1.1.1/", "allowed-domain"),
        ("*.1.1.1", "https://1.1.1.1/", "unlisted-domain"),
        ("example.org:8443", "https://example.org:8443/", "allowed-domain"),
        ("example.org:8443", "https://example.org/", "unlisted-domain"),
        // A rule without a port doesn't open other ports or the local network.
        ("example.org", "https://example.org:8443/", "odd-port"),
        ("localhost", "http://localhost/", "private-address"),
        ("localhost:3000", "http://localhost:3000/", "allowed-domain"),
        ("localhost:3000", "http://localhost:3001/", "private-address"),
        ("[::1]:3000", "http://[::1]:3000/", "allowed-domain"),
    ] {
        assert_eq!(check(rule, address), expected, "{rule} {address}");
    }
}
