//! The tool `memory_search`, which searches earlier conversations.

use collieclaw_gate::GateRequest;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::timeout::run_with_timeout;
use super::{BuiltInTool, PreparedCall, ToolContext, ToolResult};
use crate::memory::{ConversationMemory, FoundTurn};
use crate::runtime::CallGrant;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct MemorySearchCall {
    /// The words, or parts of words, to search for, in any language.
    query: String,
    /// The maximum number of results, up to 50; 10 if absent.
    #[serde(default = "default_limit")]
    limit: u8,
}

fn default_limit() -> u8 {
    10
}

/// The maximum number of results, which limits how much of the model's context they fill.
const MAX_RESULTS: u8 = 50;

impl BuiltInTool for MemorySearchCall {
    const NAME: &'static str = "memory_search";
    const DESCRIPTION: &'static str =
        "Searches earlier conversations and returns excerpts, best matches first.";
}

impl PreparedCall for MemorySearchCall {
    fn call(&self) -> GateRequest<'_> {
        GateRequest::ReadOnly
    }

    fn invoke(self: Box<Self>, _: CallGrant, context: &ToolContext<'_>) -> ToolResult {
        // A new connection, because the thread may be left behind and the gateway's connection can't be.
        let (file, scope) = (context.memory.path().to_owned(), context.memory.scope().clone());
        run_with_timeout(context, move |_| {
            let limit = self.limit.min(MAX_RESULTS).into();
            let found = ConversationMemory::open_scoped(&file, scope)
                .and_then(|memory| memory.search(&self.query, limit));
            Ok(found.map_or_else(|error| ToolResult::failed(error.to_string()), |found| format_turns(&found)))
        })
    }
}

fn format_turns(found: &[FoundTurn]) -> ToolResult {
    let line = |found: &FoundTurn| {
        json!({
            "conversation_id": found.conversation_id,
            "timestamp": found.timestamp,
            "role": found.role,
            "excerpt": found.excerpt,
        })
        .to_string()
    };
    let lines: Vec<String> = found.iter().map(line).collect();
    ToolResult::done(lines.join("\n")).with_metadata("found", found.len())
}
