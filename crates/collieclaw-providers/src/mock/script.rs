//! Plays one round of a fixture: compares the request with the expectation and fills in the answer's
//! placeholders.

use serde_json::Value;

use crate::fixture::{RequestExpectation, ScriptedCall};
use crate::{ChatMessage, ChatRequest, ChatResponse, ChatRole, ToolCall};

/// The words that a fixture can write in braces to have them replaced.
pub(crate) const PLACEHOLDERS: &[&str] = &["tool_result", "last_message", "model"];

/// The most characters of a request that a failed expectation quotes.
const LONGEST_QUOTE: usize = 400;

/// Compares a request with the expectation of its round.
///
/// # Errors
/// Fails with the expectation that was not met, and what was sent instead.
pub(super) fn check_expectation(expect: &RequestExpectation, request: &ChatRequest) -> Result<(), String> {
    let RequestExpectation {
        last_message_contains,
        tool_result_contains,
        system_prompt_contains,
        tools_include,
        tools_exclude,
        messages,
        model,
    } = expect;
    expect_contains("the last message of the user", last_message_contains.as_deref(), last_message(request))?;
    expect_contains("a tool's result", tool_result_contains.as_deref(), &tool_results(request))?;
    expect_contains("the system prompt", system_prompt_contains.as_deref(), &request.system_prompt)?;
    let offered: Vec<&str> = request.tools.iter().map(|tool| tool.name.as_str()).collect();
    if let Some(missing) = tools_include.iter().find(|tool| !offered.contains(&tool.as_str())) {
        return Err(format!(
            "the tool `{missing}` to be offered, but the request offers: {}",
            offered.join(", ")
        ));
    }
    if let Some(present) = tools_exclude.iter().find(|tool| offered.contains(&tool.as_str())) {
        return Err(format!("the tool `{present}` not to be offered, but it was"));
    }
    let sent = request.messages.len();
    if let Some(expected) = messages.filter(|expected| usize::try_from(*expected) != Ok(sent)) {
        return Err(format!("{expected} messages, but the request has {sent}"));
    }
    match model {
        Some(expected) if *expected != request.model => {
            Err(format!("the model `{expected}`, but `{}` was requested", request.model))
        }
        _ => Ok(()),
    }
}

fn expect_contains(what: &str, expected: Option<&str>, sent: &str) -> Result<(), String> {
    match expected {
        Some(expected) if !sent.contains(expected) => {
            let (quote, more) = match sent.char_indices().nth(LONGEST_QUOTE) {
                Some((end, _)) => (sent.get(..end).unwrap_or_default(), " …"),
                None => (sent, ""),
            };
            Err(format!("{what} to contain \"{expected}\", but the request has: \"{quote}\"{more}"))
        }
        _ => Ok(()),
    }
}

pub(super) fn build_response(
    text: &str,
    calls: &[ScriptedCall],
    round: usize,
    request: &ChatRequest,
) -> ChatResponse {
    let tool_calls = calls
        .iter()
        .zip(1..)
        .map(|(call, number): (&ScriptedCall, usize)| ToolCall {
            id: call.id.clone().unwrap_or_else(|| format!("mock-{round}-{number}")),
            name: call.tool.clone(),
            arguments: fill_json(&call.args, request),
        })
        .collect();
    ChatResponse { final_text: fill_placeholders(text, request), tool_calls, ..ChatResponse::default() }
}

fn fill_json(args: &Value, request: &ChatRequest) -> Value {
    match args {
        Value::String(text) => Value::String(fill_placeholders(text, request)),
        Value::Array(elements) => elements.iter().map(|element| fill_json(element, request)).collect(),
        Value::Object(entries) => {
            entries.iter().map(|(key, value)| (key.clone(), fill_json(value, request))).collect()
        }
        other => other.clone(),
    }
}

/// Replaces each placeholder once, from left to right. Inserted text is not scanned again.
pub(super) fn fill_placeholders(text: &str, request: &ChatRequest) -> String {
    let mut filled = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        filled.push_str(before);
        let found =
            PLACEHOLDERS.iter().find_map(|name| Some((*name, after.strip_prefix(name)?.strip_prefix('}')?)));
        rest = match found {
            Some((name, after)) => {
                filled.push_str(&placeholder_value(name, request));
                after
            }
            None => {
                filled.push('{');
                after
            }
        };
    }
    filled.push_str(rest);
    filled
}

fn placeholder_value(placeholder: &str, request: &ChatRequest) -> String {
    match placeholder {
        "tool_result" => tool_results(request),
        "last_message" => last_message(request).to_owned(),
        _ => request.model.clone(),
    }
}

/// Returns the text of the user's latest message.
pub(super) fn last_message(request: &ChatRequest) -> &str {
    let of_user = |message: &&ChatMessage| message.role == ChatRole::User;
    request.messages.iter().rev().find(of_user).map_or("", |message| message.content.as_str())
}

/// Returns the tool results since the model's latest message, in order.
fn tool_results(request: &ChatRequest) -> String {
    let since = request
        .messages
        .iter()
        .rposition(|message| message.role != ChatRole::Tool)
        .map_or(0, |last| last + 1);
    let results = request.messages.iter().skip(since).map(|message| message.content.as_str());
    results.collect::<Vec<_>>().join("\n")
}
