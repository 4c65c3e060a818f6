//! Without a script: a few sentences become tool calls, so that a stranger sees the gate at work without a model.

use serde_json::{Value, json};

use super::script::last_message;
use crate::{ChatMessage, ChatRequest, ChatResponse, ChatRole, ToolCall};

/// More of a result than this is not read by anyone.
const MAX_RESULT_CHARS: usize = 4000;

const HELP: &str = "\
I am the mock: no model, just a few sentences that I know. They become tool calls, and those pass the same gate as \
a model's.

  list files            list files in FOLDER
  read FILE             write FILE TEXT
  run COMMAND           search WORDS
  what time is it       what time is it in ZONE
  fetch ADDRESS

For a real model, start a server that speaks the OpenAI protocol, describe it under [providers.models.NAME] in the \
configuration, and set default_provider = \"NAME\". `collieclaw provider test NAME` tells whether it works.";

/// The answer to a request: a call, what a call returned, or how to go on.
pub(super) fn respond(request: &ChatRequest) -> ChatResponse {
    if request.messages.last().is_some_and(|message| message.role == ChatRole::Tool) {
        return text_response(summarize_results(&request.messages));
    }
    let said = last_message(request).trim();
    match parse_sentence(said) {
        Some((tool, arguments)) => call_response(tool, arguments, request),
        None if said.eq_ignore_ascii_case("help") || said.is_empty() => text_response(HELP),
        None => text_response(format!("You said: {said}\n\n{HELP}")),
    }
}

/// The whole grammar: the tool and its arguments that a sentence stands for.
fn parse_sentence(sentence: &str) -> Option<(&'static str, Value)> {
    let sentence = sentence.trim_end_matches(['?', '!']).trim_end();
    if let Some(rest) = strip_phrase(sentence, "list files") {
        return match strip_phrase(rest, "in") {
            Some(folder) if !folder.is_empty() => Some(("file_list", json!({ "path": folder }))),
            _ if rest.is_empty() => Some(("file_list", json!({ "path": "." }))),
            _ => None,
        };
    }
    if let Some(rest) = strip_phrase(sentence, "what time is it") {
        return match strip_phrase(rest, "in") {
            Some(zone) if !zone.is_empty() => Some(("time", json!({ "time_zone": zone }))),
            _ if rest.is_empty() => Some(("time", json!({}))),
            _ => None,
        };
    }
    if let Some(rest) = strip_phrase(sentence, "write") {
        let (file, content) = rest.split_once(char::is_whitespace)?;
        return Some(("file_write", json!({ "path": file, "content": content.trim_start() })));
    }
    let simple = [
        ("read", "file_read", "path"),
        ("run", "shell", "command"),
        ("search", "memory_search", "query"),
        ("fetch", "http", "url"),
    ];
    simple.iter().find_map(|(word, tool, argument)| {
        let rest = strip_phrase(sentence, word).filter(|rest| !rest.is_empty())?;
        Some((*tool, json!({ *argument: rest })))
    })
}

/// What follows a phrase that a sentence begins with, in any case of letters, as whole words.
fn strip_phrase<'s>(sentence: &'s str, phrase: &str) -> Option<&'s str> {
    let (start, rest) = sentence.split_at_checked(phrase.len())?;
    let whole = rest.is_empty() || rest.starts_with(char::is_whitespace);
    (whole && start.eq_ignore_ascii_case(phrase)).then(|| rest.trim_start())
}

fn call_response(tool: &str, arguments: Value, request: &ChatRequest) -> ChatResponse {
    let id = format!("mock-{}", request.messages.len());
    let tool_calls = vec![ToolCall { id, name: tool.to_owned(), arguments }];
    ChatResponse { tool_calls, ..ChatResponse::default() }
}

/// What the last calls returned, in a sentence each.
fn summarize_results(messages: &[ChatMessage]) -> String {
    let since = messages.iter().rposition(|message| message.role != ChatRole::Tool);
    let calls = since.and_then(|last| messages.get(last)).map_or(&[][..], |message| &message.tool_calls);
    let results = messages.iter().skip(since.map_or(0, |last| last + 1));
    let sentences = results.map(|result| {
        let asked = calls.iter().find(|call| Some(&call.id) == result.tool_call_id.as_ref());
        let tool = asked.map_or("the tool", |call| call.name.as_str());
        let content = result.content.trim_end();
        match content.char_indices().nth(MAX_RESULT_CHARS) {
            None if content.is_empty() => format!("`{tool}` returned nothing."),
            None => format!("`{tool}` returned:\n{content}"),
            Some((end, _)) => {
                format!("`{tool}` returned, among more:\n{}", content.get(..end).unwrap_or_default())
            }
        }
    });
    sentences.collect::<Vec<_>>().join("\n\n")
}

fn text_response(final_text: impl Into<String>) -> ChatResponse {
    ChatResponse { final_text: final_text.into(), ..ChatResponse::default() }
}
