//! Messages between the agent and a model, in a form that every provider shares.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ProviderCapabilities {
    /// The model can call tools.
    pub tools: bool,
    /// The provider can stream its answer.
    pub streaming: bool,
}

impl ProviderCapabilities {
    /// Returns the capabilities that all `members` share.
    #[must_use]
    pub fn common_to(members: impl IntoIterator<Item = Self>) -> Self {
        members.into_iter().fold(Self { tools: true, streaming: true }, |all, one| Self {
            tools: all.tools && one.tools,
            streaming: all.streaming && one.streaming,
        })
    }
}

/// A round of a conversation, as it is sent to a provider.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ChatRequest {
    pub system_prompt: String,
    /// The conversation, oldest message first.
    pub messages: Vec<ChatMessage>,
    /// The tools that the model may call.
    pub tools: Vec<ToolSchema>,
    pub model: String,
    pub temperature: Option<f64>,
    /// Hints that a router uses to choose a provider.
    pub metadata: Map<String, Value>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChatMessage {
    pub role: ChatRole,
    /// The text of the message, or the output of a tool.
    pub content: String,
    /// The tool calls that an assistant's message requests.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    /// The id of the call that a tool's message answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
}

/// The sender of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChatRole {
    User,
    Assistant,
    Tool,
}

/// A tool call that the model requests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The id that pairs the call with its result; unique within a turn.
    pub id: String,
    pub name: String,
    /// An object, or whatever the model wrote instead of an object.
    pub arguments: Value,
}

/// A tool's description for the model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ToolSchema {
    pub name: String,
    pub description: String,
    /// A JSON Schema of the arguments.
    pub parameters: Value,
}

/// The largest number of calls in one answer. No call of a larger answer runs: so many calls are a mistake of
/// the model, or an attack.
pub const MOST_CALLS: usize = 64;

/// The model's answer to a request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChatResponse {
    /// Text for the user. Next to tool calls, a remark about the work in progress.
    pub final_text: String,
    pub tool_calls: Vec<ToolCall>,
    /// The reply as the server sent it.
    pub raw_provider_payload: Option<Value>,
    pub usage: Option<TokenUsage>,
    /// The provider and model that answered, if one of several was chosen.
    pub answered_by: Option<AnsweredBy>,
}

/// The provider and the model that produced an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnsweredBy {
    /// The provider's name in the configuration.
    pub provider: String,
    /// The model that was requested.
    pub model: String,
}

/// An update of an answer that is still being streamed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DraftEvent<'a> {
    /// The next piece of text.
    Text(&'a str),
    /// All earlier text is discarded, because the answer broke off and another provider starts over.
    Discard,
}

/// The number of tokens that a request used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenUsage {
    /// Tokens that the model read.
    pub prompt_tokens: u64,
    /// Tokens that the model wrote.
    pub completion_tokens: u64,
}

impl ChatMessage {
    #[must_use]
    pub fn user(content: impl Into<String>) -> Self {
        Self { role: ChatRole::User, content: content.into(), tool_calls: Vec::new(), tool_call_id: None }
    }

    #[must_use]
    pub fn assistant(content: impl Into<String>, tool_calls: Vec<ToolCall>) -> Self {
        Self { role: ChatRole::Assistant, content: content.into(), tool_calls, tool_call_id: None }
    }

    #[must_use]
    pub fn tool(call_id: impl Into<String>, content: impl Into<String>) -> Self {
        Self {
            role: ChatRole::Tool,
            content: content.into(),
            tool_calls: Vec::new(),
            tool_call_id: Some(call_id.into()),
        }
    }
}
