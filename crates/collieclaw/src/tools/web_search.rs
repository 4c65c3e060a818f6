//! `web_search`: what the configured search service knows.

use collieclaw_gate::Call;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::{BuiltIn, Context, Prepared, ToolResult, shortened};
use crate::net::{Found, Patience, SearchError, Stopped, SystemLookup};
use crate::runtime::Granted;

/// More would fill a model's view with little.
const MOST: u8 = 20;

/// Of the words that are searched for.
const LONGEST_QUERY: usize = 1024;

/// Of each part of a result.
const LONGEST_PART: usize = 1000;

/// See the module.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WebSearch {
    /// The words to search for.
    query: String,
    /// How many results, at most 20; 5 if absent.
    #[serde(default = "usual_limit")]
    limit: u8,
}

fn usual_limit() -> u8 {
    5
}

impl BuiltIn for WebSearch {
    const NAME: &'static str = "web_search";
    const DESCRIPTION: &'static str =
        "Searches the web and returns title, address and a few words of the best results.";

    fn fit(&self) -> Result<(), String> {
        match self.query.trim().len() {
            0 => Err("`query` is empty".to_owned()),
            length if length > LONGEST_QUERY => Err(format!("`query` is longer than {LONGEST_QUERY} bytes")),
            _ => Ok(()),
        }
    }
}

impl Prepared for WebSearch {
    fn call(&self) -> Call<'_> {
        Call::Search
    }

    fn invoke(self: Box<Self>, _: Granted, context: &Context<'_>) -> ToolResult {
        let Some(service) = context.search else {
            return ToolResult::failed(
                "there is no search service; name one in the configuration, in `[web_search]`",
            );
        };
        let patience = Patience::new(context.cancel, context.bounds.http_timeout);
        let bounds = (&patience, context.bounds.max_response_bytes);
        match service.find(self.query.trim(), self.limit.clamp(1, MOST).into(), &SystemLookup, bounds) {
            Ok(found) => told(&found),
            Err(SearchError::Stopped(Stopped::Cancelled)) => ToolResult::cancelled(),
            Err(SearchError::Stopped(Stopped::TimedOut)) => {
                let seconds = context.bounds.http_timeout.as_secs_f64();
                ToolResult::failed(format!("no reply within {seconds} s (`limits.http_timeout`)"))
            }
            Err(error) => ToolResult::failed(error.to_string()),
        }
    }
}

fn told(found: &[Found]) -> ToolResult {
    let short = |text: &str| shortened(text, LONGEST_PART);
    let line = |found: &Found| {
        json!({ "title": short(&found.title), "url": short(&found.link), "text": short(&found.text) })
            .to_string()
    };
    let lines: Vec<String> = found.iter().map(line).collect();
    ToolResult::done(lines.join("\n")).with("found", found.len())
}
