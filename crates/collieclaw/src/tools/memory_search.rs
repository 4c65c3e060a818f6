//! `memory_search`: what was said in earlier conversations.

use collieclaw_gate::Call;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::{BuiltIn, Context, Prepared, ToolResult};
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
        match context.memory.search(&self.query, self.limit.min(MOST).into()) {
            Err(error) => ToolResult::failed(error.to_string()),
            Ok(found) => {
                let line = |found: &crate::memory::Found| {
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
        }
    }
}
