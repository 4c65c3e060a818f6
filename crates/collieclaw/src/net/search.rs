//! Asking the search service that the operator has chosen.
//!
//! The address is the operator's and only the words are the model's: they are written so that they can't be anything
//! but words. No redirect is followed, and a key goes nowhere else.

use std::fmt::Write as _;

use collieclaw_gate::{Method, Scheme};
use serde_json::Value;
use zeroize::Zeroizing;

use super::exchange::{Ask, Broken, ask};
use super::link::Link;
use super::lookup::{Lookup, LookupError};
use super::patience::{Patience, Stopped};
use crate::config::WebSearch;
use crate::secret::Secret;
use crate::tools::shortened;

/// Where the words go in the address.
pub(crate) const QUERY: &str = "{query}";

/// What of an answer is quoted in an error.
const LONGEST_QUOTE: usize = 200;

/// A service that answers with JSON, and what it knows us by.
#[derive(Debug, Clone)]
pub struct SearchService {
    /// What the configuration says of it.
    pub settings: WebSearch,
    /// The key, if there is one.
    pub key: Option<Secret>,
}

/// One result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
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
    Stopped(Stopped),
    /// The service can't be reached.
    #[error("the search service can't be reached: {0}")]
    Network(String),
    /// It answers something else.
    #[error("the search service gives no results: {0}")]
    Answer(String),
}

impl SearchService {
    /// The address with the words in it.
    fn link(&self, query: &str) -> Result<Link, SearchError> {
        Link::read(&self.settings.url.replace(QUERY, &escaped(query)))
            .map_err(|what| SearchError::Network(format!("its address can't be used: {what}")))
    }

    /// The best results for some words.
    ///
    /// # Errors
    /// With what is in the way.
    pub fn find(
        &self,
        query: &str,
        most: usize,
        lookup: &dyn Lookup,
        (patience, most_bytes): (&Patience, usize),
    ) -> Result<Vec<Found>, SearchError> {
        let link = self.link(query)?;
        let numbers = link.numbers(lookup, patience).map_err(|error| match error {
            LookupError::Stopped(stopped) => SearchError::Stopped(stopped),
            LookupError::NotFound { .. } => SearchError::Network(error.to_string()),
        })?;
        let is_here = numbers.iter().all(|number| number.to_canonical().is_loopback());
        if self.key.is_some() && link.address.scheme == Scheme::Http && !is_here {
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
        let order = Ask { method: Method::Get, link: &link, numbers: &numbers, headers: &headers, body: "" };
        let answer = ask(&order, patience).map_err(|broken| self.failed(broken))?;
        let status = answer.status;
        let bytes = answer.read(most_bytes).map_err(|broken| self.failed(broken))?;
        if !(200..300).contains(&status) {
            let said = String::from_utf8_lossy(&bytes);
            return Err(self.odd(&format!("it answers {status}: {}", shortened(&said, LONGEST_QUOTE))));
        }
        if bytes.len() > most_bytes {
            return Err(self.odd(&format!("its answer is longer than {most_bytes} bytes")));
        }
        let answer: Value = serde_json::from_slice(&bytes)
            .map_err(|error| self.odd(&format!("its answer is not JSON ({error})")))?;
        let place = &self.settings.results;
        let Some(results) = answer.pointer(place).and_then(Value::as_array) else {
            return Err(self.odd(&format!("its answer has no list at `{place}`")));
        };
        Ok(results.iter().take(most).map(|result| self.found(result)).collect())
    }

    fn found(&self, result: &Value) -> Found {
        let field = |name: &str| {
            let text = result.get(name).and_then(Value::as_str).unwrap_or_default();
            self.without_key(text)
        };
        let WebSearch { title, link, text, .. } = &self.settings;
        Found { title: field(title), link: field(link), text: field(text) }
    }

    fn failed(&self, broken: Broken) -> SearchError {
        match broken {
            Broken::Stopped(stopped) => SearchError::Stopped(stopped),
            Broken::NobodyListens => SearchError::Network("nobody listens there".to_owned()),
            Broken::Silent => SearchError::Network("it has gone silent".to_owned()),
            Broken::Failed(what) => SearchError::Network(self.without_key(&what)),
        }
    }

    fn odd(&self, what: &str) -> SearchError {
        SearchError::Answer(self.without_key(what))
    }

    fn without_key(&self, text: &str) -> String {
        self.key.as_ref().map_or_else(|| text.to_owned(), |key| key.hidden_in(text))
    }
}

/// Words as a part of an address: nothing in them means anything there.
fn escaped(text: &str) -> String {
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
            settings: WebSearch {
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
        let target = |query: &str| service.link(query).unwrap().to_string();
        assert_eq!(
            target("a b&format=html#x"),
            "http://localhost:8888/search?q=a%20b%26format%3Dhtml%23x&format=json"
        );
        assert_eq!(target("羊\n"), "http://localhost:8888/search?q=%E7%BE%8A%0A&format=json");
        assert_eq!(target("{query}"), "http://localhost:8888/search?q=%7Bquery%7D&format=json");
    }
}
