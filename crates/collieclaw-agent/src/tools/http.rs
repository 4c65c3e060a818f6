//! The tool `http`, which fetches a URL or sends text to it.

use collieclaw_gate::{GateRequest, HttpMethod};
use collieclaw_providers::net::{
    FetchContext, FetchError, FetchRequest, FetchResponse, FetchedBody, SystemResolver, WaitError,
};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{BuiltInTool, PreparedCall, ToolContext, ToolResult};
use crate::runtime::CallGrant;

/// The content type of a body if the call names none.
const DEFAULT_CONTENT_TYPE: &str = "text/plain; charset=utf-8";

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct HttpCall {
    /// The URL, such as `https://example.org/page`.
    url: String,
    /// The HTTP method, GET by default.
    #[serde(default)]
    method: HttpToolMethod,
    /// The text to send, with POST only.
    #[serde(default)]
    body: Option<String>,
    /// The type of the body, such as `application/json`.
    #[serde(default)]
    content_type: Option<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
enum HttpToolMethod {
    #[default]
    #[serde(rename = "GET")]
    Get,
    #[serde(rename = "POST")]
    Post,
}

impl BuiltInTool for HttpCall {
    const NAME: &'static str = "http";
    const DESCRIPTION: &'static str =
        "Fetches a web page or document as text, or sends text to a URL with POST.";

    fn validate(&self) -> Result<(), String> {
        if self.method == HttpToolMethod::Get && (self.body.is_some() || self.content_type.is_some()) {
            return Err("`body` and `content_type` can only be used with `method = \"POST\"`".to_owned());
        }
        let is_printable = |text: &str| text.bytes().all(|byte| matches!(byte, b' '..=b'~'));
        if !self.content_type.as_deref().is_none_or(is_printable) {
            return Err("`content_type` is invalid; use a type such as `application/json`".to_owned());
        }
        Ok(())
    }
}

impl PreparedCall for HttpCall {
    fn call(&self) -> GateRequest<'_> {
        GateRequest::Http(self.method(), &self.url)
    }

    fn invoke(self: Box<Self>, _: CallGrant, context: &ToolContext<'_>) -> ToolResult {
        let fetch = FetchContext {
            policy: context.policy,
            resolver: &SystemResolver,
            cancel: context.cancel,
            timeout: context.bounds.http_timeout,
            max_bytes: context.bounds.max_response_bytes,
        };
        let content_type = self.content_type.as_deref().unwrap_or(DEFAULT_CONTENT_TYPE);
        let body = match self.method {
            HttpToolMethod::Get => None,
            HttpToolMethod::Post => Some((self.body.as_deref().unwrap_or_default(), content_type)),
        };
        match fetch.run(&FetchRequest { method: self.method(), url: &self.url, body }) {
            Ok(fetched) => format_response(fetched),
            Err(FetchError::Stopped(WaitError::Cancelled)) => ToolResult::cancelled(),
            Err(FetchError::Stopped(WaitError::TimedOut)) => {
                let seconds = fetch.timeout.as_secs_f64();
                ToolResult::failed(format!("no reply within {seconds} s (`limits.http_timeout`)"))
            }
            Err(error) => ToolResult::failed(error.to_string()),
        }
    }
}

impl HttpCall {
    fn method(&self) -> HttpMethod {
        match self.method {
            HttpToolMethod::Get => HttpMethod::Get,
            HttpToolMethod::Post => HttpMethod::Post,
        }
    }
}

fn format_response(fetched: FetchResponse) -> ToolResult {
    let FetchResponse { url, status, content_type, body } = fetched;
    let kind = content_type.as_deref().unwrap_or("unknown type");
    let (output, extent) = match body {
        FetchedBody::Whole(text) => (text, "whole"),
        FetchedBody::Truncated(text) => (text, "cut"),
        FetchedBody::NotText { length } => {
            let length =
                length.map_or_else(|| "unknown length".to_owned(), |length| format!("{length} bytes"));
            (format!("[not text: {kind}, {length}]"), "not text")
        }
    };
    let result = ToolResult::done(output)
        .with_metadata("status", status)
        .with_metadata("url", url)
        .with_metadata("body", extent);
    match content_type {
        Some(content_type) => result.with_metadata("content_type", content_type),
        None => result,
    }
}
