//! Parses a server's reply, in all the variants that servers send.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::{ChatResponse, TokenUsage, ToolCall};

/// A JSON reply without a usable answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ReplyError {
    /// The reply reports an error, although its HTTP status is success.
    ServerError {
        status: Option<u16>,
        message: String,
    },
    Refusal(String),
    /// The reply is malformed, as a sentence without a full stop.
    Malformed(String),
}

/// Extracts text, tool calls and token usage from a reply.
pub(super) fn parse_reply(payload: Value) -> Result<ChatResponse, ReplyError> {
    if let Some(error) = error_in(&payload) {
        return Err(error);
    }
    let choice = payload.get("choices").and_then(|choices| choices.get(0));
    let Some(message) = choice.and_then(|choice| choice.get("message")) else {
        return Err(malformed("the reply has no `choices[0].message`"));
    };
    let reason = choice.and_then(|choice| choice.get("finish_reason")).and_then(Value::as_str);
    if let Some(refusal) = message.get("refusal").and_then(Value::as_str).filter(|said| !said.is_empty()) {
        return Err(ReplyError::Refusal(refusal.to_owned()));
    }
    let mut final_text = message.get("content").map(content_text).unwrap_or_default();
    let tool_calls = parse_calls(message)?;
    if final_text.is_empty() && tool_calls.is_empty() {
        if reason == Some("content_filter") {
            return Err(ReplyError::Refusal("the content filter withheld the answer".to_owned()));
        }
        let reason = reason.unwrap_or("none");
        return Err(malformed(&format!("the model sent an empty answer (`finish_reason` is `{reason}`)")));
    }
    if let Some(reason @ ("length" | "content_filter")) = reason
        && !final_text.is_empty()
    {
        // Without this note, half an answer would look complete.
        final_text.push_str(&format!("\n[the server cut the answer off here: {reason}]"));
    }
    let usage = payload.get("usage").and_then(Value::as_object).map(parse_usage);
    Ok(ChatResponse { final_text, tool_calls, raw_provider_payload: Some(payload), usage, answered_by: None })
}

/// Returns the error that a reply with a success status contains.
pub(super) fn error_in(payload: &Value) -> Option<ReplyError> {
    let error = payload.get("error").filter(|error| !error.is_null())?;
    let code = error.get("code").or_else(|| error.get("status")).and_then(Value::as_u64);
    let said = error_message_in(payload).unwrap_or_else(|| error.to_string());
    Some(ReplyError::ServerError { status: code.and_then(|code| u16::try_from(code).ok()), message: said })
}

/// Returns the error message of a reply, wherever the server put it.
pub(super) fn error_message_in(payload: &Value) -> Option<String> {
    let places = ["/error/message", "/error", "/message", "/detail", "/error_description"];
    let said = places.iter().find_map(|place| payload.pointer(place)?.as_str());
    said.map(str::trim).filter(|said| !said.is_empty()).map(str::to_owned)
}

/// Returns the text of a message's content, which is a string or a list of parts.
pub(super) fn content_text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let of_part =
                |part: &Value| part.as_str().or_else(|| part.get("text")?.as_str()).map(str::to_owned);
            parts.iter().filter_map(of_part).collect()
        }
        _ => String::new(),
    }
}

fn parse_calls(message: &Value) -> Result<Vec<ToolCall>, ReplyError> {
    let listed = message.get("tool_calls").and_then(Value::as_array);
    let mut found: Vec<(&Value, &Value)> = Vec::new();
    for call in listed.map(Vec::as_slice).unwrap_or_default() {
        found.push((call, call.get("function").unwrap_or(call)));
    }
    // The older form has one call and no id.
    if found.is_empty()
        && let Some(function) = message.get("function_call").filter(|call| call.is_object())
    {
        found.push((function, function));
    }
    let mut taken = BTreeSet::new();
    let mut calls = Vec::new();
    for (number, (call, function)) in found.into_iter().enumerate() {
        let name = function.get("name").and_then(Value::as_str).map(str::trim).unwrap_or_default();
        if name.is_empty() {
            return Err(malformed("a tool call has no name"));
        }
        let given = call.get("id").and_then(Value::as_str).filter(|id| !id.is_empty());
        let mut id = given.map_or_else(|| format!("call-{}", number + 1), str::to_owned);
        while !taken.insert(id.clone()) {
            id.push('+');
        }
        let arguments = parse_arguments(function.get("arguments"));
        calls.push(ToolCall { id, name: name.to_owned(), arguments });
    }
    Ok(calls)
}

/// Parses arguments: JSON in a string, JSON in a string in a string, plain JSON, nothing, or any text of the
/// model.
fn parse_arguments(written: Option<&Value>) -> Value {
    let empty = || Value::Object(Map::new());
    match written {
        None | Some(Value::Null) => empty(),
        Some(Value::String(text)) if text.trim().is_empty() => empty(),
        Some(Value::String(text)) => match serde_json::from_str(text) {
            Ok(Value::Null) => empty(),
            Ok(Value::String(inner)) => match serde_json::from_str(&inner) {
                Ok(object @ Value::Object(_)) => object,
                _ => Value::String(inner),
            },
            Ok(value) => value,
            Err(_) => Value::String(text.clone()),
        },
        Some(value) => value.clone(),
    }
}

fn parse_usage(usage: &Map<String, Value>) -> TokenUsage {
    let count = |name: &str| usage.get(name).and_then(Value::as_u64).unwrap_or_default();
    TokenUsage { prompt_tokens: count("prompt_tokens"), completion_tokens: count("completion_tokens") }
}

fn malformed(what: &str) -> ReplyError {
    ReplyError::Malformed(what.to_owned())
}
