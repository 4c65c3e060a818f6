//! A store for tests: the same promises as on disk, for as long as the process lives.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Map, Value};
use shepherd_api::{AuditEvent, AuditRecord};
use shepherd_core::policy::Day;
use shepherd_core::{
    EngineSnapshot, PauseEnd, SessionRecord, StoreWrite, StoredState, UsageCounter, UsageKey,
};
use shepherd_util::{EntryId, ProfileId, SessionId};

use crate::audit::{AuditAnchor, compute_anchors};
use crate::error::StoreError;
use crate::record::{event_to_record, record_to_event};
use crate::store::{Store, add_usage_micros, duration_from_micros, to_micros_rounded_up};

/// The simulated disk, which outlives the store as a disk outlives a daemon.
#[derive(Clone, Debug, Default)]
pub struct MemoryBackend(Arc<Mutex<MemoryContents>>);

#[derive(Clone, Debug, Default)]
struct MemoryContents {
    state: StoredState,
    audit: Vec<Map<String, Value>>,
    tip: AuditAnchor,
    generation: u64,
    failures: usize,
    commit_failure: Option<CommitFailure>,
}

/// The outcome of a batch whose write failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommitFailure {
    /// The batch was written, but this is unknown until the store is opened again.
    Persisted,
    /// The batch was not written.
    Lost,
}

impl MemoryBackend {
    /// Returns the whole audit log.
    #[must_use]
    pub fn audit(&self) -> Vec<AuditEvent> {
        self.lock_contents().audit.iter().filter_map(|record| record_to_event(record.clone()).ok()).collect()
    }

    /// Makes the next batches fail, this many of them.
    pub fn fail_next_applies(&self, failures: usize) {
        self.lock_contents().failures = failures;
    }

    /// Makes the next batch fail during its write. The store then refuses every other batch.
    pub fn fail_next_commit(&self, commit: CommitFailure) {
        self.lock_contents().commit_failure = Some(commit);
    }

    /// Adds a record to the log that belongs to no batch, as the ledger does after a recovery.
    ///
    /// # Errors
    /// The value is no record of an audit log.
    pub fn append_outside_batch(&self, event: &AuditEvent) -> Result<(), StoreError> {
        let mut contents = self.lock_contents();
        let writes = [StoreWrite::AppendAudit(Box::new(event.clone()))];
        let MemoryBatch { records, tip, .. } = MemoryBatch::validate(&contents, &writes)?;
        contents.audit.extend(records);
        contents.tip = tip;
        Ok(())
    }

    fn lock_contents(&self) -> MutexGuard<'_, MemoryContents> {
        // A batch is checked before anything changes, so that a panic elsewhere leaves no half of it.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A store in memory.
#[derive(Debug, Default)]
pub struct MemoryStore {
    backend: MemoryBackend,
    commit_uncertain: bool,
}

impl MemoryStore {
    /// Opens a store on this memory.
    #[must_use]
    pub fn with_backend(memory: &MemoryBackend) -> Self {
        Self { backend: memory.clone(), commit_uncertain: false }
    }

    /// Returns the memory of the store.
    #[must_use]
    pub fn backend(&self) -> &MemoryBackend {
        &self.backend
    }
}

impl Store for MemoryStore {
    fn load(&self) -> Result<StoredState, StoreError> {
        Ok(self.backend.lock_contents().state.clone())
    }

    fn apply(&mut self, writes: &[StoreWrite]) -> Result<(), StoreError> {
        let unsure = || StoreError::UncertainCommit { path: PathBuf::from("memory") };
        if self.commit_uncertain {
            return Err(unsure());
        }
        if writes.is_empty() {
            return Ok(());
        }
        let mut contents = self.backend.lock_contents();
        if let Some(left) = contents.failures.checked_sub(1) {
            contents.failures = left;
            return Err(StoreError::Injected);
        }
        let batch = MemoryBatch::validate(&contents, writes)?;
        let commit = contents.commit_failure.take();
        if commit != Some(CommitFailure::Lost) {
            contents.apply_batch(batch);
        }
        self.commit_uncertain = commit.is_some();
        if self.commit_uncertain { Err(unsure()) } else { Ok(()) }
    }

    fn get_usage(
        &self,
        profile: &ProfileId,
        counter: &UsageCounter,
        day: Day,
    ) -> Result<Duration, StoreError> {
        let key = UsageKey { profile: profile.clone(), counter: counter.clone(), day };
        Ok(self.backend.lock_contents().state.usage.get(&key).copied().unwrap_or_default())
    }

    fn get_cooldown_until(
        &self,
        profile: &ProfileId,
        entry_id: &EntryId,
    ) -> Result<Option<PauseEnd>, StoreError> {
        let key = (profile.clone(), entry_id.clone());
        Ok(self.backend.lock_contents().state.cooldowns.get(&key).copied())
    }

    fn load_snapshot(&self) -> Result<EngineSnapshot, StoreError> {
        Ok(self.backend.lock_contents().state.snapshot.clone())
    }

    fn generation(&self) -> u64 {
        self.backend.lock_contents().generation
    }

    fn audit_end(&self) -> u64 {
        self.backend.lock_contents().tip.sequence
    }

    fn read_audit(&self, after: Option<u64>, limit: u32) -> Result<Vec<AuditRecord>, StoreError> {
        let after = after.unwrap_or(0);
        let lines = self.backend.audit().into_iter().zip(1..);
        let later = lines.filter(|(_, sequence)| *sequence > after).take(limit as usize);
        Ok(later.map(|(line, sequence)| AuditRecord { sequence, line }).collect())
    }
}

/// A batch that can be applied.
struct MemoryBatch {
    /// The new totals of the counters.
    usage: BTreeMap<UsageKey, i64>,
    cooldowns: Vec<((ProfileId, EntryId), PauseEnd)>,
    /// The sessions that change, each with its new record; `None` removes it.
    sessions: Vec<(SessionId, Option<SessionRecord>)>,
    snapshot: Option<EngineSnapshot>,
    records: Vec<Map<String, Value>>,
    tip: AuditAnchor,
}

impl MemoryBatch {
    fn validate(before: &MemoryContents, writes: &[StoreWrite]) -> Result<Self, StoreError> {
        let mut batch = Self {
            usage: BTreeMap::new(),
            cooldowns: Vec::new(),
            sessions: Vec::new(),
            snapshot: None,
            records: Vec::new(),
            tip: before.tip,
        };
        for write in writes {
            match write {
                StoreWrite::AddUsage { key, amount } => {
                    let stored =
                        || before.state.usage.get(key).copied().and_then(to_micros_rounded_up).unwrap_or(0);
                    let used_us = batch.usage.get(key).copied().unwrap_or_else(stored);
                    batch.usage.insert(key.clone(), add_usage_micros(key, used_us, *amount)?);
                }
                StoreWrite::SetCooldown { profile, entry_id, until } => {
                    batch.cooldowns.push(((profile.clone(), entry_id.clone()), *until));
                }
                StoreWrite::SaveSession(session) => {
                    batch.sessions.push((session.session_id.clone(), Some((**session).clone())));
                }
                StoreWrite::DeleteSession(session_id) => batch.sessions.push((session_id.clone(), None)),
                StoreWrite::SaveSnapshot(snapshot) => batch.snapshot = Some((**snapshot).clone()),
                StoreWrite::AppendAudit(event) => {
                    let index = batch.records.len();
                    let record =
                        event_to_record(event).map_err(|source| StoreError::Event { index, source })?;
                    batch.records.push(record);
                }
            }
        }
        let links = compute_anchors(before.tip, &batch.records)
            .map_err(|(index, source)| StoreError::Event { index, source: source.into() })?;
        batch.tip = links.last().copied().unwrap_or(before.tip);
        Ok(batch)
    }
}

impl MemoryContents {
    fn apply_batch(&mut self, batch: MemoryBatch) {
        self.state
            .usage
            .extend(batch.usage.into_iter().map(|(key, used_us)| (key, duration_from_micros(used_us))));
        self.state.cooldowns.extend(batch.cooldowns);
        for (session_id, session) in batch.sessions {
            match session {
                Some(session) => drop(self.state.sessions.insert(session_id, session)),
                None => drop(self.state.sessions.remove(&session_id)),
            }
        }
        if let Some(snapshot) = batch.snapshot {
            self.state.snapshot = snapshot;
        }
        self.audit.extend(batch.records);
        self.tip = batch.tip;
        self.generation += 1;
    }
}
