//! Which entries of an index to ask for.
//!
//! A word or a group of letters that is in most turns takes long to look up and tells nothing; and of those that always
//! come together, one is enough. So the newest turns are taken as a sample, and an entry is asked for only if that is
//! cheaper than reading the turns which it would rule out. Whether a turn has everything is seen when it is read.

use rusqlite::{Connection, OptionalExtension};

use super::error::Trouble;

/// So many of the newest turns tell which entries are common.
const SAMPLE: usize = 256;

/// Further entries are not even looked at.
const MOST_SAMPLED: usize = 24;

/// Reading a turn takes as long as passing over so many in the index.
const TURN_COST: usize = 250;

/// An entry that so many turns of the sample have is as good as free, and so many of these are asked for even when
/// the sample has no turn left that they could rule out.
const FREE: usize = 2;
const MOST_FREE: usize = 4;

/// What so many turns of the sample have is common.
const COMMON: usize = SAMPLE / 16;

/// The turns of the sample that have an entry.
#[derive(Clone, Copy)]
struct Having([u64; SAMPLE / 64]);

/// One of the two indices.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Index {
    Words,
    Grams,
}

/// The expression for turns that may have all of the entries; `None` without entries.
pub(super) fn expression(
    connection: &Connection,
    index: Index,
    entries: Vec<String>,
) -> Result<Option<String>, Trouble> {
    let entries = if entries.len() > 1 { choose(sample(connection, index, entries)?) } else { entries };
    Ok((!entries.is_empty()).then(|| entries.join(" AND ")))
}

/// Whether a great part of the newest turns has one of these words.
pub(super) fn is_common(connection: &Connection, words: &[String]) -> Result<bool, Trouble> {
    let sampled = sample(connection, Index::Words, words.to_vec())?;
    Ok(sampled.iter().any(|(having, _)| having.count() > COMMON))
}

fn sample(
    connection: &Connection,
    index: Index,
    entries: Vec<String>,
) -> Result<Vec<(Having, String)>, Trouble> {
    let newest: Option<i64> = connection
        .prepare_cached("SELECT id FROM turn ORDER BY id DESC LIMIT 1")?
        .query_row([], |row| row.get(0))
        .optional()?;
    let first = newest.unwrap_or(0).saturating_sub_unsigned(SAMPLE as u64) + 1;
    let mut statement = connection.prepare_cached(match index {
        Index::Words => "SELECT rowid FROM turn_words WHERE turn_words MATCH ?1 AND rowid >= ?2",
        Index::Grams => "SELECT rowid FROM turn_grams WHERE turn_grams MATCH ?1 AND rowid >= ?2",
    })?;
    let step = entries.len().div_ceil(MOST_SAMPLED).max(1);
    let mut sampled = Vec::new();
    for entry in entries.into_iter().step_by(step) {
        let mut having = Having([0; SAMPLE / 64]);
        let mut rows = statement.query((&entry, first))?;
        while let Some(row) = rows.next()? {
            having.add(row.get::<_, i64>(0)? - first);
        }
        drop(rows);
        sampled.push((having, entry));
    }
    Ok(sampled)
}

/// The entries to ask for, those that rule out most first.
fn choose(mut sampled: Vec<(Having, String)>) -> Vec<String> {
    let mut left = Having([u64::MAX; SAMPLE / 64]);
    let mut chosen = Vec::new();
    while let Some(best) = (0..sampled.len())
        .min_by_key(|place| sampled.get(*place).map(|(having, _)| (left.and(having).count(), having.count())))
    {
        let (having, entry) = sampled.swap_remove(best);
        let ruled_out = left.count() - left.and(&having).count();
        let is_free = having.count() <= FREE && chosen.len() < MOST_FREE;
        if !chosen.is_empty() && !is_free && ruled_out * TURN_COST <= having.count() {
            break;
        }
        left = left.and(&having);
        chosen.push(entry);
    }
    chosen
}

impl Having {
    fn add(&mut self, place: i64) {
        let place = usize::try_from(place).unwrap_or(usize::MAX);
        if let Some(word) = self.0.get_mut(place / 64) {
            *word |= 1 << (place % 64);
        }
    }

    fn and(&self, other: &Self) -> Self {
        let mut both = *self;
        both.0.iter_mut().zip(other.0).for_each(|(word, other)| *word &= other);
        both
    }

    fn count(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn having(turns: impl IntoIterator<Item = i64>) -> Having {
        let mut having = Having([0; SAMPLE / 64]);
        turns.into_iter().for_each(|turn| having.add(turn));
        having
    }

    fn check(sampled: &[(&str, Having)], expected: &[&str]) {
        let sampled = sampled.iter().map(|(entry, having)| (*having, (*entry).to_owned())).collect();
        assert_eq!(choose(sampled), expected);
    }

    #[test]
    fn a_common_entry_is_left_out_beside_a_rare_one() {
        check(&[("the", having(0..220)), ("zeb", having([7]))], &["zeb"]);
    }

    #[test]
    fn common_entries_are_asked_for_when_they_rule_out_enough() {
        check(&[("the", having(0..150)), ("ing", having(75..225))], &["the", "ing"]);
    }

    #[test]
    fn of_entries_that_come_together_one_is_enough() {
        let word = having((0..256).step_by(4));
        let other = having((0..256).step_by(3));
        check(&[("con", word), ("onf", word), ("nfi", word), ("ure", other)], &["con", "ure"]);
    }

    #[test]
    fn a_few_entries_that_the_sample_lacks_are_asked_for() {
        let none = having([]);
        let sampled = ["a", "b", "c", "d", "e", "f"].map(|entry| (entry, none));
        assert_eq!(
            choose(sampled.map(|(entry, having)| (having, entry.to_owned())).to_vec()).len(),
            MOST_FREE
        );
    }

    #[test]
    fn a_turn_outside_of_the_sample_is_left_out() {
        assert_eq!(having([-1, 0, 255, 256, i64::MAX]).count(), 2);
    }
}
