//! The records that the memory stores and returns.

use collieclaw_providers::{ChatRole, ToolCall};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A message of a conversation, as stored (C10).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ConversationTurn {
    pub conversation_id: String,
    /// Unique within the conversation.
    pub turn_id: String,
    pub timestamp: Timestamp,
    pub role: ChatRole,
    pub content: String,
    /// The tool calls of an assistant's message.
    pub tool_calls: Vec<ToolCall>,
    /// The results of the calls, in a tool's message only.
    pub tool_results: Vec<StoredToolResult>,
    /// The provider that answered.
    pub provider: String,
    pub model: String,
    /// Additional facts about the turn.
    pub metadata: Map<String, Value>,
}

/// The result of one tool call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredToolResult {
    pub call_id: String,
    pub tool: String,
    /// True if the tool did its work.
    pub success: bool,
    /// The text that was returned to the model.
    pub output: String,
    pub receipt_id: Option<String>,
}

/// All turns from a person's message to the answer. An exchange is stored completely or not at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConversationExchange {
    /// The question, calls, results and answer, in order.
    pub turns: Vec<ConversationTurn>,
}

/// A turn that a search found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FoundTurn {
    pub conversation_id: String,
    pub turn_id: String,
    pub timestamp: Timestamp,
    pub role: ChatRole,
    /// The text around the match, on one line.
    pub excerpt: String,
    /// The rank; a higher score is a better match.
    pub score: f64,
}
