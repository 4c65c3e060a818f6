//! What is said between us and a model.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// What a provider can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ProviderCapabilities {
    /// It can ask for tools.
    pub tools: bool,
    /// It can answer bit by bit.
    pub streaming: bool,
}

impl ProviderCapabilities {
    /// What all of several can do.
    #[must_use]
    pub fn common_to(members: impl IntoIterator<Item = Self>) -> Self {
        members.into_iter().fold(Self { tools: true, streaming: true }, |all, one| Self {
            tools: all.tools && one.tools,
            streaming: all.streaming && one.streaming,
        })
    }
}

/// One round of a conversation, as it is sent.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ChatRequest {
    /// What the model is told before all else.
    pub system_prompt: String,
    /// The conversation, oldest first.
    pub messages: Vec<ChatMessage>,
    /// What it may ask for.
    pub tools: Vec<ToolSchema>,
    /// Which model.
    pub model: String,
    /// How freely it answers.
    pub temperature: Option<f64>,
    /// Hints for whoever chooses a provider.
    pub metadata: Map<String, Value>,
}

/// One message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChatMessage {
    /// Whose.
    pub role: ChatRole,
    /// The text; of a tool, what it returned.
    pub content: String,
    /// What an assistant's message asks for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    /// Which call a tool's message answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
}

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChatRole {
    /// The person.
    User,
    /// The model.
    Assistant,
    /// A tool.
    Tool,
}

/// A tool that the model asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    /// What its result is matched by; unique within a turn.
    pub id: String,
    /// The tool.
    pub name: String,
    /// Its arguments: an object, or whatever the model wrote instead.
    pub arguments: Value,
}

/// A tool as the model is told of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ToolSchema {
    /// Its name.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// Its arguments, as JSON Schema.
    pub parameters: Value,
}

/// More calls in one answer are a mistake of the model, or worse: none of them is run.
pub const MOST_CALLS: usize = 64;

/// What the model answered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChatResponse {
    /// Text for the person. With calls beside it, what the model says meanwhile.
    pub final_text: String,
    /// What it asks for.
    pub tool_calls: Vec<ToolCall>,
    /// The answer as it came.
    pub raw_provider_payload: Option<Value>,
    /// What it cost.
    pub usage: Option<TokenUsage>,
    /// Who answered, where one of several did.
    pub answered_by: Option<AnsweredBy>,
}

/// Who answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnsweredBy {
    /// What the configuration calls it.
    pub provider: String,
    /// The model that it was asked for.
    pub model: String,
}

/// What is heard of an answer before it is whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DraftEvent<'a> {
    /// More of its text.
    Text(&'a str),
    /// All that was heard is void: the answer broke off, and another one begins.
    Discard,
}

/// Tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenUsage {
    /// Read by the model.
    pub prompt_tokens: u64,
    /// Written by the model.
    pub completion_tokens: u64,
}

impl ChatMessage {
    /// Of the person.
    #[must_use]
    pub fn user(content: impl Into<String>) -> Self {
        Self { role: ChatRole::User, content: content.into(), tool_calls: Vec::new(), tool_call_id: None }
    }

    /// Of the model.
    #[must_use]
    pub fn assistant(content: impl Into<String>, tool_calls: Vec<ToolCall>) -> Self {
        Self { role: ChatRole::Assistant, content: content.into(), tool_calls, tool_call_id: None }
    }

    /// Of a tool.
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
