//! Queries the web search service that the operator configured.
//!
//! The URL comes from the operator and only the query from the model. The query is percent-encoded, so it
//! can't change the rest of the URL. Redirects are not followed, so the key reaches no other server.

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

/// The placeholder for the query in the configured URL.
pub const QUERY_PLACEHOLDER: &str = "{query}";

const LONGEST_QUOTE: usize = 200;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WebSearchSettings {
    /// The URL of the service, with `{query}` in place of the query.
    pub url: String,
    /// The place of the result list in the answer, as a JSON Pointer.
    pub results: String,
    /// The JSON key of a result's title.
    pub title: String,
    /// The JSON key of a result's link.
    pub link: String,
    /// The JSON key of a result's text.
    pub text: String,
    /// The environment variable that holds the key; empty if the service needs no key.
    pub api_key_env: String,
    /// The header for the key; empty for `Authorization: Bearer`.
    pub api_key_header: String,
}

/// A search service that answers with JSON, and its API key.
#[derive(Debug, Clone)]
pub struct SearchService {
    pub settings: WebSearchSettings,
    pub key: Option<Secret>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchResult {
    pub title: String,
    pub link: String,
    /// An excerpt of the page.
    pub text: String,
}

/// The reason why a search failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SearchError {
    #[error("{0}")]
    Stopped(WaitError),
    #[error("could not reach the search service: {0}")]
    Network(String),
    /// The answer has no usable results.
    #[error("could not read the search results: {0}")]
    BadResponse(String),
}

impl SearchService {
    /// Returns the service's URL with the encoded query.
    fn query_url(&self, query: &str) -> Result<RequestUrl, SearchError> {
        RequestUrl::parse(&self.settings.url.replace(QUERY_PLACEHOLDER, &percent_encode_query(query)))
            .map_err(|what| SearchError::Network(format!("its URL is invalid: {what}")))
    }

    /// Returns at most `most` results, in the order of the service.
    ///
    /// # Errors
    /// Fails with the reason why there are no results.
    pub fn search(
        &self,
        query: &str,
        most: usize,
        resolver: &dyn NameResolver,
        (deadline, most_bytes): (&CancellableDeadline, usize),
    ) -> Result<Vec<SearchResult>, SearchError> {
        let link = self.query_url(query)?;
        let addresses = link.resolve_addresses(resolver, deadline).map_err(|error| match error {
            ResolveError::Stopped(stopped) => SearchError::Stopped(stopped),
            ResolveError::NotFound { .. } => SearchError::Network(error.to_string()),
        })?;
        let is_local = addresses.iter().all(|ip| ip.to_canonical().is_loopback());
        if self.key.is_some() && link.address.scheme == UrlScheme::Http && !is_local {
            let what = "its key would be sent unencrypted; use an https URL";
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
        let request = HttpRequest {
            method: HttpMethod::Get,
            url: &link,
            addresses: &addresses,
            headers: &headers,
            body: "",
        };
        let answer = send_request(&request, deadline).map_err(|error| self.network_error(error))?;
        let status = answer.status;
        let bytes = answer.read(most_bytes).map_err(|error| self.network_error(error))?;
        if !(200..300).contains(&status) {
            let said = String::from_utf8_lossy(&bytes);
            return Err(self.bad_response(&format!("HTTP {status}: {}", truncate_text(&said, LONGEST_QUOTE))));
        }
        if bytes.len() > most_bytes {
            return Err(self.bad_response(&format!("the answer is longer than {most_bytes} bytes")));
        }
        let answer: Value = serde_json::from_slice(&bytes)
            .map_err(|error| self.bad_response(&format!("the answer is not JSON ({error})")))?;
        let place = &self.settings.results;
        let Some(results) = answer.pointer(place).and_then(Value::as_array) else {
            return Err(self.bad_response(&format!("the answer has no list at `{place}`")));
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

    fn network_error(&self, error: ExchangeError) -> SearchError {
        match error {
            ExchangeError::Stopped(stopped) => SearchError::Stopped(stopped),
            ExchangeError::ConnectionRefused => SearchError::Network("connection refused".to_owned()),
            ExchangeError::Stalled => SearchError::Network("the service stopped sending".to_owned()),
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

/// Encodes a query so that no character has a meaning in the URL.
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
    fn a_query_cannot_change_the_rest_of_the_url() {
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
