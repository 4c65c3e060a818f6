//! Access control: requests must come from this machine, name our own host, and carry the token.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::{self, HeaderMap, HeaderName, HeaderValue};
use axum::http::{Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::response::{ErrorResponse, add_security_headers};
use super::state::GatewayState;

/// The paths that need no token, because they reveal and change nothing.
const PUBLIC_PATHS: &[&str] = &["/", "/page.css", "/page.js", "/health"];

/// The header in which browsers name the origin of a request, even if they send no `Origin`.
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Checks every request before it reaches a route.
pub(super) async fn authorize(
    State(gateway): State<Arc<GatewayState>>,
    request: Request,
    next: Next,
) -> Response {
    let given = bearer_token(&request);
    let known = given.is_some_and(|given| gateway.token.matches(given.as_bytes()));
    let admitted = match known {
        true => gateway.allowed_hosts.check_origin(&request),
        false => authorize_without_token(&gateway, &request, given),
    };
    let mut response = match admitted {
        Ok(()) => next.run(request).await,
        Err(refusal) => refusal.into_response(),
    };
    add_security_headers(response.headers_mut());
    if !known {
        // Closes the connection of unauthenticated clients after the answer.
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// Returns the bearer token of a request.
fn bearer_token(request: &Request) -> Option<&str> {
    single_header(request.headers(), &header::AUTHORIZATION)
        .and_then(|value| value.split_once(' '))
        .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("Bearer"))
        .map(|(_, given)| given.trim())
}

/// Returns the answer to a request without the right token.
fn authorize_without_token(
    gateway: &GatewayState,
    request: &Request,
    given: Option<&str>,
) -> Result<(), ErrorResponse> {
    gateway.allowed_hosts.check_origin(request)?;
    if PUBLIC_PATHS.contains(&request.uri().path()) {
        return Ok(());
    }
    gateway.failed_auth_limiter.take().map_err(ErrorResponse::rate_limited)?;
    let in_address = request.uri().query().is_some_and(|query| query.contains("token="));
    Err(ErrorResponse::new(
        StatusCode::UNAUTHORIZED,
        "no-token",
        match (in_address, given) {
            (true, _) => "send the token in the header `Authorization: Bearer`, never in the address",
            (false, None) => "send the token of gateway.token as `Authorization: Bearer TOKEN`",
            (false, Some(_)) => "incorrect token: use the one in gateway.token",
        },
    ))
}

/// The host names of the gateway. Rejecting all others stops DNS rebinding.
pub(super) struct AllowedHosts {
    hosts: [String; 3],
}

impl AllowedHosts {
    pub(super) fn for_address(address: SocketAddr) -> Self {
        let port = address.port();
        Self { hosts: ["127.0.0.1", "localhost", "[::1]"].map(|host| format!("{host}:{port}")) }
    }

    /// Checks host and origin. Other sites may link to the page itself, and to nothing else.
    fn check_origin(&self, request: &Request) -> Result<(), ErrorResponse> {
        let (uri, headers) = (request.uri(), request.headers());
        let page = uri.path() == "/" && request.method() == Method::GET;
        let refused = |code, message: &str| ErrorResponse::new(StatusCode::FORBIDDEN, code, message);
        let host = single_header(headers, &header::HOST).filter(|host| self.contains(host));
        let host = host.ok_or_else(|| refused("foreign-host", "unknown host name in the request"))?;
        if uri.authority().is_some_and(|authority| authority.as_str() != host) {
            return Err(refused("foreign-host", "the address and the `Host` header name different hosts"));
        }
        let cross_site = || refused("cross-site", "cross-site requests are refused");
        if headers.contains_key(header::ORIGIN) {
            let ours =
                single_header(headers, &header::ORIGIN).and_then(|origin| origin.strip_prefix("http://"));
            if ours != Some(host) {
                return Err(cross_site());
            }
        }
        match headers.get(FETCH_SITE).map(HeaderValue::as_bytes) {
            None | Some(b"same-origin" | b"none") => Ok(()),
            Some(_) if page => Ok(()),
            Some(_) => Err(cross_site()),
        }
    }

    fn contains(&self, host: &str) -> bool {
        self.hosts.iter().any(|known| known.eq_ignore_ascii_case(host))
    }
}

/// Returns the value of a header that occurs exactly once.
fn single_header<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (Some(value), None) => value.to_str().ok(),
        _ => None,
    }
}
