//! Asking the search service that the operator has chosen.
//!
//! The address is the operator's and only the words are the model's: they are written so that they can't be anything
//! but words. No redirect is followed, and a key goes nowhere else.

use std::fmt::Write as _;

use collieclaw_gate::{HttpMethod, UrlScheme};
use serde::Serialize;
use serde_json::Value;
use zeroize::Zeroizing;

use super::deadline::{CancellableDeadline, WaitError};
use super::exchange::{ExchangeError, HttpRequest, send_request};
use super::resolver::{NameResolver, ResolveError};
use super::url::RequestUrl;
use crate::secret::Secret;
use crate::text::truncate_text;

/// Where the words go in the address.
pub const QUERY_PLACEHOLDER: &str = "{query}";

/// What of an answer is quoted in an error.
const LONGEST_QUOTE: usize = 200;

/// Who searches the web.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WebSearchSettings {
    /// With `{query}` where the words go.
    pub url: String,
    /// Where in the answer the list is, as a JSON Pointer.
    pub results: String,
    /// What the title of a result is called.
    pub title: String,
    /// What its address is called.
    pub link: String,
    /// What its text is called.
    pub text: String,
    /// The variable that holds the key; empty if there is none.
    pub api_key_env: String,
    /// The header that the key goes into; empty for `Authorization: Bearer`.
    pub api_key_header: String,
}

/// A service that answers with JSON, and what it knows us by.
#[derive(Debug, Clone)]
pub struct SearchService {
    /// What the configuration says of it.
    pub settings: WebSearchSettings,
    /// The key, if there is one.
    pub key: Option<Secret>,
}

/// One result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchResult {
    /// Its title.
    pub title: String,
    /// Its address.
    pub link: String,
    /// A few words of it.
    pub text: String,
}

/// Why there are no results.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SearchError {
    /// The waiting is over.
    #[error("{0}")]
    Stopped(WaitError),
    /// The service can't be reached.
    #[error("the search service can't be reached: {0}")]
    Network(String),
    /// It answers something else.
    #[error("the search service gives no results: {0}")]
    BadResponse(String),
}

impl SearchService {
    /// The address with the words in it.
    fn query_url(&self, query: &str) -> Result<RequestUrl, SearchError> {
        RequestUrl::parse(&self.settings.url.replace(QUERY_PLACEHOLDER, &percent_encode_query(query)))
            .map_err(|what| SearchError::Network(format!("its address can't be used: {what}")))
    }

    /// The best results for some words.
    ///
    /// # Errors
    /// With what is in the way.
    pub fn search(
        &self,
        query: &str,
        most: usize,
        lookup: &dyn NameResolver,
        (patience, most_bytes): (&CancellableDeadline, usize),
    ) -> Result<Vec<SearchResult>, SearchError> {
        let link = self.query_url(query)?;
        let numbers = link.resolve_addresses(lookup, patience).map_err(|error| match error {
            ResolveError::Stopped(stopped) => SearchError::Stopped(stopped),
            ResolveError::NotFound { .. } => SearchError::Network(error.to_string()),
        })?;
        let is_here = numbers.iter().all(|number| number.to_canonical().is_loopback());
        if self.key.is_some() && link.address.scheme == UrlScheme::Http && !is_here {
            let what = "its key would travel in the clear; use an address with https";
            return Err(SearchError::Network(what.to_owned()));
        }
        let bearer = self.key.as_ref().map(|key| Zeroizing::new(format!("Bearer {}", key.reveal())));
        let key = self.key.as_ref().zip(bearer.as_ref()).map(|(key, bearer)| {
            match &*self.settings.api_key_header {
                "" => ("authorization", bearer.as_str()),
                header => (header, key.reveal()),
            }
        });
        let headers: Vec<_> = std::iter::once(("accept", "application/json")).chain(key).collect();
        let order = HttpRequest {
            method: HttpMethod::Get,
            url: &link,
            addresses: &numbers,
            headers: &headers,
            body: "",
        };
        let answer = send_request(&order, patience).map_err(|broken| self.network_error(broken))?;
        let status = answer.status;
        let bytes = answer.read(most_bytes).map_err(|broken| self.network_error(broken))?;
        if !(200..300).contains(&status) {
            let said = String::from_utf8_lossy(&bytes);
            return Err(
                self.bad_response(&format!("it answers {status}: {}", truncate_text(&said, LONGEST_QUOTE)))
            );
        }
        if bytes.len() > most_bytes {
            return Err(self.bad_response(&format!("its answer is longer than {most_bytes} bytes")));
        }
        let answer: Value = serde_json::from_slice(&bytes)
            .map_err(|error| self.bad_response(&format!("its answer is not JSON ({error})")))?;
        let place = &self.settings.results;
        let Some(results) = answer.pointer(place).and_then(Value::as_array) else {
            return Err(self.bad_response(&format!("its answer has no list at `{place}`")));
        };
        Ok(results.iter().take(most).map(|result| self.read_result(result)).collect())
    }

    fn read_result(&self, result: &Value) -> SearchResult {
        let field = |name: &str| {
            let text = result.get(name).and_then(Value::as_str).unwrap_or_default();
            self.redact_key(text)
        };
        let WebSearchSettings { title, link, text, .. } = &self.settings;
        SearchResult { title: field(title), link: field(link), text: field(text) }
    }

    fn network_error(&self, broken: ExchangeError) -> SearchError {
        match broken {
            ExchangeError::Stopped(stopped) => SearchError::Stopped(stopped),
            ExchangeError::ConnectionRefused => SearchError::Network("nobody listens there".to_owned()),
            ExchangeError::Stalled => SearchError::Network("it has gone silent".to_owned()),
            ExchangeError::Failed(what) => SearchError::Network(self.redact_key(&what)),
        }
    }

    fn bad_response(&self, what: &str) -> SearchError {
        SearchError::BadResponse(self.redact_key(what))
    }

    fn redact_key(&self, text: &str) -> String {
        self.key.as_ref().map_or_else(|| text.to_owned(), |key| key.redact_in(text))
    }
}

/// Words as a part of an address: nothing in them means anything there.
fn percent_encode_query(text: &str) -> String {
    text.bytes().fold(String::new(), |mut escaped, byte| {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => escaped.push(byte.into()),
            // Writing to a string can't fail.
            _ => drop(write!(escaped, "%{byte:02X}")),
        }
        escaped
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_words_and_nothing_else() {
        let service = SearchService {
            settings: WebSearchSettings {
                url: "http://localhost:8888/search?q={query}&format=json".to_owned(),
                results: "/results".to_owned(),
                title: String::new(),
                link: String::new(),
                text: String::new(),
                api_key_env: String::new(),
                api_key_header: String::new(),
            },
            key: None,
        };
        let target = |query: &str| service.query_url(query).unwrap().to_string();
        assert_eq!(
            target("a b&format=html#x"),
            "http://localhost:8888/search?q=a%20b%26format%3Dhtml%23x&format=json"
        );
        assert_eq!(target("羊\n"), "http://localhost:8888/search?q=%E7%BE%8A%0A&format=json");
        assert_eq!(target("{query}"), "http://localhost:8888/search?q=%7Bquery%7D&format=json");
    }
}
