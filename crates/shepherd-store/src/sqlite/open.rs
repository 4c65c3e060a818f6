//! Opening a store: every doubt is an error, and only a folder without any trace of a store gets a new one.
//!
//! A damaged database is put aside (S8.4). What is left in its folder, the `damaged-…` folder above all, keeps later
//! starts from taking it for a new one, until an administrator [begins anew](SqliteStore::begin_anew).

use std::path::Path;
use std::thread;

use jiff::Timestamp;
use rusqlite::{Connection, TransactionBehavior};
use serde_json::{Map, Value};
use ward_ledger::LedgerRecovery;

use super::batch::SqliteBatch;
use super::create::create_database;
use super::fault::SqliteFault;
use super::head::StoreHeadFile;
use super::schema::{MIGRATIONS, SCHEMA_VERSION, connect, migrate, set_keep_wal_on_close};
use super::state::{self, DatabaseState};
use super::{SqliteStore, check, rows};
use crate::audit::{AuditAnchor, AuditCheck, AuditLog, WHOLE_CHECK_BYTES, verify_if_small};
use crate::error::{StoreDamage, StoreOpenError};
use crate::folder::{StoreFolder, StoreFolderContents};
use crate::path_exposure::ExposedPath;
use crate::quarantine::{QuarantineLocation, quarantine_files};

/// What happened when a store was opened.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a store that was made just now knows of no usage, and somebody should be told"]
pub struct StoreOpenReport {
    /// There was none, and it has been made.
    pub created: bool,
    /// It had this older version, and has been brought up to date.
    pub migrated_from: Option<i32>,
    /// What the audit log needed after a crash; the log itself tells of it, too.
    pub audit_recovery: LedgerRecovery,
    /// How much of the audit log was verified.
    pub audit_check: AuditCheck,
    /// Where others could put another folder in the place of this one. It can't be mended from within: people have to
    /// be told.
    pub exposed: Vec<ExposedPath>,
}

impl SqliteStore {
    /// Opens the store in `folder` and makes one where none has ever been. `now` is only for the name of what may
    /// have to be put aside.
    ///
    /// Verified is every page and row of the database, that it is as new as its head says, that the end of the audit
    /// log is the one it knows, and every link of the log unless that is [very long](crate::WHOLE_CHECK_BYTES). Not
    /// noticed is a folder that was replaced as a whole by an older copy of itself.
    ///
    /// # Errors
    /// When there is anything wrong with it. Nothing may be granted then.
    pub fn open(folder: &Path, now: Timestamp) -> Result<(Self, StoreOpenReport), StoreOpenError> {
        Self::claim(folder)?.open(now)
    }

    /// The first step of [`open_heartbeat_file`](Self::open): whoever has the claim knows that nobody else has this store open.
    ///
    /// # Errors
    /// When another process has it, or the folder is not private.
    pub fn claim(folder: &Path) -> Result<StoreClaim, StoreOpenError> {
        StoreFolder::claim(folder).map(StoreClaim)
    }
}

/// A folder that nobody else can open as a store.
pub struct StoreClaim(StoreFolder);

impl StoreClaim {
    /// The rest of [`SqliteStore::open`].
    ///
    /// # Errors
    /// When there is anything wrong with the store. Nothing may be granted then.
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

/// Checks the database and the audit log at the same time: both are most of the work of a start.
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
            // What a crash had left was put right since, or there is no other thread to be had.
            _ => check().map_err(|source| StoreOpenError::Audit { path: folder.audit_log_path(), source })?,
        };
        Ok((database, audit, recovery, checked))
    })
}

/// A database that has been found to be in order.
pub(super) struct SqliteDatabase {
    connection: Connection,
    state: DatabaseState,
    head: StoreHeadFile,
    migrated_from: Option<i32>,
}

impl SqliteDatabase {
    /// Opens the database of a folder, or puts it aside.
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
            set_keep_wal_on_close(&connection, false)?;
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

    /// What the database has for the audit log.
    pub(super) fn read_outbox(
        &self,
        folder: &StoreFolder,
    ) -> Result<Vec<Map<String, Value>>, StoreOpenError> {
        Ok(rows::read_outbox(&self.connection)
            .map_err(|trouble| trouble.into_store_error("read", &folder.database_path()))?)
    }

    /// Opens the audit log that belongs to it.
    pub(super) fn open_audit(
        &self,
        folder: &StoreFolder,
    ) -> Result<(AuditLog, LedgerRecovery), StoreOpenError> {
        let path = folder.audit_log_path();
        AuditLog::open(&path, self.state.audit, self.read_outbox(folder)?)
            .map_err(|source| StoreOpenError::Audit { path, source })
    }

    /// Makes another place in a log the one to go on from.
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

/// Puts the database aside and says so.
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
