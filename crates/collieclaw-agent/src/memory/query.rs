//! What was asked for, and how the indices are asked.

use super::fold::fold;
use super::words::{has_punctuation, query_words};

/// More than anybody types. A pasted page is looked for by how it begins.
const MAX_QUERY_BYTES: usize = 4096;

/// Further words make a search slower and not better.
const MAX_TERMS: usize = 12;

/// The index of letters has groups of this many.
const TRIGRAM: usize = 3;

/// So many groups of a term are looked up; the turns themselves tell the rest.
const MAX_TRIGRAMS: usize = 16;

/// What was asked for.
pub(super) struct MemoryQuery {
    /// The terms, in their order, each once.
    pub(super) terms: Vec<QueryTerm>,
    /// All of it, when there are several.
    pub(super) phrase: Option<String>,
}

/// Something without a space.
#[derive(Clone)]
pub(super) struct QueryTerm {
    pub(super) folded: String,
    words: Vec<String>,
    trigrams: Vec<String>,
}

impl MemoryQuery {
    /// `None` when there is nothing in it to look for.
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

    /// Each of the terms by itself.
    pub(super) fn single_terms(&self) -> impl Iterator<Item = Self> {
        self.terms.iter().map(|term| Self { terms: vec![term.clone()], phrase: None })
    }

    /// Words that a turn must have whole. None where signs are a part of a term: the letters tell more then.
    pub(super) fn words(&self) -> Vec<String> {
        if self.terms.iter().any(|term| has_punctuation(&term.folded) && !term.trigrams.is_empty()) {
            return Vec::new();
        }
        self.index_entries(|term| &term.words)
    }

    /// Words that must begin so. Only for terms so short that the index has their beginnings.
    pub(super) fn prefixes(&self) -> Vec<String> {
        self.index_entries(|term| &term.words)
    }

    /// Groups of letters that a turn must have, wherever.
    pub(super) fn trigrams(&self) -> Vec<String> {
        self.index_entries(|term| &term.trigrams)
    }

    /// Each once. Terms that have none are left to whoever reads the turns.
    fn index_entries(&self, of: impl Fn(&QueryTerm) -> &[String]) -> Vec<String> {
        let mut entries: Vec<String> = self.terms.iter().flat_map(of).cloned().collect();
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

/// Groups of letters, from all over the term.
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
    fn what_looks_like_an_operator_is_taken_as_it_is() {
        let query = MemoryQuery::parse("NEAR(a* \"b\" OR c 2)").unwrap();
        let letters = query.trigrams().join(" ");
        assert_eq!(letters, r#""b" (a* ar( ear nea r(a"#);
        assert!(query.words().is_empty());
        let query = MemoryQuery::parse("a* AND or c,").unwrap();
        assert_eq!(query.words().join(" "), "a and c or");
        assert_eq!(query.prefixes().join(" "), "a and c or");
    }

    #[test]
    fn there_may_be_nothing_to_look_for() {
        for text in ["", "  \n\t", "\0\u{200b}\u{301}"] {
            assert!(MemoryQuery::parse(text).is_none(), "{text:?}");
        }
        assert!(MemoryQuery::parse("**").unwrap().words().is_empty());
        assert!(MemoryQuery::parse("ab").unwrap().trigrams().is_empty());
    }

    #[test]
    fn a_page_is_cut() {
        let query = MemoryQuery::parse(&"ä".repeat(1_000_000)).unwrap();
        assert_eq!(query.terms[0].folded.len(), MAX_QUERY_BYTES / 2);
        assert_eq!(MemoryQuery::parse(&"a b c d e f ".repeat(1_000)).unwrap().terms.len(), 6);
        let term =
            &MemoryQuery::parse(&(0..2_000).map(|n| n.to_string()).collect::<String>()).unwrap().terms[0];
        assert!(term.trigrams.len() <= MAX_TRIGRAMS);
    }
}
