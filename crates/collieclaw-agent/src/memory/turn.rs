//! What is remembered.

use collieclaw_providers::{ChatRole, ToolCall};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// One message of a conversation, as it is kept (C10).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ConversationTurn {
    /// The conversation.
    pub conversation_id: String,
    /// Unique.
    pub turn_id: String,
    /// When.
    pub timestamp: Timestamp,
    /// Whose.
    pub role: ChatRole,
    /// The text.
    pub content: String,
    /// What an assistant's message asked for.
    pub tool_calls: Vec<ToolCall>,
    /// What came of it; only in a tool's message.
    pub tool_results: Vec<StoredToolResult>,
    /// Who answered.
    pub provider: String,
    /// With which model.
    pub model: String,
    /// Facts about it.
    pub metadata: Map<String, Value>,
}

/// What came of one call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredToolResult {
    /// Which call it answers.
    pub call_id: String,
    /// The tool.
    pub tool: String,
    /// Whether it did what was asked.
    pub success: bool,
    /// What went back to the model.
    pub output: String,
    /// Its receipt.
    pub receipt_id: Option<String>,
}

/// Everything between a person's message and the answer to it. It is kept whole or not at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConversationExchange {
    /// Question, calls, results, answer, in order.
    pub turns: Vec<ConversationTurn>,
}

/// A turn that a search found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FoundTurn {
    /// The conversation.
    pub conversation_id: String,
    /// The turn.
    pub turn_id: String,
    /// When.
    pub timestamp: Timestamp,
    /// Whose.
    pub role: ChatRole,
    /// The words around what was found, on one line.
    pub excerpt: String,
    /// How well it fits; more is better.
    pub score: f64,
}
