//! What was asked for, and how the indices are asked.

use super::fold::fold;
use super::words::{has_signs, query_words};

/// More than anybody types. A pasted page is looked for by how it begins.
const LONGEST_QUERY: usize = 4096;

/// Further words make a search slower and not better.
const MOST_TERMS: usize = 12;

/// The index of letters has groups of this many.
const GRAM: usize = 3;

/// So many groups of a term are looked up; the turns themselves tell the rest.
const MOST_GRAMS: usize = 16;

/// What was asked for.
pub(super) struct Query {
    /// The terms, in their order, each once.
    pub(super) terms: Vec<Term>,
    /// All of it, when there are several.
    pub(super) phrase: Option<String>,
}

/// Something without a space.
#[derive(Clone)]
pub(super) struct Term {
    pub(super) folded: String,
    words: Vec<String>,
    grams: Vec<String>,
}

impl Query {
    /// `None` when there is nothing in it to look for.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let folded = fold(text.get(..text.floor_char_boundary(LONGEST_QUERY))?);
        let mut terms: Vec<Term> = Vec::new();
        for part in folded.split(' ').filter(|part| !part.is_empty()).take(MOST_TERMS) {
            if terms.iter().all(|term| term.folded != part) {
                terms.push(Term::new(part));
            }
        }
        if terms.is_empty() {
            return None;
        }
        let phrase = (terms.len() > 1).then(|| folded.trim().to_owned());
        Some(Self { terms, phrase })
    }

    /// Each of the terms by itself.
    pub(super) fn apart(&self) -> impl Iterator<Item = Self> {
        self.terms.iter().map(|term| Self { terms: vec![term.clone()], phrase: None })
    }

    /// Words that a turn must have whole. None where signs are a part of a term: the letters tell more then.
    pub(super) fn words(&self) -> Vec<String> {
        if self.terms.iter().any(|term| has_signs(&term.folded) && !term.grams.is_empty()) {
            return Vec::new();
        }
        self.entries(|term| &term.words)
    }

    /// Words that must begin so. Only for terms so short that the index has their beginnings.
    pub(super) fn beginnings(&self) -> Vec<String> {
        self.entries(|term| &term.words)
    }

    /// Groups of letters that a turn must have, wherever.
    pub(super) fn letters(&self) -> Vec<String> {
        self.entries(|term| &term.grams)
    }

    /// Each once. Terms that have none are left to whoever reads the turns.
    fn entries(&self, of: impl Fn(&Term) -> &[String]) -> Vec<String> {
        let mut entries: Vec<String> = self.terms.iter().flat_map(of).cloned().collect();
        entries.sort_unstable();
        entries.dedup();
        entries
    }
}

impl Term {
    fn new(folded: &str) -> Self {
        let mut words = query_words(folded);
        words.truncate(MOST_GRAMS);
        Self { folded: folded.to_owned(), words, grams: grams(folded) }
    }
}

/// Groups of letters, from all over the term.
fn grams(folded: &str) -> Vec<String> {
    let letters: Vec<char> = folded.chars().collect();
    let mut all: Vec<String> = letters.windows(GRAM).map(|gram| gram.iter().collect()).collect();
    all.sort_unstable();
    all.dedup();
    let step = all.len().div_ceil(MOST_GRAMS).max(1);
    all.into_iter().step_by(step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_looks_like_an_operator_is_taken_as_it_is() {
        let query = Query::parse("NEAR(a* \"b\" OR c 2)").unwrap();
        let letters = query.letters().join(" ");
        assert_eq!(letters, r#""b" (a* ar( ear nea r(a"#);
        assert!(query.words().is_empty());
        let query = Query::parse("a* AND or c,").unwrap();
        assert_eq!(query.words().join(" "), "a and c or");
        assert_eq!(query.beginnings().join(" "), "a and c or");
    }

    #[test]
    fn there_may_be_nothing_to_look_for() {
        for text in ["", "  \n\t", "\0\u{200b}\u{301}"] {
            assert!(Query::parse(text).is_none(), "{text:?}");
        }
        assert!(Query::parse("**").unwrap().words().is_empty());
        assert!(Query::parse("ab").unwrap().letters().is_empty());
    }

    #[test]
    fn a_page_is_cut() {
        let query = Query::parse(&"ä".repeat(1_000_000)).unwrap();
        assert_eq!(query.terms[0].folded.len(), LONGEST_QUERY / 2);
        assert_eq!(Query::parse(&"a b c d e f ".repeat(1_000)).unwrap().terms.len(), 6);
        let term = &Query::parse(&(0..2_000).map(|n| n.to_string()).collect::<String>()).unwrap().terms[0];
        assert!(term.grams.len() <= MOST_GRAMS);
    }
}
