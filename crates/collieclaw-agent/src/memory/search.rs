//! Finding turns.
//!
//! A very common word is in most turns, and to rank them all is what makes a search slow. So turns come newest first,
//! and only the newest [`MAX_CANDIDATES`] that fit are ranked; what is rarer is ranked whole. Whole words are looked for
//! first; pieces of words only when these do not fill the answer.
//!
//! One or two letters within words have no index: they are looked for in the newest [`MAX_SCANNED`] turns.

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};

use jiff::Timestamp;
use rusqlite::Connection;

use super::error::MemoryFault;
use super::excerpt::excerpt_around;
use super::fold::fold;
use super::index_query;
use super::query::MemoryQuery;
use super::rank::{rarity, relevance, with_recency};
use super::rows::{column_role, column_timestamp, row_searchable_text};
use super::sample::{IndexKind, TurnSample};
use super::turn::FoundTurn;

/// So many turns are ranked at most.
const MAX_CANDIDATES: usize = 400;

/// So much text is read for an answer that is full already. A few huge turns must not slow a search down.
const MAX_READ_BYTES: usize = 4 << 20;

/// So many turns that have the words or letters, but not as they were typed, are passed over before a search gives
/// up. After words there is another way to find them; after letters there is none.
const MAX_WORD_MISSES: usize = 1_000;
const MAX_LETTER_MISSES: usize = 3_000;

/// The same for several terms: if they are nowhere together, each is still looked for by itself.
const MAX_TOGETHER_MISSES: usize = 300;

/// So many turns are read when no index helps.
const MAX_SCANNED: usize = 2_000;

pub(super) fn search(
    connection: &Connection,
    query: &str,
    limit: usize,
) -> Result<Vec<FoundTurn>, MemoryFault> {
    let Some(query) = MemoryQuery::parse(query) else { return Ok(Vec::new()) };
    if limit == 0 {
        return Ok(Vec::new());
    }
    // Every step sees the same turns, whatever other processes do meanwhile.
    let transaction = connection.unchecked_transaction()?;
    let sample = TurnSample::new(&transaction);
    let mut hits = search_all_terms(&transaction, &sample, &query, limit, MAX_CANDIDATES)?;
    if hits.is_empty() && query.terms.len() > 1 {
        hits = search_single_terms(&transaction, &sample, &query)?;
    }
    rank_hits(hits, limit).iter().map(|hit| load_found_turn(&transaction, &query, hit)).collect()
}

struct TurnHit {
    id: i64,
    timestamp: Timestamp,
    relevance: f64,
}

/// Turns that have all of the terms.
fn search_all_terms(
    connection: &Connection,
    sample: &TurnSample<'_>,
    query: &MemoryQuery,
    limit: usize,
    candidates: usize,
) -> Result<Vec<TurnHit>, MemoryFault> {
    let most = candidates.max(limit);
    let mut hunt =
        TurnSearch { connection, sample, query, limit, most, seen: HashSet::new(), hits: Vec::new() };
    hunt.run()?;
    Ok(hunt.hits)
}

/// Turns that have some of the terms. Each is looked for by itself, or the newest turns with a common one would hide
/// the few that have a rare one. Common ones tell nothing beside others.
fn search_single_terms(
    connection: &Connection,
    sample: &TurnSample<'_>,
    query: &MemoryQuery,
) -> Result<Vec<TurnHit>, MemoryFault> {
    let mut merged: HashMap<i64, TurnHit> = HashMap::new();
    let (mut telling, mut common) = (Vec::new(), Vec::new());
    for term in query.single_terms() {
        let place = if index_query::is_common(sample, &term.words())? { &mut common } else { &mut telling };
        place.push(term);
    }
    for term in if telling.is_empty() { common } else { telling } {
        // One whole word is enough to leave pieces of others alone.
        let hits = search_all_terms(connection, sample, &term, 1, MAX_CANDIDATES / query.terms.len())?;
        let rarity = rarity(hits.len());
        for hit in hits {
            let relevance = hit.relevance * rarity;
            merged
                .entry(hit.id)
                .and_modify(|known| known.relevance += relevance)
                .or_insert(TurnHit { relevance, ..hit });
        }
    }
    Ok(merged.into_values().collect())
}

/// The best of them in their order, now with their age.
fn rank_hits(mut hits: Vec<TurnHit>, limit: usize) -> Vec<TurnHit> {
    let newest = hits.iter().map(|hit| hit.timestamp).max().unwrap_or_default();
    for hit in &mut hits {
        hit.relevance = with_recency(hit.relevance, hit.timestamp, newest);
    }
    hits.sort_by(|a, b| match b.relevance.total_cmp(&a.relevance) {
        Ordering::Equal => b.id.cmp(&a.id),
        unequal => unequal,
    });
    hits.truncate(limit);
    hits
}

fn load_found_turn(
    connection: &Connection,
    query: &MemoryQuery,
    hit: &TurnHit,
) -> Result<FoundTurn, MemoryFault> {
    let mut statement = connection.prepare_cached(
        "SELECT turn.id, timestamp, role, content, tool_calls, conversation.name, turn_id
         FROM turn JOIN conversation ON conversation.id = turn.conversation WHERE turn.id = ?1",
    )?;
    let mut rows = statement.query([hit.id])?;
    let row = rows.next()?.ok_or_else(|| MemoryFault::Damage("a turn is gone".to_owned()))?;
    Ok(FoundTurn {
        conversation_id: row.get(5)?,
        turn_id: row.get(6)?,
        timestamp: hit.timestamp,
        role: column_role(row.get_ref(2)?)?,
        excerpt: excerpt_around(&row_searchable_text(row, 3)?, query),
        score: hit.relevance,
    })
}

struct TurnSearch<'search> {
    connection: &'search Connection,
    sample: &'search TurnSample<'search>,
    query: &'search MemoryQuery,
    limit: usize,
    most: usize,
    seen: HashSet<i64>,
    hits: Vec<TurnHit>,
}

impl TurnSearch<'_> {
    fn run(&mut self) -> Result<(), MemoryFault> {
        let (word_misses, letter_misses) = match self.query.terms.len() {
            1 => (MAX_WORD_MISSES, MAX_LETTER_MISSES),
            _ => (MAX_TOGETHER_MISSES, MAX_TOGETHER_MISSES),
        };
        self.collect_from_index(IndexKind::Words, self.query.words(), word_misses)?;
        if self.is_full() {
            return Ok(());
        }
        let letters = self.query.trigrams();
        if !letters.is_empty() {
            return self.collect_from_index(IndexKind::Trigrams, letters, letter_misses);
        }
        self.collect_from_index(IndexKind::Prefixes, self.query.prefixes(), MAX_WORD_MISSES)?;
        if self.is_full() {
            return Ok(());
        }
        self.collect_matches(SELECT_NEWEST, &MAX_SCANNED.to_string(), MAX_SCANNED)
    }

    fn collect_from_index(
        &mut self,
        kind: IndexKind,
        entries: Vec<String>,
        most_misses: usize,
    ) -> Result<(), MemoryFault> {
        let sql = match kind {
            IndexKind::Words | IndexKind::Prefixes => SELECT_BY_WORDS,
            IndexKind::Trigrams => SELECT_BY_TRIGRAMS,
        };
        match index_query::match_expression(self.sample, kind, entries)? {
            Some(expression) => self.collect_matches(sql, &expression, most_misses),
            None => Ok(()),
        }
    }

    fn is_full(&self) -> bool {
        self.hits.len() >= self.limit
    }

    /// Takes the turns that fit out of those that a statement yields, newest first.
    fn collect_matches(&mut self, sql: &str, parameter: &str, most_misses: usize) -> Result<(), MemoryFault> {
        let mut statement = self.connection.prepare_cached(sql)?;
        let mut rows = statement.query([parameter])?;
        let (mut read, mut misses) = (0, 0);
        while let Some(row) = rows.next()? {
            let id: i64 = row.get(0)?;
            if !self.seen.insert(id) {
                continue;
            }
            let folded = fold(&row_searchable_text(row, 3)?);
            read += folded.len();
            match relevance(self.query, &folded, column_role(row.get_ref(2)?)?) {
                Some(relevance) => {
                    self.hits.push(TurnHit { id, timestamp: column_timestamp(row.get_ref(1)?)?, relevance });
                }
                None => misses += 1,
            }
            if self.hits.len() >= self.most
                || (read > MAX_READ_BYTES && self.is_full())
                || misses > most_misses
            {
                break;
            }
        }
        Ok(())
    }
}

const SELECT_BY_WORDS: &str = "
SELECT turn.id, timestamp, role, content, tool_calls
FROM turn_words CROSS JOIN turn ON turn.id = turn_words.rowid
WHERE turn_words MATCH ?1 ORDER BY turn_words.rowid DESC";

const SELECT_BY_TRIGRAMS: &str = "
SELECT turn.id, timestamp, role, content, tool_calls
FROM turn_grams CROSS JOIN turn ON turn.id = turn_grams.rowid
WHERE turn_grams MATCH ?1 ORDER BY turn_grams.rowid DESC";

const SELECT_NEWEST: &str = "
SELECT id, timestamp, role, content, tool_calls FROM turn ORDER BY id DESC LIMIT CAST(?1 AS INTEGER)";
