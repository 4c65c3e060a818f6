//! The tool `web_search`, which asks the configured search service.

use collieclaw_gate::GateRequest;
use collieclaw_providers::net::{CancellableDeadline, SearchError, SearchResult, SystemResolver, WaitError};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::{BuiltInTool, PreparedCall, ToolContext, ToolResult, truncate_text};
use crate::runtime::CallGrant;

/// The maximum number of results, which limits how much of the model's context they fill.
const MAX_RESULTS: u8 = 20;

const MAX_QUERY_BYTES: usize = 1024;

/// The maximum length of each part of a result.
const MAX_PART_BYTES: usize = 1000;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WebSearchCall {
    /// The words to search for.
    query: String,
    /// The maximum number of results, up to 20; 5 if absent.
    #[serde(default = "default_limit")]
    limit: u8,
}

fn default_limit() -> u8 {
    5
}

impl BuiltInTool for WebSearchCall {
    const NAME: &'static str = "web_search";
    const DESCRIPTION: &'static str =
        "Searches the web and returns the title, URL and a short text of the best results.";

    fn validate(&self) -> Result<(), String> {
        match self.query.trim().len() {
            0 => Err("`query` is empty".to_owned()),
            length if length > MAX_QUERY_BYTES => {
                Err(format!("`query` is longer than {MAX_QUERY_BYTES} bytes"))
            }
            _ => Ok(()),
        }
    }
}

impl PreparedCall for WebSearchCall {
    fn call(&self) -> GateRequest<'_> {
        GateRequest::WebSearch
    }

    fn invoke(self: Box<Self>, _: CallGrant, context: &ToolContext<'_>) -> ToolResult {
        let Some(service) = context.search else {
            return ToolResult::failed(
                "no search service is configured; add `[web_search]` to the configuration",
            );
        };
        let deadline = CancellableDeadline::new(context.cancel, context.bounds.http_timeout);
        let bounds = (&deadline, context.bounds.max_response_bytes);
        match service.search(
            self.query.trim(),
            self.limit.clamp(1, MAX_RESULTS).into(),
            &SystemResolver,
            bounds,
        ) {
            Ok(found) => format_results(&found),
            Err(SearchError::Stopped(WaitError::Cancelled)) => ToolResult::cancelled(),
            Err(SearchError::Stopped(WaitError::TimedOut)) => {
                let seconds = context.bounds.http_timeout.as_secs_f64();
                ToolResult::failed(format!("no reply within {seconds} s (`limits.http_timeout`)"))
            }
            Err(error) => ToolResult::failed(error.to_string()),
        }
    }
}

fn format_results(found: &[SearchResult]) -> ToolResult {
    let short = |text: &str| truncate_text(text, MAX_PART_BYTES);
    let line = |found: &SearchResult| {
        json!({ "title": short(&found.title), "url": short(&found.link), "text": short(&found.text) })
            .to_string()
    };
    let lines: Vec<String> = found.iter().map(line).collect();
    ToolResult::done(lines.join("\n")).with_metadata("found", found.len())
}
