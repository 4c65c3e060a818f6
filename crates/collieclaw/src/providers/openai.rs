//! A server that speaks the common protocol: `POST {base_url}/chat/completions` (C4.3).
//!
//! The key goes to the configured server and nowhere else: not over a connection that others can read, not along a
//! redirect, not into an error, should the server repeat it.

mod assembly;
mod fault;
mod reply;
mod request;
mod stream;
mod surrogates;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use collieclaw_gate::{Method, Scheme};
use serde_json::Value;

use super::{
    ChatRequest, ChatResponse, Checked, Draft, Message, Provider, ProviderCapabilities, ProviderError,
};
use crate::cancel::Cancel;
use crate::net::{Answer, Ask, Broken, Link, LookupError, Patience, SystemLookup, ask};
use crate::secret::{Secret, Veil};

use fault::Faults;
use request::Form;
use stream::Bounds;
use surrogates::Halves;

/// A server that asks for more patience than this is overloaded.
const LONGEST_RETRY_AFTER: Duration = Duration::from_secs(5);

/// What the configuration says of a server.
#[derive(Debug, Clone)]
pub struct OpenAiSettings {
    /// What the configuration calls it.
    pub name: String,
    /// Such as `http://localhost:1234/v1`.
    pub base_url: String,
    /// The key, if its variable is set.
    pub api_key: Option<Secret>,
    /// The variable that holds the key; said when the key is refused.
    pub api_key_env: Option<String>,
    /// For one answer, from the name of the server to the last byte.
    pub timeout: Duration,
    /// How long an answer that has begun to come may stop coming.
    pub stall_timeout: Duration,
    /// How long an answer may be.
    pub max_response_bytes: usize,
    /// Whether answers are asked for bit by bit.
    pub stream: bool,
}

/// The provider.
#[derive(Debug)]
pub struct OpenAi {
    settings: OpenAiSettings,
    /// It has said that it can't stream.
    only_whole: AtomicBool,
}

/// What an exchange ended with, where it is not an answer.
enum Unanswered {
    /// Come back after so long.
    Busy(Duration, ProviderError),
    /// For good.
    Failed(ProviderError),
}

impl OpenAi {
    /// A provider. Nothing is sent yet.
    #[must_use]
    pub fn new(settings: OpenAiSettings) -> Self {
        Self { settings, only_whole: AtomicBool::new(false) }
    }

    fn faults(&self) -> Faults<'_> {
        Faults { settings: &self.settings }
    }

    /// Asks for a stream where one is wanted, and again without if the server doesn't know any.
    fn answer(
        &self,
        request: &ChatRequest,
        listener: &mut dyn FnMut(Draft<'_>),
        patience: &Patience,
    ) -> Result<Value, ProviderError> {
        let mut ask = |form| self.ask(&request::body(request, form), listener, patience);
        if !self.settings.stream || self.only_whole.load(Ordering::SeqCst) {
            return ask(Form::Whole);
        }
        match ask(Form::Streamed) {
            Err(ProviderError::Refused { detail, .. }) if speaks_of_streams(&detail) => {
                self.only_whole.store(true, Ordering::SeqCst);
                ask(Form::Whole)
            }
            answered => answered,
        }
    }

    /// Asks, and once more if the server wants us to wait for a moment.
    fn ask(
        &self,
        body: &Value,
        listener: &mut dyn FnMut(Draft<'_>),
        patience: &Patience,
    ) -> Result<Value, ProviderError> {
        let (wait, busy) = match self.exchange(body, listener, patience) {
            Ok(answer) => return Ok(answer),
            Err(Unanswered::Failed(error)) => return Err(error),
            Err(Unanswered::Busy(wait, error)) => (wait, error),
        };
        if wait > LONGEST_RETRY_AFTER || patience.left().is_ok_and(|left| left < wait) {
            return Err(busy);
        }
        patience.pause(wait).map_err(|stopped| self.faults().stopped(stopped))?;
        self.exchange(body, listener, patience).map_err(|unanswered| match unanswered {
            Unanswered::Failed(error) | Unanswered::Busy(_, error) => error,
        })
    }

    fn exchange(
        &self,
        body: &Value,
        listener: &mut dyn FnMut(Draft<'_>),
        patience: &Patience,
    ) -> Result<Value, Unanswered> {
        let faults = self.faults();
        let answer = self.send(&body.to_string(), patience).map_err(Unanswered::Failed)?;
        let status = answer.status;
        if (300..400).contains(&status) {
            return Err(Unanswered::Failed(faults.redirect(answer.header("location"))));
        }
        let retry_after = answer.header("retry-after").and_then(fault::seconds);
        if !(200..300).contains(&status) {
            let bytes = match answer.read(self.settings.max_response_bytes) {
                Ok(bytes) => bytes,
                // The status says more than the end of its explanation.
                Err(Broken::Failed(_)) if status >= 400 => Vec::new(),
                Err(broken) => return Err(Unanswered::Failed(faults.broken(broken))),
            };
            let error = faults.status(status, retry_after, &bytes);
            return Err(match (&error, retry_after) {
                (ProviderError::Overloaded { .. }, Some(wait)) => {
                    Unanswered::Busy(Duration::from_secs(wait), error)
                }
                _ => Unanswered::Failed(error),
            });
        }
        let payload = self.payload(answer, listener).map_err(Unanswered::Failed)?;
        Ok(self.without_key(payload))
    }

    /// What was answered, whole, however it comes.
    fn payload(&self, answer: Answer, listener: &mut dyn FnMut(Draft<'_>)) -> Result<Value, ProviderError> {
        let faults = self.faults();
        let most = self.settings.max_response_bytes;
        let content_type = answer.content_type();
        let mut incoming = answer.incoming();
        let mut head = Vec::new();
        let mut buffer = [0; 1024];
        let streams = loop {
            if let Some(streams) = stream::is_stream(content_type.as_deref(), &head) {
                break streams;
            }
            match incoming.some(&mut buffer).map_err(|broken| faults.broken(broken))? {
                0 => break false,
                amount => head.extend(buffer.iter().take(amount)),
            }
        };
        if streams {
            let mut veil = Veil::new(self.key_to_hide());
            let mut tell = |text: &str| match veil.pass(text) {
                nothing if nothing.is_empty() => {}
                shown => listener(Draft::Text(&shown)),
            };
            let bounds = Bounds { most, longest_silence: self.settings.stall_timeout };
            let payload = stream::follow(&mut incoming, &head, &bounds, &mut tell);
            let payload = payload.map_err(|torn| faults.torn(torn))?;
            match veil.end() {
                nothing if nothing.is_empty() => {}
                shown => listener(Draft::Text(&shown)),
            }
            return Ok(payload);
        }
        head.extend(incoming.rest(most).map_err(|broken| faults.broken(broken))?);
        if head.len() > most {
            return Err(faults.too_large());
        }
        serde_json::from_slice(&head)
            .or_else(|error| serde_json::from_slice(&Halves::default().join(&head)).map_err(|_| error))
            .map_err(|error| faults.not_json(&head, &error))
    }

    fn send(&self, body: &str, patience: &Patience) -> Result<Answer, ProviderError> {
        let faults = self.faults();
        let base = self.settings.base_url.trim_end_matches('/');
        let link = match base.contains(['?', '#']) {
            true => Err("nothing with `?` or `#` can follow the address"),
            false => Link::read(&format!("{base}/chat/completions")),
        };
        let link = link.map_err(|what| faults.network(format!("`base_url` can't be used: {what}")))?;
        let numbers = link.numbers(&SystemLookup, patience).map_err(|error| match error {
            LookupError::Stopped(stopped) => faults.stopped(stopped),
            LookupError::NotFound { .. } => faults.network(format!("{error}; is `base_url` right?")),
        })?;
        let key = self.settings.api_key.as_ref().map(|key| key.reveal().trim()).filter(|key| !key.is_empty());
        let in_the_clear =
            link.address.scheme == Scheme::Http && !numbers.iter().all(|it| it.to_canonical().is_loopback());
        if key.is_some() && in_the_clear {
            return Err(faults.in_the_clear(&link));
        }
        let bearer = zeroize::Zeroizing::new(key.map(|key| format!("Bearer {key}")).unwrap_or_default());
        let mut headers =
            vec![("content-type", "application/json"), ("accept", "application/json, text/event-stream")];
        if key.is_some() {
            headers.push(("authorization", bearer.as_str()));
        }
        let order = Ask { method: Method::Post, link: &link, numbers: &numbers, headers: &headers, body };
        ask(&order, patience).map_err(|broken| faults.broken(broken))
    }

    /// What must not be seen in a reply.
    fn key_to_hide(&self) -> Option<&Secret> {
        self.settings.api_key.as_ref().filter(|key| !key.is_placeholder())
    }

    /// A reply without the key in it, however it was escaped.
    fn without_key(&self, reply: Value) -> Value {
        let Some(key) = self.key_to_hide() else { return reply };
        match reply {
            Value::String(text) => Value::String(key.hidden_in(&text)),
            Value::Array(values) => values.into_iter().map(|value| self.without_key(value)).collect(),
            Value::Object(entries) => entries
                .into_iter()
                .map(|(name, value)| (key.hidden_in(&name), self.without_key(value)))
                .collect(),
            other => other,
        }
    }
}

/// Whether a refusal is about what we asked for, and not about something `upstream`.
fn speaks_of_streams(detail: &str) -> bool {
    let mut words = detail.split(|letter: char| !letter.is_alphanumeric());
    words.any(|word| {
        ["stream", "streams", "streaming", "streamed"].iter().any(|of| word.eq_ignore_ascii_case(of))
    })
}

impl Provider for OpenAi {
    fn name(&self) -> &str {
        &self.settings.name
    }

    fn capabilities(&self) -> ProviderCapabilities {
        ProviderCapabilities { tools: true, streaming: self.settings.stream }
    }

    fn chat(
        &self,
        request: &ChatRequest,
        listener: &mut dyn FnMut(Draft<'_>),
        cancel: &Cancel,
    ) -> Result<ChatResponse, ProviderError> {
        let patience = Patience::new(cancel, self.settings.timeout);
        let payload = self.answer(request, listener, &patience)?;
        let mut response = reply::read(payload).map_err(|unusable| self.faults().unusable(unusable))?;
        for call in &mut response.tool_calls {
            // They come as a text in the text, with escapes of its own.
            call.arguments = self.without_key(call.arguments.take());
        }
        Ok(response)
    }

    fn check(&self, model: &str, cancel: &Cancel) -> Result<Checked, ProviderError> {
        let begun = Instant::now();
        let request = ChatRequest {
            system_prompt: String::new(),
            messages: vec![Message::user("Answer with the word ok.")],
            tools: Vec::new(),
            model: model.to_owned(),
            temperature: None,
            metadata: serde_json::Map::new(),
        };
        let response = self.chat(&request, &mut |_| {}, cancel)?;
        let named = response.raw_provider_payload.as_ref().and_then(|payload| payload.get("model")?.as_str());
        Ok(Checked {
            model: named.unwrap_or(model).to_owned(),
            said: response.final_text,
            took: begun.elapsed(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_refusal_of_streams_ends_them() {
        for detail in ["stream is not supported", "Unsupported parameter: 'stream'", "no Streaming here"] {
            assert!(speaks_of_streams(detail), "{detail}");
        }
        for detail in ["upstream error", "the model is not loaded", "bitstreams"] {
            assert!(!speaks_of_streams(detail), "{detail}");
        }
    }
}
