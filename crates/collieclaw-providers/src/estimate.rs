//! Token counts where no server has counted.
//!
//! English text has about four bytes per token, and most other languages are close to that. Exact counts come
//! from the server.

use crate::ChatRequest;

const BYTES_PER_TOKEN: usize = 4;

/// The overhead of each message.
const TOKENS_PER_MESSAGE: u64 = 4;

/// Estimates the tokens of a text.
#[must_use]
pub fn text(text: &str) -> u64 {
    tokens_from_bytes(text.len())
}

/// Estimates the tokens of a whole request, with messages, tool calls and tool descriptions.
#[must_use]
pub fn request(request: &ChatRequest) -> u64 {
    let mut bytes = request.system_prompt.len();
    for message in &request.messages {
        bytes += message.content.len();
        bytes += message
            .tool_calls
            .iter()
            .map(|call| call.name.len() + call.arguments.to_string().len())
            .sum::<usize>();
    }
    for tool in &request.tools {
        bytes += tool.name.len() + tool.description.len() + tool.parameters.to_string().len();
    }
    let messages = u64::try_from(request.messages.len() + 1).unwrap_or(u64::MAX);
    tokens_from_bytes(bytes).saturating_add(messages.saturating_mul(TOKENS_PER_MESSAGE))
}

fn tokens_from_bytes(bytes: usize) -> u64 {
    u64::try_from(bytes.div_ceil(BYTES_PER_TOKEN)).unwrap_or(u64::MAX)
}
