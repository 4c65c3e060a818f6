//! Reads the tables of the database, and converts values to columns and back.

use std::collections::BTreeMap;
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use shepherd_core::policy::Day;
use shepherd_core::{EngineSnapshot, PauseEnd, SessionRecord, StoredState, UsageCounter, UsageKey};
use shepherd_util::{EntryId, ProfileId, SessionId};

use super::fault::SqliteFault;
use crate::error::StoreError;
use crate::store::duration_from_micros;

const ENTRY: &str = "entry";
const BUDGET: &str = "budget";

/// Returns the columns `kind` and `name` of a counter.
pub(super) fn counter_columns(counter: &UsageCounter) -> (&'static str, &str) {
    match counter {
        UsageCounter::Entry(id) => (ENTRY, id.as_str()),
        UsageCounter::Budget(id) => (BUDGET, id.as_str()),
    }
}

fn parse_counter(kind: &str, name: &str) -> Result<UsageCounter, SqliteFault> {
    match kind {
        ENTRY => Ok(UsageCounter::Entry(name.parse()?)),
        BUDGET => Ok(UsageCounter::Budget(name.parse()?)),
        _ => Err(SqliteFault::Damage(format!("it has a counter of the unknown kind `{kind}`"))),
    }
}

/// Returns the JSON of a value.
pub(super) fn to_json(value: &impl Serialize) -> Result<String, SqliteFault> {
    serde_json::to_string(value).map_err(|source| SqliteFault::Refused(StoreError::Encode { source }))
}

fn from_json<T: DeserializeOwned>(text: &str) -> Result<T, SqliteFault> {
    serde_json::from_str(text).map_err(|error| SqliteFault::Damage(error.to_string()))
}

/// Reads the whole state from the database. The heartbeat is in a file of its own, so it is `None` here.
pub(super) fn read_all(connection: &Connection) -> Result<StoredState, SqliteFault> {
    Ok(StoredState {
        usage: read_all_usage(connection)?,
        cooldowns: read_all_cooldowns(connection)?,
        sessions: read_all_sessions(connection)?,
        snapshot: read_snapshot(connection)?,
        heartbeat: None,
    })
}

fn read_all_usage(connection: &Connection) -> Result<BTreeMap<UsageKey, Duration>, SqliteFault> {
    let counters = read_all_counters(connection)?;
    let mut statement = connection.prepare("SELECT counter, day, used_us FROM usage")?;
    let mut rows = statement.query([])?;
    let mut usage = Vec::new();
    while let Some(row) = rows.next()? {
        let id: i64 = row.get(0)?;
        let Some((profile, counter)) = counters.get(&id) else {
            return Err(SqliteFault::Damage(format!("it has usage of the unknown counter {id}")));
        };
        let key = UsageKey { profile: profile.clone(), counter: counter.clone(), day: Day(row.get(1)?) };
        usage.push((key, parse_usage(row.get(2)?)?));
    }
    Ok(usage.into_iter().collect())
}

fn read_all_counters(
    connection: &Connection,
) -> Result<BTreeMap<i64, (ProfileId, UsageCounter)>, SqliteFault> {
    let mut statement = connection.prepare("SELECT id, profile, kind, name FROM counter")?;
    let mut rows = statement.query([])?;
    let mut counters = BTreeMap::new();
    while let Some(row) = rows.next()? {
        let (profile, kind, name): (String, String, String) = (row.get(1)?, row.get(2)?, row.get(3)?);
        let previous = counters.insert(row.get(0)?, (profile.parse()?, parse_counter(&kind, &name)?));
        if previous.is_some() {
            return Err(SqliteFault::Damage("two of its counters have the same id".to_owned()));
        }
    }
    Ok(counters)
}

fn parse_usage(used_us: i64) -> Result<Duration, SqliteFault> {
    if used_us < 0 {
        return Err(SqliteFault::Damage("it has a negative usage".to_owned()));
    }
    Ok(duration_from_micros(used_us))
}

fn read_all_cooldowns(
    connection: &Connection,
) -> Result<BTreeMap<(ProfileId, EntryId), PauseEnd>, SqliteFault> {
    let mut statement = connection.prepare("SELECT profile, entry_id, until FROM cooldown")?;
    let mut rows = statement.query([])?;
    let mut cooldowns = BTreeMap::new();
    while let Some(row) = rows.next()? {
        let (profile, entry_id, until): (String, String, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
        let key = (profile.parse()?, entry_id.parse()?);
        cooldowns.insert(key, from_json(&until)?);
    }
    Ok(cooldowns)
}

fn read_all_sessions(connection: &Connection) -> Result<BTreeMap<SessionId, SessionRecord>, SqliteFault> {
    let mut statement = connection.prepare("SELECT record FROM session")?;
    let mut rows = statement.query([])?;
    let mut sessions = BTreeMap::new();
    while let Some(row) = rows.next()? {
        let session: SessionRecord = from_json(row.get_ref(0)?.as_str().map_err(rusqlite::Error::from)?)?;
        sessions.insert(session.session_id.clone(), session);
    }
    Ok(sessions)
}

/// Reads the part of the state that is stored as one JSON value.
pub(super) fn read_snapshot(connection: &Connection) -> Result<EngineSnapshot, SqliteFault> {
    let mut statement = connection.prepare_cached("SELECT content FROM snapshot WHERE id = 1")?;
    let content: String = statement.query_row([], |row| row.get(0))?;
    from_json(&content)
}

/// Returns the id of a counter in the database, if it was ever used.
pub(super) fn find_counter_id(
    connection: &Connection,
    profile: &ProfileId,
    counter: &UsageCounter,
) -> Result<Option<i64>, SqliteFault> {
    let (kind, name) = counter_columns(counter);
    let sql = "SELECT id FROM counter WHERE profile = ?1 AND kind = ?2 AND name = ?3";
    let mut statement = connection.prepare_cached(sql)?;
    Ok(statement.query_row((profile.as_str(), kind, name), |row| row.get(0)).optional()?)
}

/// Returns the time that a profile used of a counter on a day.
pub(super) fn read_usage(
    connection: &Connection,
    profile: &ProfileId,
    counter: &UsageCounter,
    day: Day,
) -> Result<Duration, SqliteFault> {
    let Some(id) = find_counter_id(connection, profile, counter)? else { return Ok(Duration::ZERO) };
    let sql = "SELECT used_us FROM usage WHERE counter = ?1 AND day = ?2";
    let used_us: Option<i64> =
        connection.prepare_cached(sql)?.query_row((id, day.0), |row| row.get(0)).optional()?;
    parse_usage(used_us.unwrap_or(0))
}

/// Returns the cooldown of one entry.
pub(super) fn read_cooldown(
    connection: &Connection,
    profile: &ProfileId,
    entry_id: &EntryId,
) -> Result<Option<PauseEnd>, SqliteFault> {
    let sql = "SELECT until FROM cooldown WHERE profile = ?1 AND entry_id = ?2";
    let until: Option<String> = connection
        .prepare_cached(sql)?
        .query_row((profile.as_str(), entry_id.as_str()), |row| row.get(0))
        .optional()?;
    until.as_deref().map(from_json).transpose()
}

/// Reads the audit events that are not in the audit log yet, oldest first.
pub(super) fn read_outbox(connection: &Connection) -> Result<Vec<Map<String, Value>>, SqliteFault> {
    let mut statement = connection.prepare("SELECT record FROM outbox ORDER BY position")?;
    let mut rows = statement.query([])?;
    let mut records = Vec::new();
    while let Some(row) = rows.next()? {
        records.push(from_json(row.get_ref(0)?.as_str().map_err(rusqlite::Error::from)?)?);
    }
    Ok(records)
}
