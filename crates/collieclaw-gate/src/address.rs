//! Parses web addresses strictly and judges them by the machine they lead to (C7.5).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::policy::GatePolicy;
use crate::reason::GateReason;
use crate::verdict::GateFindings;

/// The maximum length of an address in bytes. Most servers refuse longer addresses anyway.
const LONGEST_ADDRESS: usize = 8192;

/// The HTTP method of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HttpMethod {
    Get,
    Post,
}

/// The parts of an address that decide where a request goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebAddress {
    pub scheme: UrlScheme,
    pub host: UrlHost,
    /// The port in the address, or the default port of the scheme.
    pub port: u16,
}

/// The scheme of an address; other schemes are refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UrlScheme {
    Http,
    Https,
}

/// The host of an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UrlHost {
    /// A host name in lower case.
    Name(String),
    /// An IP address, in whichever notation it was written.
    Ip(IpAddr),
}

impl UrlScheme {
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
            Self::Ip(ip) => ip.fmt(f),
        }
    }
}

impl WebAddress {
    /// Parses an address. Addresses that programs could read differently are refused.
    ///
    /// # Errors
    /// Returns the fault as a sentence without a full stop.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        if text.len() > LONGEST_ADDRESS {
            return Err("the address is too long");
        }
        if text.chars().any(|letter| letter.is_control() || letter.is_whitespace() || letter == '\\') {
            return Err("an address can't contain blanks, control characters or backslashes");
        }
        let (scheme, rest) =
            text.split_once("://").ok_or("an address must start with `https://` or `http://`")?;
        let scheme = if scheme.eq_ignore_ascii_case("https") {
            UrlScheme::Https
        } else if scheme.eq_ignore_ascii_case("http") {
            UrlScheme::Http
        } else {
            return Err("only `https` and `http` are supported");
        };
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        if authority.contains('@') {
            return Err("an address must not contain a user name or a password");
        }
        let (host, port) = split_authority(authority)?;
        let port = port.map_or(Ok(scheme.default_port()), |port| match port.parse() {
            Ok(0) | Err(_) => Err("a port is a number from 1 to 65535"),
            Ok(port) => Ok(port),
        })?;
        Ok(Self { scheme, host, port })
    }

    /// Returns true for the loopback interface: `localhost` and its two usual addresses.
    pub(crate) fn is_loopback(&self) -> bool {
        match &self.host {
            UrlHost::Name(name) => name == "localhost",
            UrlHost::Ip(ip) => {
                [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)].contains(ip)
            }
        }
    }

    /// Returns true if the list of allowed domains has exactly this host and port.
    pub(crate) fn is_listed_with_port(&self, policy: &GatePolicy) -> bool {
        policy.allowed_domains.contains(&self.host_and_port())
    }

    /// Returns `host:port`, in the form that `allowed_domains` uses.
    #[must_use]
    pub fn host_and_port(&self) -> String {
        match &self.host {
            UrlHost::Ip(IpAddr::V6(ip)) => format!("[{ip}]:{}", self.port),
            host => format!("{host}:{}", self.port),
        }
    }
}

fn split_authority(authority: &str) -> Result<(UrlHost, Option<&str>), &'static str> {
    if let Some(inside) = authority.strip_prefix('[') {
        let (ip, rest) =
            inside.split_once(']').ok_or("the closing bracket of the IPv6 address is missing")?;
        let ip: Ipv6Addr = ip.parse().map_err(|_| "this is not an IPv6 address")?;
        let port = match rest {
            "" => None,
            rest => Some(rest.strip_prefix(':').ok_or("only a port can follow the closing bracket")?),
        };
        return Ok((UrlHost::Ip(IpAddr::V6(ip).to_canonical()), port));
    }
    let (name, port) = authority.split_once(':').map_or((authority, None), |(name, port)| (name, Some(port)));
    let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
    let is_label = |label: &str| {
        let inside = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        !label.is_empty() && label.len() <= 63 && label.bytes().all(inside)
    };
    if name.len() > 253 || !name.split('.').all(is_label) {
        return Err("this is not a host name; write names with other letters as `xn--…`");
    }
    let last = name.rsplit('.').next().unwrap_or_default();
    if last.starts_with("0x") || last.bytes().all(|byte| byte.is_ascii_digit()) {
        let ip = parse_legacy_ipv4(&name).ok_or("this is not an IPv4 address")?;
        return Ok((UrlHost::Ip(ip.into()), port));
    }
    Ok((UrlHost::Name(name), port))
}

/// Parses an IPv4 address in any notation that `inet_aton` accepts: fewer than four parts, octal,
/// hexadecimal.
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

/// Returns true for IP addresses of the public internet, and false for this machine, its local network and
/// reserved ranges. The HTTP client repeats this check for each IP address that a name resolves to.
#[must_use]
pub fn is_public(ip: IpAddr) -> bool {
    match ip.to_canonical() {
        IpAddr::V4(ip) => is_public_v4(ip),
        IpAddr::V6(ip) => is_public_v6(ip),
    }
}

/// The metadata service of Azure: a public IP address at which every virtual machine reaches its own
/// configuration.
const CLOUD_METADATA: Ipv4Addr = Ipv4Addr::new(168, 63, 129, 16);

fn is_public_v4(ip: Ipv4Addr) -> bool {
    let [a, b, c, _] = ip.octets();
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
    ) && ip != CLOUD_METADATA
}

fn is_public_v6(ip: Ipv6Addr) -> bool {
    let [a, b, ..] = ip.segments();
    // Global unicast (2000::/3), except Teredo and other 2001::/23 assignments, both documentation ranges,
    // and 6to4, which embeds an IPv4 address.
    (a & 0xe000) == 0x2000
        && !(a == 0x2001 && b < 0x200)
        && !(a == 0x2001 && b == 0xdb8)
        && a != 0x2002
        && !(a == 0x3fff && b < 0x1000)
}

/// Judges the address of a request, or the target of a redirect.
pub(crate) fn judge(text: &str, method: HttpMethod, policy: &GatePolicy, findings: &mut GateFindings) {
    let address = match WebAddress::parse(text) {
        Ok(address) => address,
        Err(what) => {
            findings.add(GateReason::NotAnAddress { what });
            return;
        }
    };
    let host = address.host.to_string();
    let listed_with_port = address.is_listed_with_port(policy);
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

/// Returns true for this machine and its local network. A name without a dot counts as local.
fn is_local_host(host: &UrlHost) -> bool {
    match host {
        UrlHost::Ip(ip) => !is_public(*ip),
        UrlHost::Name(name) => {
            !name.contains('.')
                || ["localhost", "local", "internal", "lan", "home", "corp", "intranet", "private", "arpa"]
                    .contains(&name.rsplit('.').next().unwrap_or_default())
        }
    }
}

/// Returns true if a rule covers a host: `example.org` covers itself, `*.example.org` covers its subdomains.
fn rule_covers_host(rule: &str, host: &UrlHost) -> bool {
    let rule = rule.to_ascii_lowercase();
    match (host, rule.strip_prefix("*.")) {
        (UrlHost::Name(name), Some(domain)) => {
            name.strip_suffix(domain).is_some_and(|before| before.ends_with('.'))
        }
        (host, None) => host.to_string() == rule,
        (UrlHost::Ip(_), Some(_)) => false,
    }
}
