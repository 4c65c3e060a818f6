//! A URL that is parsed once, so the judged URL is the requested URL.

use std::fmt;
use std::fmt::Write as _;

use collieclaw_gate::{UrlHost, UrlScheme, WebAddress};

/// A server's address and the path to request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestUrl {
    pub address: WebAddress,
    /// Path and query, percent-encoded; starts with `/`.
    pub(crate) target: String,
}

impl RequestUrl {
    /// Parses a URL and drops its fragment.
    ///
    /// # Errors
    /// Describes the mistake as a sentence without a full stop.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        let address = WebAddress::parse(text)?;
        let (_, rest) = text.split_once("://").unwrap_or_default();
        let start = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let target = rest.get(start..).unwrap_or_default();
        let target = target.split('#').next().unwrap_or_default();
        let slash = if target.starts_with('/') { "" } else { "/" };
        Ok(Self { address, target: percent_encode(&format!("{slash}{target}")) })
    }

    /// Resolves the target of a redirect, which may be relative to this URL.
    ///
    /// # Errors
    /// Describes the mistake as a sentence without a full stop.
    pub(crate) fn resolve_location(&self, location: &str) -> Result<Self, &'static str> {
        let location = location.trim();
        let scheme = match self.address.scheme {
            UrlScheme::Http => "http",
            UrlScheme::Https => "https",
        };
        if let Some(rest) = location.strip_prefix("//") {
            return Self::parse(&format!("{scheme}://{rest}"));
        }
        let before_colon = location.split(['/', '?', '#']).next().unwrap_or_default();
        if before_colon.contains(':') {
            return Self::parse(location);
        }
        let origin = self.origin();
        let (path, _) = self.target.split_once('?').unwrap_or((&self.target, ""));
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        Self::parse(&match location.chars().next() {
            Some('/') => format!("{origin}{}", remove_dot_segments(location)),
            Some('?') => format!("{origin}{path}{location}"),
            Some('#') | None => format!("{origin}{}", self.target),
            Some(_) => format!("{origin}{}", remove_dot_segments(&format!("{folder}/{location}"))),
        })
    }

    /// Returns scheme, host and port.
    pub(crate) fn origin(&self) -> String {
        let WebAddress { scheme, host, port } = &self.address;
        let (name, usual) = match scheme {
            UrlScheme::Http => ("http", scheme.default_port()),
            UrlScheme::Https => ("https", scheme.default_port()),
        };
        let host = match host {
            UrlHost::Ip(std::net::IpAddr::V6(ip)) => format!("[{ip}]"),
            other => other.to_string(),
        };
        if *port == usual { format!("{name}://{host}") } else { format!("{name}://{host}:{port}") }
    }
}

impl fmt::Display for RequestUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.origin(), self.target)
    }
}

/// Encodes characters that HTTP doesn't allow in a request line.
fn percent_encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'"' | b'<' | b'>' | b'\\' | b'^' | b'`' | b'{' | b'|' | b'}' | 0..=0x20 | 0x7f.. => {
                // Writing to a string can't fail.
                let _ = write!(encoded, "%{byte:02X}");
            }
            plain => encoded.push(char::from(plain)),
        }
    }
    encoded
}

/// Removes `.` and `..` from a path, never leading above the root (RFC 3986, 5.2.4).
fn remove_dot_segments(target: &str) -> String {
    let end = target.find(['?', '#']).unwrap_or(target.len());
    let (path, rest) = target.split_at(end);
    let mut kept: Vec<&str> = Vec::new();
    let mut ends_in_folder = false;
    for step in path.split('/').skip(1) {
        ends_in_folder = matches!(step, "." | "..");
        match step {
            "." => {}
            ".." => drop(kept.pop()),
            step => kept.push(step),
        }
    }
    if ends_in_folder {
        kept.push("");
    }
    format!("/{}{rest}", kept.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirects_are_resolved_relative_to_the_current_url() {
        let here = RequestUrl::parse("https://example.org/a/b/c?q=1#part").unwrap();
        assert_eq!(here.to_string(), "https://example.org/a/b/c?q=1");
        for (location, expected) in [
            ("d", "https://example.org/a/b/d"),
            ("./d/", "https://example.org/a/b/d/"),
            ("../d?x", "https://example.org/a/d?x"),
            ("../../../../d", "https://example.org/d"),
            ("..", "https://example.org/a/"),
            ("/d/./e/../f", "https://example.org/d/f"),
            ("?x=/../", "https://example.org/a/b/c?x=/../"),
            ("#top", "https://example.org/a/b/c?q=1"),
            ("", "https://example.org/a/b/c?q=1"),
            ("//other.example/x", "https://other.example/x"),
            ("HTTP://Other.Example:8080", "http://other.example:8080/"),
            ("http://[::1]/x", "http://[::1]/x"),
            ("d e", "refused: an address can't contain blanks, control characters or backslashes"),
            ("é|x", "https://example.org/a/b/%C3%A9%7Cx"),
            ("file:///etc/passwd", "refused: only `https` and `http` are supported"),
            ("javascript:alert(1)", "refused: an address must start with `https://` or `http://`"),
            ("http://user@other.example/", "refused: an address must not contain a user name or a password"),
            ("/x\\y", "refused: an address can't contain blanks, control characters or backslashes"),
        ] {
            let found = here
                .resolve_location(location)
                .map_or_else(|what| format!("refused: {what}"), |url| url.to_string());
            assert_eq!(found, expected, "{location}");
        }
    }
}
