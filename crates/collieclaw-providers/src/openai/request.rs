//! Builds the JSON body of a request.

use serde_json::{Value, json};

use crate::{ChatMessage, ChatRequest, ChatRole, ToolCall, ToolSchema};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ResponseMode {
    Whole,
    Streamed,
}

/// Returns the body of a request. Texts are never `null`, because some servers reject `null`.
pub(super) fn request_body(request: &ChatRequest, temperature: Option<f64>, mode: ResponseMode) -> Value {
    let system = (!request.system_prompt.is_empty())
        .then(|| json!({ "role": "system", "content": request.system_prompt }));
    let messages: Vec<Value> = system.into_iter().chain(request.messages.iter().map(message)).collect();
    let temperature = temperature.map(|temperature| ("temperature", json!(temperature)));
    let tools =
        (!request.tools.is_empty()).then(|| ("tools", request.tools.iter().map(tool).collect::<Value>()));
    let streamed = mode == ResponseMode::Streamed;
    // A stream reports token usage only on request.
    let usage = streamed.then(|| ("stream_options", json!({ "include_usage": true })));
    let fixed = json!({ "model": request.model, "messages": messages, "stream": streamed });
    with_entries(fixed, usage.into_iter().chain(temperature).chain(tools))
}

fn message(message: &ChatMessage) -> Value {
    match message.role {
        ChatRole::User => json!({ "role": "user", "content": message.content }),
        ChatRole::Tool => json!({
            "role": "tool",
            "content": message.content,
            "tool_call_id": message.tool_call_id.as_deref().unwrap_or_default(),
        }),
        ChatRole::Assistant => {
            let calls = (!message.tool_calls.is_empty())
                .then(|| ("tool_calls", message.tool_calls.iter().map(call).collect::<Value>()));
            with_entries(json!({ "role": "assistant", "content": message.content }), calls)
        }
    }
}

fn tool(tool: &ToolSchema) -> Value {
    let function =
        json!({ "name": tool.name, "description": tool.description, "parameters": tool.parameters });
    json!({ "type": "function", "function": function })
}

fn call(call: &ToolCall) -> Value {
    // Servers parse the arguments again for the model, and some fail on anything but an object.
    let arguments = match &call.arguments {
        object @ Value::Object(_) => object.to_string(),
        other => json!({ "unreadable": other }).to_string(),
    };
    let function = json!({ "name": call.name, "arguments": arguments });
    json!({ "id": call.id, "type": "function", "function": function })
}

/// Adds entries to an object.
fn with_entries(mut object: Value, more: impl IntoIterator<Item = (&'static str, Value)>) -> Value {
    if let Some(entries) = object.as_object_mut() {
        entries.extend(more.into_iter().map(|(name, value)| (name.to_owned(), value)));
    }
    object
}
