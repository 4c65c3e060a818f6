//! `memory_search`: what was said in earlier conversations.

use collieclaw_gate::Call;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::in_time::in_time;
use super::{BuiltIn, Context, Prepared, ToolResult};
use crate::memory::{Found, Memory};
use crate::runtime::Granted;

/// See the module.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct MemorySearch {
    /// Words, or parts of words, in any language.
    query: String,
    /// How many to return, at most 50; 10 if absent.
    #[serde(default = "usual_limit")]
    limit: u8,
}

fn usual_limit() -> u8 {
    10
}

/// More would fill a model's view with little.
const MOST: u8 = 50;

impl BuiltIn for MemorySearch {
    const NAME: &'static str = "memory_search";
    const DESCRIPTION: &'static str = "Searches earlier conversations and returns the best excerpts.";
}

impl Prepared for MemorySearch {
    fn call(&self) -> Call<'_> {
        Call::Look
    }

    fn invoke(self: Box<Self>, _: Granted, context: &Context<'_>) -> ToolResult {
        // The door's own connection can't be left behind.
        let file = context.memory.path().to_owned();
        in_time(context, move |_| {
            let limit = self.limit.min(MOST).into();
            let found = Memory::open(&file).and_then(|memory| memory.search(&self.query, limit));
            Ok(found.map_or_else(|error| ToolResult::failed(error.to_string()), |found| told(&found)))
        })
    }
}

fn told(found: &[Found]) -> ToolResult {
    let line = |found: &Found| {
        json!({
            "conversation_id": found.conversation_id,
            "timestamp": found.timestamp,
            "role": found.role,
            "excerpt": found.excerpt,
        })
        .to_string()
    };
    let lines: Vec<String> = found.iter().map(line).collect();
    ToolResult::done(lines.join("\n")).with("found", found.len())
}
