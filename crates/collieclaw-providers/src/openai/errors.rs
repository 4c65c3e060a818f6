//! Turns failures into provider errors with advice, and removes the key from server messages.

use serde_json::Value;

use super::OpenAiSettings;
use super::reply::{ReplyError, error_message_in};
use super::stream::StreamError;
use crate::ProviderError;
use crate::net::{ExchangeError, RequestUrl, WaitError};

/// The most characters of a server's message that are shown.
const MAX_QUOTED_CHARS: usize = 300;

/// Builds the errors of one provider.
#[derive(Clone, Copy)]
pub(super) struct ProviderErrorBuilder<'f> {
    pub(super) settings: &'f OpenAiSettings,
}

impl ProviderErrorBuilder<'_> {
    pub(super) fn network_error(&self, detail: String) -> ProviderError {
        ProviderError::Network { provider: self.name(), detail }
    }

    pub(super) fn wait_error(&self, stopped: WaitError) -> ProviderError {
        match stopped {
            WaitError::Cancelled => ProviderError::Cancelled { provider: self.name() },
            WaitError::TimedOut => {
                // Part of a second counts as a full second.
                let seconds = self.settings.timeout.as_millis().div_ceil(1000);
                ProviderError::Timeout {
                    provider: self.name(),
                    seconds: u64::try_from(seconds).unwrap_or(u64::MAX),
                }
            }
        }
    }

    pub(super) fn exchange_error(&self, error: ExchangeError) -> ProviderError {
        match error {
            ExchangeError::Stopped(stopped) => self.wait_error(stopped),
            ExchangeError::ConnectionRefused => self.network_error(format!(
                "connection refused at {}; is the server running, and is `base_url` right?",
                self.settings.base_url
            )),
            ExchangeError::Stalled => self.network_error(format!(
                "the server sent nothing for {} s within its answer (`stall_timeout`)",
                self.settings.stall_timeout.as_millis().div_ceil(1000)
            )),
            ExchangeError::Failed(what) => self.network_error(self.quote_server(&what)),
        }
    }

    pub(super) fn insecure_key(&self, url: &RequestUrl) -> ProviderError {
        let variable = self.settings.api_key_env.as_deref().unwrap_or("the key");
        ProviderError::Insecure {
            provider: self.name(),
            detail: format!(
                "the connection to {} is not encrypted, so others could read the key in {variable}; write `https://` \
                 in `base_url`, or `api_key_env = \"\"` if the server needs no key",
                url.origin()
            ),
        }
    }

    pub(super) fn redirect_error(&self, location: Option<&str>) -> ProviderError {
        let to = location.map_or_else(|| "nowhere".to_owned(), |location| self.quote_server(location));
        self.invalid_error(format!(
            "the server redirects to {to}, and redirects are not followed because the request carries a key; if the target is \
             right, set `base_url` to it"
        ))
    }

    /// Translates an HTTP status other than success.
    pub(super) fn status_error(&self, status: u16, retry_after: Option<u64>, body: &[u8]) -> ProviderError {
        let said = match serde_json::from_slice::<Value>(body) {
            Ok(payload) => error_message_in(&payload).unwrap_or_default(),
            Err(_) if is_html(body) => String::new(),
            Err(_) => String::from_utf8_lossy(body).into_owned(),
        };
        let said = self.quote_server(&said);
        let detail =
            if said.is_empty() { format!("HTTP {status}") } else { format!("HTTP {status}: {said}") };
        let provider = self.name();
        match status {
            401 | 403 => ProviderError::Auth { provider, detail: format!("{detail}{}", self.key_advice()) },
            404 | 405 => {
                let advice =
                    "; is `base_url` right (it often ends in `/v1`), and does the server have this model?";
                ProviderError::Refused { provider, detail: format!("{detail}{advice}") }
            }
            408 | 429 | 500..=599 => ProviderError::Overloaded { provider, detail, retry_after },
            _ => ProviderError::Refused { provider, detail },
        }
    }

    pub(super) fn reply_error(&self, error: ReplyError) -> ProviderError {
        match error {
            ReplyError::ServerError { status: Some(status), message: said }
                if (400..600).contains(&status) =>
            {
                self.status_error(status, None, said.as_bytes())
            }
            ReplyError::ServerError { message: said, .. } | ReplyError::Refusal(said) => {
                ProviderError::Refused { provider: self.name(), detail: self.quote_server(&said) }
            }
            ReplyError::Malformed(what) => self.invalid_error(self.quote_server(&what)),
        }
    }

    pub(super) fn stream_error(&self, error: StreamError) -> ProviderError {
        match error {
            StreamError::Exchange(error) => self.exchange_error(error),
            StreamError::Reply(error) => self.reply_error(error),
            StreamError::TooLarge => self.too_large(),
            StreamError::Unfinished => {
                self.network_error("the connection closed in the middle of the answer".to_owned())
            }
        }
    }

    pub(super) fn too_large(&self) -> ProviderError {
        ProviderError::TooLarge { provider: self.name(), limit: self.settings.max_response_bytes }
    }

    pub(super) fn not_json(&self, body: &[u8], error: &serde_json::Error) -> ProviderError {
        self.invalid_error(if is_html(body) {
            "a web page instead of JSON; is `base_url` right? It often ends in `/v1`".to_owned()
        } else if body.is_empty() {
            "an empty reply".to_owned()
        } else if error.is_eof() {
            "incomplete JSON".to_owned()
        } else {
            let start = self.quote_server(&String::from_utf8_lossy(body));
            format!("not JSON ({error}): {start}")
        })
    }

    fn key_advice(&self) -> String {
        match (&self.settings.api_key, &self.settings.api_key_env) {
            (Some(_), Some(variable)) => format!("; the key is in the environment variable {variable}"),
            (None, Some(variable)) => format!("; set the environment variable {variable} to a key"),
            (_, None) => {
                "; the server needs a key: set `api_key_env` to the variable that holds it".to_owned()
            }
        }
    }

    fn invalid_error(&self, detail: String) -> ProviderError {
        ProviderError::Invalid { provider: self.name(), detail }
    }

    fn name(&self) -> String {
        self.settings.name.clone()
    }

    /// Quotes a server's message on one line, shortened and without the key.
    fn quote_server(&self, text: &str) -> String {
        let hidden = match &self.settings.api_key {
            Some(key) => key.redact_in(text),
            None => text.to_owned(),
        };
        let words: Vec<&str> =
            hidden.split(|letter: char| letter.is_whitespace() || letter.is_control()).collect();
        let line = words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
        match line.char_indices().nth(MAX_QUOTED_CHARS) {
            Some((end, _)) => format!("{} …", line.get(..end).unwrap_or_default()),
            None => line,
        }
    }
}

fn is_html(body: &[u8]) -> bool {
    let start = body.trim_ascii_start();
    let start = start.get(..start.len().min(9)).unwrap_or_default().to_ascii_lowercase();
    start.starts_with(b"<!doctype") || start.starts_with(b"<html") || start.starts_with(b"<?xml")
}

/// Parses `Retry-After`, which is a number of seconds or a date, and returns seconds.
pub(super) fn parse_retry_after(header: &str) -> Option<u64> {
    let header = header.trim();
    if let Ok(seconds) = header.parse() {
        return Some(seconds);
    }
    let moment = jiff::fmt::rfc2822::parse(header).ok()?.timestamp();
    Some(u64::try_from(moment.duration_since(jiff::Timestamp::now()).as_secs()).unwrap_or_default())
}
