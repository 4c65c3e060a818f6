//! A provider for servers that speak the OpenAI protocol: `POST {base_url}/chat/completions` (C4.3).
//!
//! The API key goes only to the configured server: never over an unencrypted connection to another machine,
//! never along a redirect, and never into an error message, even if the server repeats it.

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

/// The longest wait that a server can ask for. A server that asks to wait longer counts as overloaded.
const LONGEST_RETRY_AFTER: Duration = Duration::from_secs(5);

/// The configuration of a server.
#[derive(Debug, Clone)]
pub struct OpenAiSettings {
    pub name: String,
    /// The URL up to the version, such as `http://localhost:1234/v1`.
    pub base_url: String,
    /// The key, if its environment variable is set.
    pub api_key: Option<Secret>,
    /// The variable that holds the key; error messages about the key name it.
    pub api_key_env: Option<String>,
    /// The time for one answer, from resolving the host name to the last byte.
    pub timeout: Duration,
    /// The longest silence within an answer that has started.
    pub stall_timeout: Duration,
    pub max_response_bytes: usize,
    /// Asks the server to stream its answers.
    pub stream: bool,
}

#[derive(Debug)]
pub struct OpenAiProvider {
    settings: OpenAiSettings,
    /// The temperature of requests that set none.
    temperature: Option<f64>,
    /// Set after the server has refused to stream.
    streaming_unsupported: AtomicBool,
}

/// The reason why a request got no answer.
enum AttemptError {
    /// The server asks to try again after this time.
    RetryAfter(Duration, ProviderError),
    Failed(ProviderError),
}

impl OpenAiProvider {
    /// Creates a provider without sending anything.
    #[must_use]
    pub fn new(settings: OpenAiSettings) -> Self {
        Self { settings, temperature: None, streaming_unsupported: AtomicBool::new(false) }
    }

    /// Sets the temperature of requests that set none.
    #[must_use]
    pub fn with_temperature(self, temperature: Option<f64>) -> Self {
        Self { temperature, ..self }
    }

    fn errors(&self) -> ProviderErrorBuilder<'_> {
        ProviderErrorBuilder { settings: &self.settings }
    }

    /// Asks for a stream if streaming is enabled, and asks again without streaming if the server refuses to
    /// stream.
    fn complete(
        &self,
        request: &ChatRequest,
        listener: &mut dyn FnMut(DraftEvent<'_>),
        deadline: &CancellableDeadline,
    ) -> Result<Value, ProviderError> {
        let temperature = request.temperature.or(self.temperature);
        let mut ask = |mode| {
            let body = request::request_body(request, temperature, mode);
            self.send_with_retry(&body, listener, deadline)
        };
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

    /// Sends a request, and sends it again if the server asks for a short wait.
    fn send_with_retry(
        &self,
        body: &Value,
        listener: &mut dyn FnMut(DraftEvent<'_>),
        deadline: &CancellableDeadline,
    ) -> Result<Value, ProviderError> {
        let (wait, busy) = match self.attempt(body, listener, deadline) {
            Ok(answer) => return Ok(answer),
            Err(AttemptError::Failed(error)) => return Err(error),
            Err(AttemptError::RetryAfter(wait, error)) => (wait, error),
        };
        if wait > LONGEST_RETRY_AFTER || deadline.remaining().is_ok_and(|left| left < wait) {
            return Err(busy);
        }
        deadline.sleep(wait).map_err(|stopped| self.errors().wait_error(stopped))?;
        self.attempt(body, listener, deadline).map_err(|failed| match failed {
            AttemptError::Failed(error) | AttemptError::RetryAfter(_, error) => error,
        })
    }

    fn attempt(
        &self,
        body: &Value,
        listener: &mut dyn FnMut(DraftEvent<'_>),
        deadline: &CancellableDeadline,
    ) -> Result<Value, AttemptError> {
        let errors = self.errors();
        let answer = self.send(&body.to_string(), deadline).map_err(AttemptError::Failed)?;
        let status = answer.status;
        if (300..400).contains(&status) {
            return Err(AttemptError::Failed(errors.redirect_error(answer.header("location"))));
        }
        let retry_after = answer.header("retry-after").and_then(errors::parse_retry_after);
        if !(200..300).contains(&status) {
            let bytes = match answer.read(self.settings.max_response_bytes) {
                Ok(bytes) => bytes,
                // The status says more than a body that broke off.
                Err(ExchangeError::Failed(_)) if status >= 400 => Vec::new(),
                Err(error) => return Err(AttemptError::Failed(errors.exchange_error(error))),
            };
            let error = errors.status_error(status, retry_after, &bytes);
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

    /// Reads the whole answer, streamed or not.
    fn read_payload(
        &self,
        answer: HttpResponse,
        listener: &mut dyn FnMut(DraftEvent<'_>),
    ) -> Result<Value, ProviderError> {
        let errors = self.errors();
        let most = self.settings.max_response_bytes;
        let content_type = answer.content_type();
        let mut incoming = answer.into_body_stream();
        let mut head = Vec::new();
        let mut buffer = [0; 1024];
        let streams = loop {
            if let Some(streams) = stream::is_stream(content_type.as_deref(), &head) {
                break streams;
            }
            match incoming.read_some(&mut buffer).map_err(|error| errors.exchange_error(error))? {
                0 => break false,
                amount => head.extend(buffer.iter().take(amount)),
            }
        };
        if streams {
            let mut redactor = SecretRedactor::new(self.key_to_hide());
            let mut on_text = |text: &str| match redactor.redact_chunk(text) {
                text if text.is_empty() => {}
                text => listener(DraftEvent::Text(&text)),
            };
            let limits = StreamLimits { max_bytes: most, stall_timeout: self.settings.stall_timeout };
            let payload = stream::read_stream(&mut incoming, &head, &limits, &mut on_text);
            let payload = payload.map_err(|error| errors.stream_error(error))?;
            match redactor.finish() {
                text if text.is_empty() => {}
                text => listener(DraftEvent::Text(&text)),
            }
            return Ok(payload);
        }
        head.extend(incoming.read_rest(most).map_err(|error| errors.exchange_error(error))?);
        if head.len() > most {
            return Err(errors.too_large());
        }
        serde_json::from_slice(&head)
            .or_else(|error| {
                serde_json::from_slice(&SurrogateJoiner::default().join(&head)).map_err(|_| error)
            })
            .map_err(|error| errors.not_json(&head, &error))
    }

    fn send(&self, body: &str, deadline: &CancellableDeadline) -> Result<HttpResponse, ProviderError> {
        let errors = self.errors();
        let base = self.settings.base_url.trim_end_matches('/');
        let url = match base.contains(['?', '#']) {
            true => Err("it must not contain `?` or `#`"),
            false => RequestUrl::parse(&format!("{base}/chat/completions")),
        };
        let url = url.map_err(|what| errors.network_error(format!("`base_url` is invalid: {what}")))?;
        let addresses = url.resolve_addresses(&SystemResolver, deadline).map_err(|error| match error {
            ResolveError::Stopped(stopped) => errors.wait_error(stopped),
            ResolveError::NotFound { .. } => errors.network_error(format!("{error}; is `base_url` right?")),
        })?;
        let key = self.settings.api_key.as_ref().map(|key| key.reveal().trim()).filter(|key| !key.is_empty());
        let is_unencrypted = url.address.scheme == UrlScheme::Http
            && !addresses.iter().all(|it| it.to_canonical().is_loopback());
        if key.is_some() && is_unencrypted {
            return Err(errors.insecure_key(&url));
        }
        let bearer = zeroize::Zeroizing::new(key.map(|key| format!("Bearer {key}")).unwrap_or_default());
        let mut headers =
            vec![("content-type", "application/json"), ("accept", "application/json, text/event-stream")];
        if key.is_some() {
            headers.push(("authorization", bearer.as_str()));
        }
        let request = HttpRequest {
            method: HttpMethod::Post,
            url: &url,
            addresses: &addresses,
            headers: &headers,
            body,
        };
        send_request(&request, deadline).map_err(|error| errors.exchange_error(error))
    }

    /// Returns the key if it has to be removed from replies.
    fn key_to_hide(&self) -> Option<&Secret> {
        self.settings.api_key.as_ref().filter(|key| !key.is_placeholder())
    }

    /// Removes the key from every string of a reply, however it was escaped in the JSON.
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

/// Returns true if a refusal is about streaming, and not about something `upstream`.
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
        let deadline = CancellableDeadline::new(cancel, self.settings.timeout);
        let payload = self.complete(request, listener, &deadline)?;
        let mut response = reply::parse_reply(payload).map_err(|error| self.errors().reply_error(error))?;
        for call in &mut response.tool_calls {
            // Arguments are JSON in a string with its own escapes, so they are redacted again after parsing.
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
    fn only_a_refusal_that_mentions_streaming_disables_it() {
        for detail in ["stream is not supported", "Unsupported parameter: 'stream'", "no Streaming here"] {
            assert!(mentions_streaming(detail), "{detail}");
        }
        for detail in ["upstream error", "the model is not loaded", "bitstreams"] {
            assert!(!mentions_streaming(detail), "{detail}");
        }
    }
}
