//! A store for tests: the same promises as on disk, as long as the process lives.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Map, Value};
use shepherd_api::{AuditEvent, AuditRecord};
use shepherd_core::policy::Day;
use shepherd_core::{Counter, Snapshot, StoreWrite, StoredState, Until, UsageKey};
use shepherd_util::{EntryId, ProfileId};

use crate::audit::{Anchor, chained};
use crate::error::StoreError;
use crate::record::{event_of, record_of};
use crate::store::{Store, added, length, micros};

/// What takes the place of the disk: it outlives the store, as a disk outlives a daemon.
#[derive(Clone, Debug, Default)]
pub struct Memory(Arc<Mutex<Contents>>);

#[derive(Clone, Debug, Default)]
struct Contents {
    state: StoredState,
    audit: Vec<Map<String, Value>>,
    tip: Anchor,
    generation: u64,
    failures: usize,
    commit_failure: Option<Commit>,
}

/// What became of a batch that failed in the very moment of writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Commit {
    /// It is there, and nobody knows until the store is opened again.
    Landed,
    /// It is not.
    Lost,
}

impl Memory {
    /// The audit log, from its beginning.
    #[must_use]
    pub fn audit(&self) -> Vec<AuditEvent> {
        self.contents().audit.iter().filter_map(|record| event_of(record.clone()).ok()).collect()
    }

    /// Lets the next batches fail, so many of them.
    pub fn fail_next_applies(&self, failures: usize) {
        self.contents().failures = failures;
    }

    /// Lets the next batch fail in the very moment of writing. The store that has it refuses every other.
    pub fn fail_next_commit(&self, commit: Commit) {
        self.contents().commit_failure = Some(commit);
    }

    /// Adds a line to the log that belongs to no batch, as a log does that tells of its own recovery.
    ///
    /// # Errors
    /// When it is no line of an audit log.
    pub fn append_of_its_own(&self, event: &AuditEvent) -> Result<(), StoreError> {
        let mut contents = self.contents();
        let writes = [StoreWrite::AppendAudit(Box::new(event.clone()))];
        let Batch { records, tip, .. } = Batch::judge(&contents, &writes)?;
        contents.audit.extend(records);
        contents.tip = tip;
        Ok(())
    }

    fn contents(&self) -> MutexGuard<'_, Contents> {
        // A batch is judged before anything is changed, so that a panic elsewhere leaves no half of it.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A store in memory.
#[derive(Debug, Default)]
pub struct MemoryStore {
    memory: Memory,
    unsure: bool,
}

impl MemoryStore {
    /// A store on this memory, with what is in it.
    #[must_use]
    pub fn on(memory: &Memory) -> Self {
        Self { memory: memory.clone(), unsure: false }
    }

    /// The memory that it is on.
    #[must_use]
    pub fn memory(&self) -> &Memory {
        &self.memory
    }
}

impl Store for MemoryStore {
    fn load(&self) -> Result<StoredState, StoreError> {
        Ok(self.memory.contents().state.clone())
    }

    fn apply(&mut self, writes: &[StoreWrite]) -> Result<(), StoreError> {
        let unsure = || StoreError::Unsure { path: PathBuf::from("memory") };
        if self.unsure {
            return Err(unsure());
        }
        if writes.is_empty() {
            return Ok(());
        }
        let mut contents = self.memory.contents();
        if let Some(left) = contents.failures.checked_sub(1) {
            contents.failures = left;
            return Err(StoreError::Injected);
        }
        let batch = Batch::judge(&contents, writes)?;
        let commit = contents.commit_failure.take();
        if commit != Some(Commit::Lost) {
            contents.take_over(batch);
        }
        self.unsure = commit.is_some();
        if self.unsure { Err(unsure()) } else { Ok(()) }
    }

    fn get_usage(&self, profile: &ProfileId, counter: &Counter, day: Day) -> Result<Duration, StoreError> {
        let key = UsageKey { profile: profile.clone(), counter: counter.clone(), day };
        Ok(self.memory.contents().state.usage.get(&key).copied().unwrap_or_default())
    }

    fn get_cooldown_until(
        &self,
        profile: &ProfileId,
        entry_id: &EntryId,
    ) -> Result<Option<Until>, StoreError> {
        let key = (profile.clone(), entry_id.clone());
        Ok(self.memory.contents().state.cooldowns.get(&key).copied())
    }

    fn load_snapshot(&self) -> Result<Snapshot, StoreError> {
        Ok(self.memory.contents().state.snapshot.clone())
    }

    fn generation(&self) -> u64 {
        self.memory.contents().generation
    }

    fn audit_end(&self) -> u64 {
        self.memory.contents().tip.sequence
    }

    fn read_audit(&self, after: Option<u64>, limit: u32) -> Result<Vec<AuditRecord>, StoreError> {
        let after = after.unwrap_or(0);
        let lines = self.memory.audit().into_iter().zip(1..);
        let later = lines.filter(|(_, sequence)| *sequence > after).take(limit as usize);
        Ok(later.map(|(line, sequence)| AuditRecord { sequence, line }).collect())
    }
}

/// A batch that can be carried out.
struct Batch {
    /// New totals.
    usage: BTreeMap<UsageKey, i64>,
    cooldowns: Vec<((ProfileId, EntryId), Until)>,
    snapshot: Option<Snapshot>,
    records: Vec<Map<String, Value>>,
    tip: Anchor,
}

impl Batch {
    fn judge(before: &Contents, writes: &[StoreWrite]) -> Result<Self, StoreError> {
        let mut batch = Self {
            usage: BTreeMap::new(),
            cooldowns: Vec::new(),
            snapshot: None,
            records: Vec::new(),
            tip: before.tip,
        };
        for write in writes {
            match write {
                StoreWrite::AddUsage { key, amount } => {
                    let stored = || before.state.usage.get(key).copied().and_then(micros).unwrap_or(0);
                    let used_us = batch.usage.get(key).copied().unwrap_or_else(stored);
                    batch.usage.insert(key.clone(), added(key, used_us, *amount)?);
                }
                StoreWrite::SetCooldown { profile, entry_id, until } => {
                    batch.cooldowns.push(((profile.clone(), entry_id.clone()), *until));
                }
                StoreWrite::SaveSnapshot(snapshot) => batch.snapshot = Some((**snapshot).clone()),
                StoreWrite::AppendAudit(event) => {
                    let index = batch.records.len();
                    let record = record_of(event).map_err(|source| StoreError::Event { index, source })?;
                    batch.records.push(record);
                }
            }
        }
        let links = chained(before.tip, &batch.records)
            .map_err(|(index, source)| StoreError::Event { index, source: source.into() })?;
        batch.tip = links.last().copied().unwrap_or(before.tip);
        Ok(batch)
    }
}

impl Contents {
    fn take_over(&mut self, batch: Batch) {
        self.state.usage.extend(batch.usage.into_iter().map(|(key, used_us)| (key, length(used_us))));
        self.state.cooldowns.extend(batch.cooldowns);
        if let Some(snapshot) = batch.snapshot {
            self.state.snapshot = snapshot;
        }
        self.audit.extend(batch.records);
        self.tip = batch.tip;
        self.generation += 1;
    }
}
