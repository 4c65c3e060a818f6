//! Choice of the index entries that a search asks for.
//!
//! A very common word or trigram is slow to look up and excludes few turns. If two entries always occur
//! together, the second one excludes no further turns. So the search looks up an entry only if that is cheaper
//! than reading the turns that the entry would exclude, as estimated from a sample. Every candidate turn is
//! checked in full when it is read.

use super::error::MemoryFault;
use super::sample::{IndexKind, SAMPLE_TURNS, TurnSample, TurnSet};

/// The number of entries that are compared with the sample.
const MAX_SAMPLED: usize = 64;

/// The cost of reading a turn, in turns that the index passes over in the same time.
const TURN_COST: f64 = 100.0;

/// An entry is cheap if at most this many turns of the sample contain it. Up to `MAX_CHEAP` of these are
/// asked for even if no turn of the sample is left to exclude.
const CHEAP_COUNT: usize = 2;
const MAX_CHEAP: usize = 4;

/// The assumed count of an entry that no turn of the sample contains.
const UNSEEN_COUNT: f64 = 0.5;

/// An entry is common if more turns of the sample than this contain it.
const COMMON_COUNT: usize = SAMPLE_TURNS / 16;

/// Returns the FTS5 expression for turns that may contain all entries, or `None` if there are no entries.
pub(super) fn match_expression(
    sample: &TurnSample<'_>,
    kind: IndexKind,
    entries: Vec<String>,
) -> Result<Option<String>, MemoryFault> {
    let step = entries.len().div_ceil(MAX_SAMPLED).max(1);
    let mut entries: Vec<String> = entries.into_iter().step_by(step).collect();
    if entries.len() > 1 {
        let turn_sets = sample.turns_with(kind, &entries)?;
        entries = choose_entries(turn_sets.into_iter().zip(entries).collect());
    }
    let quoted: Vec<String> = entries.iter().map(|entry| quote_entry(kind, entry)).collect();
    Ok((!quoted.is_empty()).then(|| quoted.join(" AND ")))
}

/// Returns true if one of these words is common among the newest turns.
pub(super) fn is_common(sample: &TurnSample<'_>, words: &[String]) -> Result<bool, MemoryFault> {
    Ok(sample.turns_with(IndexKind::Words, words)?.iter().any(|turns| turns.count() > COMMON_COUNT))
}

/// Quotes an entry as an FTS5 string, so that nothing in it is an operator.
fn quote_entry(kind: IndexKind, entry: &str) -> String {
    let end = if kind == IndexKind::Prefixes { "*" } else { "" };
    format!("\"{}\"{end}", entry.replace('"', "\"\""))
}

/// Returns the entries to ask for. The entries that exclude most turns come first.
fn choose_entries(mut sampled: Vec<(TurnSet, String)>) -> Vec<String> {
    let mut remaining = TurnSet::ALL;
    let mut expected_remaining = to_f64(SAMPLE_TURNS);
    let mut chosen = Vec::new();
    while let Some(best) = (0..sampled.len()).min_by_key(|index| {
        sampled.get(*index).map(|(turns, _)| (remaining.and(turns).count(), turns.count()))
    }) {
        let (turns, entry) = sampled.swap_remove(best);
        remaining = remaining.and(&turns);
        let is_free = turns.count() <= CHEAP_COUNT && chosen.len() < MAX_CHEAP;
        let cost = to_f64(turns.count()).max(UNSEEN_COUNT);
        // Where the sample has no turn left, only the frequency of each entry is known.
        let still_remaining = match remaining.count() {
            0 => (expected_remaining * cost / to_f64(SAMPLE_TURNS)).min(UNSEEN_COUNT),
            count => to_f64(count),
        };
        if !chosen.is_empty() && !is_free && (expected_remaining - still_remaining) * TURN_COST <= cost {
            break;
        }
        expected_remaining = still_remaining;
        chosen.push(entry);
    }
    chosen
}

#[expect(clippy::cast_precision_loss, reason = "the counts are small")]
fn to_f64(count: usize) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn_set(turns: impl IntoIterator<Item = usize>) -> TurnSet {
        let mut set = TurnSet::NONE;
        turns.into_iter().for_each(|turn| set.add(turn));
        set
    }

    fn check_chosen(sampled: &[(&str, TurnSet)], expected: &[&str]) {
        let sampled = sampled.iter().map(|(entry, turns)| (*turns, (*entry).to_owned())).collect();
        assert_eq!(choose_entries(sampled), expected);
    }

    #[test]
    fn a_common_entry_is_skipped_if_there_is_a_rare_one() {
        check_chosen(&[("the", turn_set(0..220)), ("zeb", turn_set([7]))], &["zeb"]);
    }

    #[test]
    fn common_entries_are_asked_for_if_they_exclude_enough() {
        check_chosen(&[("the", turn_set(0..150)), ("ing", turn_set(75..225))], &["the", "ing"]);
    }

    #[test]
    fn of_entries_that_occur_together_only_one_is_asked_for() {
        let word = turn_set((0..256).step_by(4));
        let other = turn_set((0..256).step_by(3));
        check_chosen(&[("con", word), ("onf", word), ("nfi", word), ("ure", other)], &["con", "ure"]);
    }

    #[test]
    fn entries_missing_from_the_sample_are_asked_for_up_to_a_limit() {
        let none = turn_set([]);
        let sampled = ["a", "b", "c", "d", "e", "f"].map(|entry| (entry, none));
        assert_eq!(
            choose_entries(sampled.map(|(entry, turns)| (turns, entry.to_owned())).to_vec()).len(),
            MAX_CHEAP
        );
    }

    #[test]
    fn when_the_sample_has_no_turn_left_one_more_is_asked_for() {
        let common = turn_set((0..256).step_by(3));
        let [nan, ona, nti] = [2, 3, 4].map(|from| turn_set((from..256).step_by(12)));
        check_chosen(&[("ion", common), ("nan", nan), ("ona", ona), ("nti", nti)], &["nti", "nan", "ona"]);
    }

    #[test]
    fn operators_are_quoted() {
        for (kind, entry, expected) in [
            (IndexKind::Words, "or", r#""or""#),
            (IndexKind::Prefixes, "or", r#""or"*"#),
            (IndexKind::Trigrams, r#""b""#, r#""""b""""#),
            (IndexKind::Trigrams, "(a*", r#""(a*""#),
        ] {
            assert_eq!(quote_entry(kind, entry), expected);
        }
    }
}
