//! Parses the head of a request to the proxy. Heads that programs could read differently are refused.

use collieclaw_gate::UrlScheme;

use super::super::url::RequestUrl;

/// The maximum number of header fields.
const MAX_FIELDS: usize = 100;

/// Header fields that concern the connection to the proxy only and are never passed on (RFC 9110, 7.6.1).
const HOP_FIELDS: &[&str] = &[
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "upgrade",
];

/// A request to the proxy.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ProxyRequest {
    /// A request for a tunnel to `host:port`.
    Tunnel { authority: String },
    /// A request for a plain HTTP resource.
    Forward(ForwardedRequest),
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct ForwardedRequest {
    pub(super) url: RequestUrl,
    /// The head to send to the server.
    pub(super) head: Vec<u8>,
    /// The number of bytes of the body.
    pub(super) body_length: u64,
}

/// A head that can't be accepted, with the status of the reply.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct BadRequest {
    pub(super) status: &'static str,
    pub(super) fault: &'static str,
}

fn bad(fault: &'static str) -> BadRequest {
    BadRequest { status: "400 Bad Request", fault }
}

impl ProxyRequest {
    /// Parses a head without the empty line at its end.
    pub(super) fn parse(head: &[u8]) -> Result<Self, BadRequest> {
        let text = std::str::from_utf8(head).map_err(|_| bad("the request is not ASCII"))?;
        let is_valid = |byte: u8| matches!(byte, b' '..=b'~' | b'\t' | b'\r' | b'\n');
        if !text.bytes().all(is_valid) {
            return Err(bad("the request contains control characters or other letters than ASCII"));
        }
        let mut lines = text.split("\r\n");
        let request_line = lines.next().unwrap_or_default();
        let fields = lines.map(parse_field).collect::<Result<Vec<_>, _>>()?;
        if fields.len() > MAX_FIELDS {
            return Err(bad("the request has too many header fields"));
        }
        let mut words = request_line.split(' ');
        let (method, target, version) =
            (words.next().unwrap_or_default(), words.next().unwrap_or_default(), words.next());
        let has_control = request_line.contains(['\r', '\n', '\t']);
        if has_control || !is_token(method) || target.is_empty() || words.next().is_some() {
            return Err(bad("the request line is invalid"));
        }
        if !matches!(version, Some("HTTP/1.1" | "HTTP/1.0")) {
            return Err(bad("only HTTP/1.1 is supported"));
        }
        if method == "CONNECT" {
            return parse_tunnel(target);
        }
        parse_forward(method, target, &fields).map(Self::Forward)
    }
}

fn parse_tunnel(target: &str) -> Result<ProxyRequest, BadRequest> {
    let is_authority =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_' | b':' | b'[' | b']');
    let has_port = target
        .rsplit_once(':')
        .is_some_and(|(_, port)| port.bytes().all(|byte| byte.is_ascii_digit()) && !port.is_empty());
    if !target.bytes().all(is_authority) || !has_port {
        return Err(bad("the target of CONNECT must be `host:port`"));
    }
    Ok(ProxyRequest::Tunnel { authority: target.to_owned() })
}

fn parse_forward(
    method: &str,
    target: &str,
    fields: &[(&str, &str)],
) -> Result<ForwardedRequest, BadRequest> {
    if target.starts_with('/') || target == "*" {
        return Err(bad(
            "this is a proxy; the request must name a whole address such as `http://example.org/`",
        ));
    }
    let url = RequestUrl::parse(target).map_err(bad)?;
    if url.address.scheme != UrlScheme::Http {
        return Err(bad("a proxy can be asked for `https` only with CONNECT"));
    }
    let authority = url.origin().trim_start_matches("http://").to_owned();
    let is_same_host = |value: &str| {
        RequestUrl::parse(&format!("http://{value}/")).is_ok_and(|named| named.address == url.address)
    };
    let mut hosts = fields.iter().filter(|(name, _)| name.eq_ignore_ascii_case("host"));
    if hosts.next().is_some_and(|(_, value)| !is_same_host(value)) || hosts.next().is_some() {
        return Err(bad("the field `Host` differs from the address of the request"));
    }
    let body_length = body_length(fields)?;
    let mut head = format!("{method} {} HTTP/1.1\r\nHost: {authority}\r\n", url.target);
    for (name, value) in fields {
        let is_hop = HOP_FIELDS.iter().any(|field| name.eq_ignore_ascii_case(field));
        if !is_hop && !name.eq_ignore_ascii_case("host") && !is_named_by_connection(fields, name) {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
    }
    head.push_str("Connection: close\r\n\r\n");
    Ok(ForwardedRequest { url, head: head.into_bytes(), body_length })
}

/// Returns true if the field `Connection` lists this field. Fields that frame the body are never dropped.
fn is_named_by_connection(fields: &[(&str, &str)], name: &str) -> bool {
    let lists = fields.iter().filter(|(field, _)| field.eq_ignore_ascii_case("connection"));
    let mut named = lists.flat_map(|(_, value)| value.split(','));
    !name.eq_ignore_ascii_case("content-length") && named.any(|word| word.trim().eq_ignore_ascii_case(name))
}

/// Returns the length of the body, which must be unambiguous.
fn body_length(fields: &[(&str, &str)]) -> Result<u64, BadRequest> {
    if fields.iter().any(|(name, _)| name.eq_ignore_ascii_case("transfer-encoding")) {
        let fault = "a body of unknown length is supported with `https` only";
        return Err(BadRequest { status: "411 Length Required", fault });
    }
    let mut lengths = fields.iter().filter(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    let length = match lengths.next() {
        None => 0,
        Some((_, value)) if value.bytes().all(|byte| byte.is_ascii_digit()) => {
            value.parse().map_err(|_| bad("the field `Content-Length` is invalid"))?
        }
        Some(_) => return Err(bad("the field `Content-Length` is invalid")),
    };
    if lengths.next().is_some() {
        return Err(bad("the field `Content-Length` is there twice"));
    }
    Ok(length)
}

fn parse_field(line: &str) -> Result<(&str, &str), BadRequest> {
    let (name, value) = line.split_once(':').ok_or(bad("a header field has no colon"))?;
    if !is_token(name) || value.contains(['\r', '\n']) {
        return Err(bad("a header field is invalid"));
    }
    Ok((name, value.trim_matches([' ', '\t'])))
}

/// Returns true for a token of RFC 9110, 5.6.2.
fn is_token(text: &str) -> bool {
    let is_token_byte = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(is_token_byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(head: &str) -> Result<ProxyRequest, &'static str> {
        ProxyRequest::parse(head.as_bytes()).map_err(|bad| bad.fault)
    }

    #[test]
    fn a_plain_request_is_passed_on_without_fields_of_the_proxy() {
        let head = "POST http://a.example:8080/x?y HTTP/1.1\r\nHost: A.example:8080\r\nProxy-Authorization: b\r\n\
                    Connection: keep-alive, X-Hop\r\nX-Hop: 1\r\nContent-Length: 5\r\nAccept: */*";
        let ProxyRequest::Forward(request) = parse(head).unwrap() else { panic!() };
        assert_eq!(
            String::from_utf8(request.head).unwrap(),
            "POST /x?y HTTP/1.1\r\nHost: a.example:8080\r\nContent-Length: 5\r\nAccept: */*\r\nConnection: close\r\n\r\n"
        );
        assert_eq!(request.body_length, 5);
    }

    #[test]
    fn a_tunnel_names_a_host_and_a_port() {
        for target in ["a.example:443", "[::1]:443", "127.1:80"] {
            let expected = ProxyRequest::Tunnel { authority: target.to_owned() };
            assert_eq!(parse(&format!("CONNECT {target} HTTP/1.1\r\nHost: other")), Ok(expected));
        }
        for target in [
            "a.example",
            "a.example:",
            "user@a.example:443",
            "https://a.example:443",
            "a.example:443/x",
            "a:b",
        ] {
            let fault = parse(&format!("CONNECT {target} HTTP/1.1")).unwrap_err();
            assert_eq!(fault, "the target of CONNECT must be `host:port`", "{target}");
        }
    }

    #[test]
    fn ambiguous_requests_are_refused() {
        for (head, fault) in [
            (
                "GET / HTTP/1.1\r\nHost: a.example",
                "this is a proxy; the request must name a whole address such as `http://example.org/`",
            ),
            (
                "GET http://a.example/ HTTP/1.1\r\nHost: b.example",
                "the field `Host` differs from the address of the request",
            ),
            (
                "GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\nHost: b.example",
                "the field `Host` differs from the address of the request",
            ),
            (
                "GET http://a.example/ HTTP/1.1\r\nHost: a.example:81",
                "the field `Host` differs from the address of the request",
            ),
            ("GET http://user@a.example/ HTTP/1.1", "an address must not contain a user name or a password"),
            ("GET https://a.example/ HTTP/1.1", "a proxy can be asked for `https` only with CONNECT"),
            ("GET ftp://a.example/ HTTP/1.1", "only `https` and `http` are supported"),
            ("GET http://a.example/ HTTP/2", "only HTTP/1.1 is supported"),
            ("GET  http://a.example/ HTTP/1.1", "the request line is invalid"),
            ("GET http://a.example/ x HTTP/1.1", "the request line is invalid"),
            ("GET http://a.example/\n HTTP/1.1", "the request line is invalid"),
            ("GET http://a.example/ HTTP/1.1\r\nX: a\n\tb", "a header field is invalid"),
            ("GET http://a.example/ HTTP/1.1\r\n folded: x", "a header field is invalid"),
            ("GET http://a.example/ HTTP/1.1\r\nX : y", "a header field is invalid"),
            ("GET http://a.example/ HTTP/1.1\r\nX", "a header field has no colon"),
            (
                "GET http://a.example/ HTTP/1.1\r\nX: \0",
                "the request contains control characters or other letters than ASCII",
            ),
            (
                "POST http://a.example/ HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 1",
                "the field `Content-Length` is there twice",
            ),
            (
                "POST http://a.example/ HTTP/1.1\r\nContent-Length: +1",
                "the field `Content-Length` is invalid",
            ),
            (
                "POST http://a.example/ HTTP/1.1\r\nContent-Length: 99999999999999999999",
                "the field `Content-Length` is invalid",
            ),
            (
                "POST http://a.example/ HTTP/1.1\r\nTransfer-Encoding: chunked",
                "a body of unknown length is supported with `https` only",
            ),
        ] {
            assert_eq!(parse(head), Err(fault), "{head:?}");
        }
        let many = "X: y\r\n".repeat(MAX_FIELDS + 1);
        let head = format!("GET http://a.example/ HTTP/1.1\r\n{}", many.trim_end());
        assert_eq!(parse(&head), Err("the request has too many header fields"));
    }
}
