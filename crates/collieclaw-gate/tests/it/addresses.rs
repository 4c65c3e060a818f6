//! The verdicts on web addresses (C7.5).

use collieclaw_gate::{AutonomyLevel, GateDecision, GatePolicy, GateRequest, HttpMethod, is_public, judge};

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
    for public in
        ["1.1.1.1", "9.9.9.9", "172.32.0.1", "100.128.0.1", "192.0.1.1", "2606:4700::1", "2a00:1450::1"]
    {
        assert!(is_public(public.parse().expect("an IP address")), "{public}");
    }
    for other in ["255.255.255.255", "198.18.0.1", "203.0.113.9", "2001:db8::1", "3fff::1", "::ffff:10.0.0.1"]
    {
        assert!(!is_public(other.parse().expect("an IP address")), "{other}");
    }
}
