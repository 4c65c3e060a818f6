//! How many tokens something has, where nobody has counted them.
//!
//! Four bytes are about one token of English text, and of most others not far from it. Whoever needs the truth asks a
//! server that tells it.

use crate::ChatRequest;

const BYTES_PER_TOKEN: usize = 4;

/// Around each message.
const TOKENS_PER_MESSAGE: u64 = 4;

/// Of a text.
#[must_use]
pub fn text(text: &str) -> u64 {
    tokens_from_bytes(text.len())
}

/// Of all that is sent.
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
