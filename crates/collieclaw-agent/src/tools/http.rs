//! The tool `http`, which fetches a URL or sends text to it.

use collieclaw_gate::{GateRequest, HttpMethod};
use collieclaw_providers::net::{
    FetchContext, FetchError, FetchRequest, FetchResponse, FetchedBody, SystemResolver, WaitError,
};
use schemars::JsonSchema;
use serde::Deserialize;

use super::output_limit::cut_at_line;
use super::page_text::{is_page, page_text};
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
    /// If true, a web page is returned as HTML instead of readable text.
    #[serde(default)]
    raw: bool,
    /// The byte of the text to start at. To read on, use the `next_offset` of the previous result.
    #[serde(default)]
    offset: usize,
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
    const DESCRIPTION: &'static str = "Fetches a web page as readable text, or another document as it is, or sends text to a URL with POST.";

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
            Ok(fetched) => self.format_response(fetched, context.bounds.max_output_bytes),
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

    fn format_response(&self, fetched: FetchResponse, max_bytes: usize) -> ToolResult {
        let FetchResponse { url, status, content_type, body } = fetched;
        let kind = content_type.as_deref().unwrap_or("unknown type");
        let (text, extent) = match body {
            FetchedBody::Whole(text) => (text, "whole"),
            FetchedBody::Truncated(text) => (text, "cut"),
            FetchedBody::NotText { length } => {
                let length =
                    length.map_or_else(|| "unknown length".to_owned(), |length| format!("{length} bytes"));
                (format!("[not text: {kind}, {length}]"), "not text")
            }
        };
        let converts = is_page(content_type.as_deref()) && !self.raw && extent != "not text";
        let text = if converts { page_text(&text) } else { text };
        let start = text.ceil_char_boundary(self.offset.min(text.len()));
        let shown = cut_at_line(text.get(start..).unwrap_or_default(), max_bytes);
        let end = start + shown.len();
        let mut result = ToolResult::done(shown)
            .with_metadata("status", status)
            .with_metadata("url", url)
            .with_metadata("body", extent);
        if let Some(content_type) = content_type {
            result = result.with_metadata("content_type", content_type);
        }
        if end < text.len() {
            let rest = format!("for the rest, call again with `offset` set to {end}");
            result = result
                .with_metadata("next_offset", end)
                .with_metadata("bytes_left", text.len() - end)
                .with_metadata("rest", rest);
        }
        result
    }
}
