//! The store on SQLite: one file, a write-ahead log, every batch synced before it is acknowledged.

use std::time::Duration;

use rusqlite::{Connection, TransactionBehavior};
use serde_json::{Map, Value};
use shepherd_api::AuditRecord;
use shepherd_core::policy::Day;
use shepherd_core::{EngineSnapshot, PauseEnd, StoreWrite, StoredState, UsageCounter};
use shepherd_util::{EntryId, ProfileId};

use crate::audit::{AuditLog, compute_anchors, read_audit_log};
use crate::error::StoreError;
use crate::folder::{StoreFolder, heartbeat_path};
use crate::heartbeat;
use crate::record::event_to_record;
use crate::store::Store;

mod batch;
mod check;
mod create;
mod digest;
mod fault;
mod head;
mod open;
mod reset;
mod rows;
mod schema;
mod state;

pub use open::{StoreClaim, StoreOpenReport};
pub use reset::{ResetPartOutcome, ResetReport, ResetRequest};
pub use schema::SCHEMA_VERSION;

use batch::SqliteBatch;
use fault::{SqliteFault, is_disk_failure};
use head::StoreHeadFile;
use state::DatabaseState;

/// The store on disk. One process at a time can open it.
#[derive(Debug)]
pub struct SqliteStore {
    connection: Connection,
    /// The state row of the database since the last batch.
    state: DatabaseState,
    head: StoreHeadFile,
    audit: AuditLog,
    /// True after the disk failed at a commit: its content may differ from what SQLite reports.
    commit_uncertain: bool,
    /// The last field, so that the folder is released after everything else is closed.
    folder: StoreFolder,
}

impl SqliteStore {
    /// Returns the number of acknowledged events that are in the database but not yet in the audit log. A number above zero
    /// means that the log can't be written and that the next batch will fail.
    #[must_use]
    pub fn pending_event_count(&self) -> usize {
        self.audit.pending_count()
    }

    /// Finishes the work that the last batch left. The batch was acknowledged; the work can be repeated safely.
    fn flush_pending(&mut self) -> Result<(), StoreError> {
        self.audit
            .flush_outbox()
            .map_err(|source| StoreError::Audit { path: self.audit.path().to_owned(), source })?;
        self.head
            .write(self.state.head_content())
            .map_err(|source| StoreError::Head { path: self.head.path().to_owned(), source })
    }

    fn commit(
        &mut self,
        writes: &[StoreWrite],
        records: &[Map<String, Value>],
    ) -> Result<DatabaseState, SqliteFault> {
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let mut batch = SqliteBatch::begin(&transaction, &self.state)?;
        for write in writes {
            batch.write(write)?;
        }
        batch.replace_outbox(self.audit.anchor(), records)?;
        let state = batch.finish()?;
        transaction.commit().inspect_err(|error| self.commit_uncertain = is_disk_failure(error))?;
        Ok(state)
    }

    fn store_error(&self, trouble: SqliteFault, step: &'static str) -> StoreError {
        trouble.into_store_error(step, &self.folder.database_path())
    }
}

impl Store for SqliteStore {
    fn load(&self) -> Result<StoredState, StoreError> {
        let state = rows::read_all(&self.connection).map_err(|trouble| self.store_error(trouble, "read"))?;
        Ok(StoredState { heartbeat: heartbeat::read_heartbeat(&heartbeat_path(self.folder.path())), ..state })
    }

    fn apply(&mut self, writes: &[StoreWrite]) -> Result<(), StoreError> {
        if self.commit_uncertain {
            return Err(StoreError::UncertainCommit { path: self.folder.database_path() });
        }
        if writes.is_empty() {
            return Ok(());
        }
        self.flush_pending()?;
        let records = audit_records(writes)?;
        compute_anchors(self.audit.anchor(), &records)
            .map_err(|(index, source)| StoreError::Event { index, source: source.into() })?;
        self.state =
            self.commit(writes, &records).map_err(|trouble| self.store_error(trouble, "write to"))?;
        self.audit.enqueue_committed(records);
        // The batch is durable, and no later failure may deny that: the next batch reports it.
        self.flush_pending().ok();
        Ok(())
    }

    fn get_usage(
        &self,
        profile: &ProfileId,
        counter: &UsageCounter,
        day: Day,
    ) -> Result<Duration, StoreError> {
        rows::read_usage(&self.connection, profile, counter, day)
            .map_err(|trouble| self.store_error(trouble, "read"))
    }

    fn get_cooldown_until(
        &self,
        profile: &ProfileId,
        entry_id: &EntryId,
    ) -> Result<Option<PauseEnd>, StoreError> {
        rows::read_cooldown(&self.connection, profile, entry_id)
            .map_err(|trouble| self.store_error(trouble, "read"))
    }

    fn load_snapshot(&self) -> Result<EngineSnapshot, StoreError> {
        rows::read_snapshot(&self.connection).map_err(|trouble| self.store_error(trouble, "read"))
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

/// Returns the records of the events of a batch.
fn audit_records(writes: &[StoreWrite]) -> Result<Vec<Map<String, Value>>, StoreError> {
    let events = writes.iter().filter_map(|write| match write {
        StoreWrite::AppendAudit(event) => Some(event),
        _ => None,
    });
    let record =
        |(index, event)| event_to_record(event).map_err(|source| StoreError::Event { index, source });
    events.map(|event| &**event).enumerate().map(record).collect()
}
