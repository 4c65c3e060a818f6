//! Which entries of an index to ask for.
//!
//! A word or a group of letters that is in most turns takes long to look up and tells nothing; and of those that always
//! come together, one is enough. So an entry is asked for only if that is cheaper than reading the turns which it would
//! rule out, as far as a sample tells. Whether a turn has everything is seen when it is read.

use super::error::MemoryFault;
use super::sample::{IndexKind, SAMPLE_TURNS, TurnSample, TurnSet};

/// Further entries are not even looked at.
const MAX_SAMPLED: usize = 64;

/// Reading a turn takes as long as passing over so many in the index.
const TURN_COST: f64 = 100.0;

/// An entry that so many turns of the sample have is as good as free, and so many of these are asked for even when
/// the sample has no turn left that they could rule out.
const CHEAP_COUNT: usize = 2;
const MAX_CHEAP: usize = 4;

/// What no turn of the sample has may be as common among all others as if half a turn had it.
const UNSEEN_COUNT: f64 = 0.5;

/// What so many turns of the sample have is common.
const COMMON_COUNT: usize = SAMPLE_TURNS / 16;

/// The expression for turns that may have all of the entries; `None` without entries.
pub(super) fn match_expression(
    sample: &TurnSample<'_>,
    kind: IndexKind,
    entries: Vec<String>,
) -> Result<Option<String>, MemoryFault> {
    let step = entries.len().div_ceil(MAX_SAMPLED).max(1);
    let mut entries: Vec<String> = entries.into_iter().step_by(step).collect();
    if entries.len() > 1 {
        let havings = sample.turns_with(kind, &entries)?;
        entries = choose_entries(havings.into_iter().zip(entries).collect());
    }
    let quoted: Vec<String> = entries.iter().map(|entry| quote_entry(kind, entry)).collect();
    Ok((!quoted.is_empty()).then(|| quoted.join(" AND ")))
}

/// Whether a great part of the newest turns has one of these words.
pub(super) fn is_common(sample: &TurnSample<'_>, words: &[String]) -> Result<bool, MemoryFault> {
    Ok(sample.turns_with(IndexKind::Words, words)?.iter().any(|having| having.count() > COMMON_COUNT))
}

/// A string of the query language: nothing in it is an operator.
fn quote_entry(kind: IndexKind, entry: &str) -> String {
    let end = if kind == IndexKind::Prefixes { "*" } else { "" };
    format!("\"{}\"{end}", entry.replace('"', "\"\""))
}

/// The entries to ask for, those that rule out most first.
fn choose_entries(mut sampled: Vec<(TurnSet, String)>) -> Vec<String> {
    let mut left = TurnSet::ALL;
    let mut likely_left = to_f64(SAMPLE_TURNS);
    let mut chosen = Vec::new();
    while let Some(best) = (0..sampled.len())
        .min_by_key(|place| sampled.get(*place).map(|(having, _)| (left.and(having).count(), having.count())))
    {
        let (having, entry) = sampled.swap_remove(best);
        left = left.and(&having);
        let is_free = having.count() <= CHEAP_COUNT && chosen.len() < MAX_CHEAP;
        let cost = to_f64(having.count()).max(UNSEEN_COUNT);
        // Where the sample has no turn left, all that is known is how common each entry is.
        let still_left = match left.count() {
            0 => (likely_left * cost / to_f64(SAMPLE_TURNS)).min(UNSEEN_COUNT),
            count => to_f64(count),
        };
        if !chosen.is_empty() && !is_free && (likely_left - still_left) * TURN_COST <= cost {
            break;
        }
        likely_left = still_left;
        chosen.push(entry);
    }
    chosen
}

#[expect(clippy::cast_precision_loss, reason = "there are few")]
fn to_f64(count: usize) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn_set(turns: impl IntoIterator<Item = usize>) -> TurnSet {
        let mut having = TurnSet::NONE;
        turns.into_iter().for_each(|turn| having.add(turn));
        having
    }

    fn check_chosen(sampled: &[(&str, TurnSet)], expected: &[&str]) {
        let sampled = sampled.iter().map(|(entry, having)| (*having, (*entry).to_owned())).collect();
        assert_eq!(choose_entries(sampled), expected);
    }

    #[test]
    fn a_common_entry_is_left_out_beside_a_rare_one() {
        check_chosen(&[("the", turn_set(0..220)), ("zeb", turn_set([7]))], &["zeb"]);
    }

    #[test]
    fn common_entries_are_asked_for_when_they_rule_out_enough() {
        check_chosen(&[("the", turn_set(0..150)), ("ing", turn_set(75..225))], &["the", "ing"]);
    }

    #[test]
    fn of_entries_that_come_together_one_is_enough() {
        let word = turn_set((0..256).step_by(4));
        let other = turn_set((0..256).step_by(3));
        check_chosen(&[("con", word), ("onf", word), ("nfi", word), ("ure", other)], &["con", "ure"]);
    }

    #[test]
    fn a_few_entries_that_the_sample_lacks_are_asked_for() {
        let none = turn_set([]);
        let sampled = ["a", "b", "c", "d", "e", "f"].map(|entry| (entry, none));
        assert_eq!(
            choose_entries(sampled.map(|(entry, having)| (having, entry.to_owned())).to_vec()).len(),
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
    fn nothing_that_is_typed_is_an_operator() {
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
