//! Addresses of the network: read narrowly, and judged by where they lead (C7.5).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::policy::GatePolicy;
use crate::reason::GateReason;
use crate::verdict::GateFindings;

/// Longer ones are refused by most servers anyway.
const LONGEST_ADDRESS: usize = 8192;

/// What is done with an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HttpMethod {
    /// It is asked for.
    Get,
    /// Something is sent to it.
    Post,
}

/// An address that can be read in one way only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebAddress {
    /// `http` or `https`.
    pub scheme: UrlScheme,
    /// The machine it names.
    pub host: UrlHost,
    /// The port it names, or its scheme's.
    pub port: u16,
}

/// How to speak with the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UrlScheme {
    /// In the clear.
    Http,
    /// Encrypted.
    Https,
}

/// The machine that an address names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UrlHost {
    /// By a name, in lower case.
    Name(String),
    /// By a number, however it was written.
    Ip(IpAddr),
}

impl UrlScheme {
    /// The port if none is named.
    #[must_use]
    pub fn default_port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }
}

impl std::fmt::Display for UrlHost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Ip(number) => number.fmt(f),
        }
    }
}

impl WebAddress {
    /// Reads an address. It is refused if programs could read it differently.
    ///
    /// # Errors
    /// With what is wrong, as a sentence without a full stop.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        if text.len() > LONGEST_ADDRESS {
            return Err("the address is too long");
        }
        if text.chars().any(|letter| letter.is_control() || letter.is_whitespace() || letter == '\\') {
            return Err("an address has no blanks, control characters or backslashes");
        }
        let (scheme, rest) =
            text.split_once("://").ok_or("an address begins with `https://` or `http://`")?;
        let scheme = if scheme.eq_ignore_ascii_case("https") {
            UrlScheme::Https
        } else if scheme.eq_ignore_ascii_case("http") {
            UrlScheme::Http
        } else {
            return Err("only `https` and `http` are known");
        };
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        if authority.contains('@') {
            return Err("an address must not hold a user name or a password");
        }
        let (host, port) = split_authority(authority)?;
        let port = port.map_or(Ok(scheme.default_port()), |port| match port.parse() {
            Ok(0) | Err(_) => Err("no such port"),
            Ok(port) => Ok(port),
        })?;
        Ok(Self { scheme, host, port })
    }

    /// Host and port, as a rule that is for both names them.
    #[must_use]
    pub fn host_and_port(&self) -> String {
        match &self.host {
            UrlHost::Ip(IpAddr::V6(number)) => format!("[{number}]:{}", self.port),
            host => format!("{host}:{}", self.port),
        }
    }
}

fn split_authority(authority: &str) -> Result<(UrlHost, Option<&str>), &'static str> {
    if let Some(inside) = authority.strip_prefix('[') {
        let (number, rest) = inside.split_once(']').ok_or("a bracket is not closed")?;
        let number: Ipv6Addr = number.parse().map_err(|_| "this is no IPv6 address")?;
        let port = match rest {
            "" => None,
            rest => Some(rest.strip_prefix(':').ok_or("nothing but a port follows the bracket")?),
        };
        return Ok((UrlHost::Ip(IpAddr::V6(number).to_canonical()), port));
    }
    let (name, port) = authority.split_once(':').map_or((authority, None), |(name, port)| (name, Some(port)));
    let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
    let is_label = |label: &str| {
        let inside = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        !label.is_empty() && label.len() <= 63 && label.bytes().all(inside)
    };
    if name.len() > 253 || !name.split('.').all(is_label) {
        return Err("this is no name of a machine; names with other letters are written as `xn--…`");
    }
    let last = name.rsplit('.').next().unwrap_or_default();
    if last.starts_with("0x") || last.bytes().all(|byte| byte.is_ascii_digit()) {
        let number = parse_legacy_ipv4(&name).ok_or("this is no IPv4 address")?;
        return Ok((UrlHost::Ip(number.into()), port));
    }
    Ok((UrlHost::Name(name), port))
}

/// An IPv4 address in any of its old notations: fewer parts, octal, hexadecimal.
fn parse_legacy_ipv4(text: &str) -> Option<Ipv4Addr> {
    let parts: Vec<u32> = text.split('.').map(parse_ipv4_part).collect::<Option<_>>()?;
    let (last, before) = parts.split_last()?;
    if before.len() > 3 || before.iter().any(|part| *part > 255) {
        return None;
    }
    let bits = 8 * (4 - u32::try_from(before.len()).ok()?);
    if u64::from(*last) >= 1_u64 << bits {
        return None;
    }
    let high = before.iter().enumerate().map(|(place, part)| part << (24 - 8 * place)).sum::<u32>();
    Some(Ipv4Addr::from_bits(high + last))
}

fn parse_ipv4_part(text: &str) -> Option<u32> {
    if let Some(digits) = text.strip_prefix("0x") {
        return if digits.is_empty() { Some(0) } else { u32::from_str_radix(digits, 16).ok() };
    }
    match text.strip_prefix('0') {
        Some(digits) if !digits.is_empty() => u32::from_str_radix(digits, 8).ok(),
        _ => text.parse().ok(),
    }
}

/// Whether a number belongs to the public network: not to this machine, not to its neighbours, not to any purpose of
/// its own. Whoever connects asks again for each number that a name stands for.
#[must_use]
pub fn is_public(number: IpAddr) -> bool {
    match number.to_canonical() {
        IpAddr::V4(number) => is_public_v4(number),
        IpAddr::V6(number) => is_public_v6(number),
    }
}

/// Public by its number, and every virtual machine of one provider reaches that machine's own affairs there.
const CLOUD_METADATA: Ipv4Addr = Ipv4Addr::new(168, 63, 129, 16);

fn is_public_v4(number: Ipv4Addr) -> bool {
    let [a, b, c, _] = number.octets();
    !matches!(
        (a, b, c),
        (0 | 10 | 127 | 224..=255, _, _)
            | (100, 64..=127, _)
            | (169, 254, _)
            | (172, 16..=31, _)
            | (192, 168, _)
            | (192, 0, 0 | 2)
            | (192, 88, 99)
            | (198, 18..=19, _)
            | (198, 51, 100)
            | (203, 0, 113)
    ) && number != CLOUD_METADATA
}

fn is_public_v6(number: Ipv6Addr) -> bool {
    let [a, b, ..] = number.segments();
    // Of the public block: not what carries an IPv4 address inside, what is for examples, or for a purpose of its own.
    (a & 0xe000) == 0x2000
        && !(a == 0x2001 && b < 0x200)
        && !(a == 0x2001 && b == 0xdb8)
        && a != 0x2002
        && !(a == 0x3fff && b < 0x1000)
}

/// Judges an address that a tool was given, or that a server sent it to.
pub(crate) fn judge(text: &str, method: HttpMethod, policy: &GatePolicy, findings: &mut GateFindings) {
    let address = match WebAddress::parse(text) {
        Ok(address) => address,
        Err(what) => {
            findings.add(GateReason::NotAnAddress { what });
            return;
        }
    };
    let host = address.host.to_string();
    let listed_with_port = policy.allowed_domains.contains(&address.host_and_port());
    if !listed_with_port {
        if is_local_host(&address.host) {
            findings.add(GateReason::PrivateAddress { address: host });
            return;
        }
        if address.port != address.scheme.default_port() {
            findings.add(GateReason::OddPort { host: host.clone(), port: address.port });
        }
    }
    let listed =
        listed_with_port || policy.allowed_domains.iter().any(|rule| rule_covers_host(rule, &address.host));
    findings.add(match (method, listed) {
        (HttpMethod::Get, true) => GateReason::AllowedDomain { host },
        (HttpMethod::Get, false) => GateReason::UnlistedDomain { host },
        (HttpMethod::Post, true) => GateReason::Sends { host },
        (HttpMethod::Post, false) => GateReason::SendsUnlisted { host },
    });
}

/// Whether a host is this machine or a neighbour. A name without a dot is one, too.
fn is_local_host(host: &UrlHost) -> bool {
    match host {
        UrlHost::Ip(number) => !is_public(*number),
        UrlHost::Name(name) => {
            !name.contains('.')
                || ["localhost", "local", "internal", "lan", "home", "corp", "intranet", "private", "arpa"]
                    .contains(&name.rsplit('.').next().unwrap_or_default())
        }
    }
}

/// `example.org` covers itself; `*.example.org` covers what is beneath.
fn rule_covers_host(rule: &str, host: &UrlHost) -> bool {
    let rule = rule.to_ascii_lowercase();
    match (host, rule.strip_prefix("*.")) {
        (UrlHost::Name(name), Some(domain)) => {
            name.strip_suffix(domain).is_some_and(|before| before.len() > 1 && before.ends_with('.'))
        }
        (host, None) => host.to_string() == rule,
        (UrlHost::Ip(_), Some(_)) => false,
    }
}
