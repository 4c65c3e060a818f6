//! Queries, and the index entries that a match must have.

use super::fold::fold;
use super::words::{has_punctuation, query_words};

/// The length at which a query is cut, such as a pasted page.
const MAX_QUERY_BYTES: usize = 4096;

/// The maximum number of terms. More terms make a search slower but not better.
const MAX_TERMS: usize = 12;

const TRIGRAM: usize = 3;

/// The maximum number of trigrams that are looked up for one term. Candidate turns are compared with the
/// whole term.
const MAX_TRIGRAMS: usize = 16;

pub(super) struct MemoryQuery {
    /// The distinct terms, in order.
    pub(super) terms: Vec<QueryTerm>,
    /// The whole query, if it has several terms.
    pub(super) phrase: Option<String>,
}

/// A part of the query without spaces.
#[derive(Clone)]
pub(super) struct QueryTerm {
    pub(super) folded: String,
    words: Vec<String>,
    trigrams: Vec<String>,
}

impl MemoryQuery {
    /// Returns `None` if the text contains nothing to search for.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let folded = fold(text.get(..text.floor_char_boundary(MAX_QUERY_BYTES))?);
        let mut terms: Vec<QueryTerm> = Vec::new();
        for part in folded.split(' ').filter(|part| !part.is_empty()).take(MAX_TERMS) {
            if terms.iter().all(|term| term.folded != part) {
                terms.push(QueryTerm::new(part));
            }
        }
        if terms.is_empty() {
            return None;
        }
        let phrase = (terms.len() > 1).then(|| folded.trim().to_owned());
        Some(Self { terms, phrase })
    }

    /// Returns one query for each term.
    pub(super) fn single_terms(&self) -> impl Iterator<Item = Self> {
        self.terms.iter().map(|term| Self { terms: vec![term.clone()], phrase: None })
    }

    /// Returns the words that a match contains as whole words. The list is empty if a term contains
    /// punctuation, because trigrams are more selective for such terms.
    pub(super) fn words(&self) -> Vec<String> {
        if self.terms.iter().any(|term| has_punctuation(&term.folded) && !term.trigrams.is_empty()) {
            return Vec::new();
        }
        self.index_entries(|term| &term.words)
    }

    /// Returns the prefixes of words that a match contains. Only useful for terms that are too short for
    /// trigrams.
    pub(super) fn prefixes(&self) -> Vec<String> {
        self.index_entries(|term| &term.words)
    }

    /// Returns the trigrams that a match contains.
    pub(super) fn trigrams(&self) -> Vec<String> {
        self.index_entries(|term| &term.trigrams)
    }

    /// Collects the distinct entries of all terms. Terms without entries are only checked when a turn is
    /// read.
    fn index_entries(&self, entries_of: impl Fn(&QueryTerm) -> &[String]) -> Vec<String> {
        let mut entries: Vec<String> = self.terms.iter().flat_map(entries_of).cloned().collect();
        entries.sort_unstable();
        entries.dedup();
        entries
    }
}

impl QueryTerm {
    fn new(folded: &str) -> Self {
        let mut words = query_words(folded);
        words.truncate(MAX_TRIGRAMS);
        Self { folded: folded.to_owned(), words, trigrams: term_trigrams(folded) }
    }
}

/// Returns trigrams from all parts of the term.
fn term_trigrams(folded: &str) -> Vec<String> {
    let letters: Vec<char> = folded.chars().collect();
    let mut all: Vec<String> = letters.windows(TRIGRAM).map(|gram| gram.iter().collect()).collect();
    all.sort_unstable();
    all.dedup();
    let step = all.len().div_ceil(MAX_TRIGRAMS).max(1);
    all.into_iter().step_by(step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operators_are_searched_for_literally() {
        let query = MemoryQuery::parse("NEAR(a* \"b\" OR c 2)").unwrap();
        let letters = query.trigrams().join(" ");
        assert_eq!(letters, r#""b" (a* ar( ear nea r(a"#);
        assert!(query.words().is_empty());
        let query = MemoryQuery::parse("a* AND or c,").unwrap();
        assert_eq!(query.words().join(" "), "a and c or");
        assert_eq!(query.prefixes().join(" "), "a and c or");
    }

    #[test]
    fn a_query_may_contain_no_terms() {
        for text in ["", "  \n\t", "\0\u{200b}\u{301}"] {
            assert!(MemoryQuery::parse(text).is_none(), "{text:?}");
        }
        assert!(MemoryQuery::parse("**").unwrap().words().is_empty());
        assert!(MemoryQuery::parse("ab").unwrap().trigrams().is_empty());
    }

    #[test]
    fn a_long_query_is_truncated() {
        let query = MemoryQuery::parse(&"ä".repeat(1_000_000)).unwrap();
        assert_eq!(query.terms[0].folded.len(), MAX_QUERY_BYTES / 2);
        assert_eq!(MemoryQuery::parse(&"a b c d e f ".repeat(1_000)).unwrap().terms.len(), 6);
        let term =
            &MemoryQuery::parse(&(0..2_000).map(|n| n.to_string()).collect::<String>()).unwrap().terms[0];
        assert!(term.trigrams.len() <= MAX_TRIGRAMS);
    }
}
