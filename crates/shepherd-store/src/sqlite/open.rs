//! Opens a store. Any doubt about its state is an error, and a new store is created only in a folder without traces of
//! an earlier one.
//!
//! A damaged database is set aside (S8.4). The files that remain in the folder, above all the `damaged-…` folder, keep
//! later starts from taking it for a new one, until an administrator [resets](SqliteStore::reset_damaged) the store.

use std::path::Path;
use std::thread;

use jiff::Timestamp;
use rusqlite::{Connection, TransactionBehavior};
use serde_json::{Map, Value};
use ward_ledger::LedgerRecovery;
use ward_sqlite::checkpoint_on_close;

use super::batch::SqliteBatch;
use super::create::create_database;
use super::fault::SqliteFault;
use super::head::StoreHeadFile;
use super::schema::{MIGRATIONS, SCHEMA_VERSION, connect, migrate};
use super::state::{self, DatabaseState};
use super::{SqliteStore, check, rows};
use crate::audit::{AuditAnchor, AuditCheck, AuditLog, WHOLE_CHECK_BYTES, verify_if_small};
use crate::error::{StoreDamage, StoreOpenError};
use crate::folder::{StoreFolder, StoreFolderContents};
use crate::path_exposure::ExposedPath;
use crate::quarantine::{QuarantineLocation, quarantine_files};

/// A report about the opening of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a new store has no usage records, which the administrator has to know"]
pub struct StoreOpenReport {
    /// True if the store was created.
    pub created: bool,
    /// The older version from which the database was migrated.
    pub migrated_from: Option<i32>,
    /// The recovery of the audit log after a crash; the log records it too.
    pub audit_recovery: LedgerRecovery,
    /// The part of the audit log that was verified.
    pub audit_check: AuditCheck,
    /// Folders in which others could replace this one. Shepherd can't fix that, so it has to be reported.
    pub exposed: Vec<ExposedPath>,
}

impl SqliteStore {
    /// Opens the store in `folder`, and creates one if there has never been one. `now` is only used for the name of a
    /// folder with damaged files.
    ///
    /// It verifies every page and row of the database, that the database is as new as its head says, that the end of
    /// the audit log matches, and every link of the log unless it is [very long](crate::WHOLE_CHECK_BYTES). It can't
    /// detect a folder that was replaced as a whole by an older copy.
    ///
    /// # Errors
    /// Anything is wrong with the store. Nothing may be granted then.
    pub fn open(folder: &Path, now: Timestamp) -> Result<(Self, StoreOpenReport), StoreOpenError> {
        Self::claim(folder)?.open(now)
    }

    /// The first step of [`SqliteStore::open`]: the holder of the claim knows that no other process has this store
    /// open.
    ///
    /// # Errors
    /// Another process holds the store, or the folder isn't private.
    pub fn claim(folder: &Path) -> Result<StoreClaim, StoreOpenError> {
        StoreFolder::claim(folder).map(StoreClaim)
    }
}

/// A folder that no other process can open as a store.
pub struct StoreClaim(StoreFolder);

impl StoreClaim {
    /// The rest of [`SqliteStore::open`].
    ///
    /// # Errors
    /// Anything is wrong with the store. Nothing may be granted then.
    pub fn open(self, now: Timestamp) -> Result<(SqliteStore, StoreOpenReport), StoreOpenError> {
        let Self(folder) = self;
        let contents = folder.list_contents()?;
        let created = contents.is_never_used();
        if created {
            create_database(&folder, &contents, AuditAnchor::default())?;
        }
        let (database, audit, audit_recovery, audit_check) = check_database_and_log(&folder, now)?;
        let migrated_from = database.migrated_from;
        let exposed = folder.exposed_paths().to_vec();
        let store = database.into_store(audit, folder);
        Ok((store, StoreOpenReport { created, migrated_from, audit_recovery, audit_check, exposed }))
    }
}

/// Checks the database and the audit log at the same time, since both take most of the time of a start.
fn check_database_and_log(
    folder: &StoreFolder,
    now: Timestamp,
) -> Result<(SqliteDatabase, AuditLog, LedgerRecovery, AuditCheck), StoreOpenError> {
    let check = || verify_if_small(&folder.audit_log_path(), WHOLE_CHECK_BYTES);
    thread::scope(|scope| {
        let early = thread::Builder::new().name("audit".to_owned()).spawn_scoped(scope, check);
        let database = SqliteDatabase::open(folder, now)?;
        let (audit, recovery) = database.open_audit(folder)?;
        let early = early.ok().and_then(|checking| checking.join().ok()?.ok());
        let checked = match early {
            Some(AuditCheck::Whole { records }) if records == audit.anchor().sequence => {
                AuditCheck::Whole { records }
            }
            // The remains of a crash have been recovered since, or no other thread could be started.
            _ => check().map_err(|source| StoreOpenError::Audit { path: folder.audit_log_path(), source })?,
        };
        Ok((database, audit, recovery, checked))
    })
}

/// A database that was found sound.
pub(super) struct SqliteDatabase {
    connection: Connection,
    state: DatabaseState,
    head: StoreHeadFile,
    migrated_from: Option<i32>,
}

impl SqliteDatabase {
    /// Opens the database of a folder, or sets it aside.
    pub(super) fn open(folder: &StoreFolder, now: Timestamp) -> Result<Self, StoreOpenError> {
        let contents = folder.list_contents()?;
        if !contents.has_database() {
            return Err(quarantine_damaged(folder, &contents, "its database is gone".to_owned(), now));
        }
        let path = folder.database_path();
        let mut head = StoreHeadFile::new(folder.head_path());
        let reading = head.read().map_err(|source| StoreOpenError::File {
            step: "read",
            path: head.path().to_owned(),
            source,
        })?;
        let open = || {
            let mut connection = connect(&path)?;
            check::check_database(&connection, reading, MIGRATIONS)?;
            let version = migrate(&mut connection, MIGRATIONS)?;
            let state = state::read_state(&connection)?;
            checkpoint_on_close(&connection)?;
            Ok((connection, state, version))
        };
        match open() {
            Ok((connection, state, version)) => {
                folder.mark_initialized()?;
                if state.generation > 0 {
                    head.write(state.head_content()).map_err(|source| StoreOpenError::File {
                        step: "write",
                        path: head.path().to_owned(),
                        source,
                    })?;
                }
                let migrated_from = (version < SCHEMA_VERSION).then_some(version);
                Ok(Self { connection, state, head, migrated_from })
            }
            Err(SqliteFault::NewerSchema(found)) => {
                Err(StoreOpenError::NewerSchema { path, found, known: SCHEMA_VERSION })
            }
            Err(SqliteFault::Damage(fault)) => {
                Err(quarantine_damaged(folder, &folder.list_contents()?, fault, now))
            }
            Err(other) => Err(other.into_store_error("open", &path).into()),
        }
    }

    /// Returns the outbox of the database.
    pub(super) fn read_outbox(
        &self,
        folder: &StoreFolder,
    ) -> Result<Vec<Map<String, Value>>, StoreOpenError> {
        Ok(rows::read_outbox(&self.connection)
            .map_err(|trouble| trouble.into_store_error("read", &folder.database_path()))?)
    }

    /// Opens the audit log of the database.
    pub(super) fn open_audit(
        &self,
        folder: &StoreFolder,
    ) -> Result<(AuditLog, LedgerRecovery), StoreOpenError> {
        let path = folder.audit_log_path();
        AuditLog::open(&path, self.state.audit, self.read_outbox(folder)?)
            .map_err(|source| StoreOpenError::Audit { path, source })
    }

    /// Sets another position of the log as the anchor.
    pub(super) fn set_audit_anchor(
        &mut self,
        folder: &StoreFolder,
        audit: AuditAnchor,
        outbox: &[Map<String, Value>],
    ) -> Result<(), StoreOpenError> {
        let mut set = || {
            let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let mut batch = SqliteBatch::begin(&transaction, &self.state)?;
            batch.replace_outbox(audit, outbox)?;
            let state = batch.finish()?;
            transaction.commit()?;
            Ok(state)
        };
        self.state = set()
            .map_err(|trouble: SqliteFault| trouble.into_store_error("write to", &folder.database_path()))?;
        Ok(())
    }

    pub(super) fn into_store(self, audit: AuditLog, folder: StoreFolder) -> SqliteStore {
        let Self { connection, state, head, .. } = self;
        SqliteStore { connection, state, head, audit, commit_uncertain: false, folder }
    }
}

/// Sets the database aside and returns the error.
fn quarantine_damaged(
    folder: &StoreFolder,
    contents: &StoreFolderContents,
    fault: String,
    now: Timestamp,
) -> StoreOpenError {
    let kept = match (contents.database.as_slice(), contents.damaged.last()) {
        ([], Some(earlier)) => QuarantineLocation::InFolder(folder.path().join(earlier)),
        ([], None) => QuarantineLocation::Missing,
        (names, _) => match quarantine_files(folder.path(), names, now) {
            Ok(target) => QuarantineLocation::InFolder(target),
            Err(error) => QuarantineLocation::NotMoved(error),
        },
    };
    StoreOpenError::Damaged(Box::new(StoreDamage { folder: folder.path().to_owned(), fault, kept }))
}
