//! The errors of a store, each with its cure.

use std::error::Error as StdError;
use std::fmt;
use std::io;
use std::path::PathBuf;

use shepherd_core::{UsageCounter, UsageKey};
use thiserror::Error;
use ward_ledger::SealError;

use crate::audit::AuditLogError;
use crate::path_exposure::ExposedPath;
use crate::quarantine::QuarantineLocation;

/// An error of the backend.
pub(crate) type BackendError = Box<dyn StdError + Send + Sync>;

/// The error for an operation of a store.
#[derive(Debug, Error)]
pub enum StoreError {
    /// The database refused, for its own reason or because of the disk.
    #[error("could not {step} {}; check its disk and its permissions, then restart the daemon", path.display())]
    Database {
        /// The step that failed.
        step: &'static str,
        /// The path of the database.
        path: PathBuf,
        /// The error of the backend.
        source: BackendError,
    },
    /// Another process writes to the database.
    #[error("{} is locked by another program; close the program that has it open, such as `sqlite3`", path.display())]
    Busy {
        /// The path of the database.
        path: PathBuf,
    },
    /// The disk is full.
    #[error("could not write to {}: the disk is full; free some space", path.display())]
    DiskFull {
        /// The path of the database.
        path: PathBuf,
    },
    /// The database is damaged.
    #[error("{} is damaged: {fault}; restart the daemon, which will move it aside", path.display())]
    Damaged {
        /// The path of the database.
        path: PathBuf,
        /// The evidence of the damage.
        fault: String,
    },
    /// The disk failed during a write, so it is unknown whether the write happened.
    #[error("an earlier write to {} failed; repair the disk, then restart the daemon", path.display())]
    UncertainCommit {
        /// The path of the database.
        path: PathBuf,
    },
    /// The usage exceeds the largest number.
    #[error("the usage of {} by `{}` on {} is too large to be counted; \
        this is a bug in Shepherd, so please report it", Named(&key.counter), key.profile, key.day)]
    Overflow {
        /// The counter that would overflow.
        key: Box<UsageKey>,
    },
    /// An event doesn't fit the audit log.
    #[error(
        "could not write event {index} of the batch to the audit log; this is a bug in Shepherd, so please report it"
    )]
    Event {
        /// The index of the event in the batch.
        index: usize,
        /// The reason.
        source: AuditEventError,
    },
    /// A value can't be written as JSON.
    #[error("could not write a value as JSON; this is a bug in Shepherd, so please report it")]
    Encode {
        /// The reason.
        source: serde_json::Error,
    },
    /// The previous batch is in the database but not yet in the audit log; until then no other batch is accepted.
    #[error(
        "could not continue the audit log {}; check its disk and run `shepherd audit verify`, then restart the daemon",
        path.display()
    )]
    Audit {
        /// The path of the log.
        path: PathBuf,
        /// The fault of the log.
        source: AuditLogError,
    },
    /// The audit log can't be read.
    #[error("could not read the audit log {}; run `shepherd audit verify`", path.display())]
    ReadAudit {
        /// The path of the log.
        path: PathBuf,
        /// The fault of the log.
        source: AuditLogError,
    },
    /// The head file of the database can't be written.
    #[error("could not write {}; check its disk and its permissions", path.display())]
    Head {
        /// The path of the file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The heartbeat can't be written.
    #[error("could not write the heartbeat {}; check its disk and its permissions", path.display())]
    Heartbeat {
        /// The path of the file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A failure that a test asked for.
    #[error("a failure that a test asked for")]
    Injected,
}

struct Named<'a>(&'a UsageCounter);

impl fmt::Display for Named<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            UsageCounter::Entry(id) => write!(formatter, "entry `{id}`"),
            UsageCounter::Budget(id) => write!(formatter, "budget `{id}`"),
        }
    }
}

/// The error for an event that isn't a valid record, or the reverse.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum AuditEventError {
    /// The value isn't a JSON object.
    #[error("it is not a JSON object")]
    NotAnObject,
    /// The value can't be written as JSON, or the JSON has another form.
    #[error("{0}")]
    Json(String),
    /// The ledger refuses the value.
    #[error(transparent)]
    Record(#[from] SealError),
}

/// The error for a store that can't be opened. Nothing may be granted then.
#[derive(Debug, Error)]
pub enum StoreOpenError {
    /// The operating system refused.
    #[error("could not {step} {}; check its disk and the permissions of the daemon's user", path.display())]
    File {
        /// The step that failed.
        step: &'static str,
        /// The path of the file or folder.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// Other users can change the folder or one of its files.
    #[error("{0} has mode {mode:04o}, so other users can change it; run `chmod go-w {0}`", path.display())]
    Mode {
        /// The path of the folder or file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// Another user owns the folder or one of its files.
    #[error(
        "{0} belongs to user {owner}, who can change it; if you trust its content, run `chown {user} {0}`",
        path.display()
    )]
    Owner {
        /// The path of the folder or file.
        path: PathBuf,
        /// The owner.
        owner: u32,
        /// The expected owner: the user that this program runs as.
        user: u32,
    },
    /// The folder is missing, and others can write to its parent: they may have renamed it.
    #[error(
        "{0} does not exist, and another user may have moved it away: {exposed}; if there was no store before, run `mkdir -m 700 {0}`",
        path.display()
    )]
    Exposed {
        /// The path of the folder.
        path: PathBuf,
        /// The parent in which others can write.
        exposed: ExposedPath,
    },
    /// Another daemon uses the folder.
    #[error("{} is in use by another daemon; stop that daemon first", path.display())]
    InUse {
        /// The path of the folder.
        path: PathBuf,
    },
    /// The database is of a newer version.
    #[error(
        "{} has schema version {found}, but this program supports only versions up to {known}; install a newer Shepherd",
        path.display()
    )]
    NewerSchema {
        /// The path of the database.
        path: PathBuf,
        /// Its version.
        found: i32,
        /// The newest known version.
        known: i32,
    },
    /// The database is damaged. It is set aside, and nothing replaces it until an administrator says so.
    #[error(transparent)]
    Damaged(Box<StoreDamage>),
    /// The audit log doesn't belong to the database; the database is sound and stays in place.
    #[error("could not continue the audit log {}; run `shepherd audit verify`, then reset the store", path.display())]
    Audit {
        /// The path of the log.
        path: PathBuf,
        /// The fault of the log.
        source: AuditLogError,
    },
    /// The store is sound, so there is nothing to reset.
    #[error("the store in {} is sound, so it was not reset", path.display())]
    NotDamaged {
        /// The path of the folder.
        path: PathBuf,
    },
    /// The database was opened, but the next operation failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A damaged database, and the place where it is now.
#[derive(Debug, Error)]
#[error("the store in {} is damaged: {fault}; {kept}; nothing is granted until an administrator resets it", folder.display())]
pub struct StoreDamage {
    /// The folder of the store.
    pub folder: PathBuf,
    /// The evidence of the damage.
    pub fault: String,
    /// The place of the files.
    pub kept: QuarantineLocation,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::sample::{entry_counter, usage_key};

    fn db() -> PathBuf {
        PathBuf::from("/data/shepherd.db")
    }

    fn log() -> PathBuf {
        PathBuf::from("/data/audit.log")
    }

    /// Formats place, fault and cure for any reader.
    #[test]
    fn every_store_error_names_the_place_the_fault_and_the_cure() {
        let io = || io::Error::from_raw_os_error(5);
        let fault = || AuditLogError::AheadOfDatabase { known: 7 };
        let (step, path, index) = ("read", db(), 0);
        let errors = [
            StoreError::Database { step, path, source: Box::new(io()) },
            StoreError::Busy { path: db() },
            StoreError::DiskFull { path: db() },
            StoreError::Damaged { path: db(), fault: "its tables have been changed".to_owned() },
            StoreError::UncertainCommit { path: db() },
            StoreError::Overflow { key: Box::new(usage_key("ada", entry_counter("chess"), 20_000)) },
            StoreError::Event { index, source: AuditEventError::NotAnObject },
            StoreError::Audit { path: log(), source: fault() },
            StoreError::ReadAudit { path: log(), source: fault() },
            StoreError::Head { path: PathBuf::from("/data/shepherd.db.head"), source: io() },
            StoreError::Heartbeat { path: PathBuf::from("/data/shepherd.pulse"), source: io() },
        ];
        let messages: Vec<String> = errors.iter().map(ToString::to_string).collect();
        let expected = [
            "could not read /data/shepherd.db; check its disk and its permissions, then restart the daemon",
            "/data/shepherd.db is locked by another program; close the program that has it open, such as `sqlite3`",
            "could not write to /data/shepherd.db: the disk is full; free some space",
            "/data/shepherd.db is damaged: its tables have been changed; restart the daemon, which will move it aside",
            "an earlier write to /data/shepherd.db failed; repair the disk, then restart the daemon",
            "the usage of entry `chess` by `ada` on 2024-10-04 is too large to be counted; this is a bug in \
             Shepherd, so please report it",
            "could not write event 0 of the batch to the audit log; this is a bug in Shepherd, so please report it",
            "could not continue the audit log /data/audit.log; check its disk and run `shepherd audit verify`, then \
             restart the daemon",
            "could not read the audit log /data/audit.log; run `shepherd audit verify`",
            "could not write /data/shepherd.db.head; check its disk and its permissions",
            "could not write the heartbeat /data/shepherd.pulse; check its disk and its permissions",
        ];
        assert_eq!(messages, expected);
    }
}
