//! Assembles an answer from the events of a stream, in all the variants that servers send.

use serde_json::{Map, Value, json};

use super::reply::{ReplyError, content_text, error_in, error_message_in};
use super::stream::StreamError;
use super::surrogates::SurrogateJoiner;
use crate::MOST_CALLS;
use crate::net::StreamEvent;

/// The content of a stream event.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum StreamPart {
    /// The next piece of text, possibly empty.
    Text(String),
    /// The end of the answer.
    End,
}

/// A partly received answer.
pub(super) struct ResponseAssembly {
    bytes_left: usize,
    model: Option<Value>,
    text: String,
    refusal: String,
    calls: Vec<PartialCall>,
    finish_reason: Option<Value>,
    usage: Option<Value>,
    ended: bool,
    halves: SurrogateJoiner,
}

/// A partly received tool call.
#[derive(Default)]
struct PartialCall {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
}

impl ResponseAssembly {
    /// Creates an empty answer that accepts at most `most` bytes.
    pub(super) fn new(most: usize) -> Self {
        Self {
            bytes_left: most,
            model: None,
            text: String::new(),
            refusal: String::new(),
            calls: Vec::new(),
            finish_reason: None,
            usage: None,
            ended: false,
            halves: SurrogateJoiner::default(),
        }
    }

    /// Returns true if the server has marked the answer as complete.
    pub(super) fn is_complete(&self) -> bool {
        self.ended || self.finish_reason.is_some()
    }

    pub(super) fn add_event(&mut self, event: &StreamEvent) -> Result<StreamPart, StreamError> {
        let data = event.data.trim_ascii();
        if data == b"[DONE]" {
            self.ended = true;
            return Ok(StreamPart::End);
        }
        if data.is_empty() {
            return Ok(StreamPart::Text(String::new()));
        }
        let read = serde_json::from_slice(data).or_else(|_| serde_json::from_slice(&self.halves.join(data)));
        let chunk: Value = read.map_err(|error| {
            StreamError::Reply(ReplyError::Malformed(format!("a part of the stream is not JSON ({error})")))
        })?;
        if let Some(error) = error_in(&chunk) {
            return Err(StreamError::Reply(error));
        }
        if event.name == b"error" {
            let said = error_message_in(&chunk).unwrap_or_else(|| chunk.to_string());
            return Err(StreamError::Reply(ReplyError::ServerError { status: None, message: said }));
        }
        if let Some(usage) = chunk.get("usage").filter(|usage| usage.is_object()) {
            self.usage = Some(usage.clone());
        }
        if self.model.is_none() {
            self.model = chunk.get("model").filter(|model| model.is_string()).cloned();
        }
        // Only one choice was requested.
        let choices = chunk.get("choices").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let first = |choice: &&Value| choice.get("index").and_then(Value::as_u64).unwrap_or_default() == 0;
        choices
            .iter()
            .find(first)
            .map_or(Ok(StreamPart::Text(String::new())), |choice| self.add_choice(choice))
    }

    fn add_choice(&mut self, choice: &Value) -> Result<StreamPart, StreamError> {
        // Some servers can't stream and send the whole message in one event.
        let delta = choice.get("delta").filter(|delta| delta.is_object()).or_else(|| choice.get("message"));
        let mut more = String::new();
        if let Some(delta) = delta {
            more = delta.get("content").map(content_text).unwrap_or_default();
            let refusal = delta.get("refusal").and_then(Value::as_str).unwrap_or_default();
            self.charge_bytes(more.len() + refusal.len())?;
            self.text.push_str(&more);
            self.refusal.push_str(refusal);
            for call in delta.get("tool_calls").and_then(Value::as_array).into_iter().flatten() {
                self.add_call(call, call.get("function").unwrap_or(call))?;
            }
            // The older form has one call and no id.
            if let Some(function) = delta.get("function_call").filter(|call| call.is_object()) {
                self.add_call(&json!({ "index": 0 }), function)?;
            }
        }
        if let Some(reason) = choice.get("finish_reason").filter(|reason| reason.is_string()) {
            self.finish_reason = Some(reason.clone());
        }
        Ok(StreamPart::Text(more))
    }

    fn add_call(&mut self, call: &Value, function: &Value) -> Result<(), StreamError> {
        let word = |of: &Value, key: &str| of.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (id, name) = (word(call, "id"), word(function, "name"));
        let arguments = match function.get("arguments") {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(piece)) => piece.clone(),
            Some(whole) => whole.to_string(),
        };
        self.charge_bytes(id.len() + name.len() + arguments.len())?;
        let place = self.find_or_add_call(call.get("index").and_then(Value::as_u64), &id, &name);
        let Some(known) = place.and_then(|place| self.calls.get_mut(place)) else { return Ok(()) };
        if known.id.is_empty() {
            known.id = id;
        }
        // Some servers repeat the name in every piece.
        if !name.is_empty() {
            known.name = name;
        }
        known.arguments.push_str(&arguments);
        Ok(())
    }

    /// Returns the position of the call that a piece belongs to. Adds a new call if no call fits and the
    /// limit allows it.
    fn find_or_add_call(&mut self, index: Option<u64>, id: &str, name: &str) -> Option<usize> {
        let found = match index {
            Some(_) => self.calls.iter().rposition(|call| call.index == index),
            None if id.is_empty() => self.calls.len().checked_sub(1),
            None => self.calls.iter().rposition(|call| call.id == id),
        };
        let starts_new_call = |call: &PartialCall| {
            let other_id = !id.is_empty() && !call.id.is_empty() && call.id != id;
            // Servers that send whole calls give all of them the same index, or none.
            let whole = index.is_none() && !call.name.is_empty() && !call.arguments.is_empty();
            !name.is_empty() && (other_id || (whole && id.is_empty()))
        };
        if let Some(place) = found
            && !self.calls.get(place).is_some_and(starts_new_call)
        {
            return Some(place);
        }
        // One call above the limit is kept, so that the caller notices the exceeded limit.
        if self.calls.len() <= MOST_CALLS {
            self.calls.push(PartialCall { index, ..PartialCall::default() });
            return Some(self.calls.len() - 1);
        }
        None
    }

    fn charge_bytes(&mut self, bytes: usize) -> Result<(), StreamError> {
        self.bytes_left = self.bytes_left.checked_sub(bytes).ok_or(StreamError::TooLarge)?;
        Ok(())
    }

    /// Returns the answer in the form that a server sends without streaming.
    pub(super) fn into_payload(mut self) -> Value {
        // Calls may arrive in any order; their indexes give the right order.
        self.calls.sort_by_key(|call| call.index.unwrap_or(u64::MAX));
        let calls: Vec<Value> = self.calls.into_iter().map(PartialCall::into_json).collect();
        let mut message = Map::from_iter([
            ("role".to_owned(), json!("assistant")),
            ("content".to_owned(), json!(self.text)),
        ]);
        if !calls.is_empty() {
            message.insert("tool_calls".to_owned(), Value::Array(calls));
        }
        if !self.refusal.is_empty() {
            message.insert("refusal".to_owned(), json!(self.refusal));
        }
        let choice = json!({ "index": 0, "message": message, "finish_reason": self.finish_reason });
        let mut payload = Map::from_iter([("choices".to_owned(), json!([choice]))]);
        payload.extend(self.model.map(|model| ("model".to_owned(), model)));
        payload.extend(self.usage.map(|usage| ("usage".to_owned(), usage)));
        Value::Object(payload)
    }
}

impl PartialCall {
    fn into_json(self) -> Value {
        json!({ "id": self.id, "type": "function", "function": { "name": self.name, "arguments": self.arguments } })
    }
}
