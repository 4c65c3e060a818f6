//! `http`: asks for an address, or sends something to one.

use collieclaw_gate::{Call, Method};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{BuiltIn, Context, Prepared, ToolResult};
use crate::net::{Body, Fetch, FetchError, Fetched, Order, Stopped, SystemLookup};
use crate::runtime::Granted;

/// What is sent, if nobody says what it is.
const PLAIN: &str = "text/plain; charset=utf-8";

/// See the module.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Http {
    /// The address, such as `https://example.org/page`.
    url: String,
    /// How it is asked for; GET if absent.
    #[serde(default)]
    method: Word,
    /// What is sent; only with POST.
    #[serde(default)]
    body: Option<String>,
    /// What the body is, such as `application/json`.
    #[serde(default)]
    content_type: Option<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
enum Word {
    #[default]
    #[serde(rename = "GET")]
    Get,
    #[serde(rename = "POST")]
    Post,
}

impl BuiltIn for Http {
    const NAME: &'static str = "http";
    const DESCRIPTION: &'static str =
        "Fetches a page or a document of the public web as text, or sends text to an address with POST.";

    fn fit(&self) -> Result<(), String> {
        if self.method == Word::Get && (self.body.is_some() || self.content_type.is_some()) {
            return Err("`body` and `content_type` go with `method = \"POST\"` only".to_owned());
        }
        let in_letters = |text: &str| text.bytes().all(|byte| matches!(byte, b' '..=b'~'));
        if !self.content_type.as_deref().is_none_or(in_letters) {
            return Err("`content_type` is not one, such as `application/json`".to_owned());
        }
        Ok(())
    }
}

impl Prepared for Http {
    fn call(&self) -> Call<'_> {
        Call::Http(self.method(), &self.url)
    }

    fn invoke(self: Box<Self>, _: Granted, context: &Context<'_>) -> ToolResult {
        let fetch = Fetch {
            policy: context.policy,
            lookup: &SystemLookup,
            cancel: context.cancel,
            timeout: context.bounds.http_timeout,
            most_bytes: context.bounds.max_response_bytes,
        };
        let content_type = self.content_type.as_deref().unwrap_or(PLAIN);
        let body = match self.method {
            Word::Get => None,
            Word::Post => Some((self.body.as_deref().unwrap_or_default(), content_type)),
        };
        match fetch.run(&Order { method: self.method(), url: &self.url, body }) {
            Ok(fetched) => told(fetched),
            Err(FetchError::Stopped(Stopped::Cancelled)) => ToolResult::cancelled(),
            Err(FetchError::Stopped(Stopped::TimedOut)) => {
                let seconds = fetch.timeout.as_secs_f64();
                ToolResult::failed(format!("no reply within {seconds} s (`limits.http_timeout`)"))
            }
            Err(error) => ToolResult::failed(error.to_string()),
        }
    }
}

impl Http {
    fn method(&self) -> Method {
        match self.method {
            Word::Get => Method::Get,
            Word::Post => Method::Post,
        }
    }
}

fn told(fetched: Fetched) -> ToolResult {
    let Fetched { url, status, content_type, body } = fetched;
    let kind = content_type.as_deref().unwrap_or("of no stated type");
    let (output, extent) = match body {
        Body::Whole(text) => (text, "whole"),
        Body::Cut(text) => (text, "cut"),
        Body::Other { length } => {
            let length =
                length.map_or_else(|| "of unknown length".to_owned(), |length| format!("{length} bytes"));
            (format!("[not text: {kind}, {length}]"), "not text")
        }
    };
    let result = ToolResult::done(output).with("status", status).with("url", url).with("body", extent);
    match content_type {
        Some(content_type) => result.with("content_type", content_type),
        None => result,
    }
}
