//! The store on SQLite: one file, a write-ahead log, every batch synced before it is acknowledged.

use std::time::Duration;

use rusqlite::{Connection, TransactionBehavior};
use serde_json::{Map, Value};
use shepherd_api::AuditRecord;
use shepherd_core::policy::Day;
use shepherd_core::{Counter, Snapshot, StoreWrite, StoredState, Until};
use shepherd_util::{EntryId, ProfileId};

use crate::audit::{AuditLog, chained, read_audit_log};
use crate::error::StoreError;
use crate::folder::{Folder, pulse_path};
use crate::pulse;
use crate::record::record_of;
use crate::store::Store;

mod batch;
mod begin;
mod check;
mod create;
mod digest;
mod head;
mod open;
mod rows;
mod schema;
mod state;
mod trouble;

pub use begin::{Administrator, Begun, Part};
pub use open::{Claim, Opened};
pub use schema::SCHEMA_VERSION;

use batch::Batch;
use head::Head;
use state::State;
use trouble::{Trouble, is_disk_failure};

/// The store on disk. One process at a time has it.
#[derive(Debug)]
pub struct SqliteStore {
    connection: Connection,
    /// What the database says of itself since the last batch.
    state: State,
    head: Head,
    audit: AuditLog,
    /// Set when the disk failed at a commit: what is on it is not what SQLite says.
    unsure: bool,
    /// Last, so that the folder is given free when everything is closed.
    folder: Folder,
}

impl SqliteStore {
    /// How many acknowledged events are safe in the database but not yet in the audit log. More than none means that
    /// the log can't be written, and that the next batch will fail.
    #[must_use]
    pub fn events_waiting(&self) -> usize {
        self.audit.waiting()
    }

    /// Finishes what the last batch left to do. It was acknowledged; what is left can be done again and again.
    fn settle(&mut self) -> Result<(), StoreError> {
        self.audit
            .settle()
            .map_err(|source| StoreError::Audit { path: self.audit.path().to_owned(), source })?;
        self.head
            .write(self.state.vouched())
            .map_err(|source| StoreError::Head { path: self.head.path().to_owned(), source })
    }

    fn commit(&mut self, writes: &[StoreWrite], records: &[Map<String, Value>]) -> Result<State, Trouble> {
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let mut batch = Batch::begin(&transaction, &self.state)?;
        for write in writes {
            batch.write(write)?;
        }
        batch.fill_outbox(self.audit.anchor(), records)?;
        let state = batch.finish()?;
        transaction.commit().inspect_err(|error| self.unsure = is_disk_failure(error))?;
        Ok(state)
    }

    fn trouble(&self, trouble: Trouble, step: &'static str) -> StoreError {
        trouble.at(step, &self.folder.database())
    }
}

impl Store for SqliteStore {
    fn load(&self) -> Result<StoredState, StoreError> {
        let state = rows::all(&self.connection).map_err(|trouble| self.trouble(trouble, "read"))?;
        Ok(StoredState { pulse: pulse::read(&pulse_path(self.folder.path())), ..state })
    }

    fn apply(&mut self, writes: &[StoreWrite]) -> Result<(), StoreError> {
        if self.unsure {
            return Err(StoreError::Unsure { path: self.folder.database() });
        }
        if writes.is_empty() {
            return Ok(());
        }
        self.settle()?;
        let records = records_of(writes)?;
        chained(self.audit.anchor(), &records)
            .map_err(|(index, source)| StoreError::Event { index, source: source.into() })?;
        self.state = self.commit(writes, &records).map_err(|trouble| self.trouble(trouble, "write to"))?;
        self.audit.committed(records);
        // The batch is durable, and whatever fails from here on must not say otherwise: the next one tells.
        self.settle().ok();
        Ok(())
    }

    fn get_usage(&self, profile: &ProfileId, counter: &Counter, day: Day) -> Result<Duration, StoreError> {
        rows::usage(&self.connection, profile, counter, day).map_err(|trouble| self.trouble(trouble, "read"))
    }

    fn get_cooldown_until(
        &self,
        profile: &ProfileId,
        entry_id: &EntryId,
    ) -> Result<Option<Until>, StoreError> {
        rows::cooldown(&self.connection, profile, entry_id).map_err(|trouble| self.trouble(trouble, "read"))
    }

    fn load_snapshot(&self) -> Result<Snapshot, StoreError> {
        rows::snapshot(&self.connection).map_err(|trouble| self.trouble(trouble, "read"))
    }

    fn generation(&self) -> u64 {
        self.state.generation.unsigned_abs()
    }

    fn audit_end(&self) -> u64 {
        self.audit.anchor().sequence
    }

    fn read_audit(&self, after: Option<u64>, limit: u32) -> Result<Vec<AuditRecord>, StoreError> {
        read_audit_log(self.folder.path(), after, limit)
    }
}

/// The records of the events of a batch.
fn records_of(writes: &[StoreWrite]) -> Result<Vec<Map<String, Value>>, StoreError> {
    let events = writes.iter().filter_map(|write| match write {
        StoreWrite::AppendAudit(event) => Some(event),
        _ => None,
    });
    let record = |(index, event)| record_of(event).map_err(|source| StoreError::Event { index, source });
    events.map(|event| &**event).enumerate().map(record).collect()
}
