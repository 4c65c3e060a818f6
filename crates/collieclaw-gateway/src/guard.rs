//! Who may ask: this machine, by our own name, with the token.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::{self, HeaderMap, HeaderName, HeaderValue};
use axum::http::{Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::response::{ErrorResponse, add_security_headers};
use super::state::GatewayState;

/// What needs no token: it tells nothing and does nothing.
const PUBLIC_PATHS: &[&str] = &["/", "/page.css", "/page.js", "/health"];

/// Browsers tell with it where a request comes from, also where they send no origin.
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Stands before every route.
pub(super) async fn authorize(
    State(desk): State<Arc<GatewayState>>,
    request: Request,
    next: Next,
) -> Response {
    let given = bearer_token(&request);
    let known = given.is_some_and(|given| desk.token.matches(given.as_bytes()));
    let admitted = match known {
        true => desk.allowed_hosts.check_origin(&request),
        false => authorize_without_token(&desk, &request, given),
    };
    let mut response = match admitted {
        Ok(()) => next.run(request).await,
        Err(refusal) => refusal.into_response(),
    };
    add_security_headers(response.headers_mut());
    if !known {
        // Strangers hold no connection longer than it takes to answer.
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// What stands where the token belongs.
fn bearer_token(request: &Request) -> Option<&str> {
    single_header(request.headers(), &header::AUTHORIZATION)
        .and_then(|value| value.split_once(' '))
        .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("Bearer"))
        .map(|(_, given)| given.trim())
}

/// Whoever does not have the token.
fn authorize_without_token(
    desk: &GatewayState,
    request: &Request,
    given: Option<&str>,
) -> Result<(), ErrorResponse> {
    desk.allowed_hosts.check_origin(request)?;
    if PUBLIC_PATHS.contains(&request.uri().path()) {
        return Ok(());
    }
    desk.failed_auth_limiter.take().map_err(ErrorResponse::rate_limited)?;
    let in_address = request.uri().query().is_some_and(|query| query.contains("token="));
    Err(ErrorResponse::new(
        StatusCode::UNAUTHORIZED,
        "no-token",
        match (in_address, given) {
            (true, _) => "the token belongs into the header `Authorization: Bearer`, never into an address",
            (false, None) => "send the token of gateway.token as `Authorization: Bearer TOKEN`",
            (false, Some(_)) => "this is not the token of gateway.token",
        },
    ))
}

/// The names under which we are reached. A name that somebody else made lead here is none of them.
pub(super) struct AllowedHosts {
    hosts: [String; 3],
}

impl AllowedHosts {
    pub(super) fn for_address(address: SocketAddr) -> Self {
        let port = address.port();
        Self { hosts: ["127.0.0.1", "localhost", "[::1]"].map(|host| format!("{host}:{port}")) }
    }

    /// A page that is only looked at may be come to from anywhere; nothing else may.
    fn check_origin(&self, request: &Request) -> Result<(), ErrorResponse> {
        let (uri, headers) = (request.uri(), request.headers());
        let page = uri.path() == "/" && request.method() == Method::GET;
        let refused = |code, message: &str| ErrorResponse::new(StatusCode::FORBIDDEN, code, message);
        let host = single_header(headers, &header::HOST).filter(|host| self.contains(host));
        let host =
            host.ok_or_else(|| refused("foreign-host", "this is not the name that we are reached by"))?;
        if uri.authority().is_some_and(|authority| authority.as_str() != host) {
            return Err(refused("foreign-host", "the address names another host than the request"));
        }
        let cross_site = || refused("cross-site", "requests of other sites are refused");
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

/// The value of a header that is there once.
fn single_header<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (Some(value), None) => value.to_str().ok(),
        _ => None,
    }
}
