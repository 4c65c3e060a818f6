//! The search for turns.
//!
//! Ranking all turns with a very common word would be slow. So turns are read newest first, and only the
//! newest [`MAX_CANDIDATES`] matches are ranked. Whole words are searched first; parts of words only if whole
//! words don't give enough results.
//!
//! Parts of words with one or two letters have no index. They are searched in the newest [`MAX_SCANNED`]
//! turns.

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

/// The maximum number of matches that are ranked.
const MAX_CANDIDATES: usize = 400;

/// The amount of text after which a search with enough results stops, so that a few huge turns don't slow it
/// down.
const MAX_READ_BYTES: usize = 4 << 20;

/// The number of candidates without a match after which a search gives up. The limit for words is lower,
/// because a search by trigrams follows.
const MAX_WORD_MISSES: usize = 1_000;
const MAX_LETTER_MISSES: usize = 3_000;

/// The same limit for several terms, which are searched one by one afterwards.
const MAX_TOGETHER_MISSES: usize = 300;

/// The number of turns that are read if no index can be used.
const MAX_SCANNED: usize = 2_000;

pub(super) fn search(
    connection: &Connection,
    workspace: Option<&str>,
    query: &str,
    limit: usize,
) -> Result<Vec<FoundTurn>, MemoryFault> {
    let Some(query) = MemoryQuery::parse(query) else { return Ok(Vec::new()) };
    if limit == 0 {
        return Ok(Vec::new());
    }
    // One transaction, so that every step sees the same turns.
    let transaction = connection.unchecked_transaction()?;
    let place = SearchPlace { sample: TurnSample::new(&transaction), connection: &transaction, workspace };
    let mut hits = search_all_terms(&place, &query, limit, MAX_CANDIDATES)?;
    if hits.is_empty() && query.terms.len() > 1 {
        hits = search_single_terms(&place, &query)?;
    }
    rank_hits(hits, limit).iter().map(|hit| load_found_turn(&transaction, &query, hit)).collect()
}

/// The turns that a search looks at.
struct SearchPlace<'search> {
    connection: &'search Connection,
    sample: TurnSample<'search>,
    /// `None` for the turns of all workspaces.
    workspace: Option<&'search str>,
}

struct TurnHit {
    id: i64,
    timestamp: Timestamp,
    relevance: f64,
}

/// Returns turns that contain all terms.
fn search_all_terms(
    place: &SearchPlace<'_>,
    query: &MemoryQuery,
    limit: usize,
    candidates: usize,
) -> Result<Vec<TurnHit>, MemoryFault> {
    let max_hits = candidates.max(limit);
    let mut search = TurnSearch { place, query, limit, max_hits, seen: HashSet::new(), hits: Vec::new() };
    search.run()?;
    Ok(search.hits)
}

/// Returns turns that contain some of the terms. Each term is searched on its own; otherwise the newest turns
/// with a common term would hide the few turns with a rare one. Common terms are used only if there are no
/// others.
fn search_single_terms(place: &SearchPlace<'_>, query: &MemoryQuery) -> Result<Vec<TurnHit>, MemoryFault> {
    let mut merged: HashMap<i64, TurnHit> = HashMap::new();
    let (mut selective, mut common) = (Vec::new(), Vec::new());
    for term in query.single_terms() {
        let group =
            if index_query::is_common(&place.sample, &term.words())? { &mut common } else { &mut selective };
        group.push(term);
    }
    for term in if selective.is_empty() { common } else { selective } {
        // A limit of 1: if one whole word matches, parts of words are not searched.
        let hits = search_all_terms(place, &term, 1, MAX_CANDIDATES / query.terms.len())?;
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

/// Sorts the hits by relevance and age, and returns the best.
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
    let row = rows
        .next()?
        .ok_or_else(|| MemoryFault::Damage("the index refers to a turn that doesn't exist".to_owned()))?;
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
    place: &'search SearchPlace<'search>,
    query: &'search MemoryQuery,
    limit: usize,
    max_hits: usize,
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
        max_misses: usize,
    ) -> Result<(), MemoryFault> {
        let sql = match kind {
            IndexKind::Words | IndexKind::Prefixes => SELECT_BY_WORDS,
            IndexKind::Trigrams => SELECT_BY_TRIGRAMS,
        };
        match index_query::match_expression(&self.place.sample, kind, entries)? {
            Some(expression) => self.collect_matches(sql, &expression, max_misses),
            None => Ok(()),
        }
    }

    fn is_full(&self) -> bool {
        self.hits.len() >= self.limit
    }

    /// Reads the turns that a statement returns and collects the matches.
    fn collect_matches(&mut self, sql: &str, parameter: &str, max_misses: usize) -> Result<(), MemoryFault> {
        let mut statement = self.place.connection.prepare_cached(sql)?;
        let mut rows = statement.query(rusqlite::params![parameter, self.place.workspace])?;
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
            if self.hits.len() >= self.max_hits
                || (read > MAX_READ_BYTES && self.is_full())
                || misses > max_misses
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
WHERE turn_words MATCH ?1
  AND (?2 IS NULL OR turn.conversation IN (SELECT id FROM conversation WHERE workspace = ?2))
ORDER BY turn_words.rowid DESC";

const SELECT_BY_TRIGRAMS: &str = "
SELECT turn.id, timestamp, role, content, tool_calls
FROM turn_grams CROSS JOIN turn ON turn.id = turn_grams.rowid
WHERE turn_grams MATCH ?1
  AND (?2 IS NULL OR turn.conversation IN (SELECT id FROM conversation WHERE workspace = ?2))
ORDER BY turn_grams.rowid DESC";

const SELECT_NEWEST: &str = "
SELECT id, timestamp, role, content, tool_calls FROM turn
WHERE (?2 IS NULL OR turn.conversation IN (SELECT id FROM conversation WHERE workspace = ?2))
ORDER BY id DESC LIMIT CAST(?1 AS INTEGER)";
