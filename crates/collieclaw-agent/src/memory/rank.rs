//! Ranking of turns by matches, length, role and age.

use collieclaw_providers::ChatRole;
use jiff::Timestamp;

use super::query::MemoryQuery;
use super::words::is_inside_word;

/// The length from which a text ranks lower. Longer texts contain more words by chance.
const TYPICAL_LENGTH: f64 = 400.0;

/// The maximum number of occurrences that are counted.
const MAX_OCCURRENCES: usize = 8;

/// The weight of tool output, which people search for less often than for messages.
const TOOL_WEIGHT: f64 = 0.6;

/// The weight of a turn that contains the whole query as a phrase.
const PHRASE_WEIGHT: f64 = 1.5;

/// The weight that a turn keeps at any age, and the age at which half of the difference is lost.
const OLDEST_WEIGHT: f64 = 0.6;
const HALF_AGE_SECONDS: f64 = 30.0 * 86_400.0;

/// Returns the relevance of a folded text without its age, or `None` if a term is missing.
pub(super) fn relevance(query: &MemoryQuery, folded: &str, role: ChatRole) -> Option<f64> {
    let weights: Option<Vec<f64>> =
        query.terms.iter().map(|term| term_weight(folded, &term.folded)).collect();
    let phrase = query.phrase.as_ref().is_some_and(|phrase| folded.contains(phrase.as_str()));
    let role = if role == ChatRole::Tool { TOOL_WEIGHT } else { 1.0 };
    Some(weights?.iter().sum::<f64>() * role * if phrase { PHRASE_WEIGHT } else { 1.0 })
}

/// Returns the weight of a term that occurs in this many turns.
pub(super) fn rarity(turns: usize) -> f64 {
    1.0 / (1.0 + to_f64(turns)).ln_1p()
}

/// Reduces a relevance by the age of the turn. The age is counted from the newest match, so that the order
/// doesn't depend on the clock.
pub(super) fn with_recency(relevance: f64, timestamp: Timestamp, newest: Timestamp) -> f64 {
    let age = newest.duration_since(timestamp).as_secs_f64().max(0.0);
    relevance * (OLDEST_WEIGHT + (1.0 - OLDEST_WEIGHT) * (-age / HALF_AGE_SECONDS).exp2())
}

/// Returns the weight of a term in a text. A whole word counts more than a prefix, and a prefix more than
/// another part of a word.
fn term_weight(folded: &str, term: &str) -> Option<f64> {
    let mut occurrences = 0;
    let mut best: f64 = 0.0;
    for (start, _) in folded.match_indices(term).take(MAX_OCCURRENCES) {
        occurrences += 1;
        let (before, rest) = folded.split_at_checked(start)?;
        let after = rest.get(term.len()..)?;
        let begins = !(before.ends_with(is_inside_word) && term.starts_with(is_inside_word));
        let ends = !(after.starts_with(is_inside_word) && term.ends_with(is_inside_word));
        best = best.max(match (begins, ends) {
            (true, true) => 1.0,
            (true, false) => 0.7,
            (false, _) => 0.4,
        });
    }
    if occurrences == 0 {
        return None;
    }
    // The saturation of BM25, with a fixed average length.
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
    fn better_matches_rank_higher() {
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
    fn a_text_without_one_of_the_terms_does_not_match() {
        assert!(weigh("red cat", "a cat").is_none());
        assert!(weigh("red cat", "a cat is red").is_some());
    }

    #[test]
    fn common_terms_weigh_less() {
        assert!(rarity(1) > rarity(20) && rarity(20) > rarity(400) && rarity(400) > 0.0);
    }

    #[test]
    fn older_turns_weigh_less_but_never_zero() {
        let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let old: Timestamp = "2001-01-01T00:00:00Z".parse().unwrap();
        assert_eq!(with_recency(1.0, now, now), 1.0);
        assert!((with_recency(1.0, old, now) - OLDEST_WEIGHT).abs() < 1e-9);
        assert_eq!(with_recency(1.0, now, old), 1.0, "a clock that was set back");
    }
}
