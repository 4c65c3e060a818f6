//! Finding turns.
//!
//! A very common word is in most turns, and to rank them all is what makes a search slow. So turns come newest first,
//! and only the newest [`CANDIDATES`] that fit are ranked; what is rarer is ranked whole. Whole words are looked for
//! first; pieces of words only when these do not fill the answer.
//!
//! One or two letters within words have no index: they are looked for in the newest [`SCANNED`] turns.

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};

use jiff::Timestamp;
use rusqlite::Connection;

use super::error::Trouble;
use super::excerpt::around;
use super::fold::fold;
use super::narrow;
use super::query::Query;
use super::rank::{rarity, relevance, with_recency};
use super::rows::{role, searched, timestamp};
use super::sample::{Entries, Sample};
use super::turn::Found;

/// So many turns are ranked at most.
const CANDIDATES: usize = 400;

/// So much text is read for an answer that is full already. A few huge turns must not slow a search down.
const READ_BYTES: usize = 4 << 20;

/// So many turns that have the words or letters, but not as they were typed, are passed over before a search gives
/// up. After words there is another way to find them; after letters there is none.
const WORD_MISSES: usize = 1_000;
const LETTER_MISSES: usize = 3_000;

/// The same for several terms: if they are nowhere together, each is still looked for by itself.
const TOGETHER_MISSES: usize = 300;

/// So many turns are read when no index helps.
const SCANNED: usize = 2_000;

pub(super) fn search(connection: &Connection, query: &str, limit: usize) -> Result<Vec<Found>, Trouble> {
    let Some(query) = Query::parse(query) else { return Ok(Vec::new()) };
    if limit == 0 {
        return Ok(Vec::new());
    }
    // Every step sees the same turns, whatever other processes do meanwhile.
    let transaction = connection.unchecked_transaction()?;
    let sample = Sample::new(&transaction);
    let mut hits = hunt(&transaction, &sample, &query, limit, CANDIDATES)?;
    if hits.is_empty() && query.terms.len() > 1 {
        hits = hunt_apart(&transaction, &sample, &query)?;
    }
    best(hits, limit).iter().map(|hit| found(&transaction, &query, hit)).collect()
}

struct Hit {
    id: i64,
    timestamp: Timestamp,
    relevance: f64,
}

/// Turns that have all of the terms.
fn hunt(
    connection: &Connection,
    sample: &Sample<'_>,
    query: &Query,
    limit: usize,
    candidates: usize,
) -> Result<Vec<Hit>, Trouble> {
    let most = candidates.max(limit);
    let mut hunt = Hunt { connection, sample, query, limit, most, seen: HashSet::new(), hits: Vec::new() };
    hunt.run()?;
    Ok(hunt.hits)
}

/// Turns that have some of the terms. Each is looked for by itself, or the newest turns with a common one would hide
/// the few that have a rare one. Common ones tell nothing beside others.
fn hunt_apart(connection: &Connection, sample: &Sample<'_>, query: &Query) -> Result<Vec<Hit>, Trouble> {
    let mut merged: HashMap<i64, Hit> = HashMap::new();
    let (mut telling, mut common) = (Vec::new(), Vec::new());
    for term in query.apart() {
        let place = if narrow::is_common(sample, &term.words())? { &mut common } else { &mut telling };
        place.push(term);
    }
    for term in if telling.is_empty() { common } else { telling } {
        // One whole word is enough to leave pieces of others alone.
        let hits = hunt(connection, sample, &term, 1, CANDIDATES / query.terms.len())?;
        let rarity = rarity(hits.len());
        for hit in hits {
            let relevance = hit.relevance * rarity;
            merged
                .entry(hit.id)
                .and_modify(|known| known.relevance += relevance)
                .or_insert(Hit { relevance, ..hit });
        }
    }
    Ok(merged.into_values().collect())
}

/// The best of them in their order, now with their age.
fn best(mut hits: Vec<Hit>, limit: usize) -> Vec<Hit> {
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

fn found(connection: &Connection, query: &Query, hit: &Hit) -> Result<Found, Trouble> {
    let mut statement = connection.prepare_cached(
        "SELECT turn.id, timestamp, role, content, tool_calls, conversation.name, turn_id
         FROM turn JOIN conversation ON conversation.id = turn.conversation WHERE turn.id = ?1",
    )?;
    let mut rows = statement.query([hit.id])?;
    let row = rows.next()?.ok_or_else(|| Trouble::Damage("a turn is gone".to_owned()))?;
    Ok(Found {
        conversation_id: row.get(5)?,
        turn_id: row.get(6)?,
        timestamp: hit.timestamp,
        role: role(row.get_ref(2)?)?,
        excerpt: around(&searched(row, 3)?, query),
        score: hit.relevance,
    })
}

struct Hunt<'search> {
    connection: &'search Connection,
    sample: &'search Sample<'search>,
    query: &'search Query,
    limit: usize,
    most: usize,
    seen: HashSet<i64>,
    hits: Vec<Hit>,
}

impl Hunt<'_> {
    fn run(&mut self) -> Result<(), Trouble> {
        let (word_misses, letter_misses) = match self.query.terms.len() {
            1 => (WORD_MISSES, LETTER_MISSES),
            _ => (TOGETHER_MISSES, TOGETHER_MISSES),
        };
        self.take_from(Entries::Words, self.query.words(), word_misses)?;
        if self.is_full() {
            return Ok(());
        }
        let letters = self.query.letters();
        if !letters.is_empty() {
            return self.take_from(Entries::Grams, letters, letter_misses);
        }
        self.take_from(Entries::Beginnings, self.query.beginnings(), WORD_MISSES)?;
        if self.is_full() {
            return Ok(());
        }
        self.take(FROM_NEWEST, &SCANNED.to_string(), SCANNED)
    }

    fn take_from(&mut self, kind: Entries, entries: Vec<String>, most_misses: usize) -> Result<(), Trouble> {
        let sql = match kind {
            Entries::Words | Entries::Beginnings => FROM_WORDS,
            Entries::Grams => FROM_GRAMS,
        };
        match narrow::expression(self.sample, kind, entries)? {
            Some(expression) => self.take(sql, &expression, most_misses),
            None => Ok(()),
        }
    }

    fn is_full(&self) -> bool {
        self.hits.len() >= self.limit
    }

    /// Takes the turns that fit out of those that a statement yields, newest first.
    fn take(&mut self, sql: &str, parameter: &str, most_misses: usize) -> Result<(), Trouble> {
        let mut statement = self.connection.prepare_cached(sql)?;
        let mut rows = statement.query([parameter])?;
        let (mut read, mut misses) = (0, 0);
        while let Some(row) = rows.next()? {
            let id: i64 = row.get(0)?;
            if !self.seen.insert(id) {
                continue;
            }
            let folded = fold(&searched(row, 3)?);
            read += folded.len();
            match relevance(self.query, &folded, role(row.get_ref(2)?)?) {
                Some(relevance) => {
                    self.hits.push(Hit { id, timestamp: timestamp(row.get_ref(1)?)?, relevance });
                }
                None => misses += 1,
            }
            if self.hits.len() >= self.most || (read > READ_BYTES && self.is_full()) || misses > most_misses {
                break;
            }
        }
        Ok(())
    }
}

const FROM_WORDS: &str = "
SELECT turn.id, timestamp, role, content, tool_calls
FROM turn_words CROSS JOIN turn ON turn.id = turn_words.rowid
WHERE turn_words MATCH ?1 ORDER BY turn_words.rowid DESC";

const FROM_GRAMS: &str = "
SELECT turn.id, timestamp, role, content, tool_calls
FROM turn_grams CROSS JOIN turn ON turn.id = turn_grams.rowid
WHERE turn_grams MATCH ?1 ORDER BY turn_grams.rowid DESC";

const FROM_NEWEST: &str = "
SELECT id, timestamp, role, content, tool_calls FROM turn ORDER BY id DESC LIMIT CAST(?1 AS INTEGER)";
