//! Demo commands of the mock: a few fixed sentences become tool calls, so a new user can see the gate without
//! a model.

use serde_json::{Value, json};

use super::script::last_message;
use crate::{ChatMessage, ChatRequest, ChatResponse, ChatRole, ToolCall};

/// Longer tool output is cut in the summary.
const MAX_RESULT_CHARS: usize = 4000;

const HELP: &str = "\
I am the mock: not a model, just a few commands. They become tool calls that pass the same gate as a model's.

  list files            list files in FOLDER
  read FILE             write FILE TEXT
  run COMMAND           search WORDS
  what time is it       what time is it in ZONE
  fetch ADDRESS

For a real model, start a server that speaks the OpenAI protocol, describe it under [providers.models.NAME] in the \
configuration, and set default_provider = \"NAME\". `collieclaw provider test NAME` checks that it works.";

/// Answers a request with a tool call, a summary of tool results, or the help text.
pub(super) fn respond(request: &ChatRequest) -> ChatResponse {
    if request.messages.last().is_some_and(|message| message.role == ChatRole::Tool) {
        return text_response(summarize_results(&request.messages));
    }
    let sentence = last_message(request).trim();
    match parse_sentence(sentence) {
        Some((tool, arguments)) => call_response(tool, arguments, request),
        None if sentence.eq_ignore_ascii_case("help") || sentence.is_empty() => text_response(HELP),
        None => text_response(format!("You said: {sentence}\n\n{HELP}")),
    }
}

/// Translates a sentence to a tool name and its arguments.
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

/// Returns the text after `phrase` if the sentence starts with it, ignoring case and matching whole words.
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

/// Describes the results of the latest tool calls, one paragraph for each.
fn summarize_results(messages: &[ChatMessage]) -> String {
    let since = messages.iter().rposition(|message| message.role != ChatRole::Tool);
    let calls = since.and_then(|last| messages.get(last)).map_or(&[][..], |message| &message.tool_calls);
    let results = messages.iter().skip(since.map_or(0, |last| last + 1));
    let sentences = results.map(|result| {
        let call = calls.iter().find(|call| Some(&call.id) == result.tool_call_id.as_ref());
        let tool = call.map_or("the tool", |call| call.name.as_str());
        let content = result.content.trim_end();
        match content.char_indices().nth(MAX_RESULT_CHARS) {
            None if content.is_empty() => format!("`{tool}` returned nothing."),
            None => format!("`{tool}` returned:\n{content}"),
            Some((end, _)) => {
                format!(
                    "`{tool}` returned more than {MAX_RESULT_CHARS} characters, which begin with:\n{}",
                    content.get(..end).unwrap_or_default()
                )
            }
        }
    });
    sentences.collect::<Vec<_>>().join("\n\n")
}

fn text_response(final_text: impl Into<String>) -> ChatResponse {
    ChatResponse { final_text: final_text.into(), ..ChatResponse::default() }
}
