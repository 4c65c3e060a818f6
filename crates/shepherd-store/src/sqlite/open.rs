//! Opening a store: every doubt is an error, and only a folder without any trace of a store gets a new one.
//!
//! A damaged database is put aside (S8.4). What is left in its folder, the `damaged-…` folder above all, keeps later
//! starts from taking it for a new one, until an administrator [begins anew](SqliteStore::begin_anew).

use std::path::Path;
use std::thread;

use jiff::Timestamp;
use rusqlite::{Connection, TransactionBehavior};
use serde_json::{Map, Value};
use ward_ledger::Recovery;

use super::batch::Batch;
use super::create::create;
use super::head::Head;
use super::schema::{MIGRATIONS, SCHEMA_VERSION, connect, keep_log_on_close, migrate};
use super::state::{self, State};
use super::trouble::Trouble;
use super::{SqliteStore, check, rows};
use crate::aside::{KeptAside, put_aside};
use crate::audit::{Anchor, AuditCheck, AuditLog, WHOLE_CHECK_BYTES, check_whole};
use crate::error::{Damage, OpenError};
use crate::folder::{Contents, Folder};
use crate::way::Exposed;

/// What happened when a store was opened.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a store that was made just now knows of no usage, and somebody should be told"]
pub struct Opened {
    /// There was none, and it has been made.
    pub created: bool,
    /// It had this older version, and has been brought up to date.
    pub migrated_from: Option<i32>,
    /// What the audit log needed after a crash; the log itself tells of it, too.
    pub audit_recovery: Recovery,
    /// How much of the audit log was verified.
    pub audit_check: AuditCheck,
    /// Where others could put another folder in the place of this one. It can't be mended from within: people have to
    /// be told.
    pub exposed: Vec<Exposed>,
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
    pub fn open(folder: &Path, now: Timestamp) -> Result<(Self, Opened), OpenError> {
        Self::claim(folder)?.open(now)
    }

    /// The first step of [`open`](Self::open): whoever has the claim knows that nobody else has this store open.
    ///
    /// # Errors
    /// When another process has it, or the folder is not private.
    pub fn claim(folder: &Path) -> Result<Claim, OpenError> {
        Folder::claim(folder).map(Claim)
    }
}

/// A folder that nobody else can open as a store.
pub struct Claim(Folder);

impl Claim {
    /// The rest of [`SqliteStore::open`].
    ///
    /// # Errors
    /// When there is anything wrong with the store. Nothing may be granted then.
    pub fn open(self, now: Timestamp) -> Result<(SqliteStore, Opened), OpenError> {
        let Self(folder) = self;
        let contents = folder.look()?;
        let created = contents.is_untouched();
        if created {
            create(&folder, &contents, Anchor::default())?;
        }
        let (database, audit, audit_recovery, audit_check) = check_both(&folder, now)?;
        let migrated_from = database.migrated_from;
        let exposed = folder.exposed().to_vec();
        let store = database.into_store(audit, folder);
        Ok((store, Opened { created, migrated_from, audit_recovery, audit_check, exposed }))
    }
}

/// Checks the database and the audit log at the same time: both are most of the work of a start.
fn check_both(
    folder: &Folder,
    now: Timestamp,
) -> Result<(Database, AuditLog, Recovery, AuditCheck), OpenError> {
    let check = || check_whole(&folder.audit_log(), WHOLE_CHECK_BYTES);
    thread::scope(|scope| {
        let early = thread::Builder::new().name("audit".to_owned()).spawn_scoped(scope, check);
        let database = Database::open(folder, now)?;
        let (audit, recovery) = database.open_audit(folder)?;
        let early = early.ok().and_then(|checking| checking.join().ok()?.ok());
        let checked = match early {
            Some(AuditCheck::Whole { records }) if records == audit.anchor().sequence => {
                AuditCheck::Whole { records }
            }
            // What a crash had left was put right since, or there is no other thread to be had.
            _ => check().map_err(|source| OpenError::Audit { path: folder.audit_log(), source })?,
        };
        Ok((database, audit, recovery, checked))
    })
}

/// A database that has been found to be in order.
pub(super) struct Database {
    connection: Connection,
    state: State,
    head: Head,
    migrated_from: Option<i32>,
}

impl Database {
    /// Opens the database of a folder, or puts it aside.
    pub(super) fn open(folder: &Folder, now: Timestamp) -> Result<Self, OpenError> {
        let contents = folder.look()?;
        if !contents.has_database() {
            return Err(damaged(folder, &contents, "its database is gone".to_owned(), now));
        }
        let path = folder.database();
        let mut head = Head::new(folder.head());
        let reading = head.read().map_err(|source| OpenError::File {
            step: "read",
            path: head.path().to_owned(),
            source,
        })?;
        let open = || {
            let mut connection = connect(&path)?;
            check::inspect(&connection, reading, MIGRATIONS)?;
            let version = migrate(&mut connection, MIGRATIONS)?;
            let state = state::read(&connection)?;
            keep_log_on_close(&connection, false)?;
            Ok((connection, state, version))
        };
        match open() {
            Ok((connection, state, version)) => {
                folder.mark()?;
                if state.generation > 0 {
                    head.write(state.vouched()).map_err(|source| OpenError::File {
                        step: "write",
                        path: head.path().to_owned(),
                        source,
                    })?;
                }
                let migrated_from = (version < SCHEMA_VERSION).then_some(version);
                Ok(Self { connection, state, head, migrated_from })
            }
            Err(Trouble::Newer(found)) => Err(OpenError::Newer { path, found, known: SCHEMA_VERSION }),
            Err(Trouble::Damage(fault)) => Err(damaged(folder, &folder.look()?, fault, now)),
            Err(other) => Err(other.at("open", &path).into()),
        }
    }

    /// What the database has for the audit log.
    pub(super) fn outbox(&self, folder: &Folder) -> Result<Vec<Map<String, Value>>, OpenError> {
        Ok(rows::outbox(&self.connection).map_err(|trouble| trouble.at("read", &folder.database()))?)
    }

    /// Opens the audit log that belongs to it.
    pub(super) fn open_audit(&self, folder: &Folder) -> Result<(AuditLog, Recovery), OpenError> {
        let path = folder.audit_log();
        AuditLog::open(&path, self.state.audit, self.outbox(folder)?)
            .map_err(|source| OpenError::Audit { path, source })
    }

    /// Makes another place in a log the one to go on from.
    pub(super) fn set_audit(
        &mut self,
        folder: &Folder,
        audit: Anchor,
        outbox: &[Map<String, Value>],
    ) -> Result<(), OpenError> {
        let mut set = || {
            let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let mut batch = Batch::begin(&transaction, &self.state)?;
            batch.fill_outbox(audit, outbox)?;
            let state = batch.finish()?;
            transaction.commit()?;
            Ok(state)
        };
        self.state = set().map_err(|trouble: Trouble| trouble.at("write to", &folder.database()))?;
        Ok(())
    }

    pub(super) fn into_store(self, audit: AuditLog, folder: Folder) -> SqliteStore {
        let Self { connection, state, head, .. } = self;
        SqliteStore { connection, state, head, audit, unsure: false, folder }
    }
}

/// Puts the database aside and says so.
fn damaged(folder: &Folder, contents: &Contents, fault: String, now: Timestamp) -> OpenError {
    let kept = match (contents.database.as_slice(), contents.damaged.last()) {
        ([], Some(earlier)) => KeptAside::In(folder.path().join(earlier)),
        ([], None) => KeptAside::Gone,
        (names, _) => match put_aside(folder.path(), names, now) {
            Ok(target) => KeptAside::In(target),
            Err(error) => KeptAside::InPlace(error),
        },
    };
    OpenError::Damaged(Box::new(Damage { folder: folder.path().to_owned(), fault, kept }))
}
