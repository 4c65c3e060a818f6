//! A server that speaks the common protocol: `POST {base_url}/chat/completions` (C4.3).
//!
//! The key goes to the configured server and nowhere else: not over a connection that others can read, not along a
//! redirect, not into an error, should the server repeat it.

mod assembly;
mod errors;
mod reply;
mod request;
mod stream;
mod surrogates;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use collieclaw_gate::{HttpMethod, UrlScheme};
use serde_json::Value;

use super::{
    ChatMessage, ChatRequest, ChatResponse, DraftEvent, Provider, ProviderCapabilities, ProviderCheck,
    ProviderError,
};
use crate::cancel::CancelFlag;
use crate::net::{
    CancellableDeadline, ExchangeError, HttpRequest, HttpResponse, RequestUrl, ResolveError, SystemResolver,
    send_request,
};
use crate::secret::{Secret, SecretRedactor};

use errors::ProviderErrorBuilder;
use request::ResponseMode;
use stream::StreamLimits;
use surrogates::SurrogateJoiner;

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
pub struct OpenAiProvider {
    settings: OpenAiSettings,
    /// It has said that it can't stream.
    streaming_unsupported: AtomicBool,
}

/// What an exchange ended with, where it is not an answer.
enum AttemptError {
    /// Come back after so long.
    RetryAfter(Duration, ProviderError),
    /// For good.
    Failed(ProviderError),
}

impl OpenAiProvider {
    /// A provider. Nothing is sent yet.
    #[must_use]
    pub fn new(settings: OpenAiSettings) -> Self {
        Self { settings, streaming_unsupported: AtomicBool::new(false) }
    }

    fn errors(&self) -> ProviderErrorBuilder<'_> {
        ProviderErrorBuilder { settings: &self.settings }
    }

    /// Asks for a stream where one is wanted, and again without if the server doesn't know any.
    fn complete(
        &self,
        request: &ChatRequest,
        listener: &mut dyn FnMut(DraftEvent<'_>),
        patience: &CancellableDeadline,
    ) -> Result<Value, ProviderError> {
        let mut ask = |form| self.send_with_retry(&request::request_body(request, form), listener, patience);
        if !self.settings.stream || self.streaming_unsupported.load(Ordering::SeqCst) {
            return ask(ResponseMode::Whole);
        }
        match ask(ResponseMode::Streamed) {
            Err(ProviderError::Refused { detail, .. }) if mentions_streaming(&detail) => {
                self.streaming_unsupported.store(true, Ordering::SeqCst);
                ask(ResponseMode::Whole)
            }
            answered => answered,
        }
    }

    /// Asks, and once more if the server wants us to wait for a moment.
    fn send_with_retry(
        &self,
        body: &Value,
        listener: &mut dyn FnMut(DraftEvent<'_>),
        patience: &CancellableDeadline,
    ) -> Result<Value, ProviderError> {
        let (wait, busy) = match self.attempt(body, listener, patience) {
            Ok(answer) => return Ok(answer),
            Err(AttemptError::Failed(error)) => return Err(error),
            Err(AttemptError::RetryAfter(wait, error)) => (wait, error),
        };
        if wait > LONGEST_RETRY_AFTER || patience.remaining().is_ok_and(|left| left < wait) {
            return Err(busy);
        }
        patience.sleep(wait).map_err(|stopped| self.errors().wait_error(stopped))?;
        self.attempt(body, listener, patience).map_err(|unanswered| match unanswered {
            AttemptError::Failed(error) | AttemptError::RetryAfter(_, error) => error,
        })
    }

    fn attempt(
        &self,
        body: &Value,
        listener: &mut dyn FnMut(DraftEvent<'_>),
        patience: &CancellableDeadline,
    ) -> Result<Value, AttemptError> {
        let faults = self.errors();
        let answer = self.send(&body.to_string(), patience).map_err(AttemptError::Failed)?;
        let status = answer.status;
        if (300..400).contains(&status) {
            return Err(AttemptError::Failed(faults.redirect_error(answer.header("location"))));
        }
        let retry_after = answer.header("retry-after").and_then(errors::parse_retry_after);
        if !(200..300).contains(&status) {
            let bytes = match answer.read(self.settings.max_response_bytes) {
                Ok(bytes) => bytes,
                // The status says more than the end of its explanation.
                Err(ExchangeError::Failed(_)) if status >= 400 => Vec::new(),
                Err(broken) => return Err(AttemptError::Failed(faults.exchange_error(broken))),
            };
            let error = faults.status_error(status, retry_after, &bytes);
            return Err(match (&error, retry_after) {
                (ProviderError::Overloaded { .. }, Some(wait)) => {
                    AttemptError::RetryAfter(Duration::from_secs(wait), error)
                }
                _ => AttemptError::Failed(error),
            });
        }
        let payload = self.read_payload(answer, listener).map_err(AttemptError::Failed)?;
        Ok(self.redact_key(payload))
    }

    /// What was answered, whole, however it comes.
    fn read_payload(
        &self,
        answer: HttpResponse,
        listener: &mut dyn FnMut(DraftEvent<'_>),
    ) -> Result<Value, ProviderError> {
        let faults = self.errors();
        let most = self.settings.max_response_bytes;
        let content_type = answer.content_type();
        let mut incoming = answer.into_body_stream();
        let mut head = Vec::new();
        let mut buffer = [0; 1024];
        let streams = loop {
            if let Some(streams) = stream::is_stream(content_type.as_deref(), &head) {
                break streams;
            }
            match incoming.read_some(&mut buffer).map_err(|broken| faults.exchange_error(broken))? {
                0 => break false,
                amount => head.extend(buffer.iter().take(amount)),
            }
        };
        if streams {
            let mut veil = SecretRedactor::new(self.key_to_hide());
            let mut tell = |text: &str| match veil.redact_chunk(text) {
                nothing if nothing.is_empty() => {}
                shown => listener(DraftEvent::Text(&shown)),
            };
            let bounds = StreamLimits { max_bytes: most, stall_timeout: self.settings.stall_timeout };
            let payload = stream::read_stream(&mut incoming, &head, &bounds, &mut tell);
            let payload = payload.map_err(|torn| faults.stream_error(torn))?;
            match veil.finish() {
                nothing if nothing.is_empty() => {}
                shown => listener(DraftEvent::Text(&shown)),
            }
            return Ok(payload);
        }
        head.extend(incoming.read_rest(most).map_err(|broken| faults.exchange_error(broken))?);
        if head.len() > most {
            return Err(faults.too_large());
        }
        serde_json::from_slice(&head)
            .or_else(|error| {
                serde_json::from_slice(&SurrogateJoiner::default().join(&head)).map_err(|_| error)
            })
            .map_err(|error| faults.not_json(&head, &error))
    }

    fn send(&self, body: &str, patience: &CancellableDeadline) -> Result<HttpResponse, ProviderError> {
        let faults = self.errors();
        let base = self.settings.base_url.trim_end_matches('/');
        let link = match base.contains(['?', '#']) {
            true => Err("nothing with `?` or `#` can follow the address"),
            false => RequestUrl::parse(&format!("{base}/chat/completions")),
        };
        let link = link.map_err(|what| faults.network_error(format!("`base_url` can't be used: {what}")))?;
        let numbers = link.resolve_addresses(&SystemResolver, patience).map_err(|error| match error {
            ResolveError::Stopped(stopped) => faults.wait_error(stopped),
            ResolveError::NotFound { .. } => faults.network_error(format!("{error}; is `base_url` right?")),
        })?;
        let key = self.settings.api_key.as_ref().map(|key| key.reveal().trim()).filter(|key| !key.is_empty());
        let in_the_clear = link.address.scheme == UrlScheme::Http
            && !numbers.iter().all(|it| it.to_canonical().is_loopback());
        if key.is_some() && in_the_clear {
            return Err(faults.insecure_key(&link));
        }
        let bearer = zeroize::Zeroizing::new(key.map(|key| format!("Bearer {key}")).unwrap_or_default());
        let mut headers =
            vec![("content-type", "application/json"), ("accept", "application/json, text/event-stream")];
        if key.is_some() {
            headers.push(("authorization", bearer.as_str()));
        }
        let order = HttpRequest {
            method: HttpMethod::Post,
            url: &link,
            addresses: &numbers,
            headers: &headers,
            body,
        };
        send_request(&order, patience).map_err(|broken| faults.exchange_error(broken))
    }

    /// What must not be seen in a reply.
    fn key_to_hide(&self) -> Option<&Secret> {
        self.settings.api_key.as_ref().filter(|key| !key.is_placeholder())
    }

    /// A reply without the key in it, however it was escaped.
    fn redact_key(&self, reply: Value) -> Value {
        let Some(key) = self.key_to_hide() else { return reply };
        match reply {
            Value::String(text) => Value::String(key.redact_in(&text)),
            Value::Array(values) => values.into_iter().map(|value| self.redact_key(value)).collect(),
            Value::Object(entries) => entries
                .into_iter()
                .map(|(name, value)| (key.redact_in(&name), self.redact_key(value)))
                .collect(),
            other => other,
        }
    }
}

/// Whether a refusal is about what we asked for, and not about something `upstream`.
fn mentions_streaming(detail: &str) -> bool {
    let mut words = detail.split(|letter: char| !letter.is_alphanumeric());
    words.any(|word| {
        ["stream", "streams", "streaming", "streamed"].iter().any(|of| word.eq_ignore_ascii_case(of))
    })
}

impl Provider for OpenAiProvider {
    fn name(&self) -> &str {
        &self.settings.name
    }

    fn capabilities(&self) -> ProviderCapabilities {
        ProviderCapabilities { tools: true, streaming: self.settings.stream }
    }

    fn chat(
        &self,
        request: &ChatRequest,
        listener: &mut dyn FnMut(DraftEvent<'_>),
        cancel: &CancelFlag,
    ) -> Result<ChatResponse, ProviderError> {
        let patience = CancellableDeadline::new(cancel, self.settings.timeout);
        let payload = self.complete(request, listener, &patience)?;
        let mut response =
            reply::parse_reply(payload).map_err(|unusable| self.errors().reply_error(unusable))?;
        for call in &mut response.tool_calls {
            // They come as a text in the text, with escapes of its own.
            call.arguments = self.redact_key(call.arguments.take());
        }
        Ok(response)
    }

    fn check(&self, model: &str, cancel: &CancelFlag) -> Result<ProviderCheck, ProviderError> {
        let begun = Instant::now();
        let request = ChatRequest {
            system_prompt: String::new(),
            messages: vec![ChatMessage::user("Answer with the word ok.")],
            tools: Vec::new(),
            model: model.to_owned(),
            temperature: None,
            metadata: serde_json::Map::new(),
        };
        let response = self.chat(&request, &mut |_| {}, cancel)?;
        let named = response.raw_provider_payload.as_ref().and_then(|payload| payload.get("model")?.as_str());
        Ok(ProviderCheck {
            model: named.unwrap_or(model).to_owned(),
            reply: response.final_text,
            elapsed: begun.elapsed(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_refusal_of_streams_ends_them() {
        for detail in ["stream is not supported", "Unsupported parameter: 'stream'", "no Streaming here"] {
            assert!(mentions_streaming(detail), "{detail}");
        }
        for detail in ["upstream error", "the model is not loaded", "bitstreams"] {
            assert!(!mentions_streaming(detail), "{detail}");
        }
    }
}
