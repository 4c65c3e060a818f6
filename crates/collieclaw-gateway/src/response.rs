//! Responses: JSON bodies, errors with a code for programs and a sentence for people, and common headers.

use std::time::Duration;

use axum::body::{Body, Bytes, to_bytes};
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, Request};
use axum::http::StatusCode;
use axum::http::header::{self, HeaderMap, HeaderName, HeaderValue};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;

/// An error response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ErrorResponse {
    pub(super) status: StatusCode,
    pub(super) code: &'static str,
    pub(super) message: String,
    pub(super) retry_after: Option<Duration>,
}

impl ErrorResponse {
    pub(super) fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into(), retry_after: None }
    }

    pub(super) fn with_retry_after(self, wait: Duration) -> Self {
        Self { retry_after: Some(wait), ..self }
    }

    pub(super) fn rate_limited(wait: Duration) -> Self {
        Self::new(StatusCode::TOO_MANY_REQUESTS, "too-often", "too many requests: try again later")
            .with_retry_after(wait)
    }

    /// Returns the error for an invalid path or query.
    pub(super) fn bad_address(why: &str) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "bad-address", format!("invalid address: {why}"))
    }
}

impl IntoResponse for ErrorResponse {
    fn into_response(self) -> Response {
        let body = json!({ "error": { "code": self.code, "message": self.message } });
        let mut response = json_response_with_status(self.status, &body);
        let headers = response.headers_mut();
        if let Some(wait) = self.retry_after {
            // Rounds up to whole seconds, so that clients never retry too early.
            headers.insert(header::RETRY_AFTER, HeaderValue::from(wait.as_secs() + 1));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

pub(super) fn json_response(body: &impl Serialize) -> Response {
    json_response_with_status(StatusCode::OK, body)
}

pub(super) fn json_response_with_status(status: StatusCode, body: &impl Serialize) -> Response {
    let kind = [(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))];
    match serde_json::to_vec(body) {
        Ok(text) => (status, kind, text).into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

/// Parses the query of an address.
pub(super) fn parse_query<T>(
    query: Result<Query<T>, QueryRejection>,
    form: &str,
) -> Result<T, ErrorResponse> {
    query.map(|Query(query)| query).map_err(|_| ErrorResponse::bad_address(form))
}

/// The maximum size of a body: a message with room for a pasted file.
const MAX_BODY_BYTES: usize = 1 << 20;

/// The time limit for receiving a body, enough for a megabyte on a loopback address.
const BODY_TIMEOUT: Duration = Duration::from_secs(5);

/// Reads and parses a JSON body. The content type is required, because a form on another site can't set it.
pub(super) async fn parse_json_body<T: DeserializeOwned>(request: Request) -> Result<T, ErrorResponse> {
    let (head, body) = request.into_parts();
    if !is_json(&head.headers) {
        let message = "the body must be sent as `Content-Type: application/json`";
        return Err(ErrorResponse::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "not-json", message));
    }
    let bytes = read_body(body).await?;
    serde_json::from_slice(&bytes).map_err(|fault| {
        ErrorResponse::new(StatusCode::BAD_REQUEST, "bad-body", format!("invalid body: {fault}"))
    })
}

async fn read_body(body: Body) -> Result<Bytes, ErrorResponse> {
    match tokio::time::timeout(BODY_TIMEOUT, to_bytes(body, MAX_BODY_BYTES)).await {
        Ok(Ok(bytes)) => Ok(bytes),
        // A client that disconnected in the middle gets no misleading error.
        Ok(Err(_)) => {
            let message = format!("the body has more than {MAX_BODY_BYTES} bytes");
            Err(ErrorResponse::new(StatusCode::PAYLOAD_TOO_LARGE, "too-large", message))
        }
        Err(_) => {
            Err(ErrorResponse::new(StatusCode::REQUEST_TIMEOUT, "too-slow", "the body arrived too slowly"))
        }
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"))
}

/// The content security policy: the page loads from and connects to the gateway only, runs no inline code, and can't be
/// framed.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
     img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
     require-trusted-types-for 'script'; trusted-types 'none'";

/// Adds the security headers to every response, including errors.
pub(super) fn add_security_headers(headers: &mut HeaderMap) {
    let always = [
        (header::CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-store"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        (HeaderName::from_static("permissions-policy"), "camera=(), geolocation=(), microphone=()"),
    ];
    for (name, value) in always {
        headers.insert(name, HeaderValue::from_static(value));
    }
}
