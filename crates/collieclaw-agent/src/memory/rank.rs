//! How well a turn fits: by how it has the words, how long it is, whose it is, and how old.

use collieclaw_providers::ChatRole;
use jiff::Timestamp;

use super::query::MemoryQuery;
use super::words::is_inside_word;

/// A longer text has every word sooner or later; at this length that begins to count against it.
const TYPICAL_LENGTH: f64 = 400.0;

/// Counting further tells nothing.
const MAX_OCCURRENCES: usize = 8;

/// What a tool printed is seldom what somebody remembers.
const TOOL_WEIGHT: f64 = 0.6;

/// All words in a row, as they were typed.
const PHRASE_WEIGHT: f64 = 1.5;

/// The oldest turn keeps this much of its worth, and a turn of this age is half way there.
const OLDEST_WEIGHT: f64 = 0.6;
const HALF_AGE_SECONDS: f64 = 30.0 * 86_400.0;

/// How well a folded text fits, apart from its age; `None` when it lacks a term.
pub(super) fn relevance(query: &MemoryQuery, folded: &str, role: ChatRole) -> Option<f64> {
    let weights: Option<Vec<f64>> =
        query.terms.iter().map(|term| term_weight(folded, &term.folded)).collect();
    let phrase = query.phrase.as_ref().is_some_and(|phrase| folded.contains(phrase.as_str()));
    let role = if role == ChatRole::Tool { TOOL_WEIGHT } else { 1.0 };
    Some(weights?.iter().sum::<f64>() * role * if phrase { PHRASE_WEIGHT } else { 1.0 })
}

/// How much a term tells that is in so many turns.
pub(super) fn rarity(turns: usize) -> f64 {
    1.0 / (1.0 + to_f64(turns)).ln_1p()
}

/// What is left of a relevance at this age. Age is counted from the newest turn that was found, so that an order does
/// not depend on the clock.
pub(super) fn with_recency(relevance: f64, timestamp: Timestamp, newest: Timestamp) -> f64 {
    let age = newest.duration_since(timestamp).as_secs_f64().max(0.0);
    relevance * (OLDEST_WEIGHT + (1.0 - OLDEST_WEIGHT) * (-age / HALF_AGE_SECONDS).exp2())
}

/// More for a whole word than for the beginning of one, and for that more than for a piece.
fn term_weight(folded: &str, term: &str) -> Option<f64> {
    let mut occurrences = 0;
    let mut best: f64 = 0.0;
    for (start, _) in folded.match_indices(term).take(MAX_OCCURRENCES) {
        occurrences += 1;
        let (before, rest) = folded.split_at_checked(start)?;
        let behind = rest.get(term.len()..)?;
        let begins = !(before.ends_with(is_inside_word) && term.starts_with(is_inside_word));
        let ends = !(behind.starts_with(is_inside_word) && term.ends_with(is_inside_word));
        best = best.max(match (begins, ends) {
            (true, true) => 1.0,
            (true, false) => 0.7,
            (false, _) => 0.4,
        });
    }
    if occurrences == 0 {
        return None;
    }
    // The saturation of BM25, with a fixed usual length.
    let occurrences = to_f64(occurrences);
    let length = 0.25 + 0.75 * to_f64(folded.len()) / TYPICAL_LENGTH;
    Some(best * occurrences * 2.2 / (occurrences + 1.2 * length))
}

#[expect(clippy::cast_precision_loss, reason = "lengths of texts in memory are exact in an f64")]
fn to_f64(number: usize) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn weigh(query: &str, folded: &str) -> Option<f64> {
        relevance(&MemoryQuery::parse(query).unwrap(), folded, ChatRole::User)
    }

    #[test]
    fn better_fits_weigh_more() {
        for (query, better, worse) in [
            ("cat", "the cat sat", "the cats at"),
            ("cat", "the cats at", "concat these"),
            ("cat", "cat and cat", "cat and dog"),
            ("cat", "a cat", &format!("a cat{}", " and so on".repeat(100))),
            ("red cat", "a red cat", "a cat, red"),
            ("東京", "今日東京へ", "京都"),
        ] {
            assert!(weigh(query, better) > weigh(query, worse), "{query}: {better} / {worse}");
        }
    }

    #[test]
    fn what_lacks_a_term_does_not_fit() {
        assert!(weigh("red cat", "a cat").is_none());
        assert!(weigh("red cat", "a cat is red").is_some());
    }

    #[test]
    fn a_term_that_is_everywhere_tells_less() {
        assert!(rarity(1) > rarity(20) && rarity(20) > rarity(400) && rarity(400) > 0.0);
    }

    #[test]
    fn older_turns_weigh_less_and_never_nothing() {
        let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let old: Timestamp = "2001-01-01T00:00:00Z".parse().unwrap();
        assert_eq!(with_recency(1.0, now, now), 1.0);
        assert!((with_recency(1.0, old, now) - OLDEST_WEIGHT).abs() < 1e-9);
        assert_eq!(with_recency(1.0, now, old), 1.0, "a clock that was set back");
    }
}
