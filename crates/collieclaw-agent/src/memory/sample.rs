//! A sample of the newest turns, which estimates how common a word or a trigram is.
//!
//! The turns are read instead of looked up: one index lookup takes as long as reading a hundred turns.

use std::cell::OnceCell;

use rusqlite::Connection;

use super::error::MemoryFault;
use super::fold::fold;
use super::rows::row_searchable_text;
use super::words::is_inside_word;

pub(super) const SAMPLE_TURNS: usize = 256;

/// The size up to which a turn is sampled. Very long turns contain almost every word and are slow to read, so
/// [`SELECT_NEWEST`] skips them.
const MAX_TURN_BYTES: usize = 8 << 10;

/// The maximum amount of text in the sample.
const SAMPLE_BYTES: usize = 256 << 10;

const SELECT_NEWEST: &str = "
SELECT content, tool_calls FROM turn
WHERE id > (SELECT max(id) FROM turn) - 1024
  AND octet_length(content) + coalesce(octet_length(tool_calls), 0) <= ?1
ORDER BY id DESC";

/// A set of turns of the sample.
#[derive(Clone, Copy)]
pub(super) struct TurnSet([u64; SAMPLE_TURNS / 64]);

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum IndexKind {
    Words,
    Prefixes,
    Trigrams,
}

/// The newest turns. They are read at most once in a search, when the first estimate is needed.
pub(super) struct TurnSample<'search> {
    connection: &'search Connection,
    folded: OnceCell<Vec<String>>,
}

impl<'search> TurnSample<'search> {
    pub(super) fn new(connection: &'search Connection) -> Self {
        Self { connection, folded: OnceCell::new() }
    }

    /// Returns the turns that contain an entry, for each entry.
    pub(super) fn turns_with(
        &self,
        kind: IndexKind,
        entries: &[String],
    ) -> Result<Vec<TurnSet>, MemoryFault> {
        Ok(find_entries(self.folded()?, kind, entries))
    }

    fn folded(&self) -> Result<&[String], MemoryFault> {
        if let Some(folded) = self.folded.get() {
            return Ok(folded);
        }
        let folded = read_newest(self.connection)?;
        Ok(self.folded.get_or_init(|| folded))
    }
}

fn read_newest(connection: &Connection) -> Result<Vec<String>, MemoryFault> {
    let mut statement = connection.prepare_cached(SELECT_NEWEST)?;
    let mut rows = statement.query([i64::try_from(MAX_TURN_BYTES).unwrap_or(i64::MAX)])?;
    let (mut newest, mut bytes) = (Vec::new(), 0);
    while newest.len() < SAMPLE_TURNS
        && bytes < SAMPLE_BYTES
        && let Some(row) = rows.next()?
    {
        let folded = fold(&row_searchable_text(row, 0)?);
        bytes += folded.len();
        newest.push(folded);
    }
    Ok(newest)
}

/// Returns the texts that contain an entry, for each entry.
fn find_entries(texts: &[String], kind: IndexKind, entries: &[String]) -> Vec<TurnSet> {
    let mut turn_sets = vec![TurnSet::NONE; entries.len()];
    // Most positions of a text are excluded by their first byte.
    let mut by_first: Vec<Vec<(usize, &str)>> = vec![Vec::new(); 256];
    for (index, entry) in entries.iter().enumerate() {
        if let Some(list) = entry.bytes().next().and_then(|first| by_first.get_mut(usize::from(first))) {
            list.push((index, entry));
        }
    }
    for (turn, text) in texts.iter().enumerate() {
        for (start, first) in text.bytes().enumerate() {
            for (index, entry) in by_first.get(usize::from(first)).into_iter().flatten() {
                if matches_at(text, start, kind, entry)
                    && let Some(turns) = turn_sets.get_mut(*index)
                {
                    turns.add(turn);
                }
            }
        }
    }
    turn_sets
}

/// Returns true if the text contains the entry at this position.
fn matches_at(text: &str, start: usize, kind: IndexKind, entry: &str) -> bool {
    let Some(after) = text.as_bytes().get(start..).and_then(|rest| rest.strip_prefix(entry.as_bytes()))
    else {
        return false;
    };
    let begins = || {
        !(entry.starts_with(is_inside_word)
            && text.get(..start).is_some_and(|before| before.ends_with(is_inside_word)))
    };
    let ends = || {
        let after = text.get(text.len() - after.len()..);
        !(entry.ends_with(is_inside_word) && after.is_some_and(|after| after.starts_with(is_inside_word)))
    };
    match kind {
        IndexKind::Words => begins() && ends(),
        IndexKind::Prefixes => begins(),
        IndexKind::Trigrams => true,
    }
}

impl TurnSet {
    pub(super) const ALL: Self = Self([u64::MAX; SAMPLE_TURNS / 64]);
    pub(super) const NONE: Self = Self([0; SAMPLE_TURNS / 64]);

    pub(super) fn add(&mut self, turn: usize) {
        if let Some(word) = self.0.get_mut(turn / 64) {
            *word |= 1 << (turn % 64);
        }
    }

    pub(super) fn and(&self, other: &Self) -> Self {
        let mut both = *self;
        both.0.iter_mut().zip(other.0).for_each(|(word, other)| *word &= other);
        both
    }

    pub(super) fn count(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::{ConversationExchange, ConversationMemory, ConversationTurn};
    use collieclaw_providers::ChatRole;

    fn counts(texts: &[&str], kind: IndexKind, entries: &[&str]) -> Vec<usize> {
        let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
        let entries: Vec<String> = entries.iter().map(|entry| (*entry).to_owned()).collect();
        find_entries(&texts, kind, &entries).iter().map(TurnSet::count).collect()
    }

    #[test]
    fn words_prefixes_and_trigrams_are_distinguished() {
        let texts = ["the cat, concat", "cats", "a con cat", "東京都 é"];
        for (kind, cat, con, tokyo, accent) in [
            (IndexKind::Words, 2, 1, 1, 1),
            (IndexKind::Prefixes, 3, 2, 1, 1),
            (IndexKind::Trigrams, 3, 2, 1, 1),
        ] {
            assert_eq!(counts(&texts, kind, &["cat", "con", "京都", "é"]), [cat, con, tokyo, accent]);
        }
        assert_eq!(counts(&["concat"], IndexKind::Prefixes, &["cat"]), [0]);
        assert_eq!(counts(&["concat"], IndexKind::Trigrams, &["cat"]), [1]);
        assert_eq!(counts(&["éa"], IndexKind::Words, &["a"]), [0]);
    }

    #[test]
    fn turns_outside_the_sample_are_ignored() {
        let mut turns = TurnSet::NONE;
        [0, 255, 256, usize::MAX].into_iter().for_each(|turn| turns.add(turn));
        assert_eq!(turns.count(), 2);
    }

    fn turn(number: usize, content: String) -> ConversationTurn {
        ConversationTurn {
            conversation_id: "c".to_owned(),
            turn_id: number.to_string(),
            timestamp: jiff::Timestamp::UNIX_EPOCH,
            role: ChatRole::User,
            content,
            tool_calls: Vec::new(),
            tool_results: Vec::new(),
            provider: String::new(),
            model: String::new(),
            metadata: serde_json::Map::new(),
        }
    }

    fn sampled(contents: impl Iterator<Item = String>) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        let memory = ConversationMemory::open(&folder.path().join("memory.db")).unwrap();
        let turns: Vec<ConversationTurn> =
            contents.enumerate().map(|(number, content)| turn(number, content)).collect();
        if !turns.is_empty() {
            memory.persist(&ConversationExchange { turns }).unwrap();
        }
        TurnSample::new(&memory.connection).folded().unwrap().to_vec()
    }

    #[test]
    fn the_sample_consists_of_the_newest_turns() {
        assert!(sampled(std::iter::empty()).is_empty());
        let sample = sampled((0..300).map(|number| format!("Turn {number}")));
        assert_eq!(sample.len(), SAMPLE_TURNS);
        assert_eq!(sample.first().map(String::as_str), Some("turn 299"));
    }

    #[test]
    fn huge_turns_are_skipped() {
        let huge = "word ".repeat(MAX_TURN_BYTES / 5 + 1);
        assert_eq!(sampled([huge.clone(), "short".to_owned(), huge].into_iter()), ["short"]);
        let long = "a".repeat(MAX_TURN_BYTES);
        assert_eq!(sampled((0..100).map(|_| long.clone())).len(), SAMPLE_BYTES / MAX_TURN_BYTES);
    }
}
