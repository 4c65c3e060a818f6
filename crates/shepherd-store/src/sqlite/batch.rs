//! Applies the writes of a batch within its transaction.

use std::time::Duration;

use rusqlite::types::ValueRef;
use rusqlite::{OptionalExtension, Transaction};
use serde_json::{Map, Value};
use shepherd_core::{EngineSnapshot, PauseEnd, StoreWrite, UsageKey};
use shepherd_util::{EntryId, ProfileId, SessionId};

use super::digest::RowHasher;
use super::fault::SqliteFault;
use super::rows::{counter_columns, find_counter_id, to_json};
use super::state::{self, DatabaseState};
use crate::audit::AuditAnchor;
use crate::store::add_usage_micros;

/// A transaction, with the state row as it will be after the commit.
pub(super) struct SqliteBatch<'t> {
    transaction: &'t Transaction<'t>,
    state: DatabaseState,
    hasher: RowHasher,
}

impl<'t> SqliteBatch<'t> {
    /// Begins with the state row of the database, which must be the one that was written last.
    pub(super) fn begin(
        transaction: &'t Transaction<'t>,
        expected: &DatabaseState,
    ) -> Result<Self, SqliteFault> {
        let state = state::read_state(transaction)?;
        if state != *expected {
            return Err(SqliteFault::Damage("another program has written to it".to_owned()));
        }
        Ok(Self { transaction, state, hasher: RowHasher::default() })
    }

    /// Applies every write except events, which go to the outbox together.
    pub(super) fn write(&mut self, write: &StoreWrite) -> Result<(), SqliteFault> {
        match write {
            StoreWrite::AddUsage { key, amount } => self.add_usage(key, *amount),
            StoreWrite::SetCooldown { profile, entry_id, until } => {
                self.set_cooldown(profile, entry_id, until)
            }
            StoreWrite::SaveSession(session) => {
                let record = to_json(session)?;
                self.replace_session(&session.session_id, Some(&record))
            }
            StoreWrite::DeleteSession(session_id) => self.replace_session(session_id, None),
            StoreWrite::SaveSnapshot(snapshot) => self.save_snapshot(snapshot),
            StoreWrite::AppendAudit(_) => Ok(()),
        }
    }

    /// Replaces the content of the outbox; the previous content is in the log, which ends at `audit`.
    pub(super) fn replace_outbox(
        &mut self,
        audit: AuditAnchor,
        records: &[Map<String, Value>],
    ) -> Result<(), SqliteFault> {
        let mut select = self.transaction.prepare_cached("SELECT position, record FROM outbox")?;
        let mut rows = select.query([])?;
        let mut empty = true;
        while let Some(row) = rows.next()? {
            self.state.digest.remove(self.hasher.hash("outbox", [row.get_ref(0)?, row.get_ref(1)?]));
            empty = false;
        }
        if !empty {
            self.transaction.prepare_cached("DELETE FROM outbox")?.execute([])?;
        }
        let mut insert = self.transaction.prepare_cached("INSERT INTO outbox VALUES (?1, ?2)")?;
        for (position, record) in (1_i64..).zip(records) {
            let text = to_json(record)?;
            insert.execute((position, &text))?;
            let values = [ValueRef::Integer(position), ValueRef::Text(text.as_bytes())];
            self.state.digest.add(self.hasher.hash("outbox", values));
        }
        self.state.audit = audit;
        Ok(())
    }

    /// Writes the state row after the batch, as its last part.
    pub(super) fn finish(mut self) -> Result<DatabaseState, SqliteFault> {
        self.state.generation += 1;
        state::write_state(self.transaction, &self.state)?;
        Ok(self.state)
    }

    fn add_usage(&mut self, key: &UsageKey, amount: Duration) -> Result<(), SqliteFault> {
        let counter = self.counter_id(key)?;
        let day = key.day.0;
        let select = "SELECT used_us FROM usage WHERE counter = ?1 AND day = ?2";
        let before: Option<i64> = self
            .transaction
            .prepare_cached(select)?
            .query_row((counter, day), |row| row.get(0))
            .optional()?;
        let after = add_usage_micros(key, before.unwrap_or(0), amount)?;
        let upsert =
            "INSERT INTO usage VALUES (?1, ?2, ?3) ON CONFLICT DO UPDATE SET used_us = excluded.used_us";
        self.transaction.prepare_cached(upsert)?.execute((counter, day, after))?;
        let mut hash =
            |used_us| self.hasher.hash("usage", [counter, i64::from(day), used_us].map(ValueRef::Integer));
        if let Some(before) = before {
            self.state.digest.remove(hash(before));
        }
        self.state.digest.add(hash(after));
        Ok(())
    }

    /// Returns the number of a counter, which is assigned at its first use.
    fn counter_id(&mut self, key: &UsageKey) -> Result<i64, SqliteFault> {
        if let Some(id) = find_counter_id(self.transaction, &key.profile, &key.counter)? {
            return Ok(id);
        }
        let (kind, name) = counter_columns(&key.counter);
        let insert =
            "INSERT INTO counter SELECT ?1, ?2, ?3, coalesce(max(id), 0) + 1 FROM counter RETURNING id";
        let id: i64 = self
            .transaction
            .prepare_cached(insert)?
            .query_row((key.profile.as_str(), kind, name), |row| row.get(0))?;
        let names = [key.profile.as_str(), kind, name].map(|text| ValueRef::Text(text.as_bytes()));
        self.state.digest.add(self.hasher.hash("counter", names.into_iter().chain([ValueRef::Integer(id)])));
        Ok(id)
    }

    fn set_cooldown(
        &mut self,
        profile: &ProfileId,
        entry_id: &EntryId,
        until: &PauseEnd,
    ) -> Result<(), SqliteFault> {
        let (profile, entry_id, after) = (profile.as_str(), entry_id.as_str(), to_json(until)?);
        let select = "SELECT until FROM cooldown WHERE profile = ?1 AND entry_id = ?2";
        let before: Option<String> = self
            .transaction
            .prepare_cached(select)?
            .query_row((profile, entry_id), |row| row.get(0))
            .optional()?;
        let upsert =
            "INSERT INTO cooldown VALUES (?1, ?2, ?3) ON CONFLICT DO UPDATE SET until = excluded.until";
        self.transaction.prepare_cached(upsert)?.execute((profile, entry_id, &after))?;
        let mut hash = |until: &str| {
            self.hasher
                .hash("cooldown", [profile, entry_id, until].map(|text| ValueRef::Text(text.as_bytes())))
        };
        if let Some(before) = before {
            self.state.digest.remove(hash(&before));
        }
        self.state.digest.add(hash(&after));
        Ok(())
    }

    fn replace_session(&mut self, session_id: &SessionId, after: Option<&str>) -> Result<(), SqliteFault> {
        let id = session_id.as_str();
        let select = "SELECT record FROM session WHERE session_id = ?1";
        let before: Option<String> =
            self.transaction.prepare_cached(select)?.query_row([id], |row| row.get(0)).optional()?;
        let mut hash = |record: &str| {
            self.hasher.hash("session", [id, record].map(|text| ValueRef::Text(text.as_bytes())))
        };
        if let Some(before) = before {
            self.state.digest.remove(hash(&before));
        }
        match after {
            Some(after) => {
                self.state.digest.add(hash(after));
                let upsert =
                    "INSERT INTO session VALUES (?1, ?2) ON CONFLICT DO UPDATE SET record = excluded.record";
                self.transaction.prepare_cached(upsert)?.execute((id, after))?;
            }
            None => {
                let delete = "DELETE FROM session WHERE session_id = ?1";
                self.transaction.prepare_cached(delete)?.execute([id])?;
            }
        }
        Ok(())
    }

    fn save_snapshot(&mut self, snapshot: &EngineSnapshot) -> Result<(), SqliteFault> {
        let after = to_json(snapshot)?;
        let before: String = self
            .transaction
            .prepare_cached("SELECT content FROM snapshot WHERE id = 1")?
            .query_row([], |row| row.get(0))?;
        self.transaction
            .prepare_cached("UPDATE snapshot SET content = ?1 WHERE id = 1")?
            .execute([&after])?;
        let mut hash = |content: &str| {
            self.hasher.hash("snapshot", [ValueRef::Integer(1), ValueRef::Text(content.as_bytes())])
        };
        self.state.digest.remove(hash(&before));
        self.state.digest.add(hash(&after));
        Ok(())
    }
}
