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
    #[error("can't {step} {}; see to its disk and its permissions, then restart the daemon", path.display())]
    Database {
        /// The step that failed.
        step: &'static str,
        /// The path of the database.
        path: PathBuf,
        /// The error of the backend.
        source: BackendError,
    },
    /// Another process writes to the database.
    #[error("{} is locked by another program; end whatever has it open, such as `sqlite3`", path.display())]
    Busy {
        /// The path of the database.
        path: PathBuf,
    },
    /// The disk is full.
    #[error("no room to write to {}; free some space on its disk", path.display())]
    DiskFull {
        /// The path of the database.
        path: PathBuf,
    },
    /// The database is damaged.
    #[error("{} is damaged: {fault}; restart the daemon, which will put it aside", path.display())]
    Damaged {
        /// The path of the database.
        path: PathBuf,
        /// The evidence of the damage.
        fault: String,
    },
    /// The disk failed during a write, so it is unknown whether the write happened.
    #[error("a write to {} failed before; restart the daemon once the disk is in order", path.display())]
    UncertainCommit {
        /// The path of the database.
        path: PathBuf,
    },
    /// The usage exceeds the largest number.
    #[error("the usage of {} by `{}` on {} is too large to be counted; \
        no day is so long, so report this as a fault of Shepherd", Named(&key.counter), key.profile, key.day)]
    Overflow {
        /// The counter that would overflow.
        key: Box<UsageKey>,
    },
    /// An event doesn't fit the audit log.
    #[error(
        "event {index} of the batch can't be written to the audit log; report this as a fault of Shepherd"
    )]
    Event {
        /// The index of the event in the batch.
        index: usize,
        /// The reason.
        source: AuditEventError,
    },
    /// A value can't be written as JSON.
    #[error("a value can't be written as JSON; report this as a fault of Shepherd")]
    Encode {
        /// The reason.
        source: serde_json::Error,
    },
    /// The previous batch is in the database but not yet in the audit log; until then no other batch is accepted.
    #[error(
        "the audit log {} can't be continued; see to its disk and run `shepherd audit verify`, then restart the daemon",
        path.display()
    )]
    Audit {
        /// The path of the log.
        path: PathBuf,
        /// The fault of the log.
        source: AuditLogError,
    },
    /// The audit log can't be read.
    #[error("can't read the audit log {}; run `shepherd audit verify`", path.display())]
    ReadAudit {
        /// The path of the log.
        path: PathBuf,
        /// The fault of the log.
        source: AuditLogError,
    },
    /// The head file of the database can't be written.
    #[error("can't write {}; see to its disk and its permissions", path.display())]
    Head {
        /// The path of the file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The heartbeat can't be written.
    #[error("can't write the sign of life {}; see to its disk and its permissions", path.display())]
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
    #[error("can't {step} {}; the daemon's user must be able to, and its disk must be in order", path.display())]
    File {
        /// The step that failed.
        step: &'static str,
        /// The path of the file or folder.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// Other users can change the folder or one of its files.
    #[error("{0} has mode {mode:04o}, so that others can change what is in it; run `chmod go-w {0}`", path.display())]
    Mode {
        /// The path of the folder or file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// Another user owns the folder or one of its files.
    #[error(
        "{0} belongs to user {owner}, who can change what is in it; if you trust what it holds, run `chown {user} {0}`",
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
        "there is no {0}, and nobody can tell whether there ever was: {way}; or, if it is new, run `mkdir -m 700 {0}`",
        path.display()
    )]
    Exposed {
        /// The path of the folder.
        path: PathBuf,
        /// The parent in which others can write.
        way: ExposedPath,
    },
    /// Another daemon uses the folder.
    #[error("{} is in use by another daemon; end that one first", path.display())]
    InUse {
        /// The path of the folder.
        path: PathBuf,
    },
    /// The database is of a newer version.
    #[error(
        "{} has schema version {found}, and this program knows versions up to {known}; install the newer Shepherd again",
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
    #[error("the audit log {} can't be continued; look at it with `shepherd audit verify`, then begin anew", path.display())]
    Audit {
        /// The path of the log.
        path: PathBuf,
        /// The fault of the log.
        source: AuditLogError,
    },
    /// The store is sound, so there is nothing to reset.
    #[error("the store in {} is in order; it is not begun anew", path.display())]
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
#[error("the store in {} is damaged: {fault}; {kept}; nothing is granted until an administrator begins it anew", folder.display())]
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
    fn every_refusal_of_a_store_says_where_what_and_what_to_do() {
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
        let told: Vec<String> = errors.iter().map(ToString::to_string).collect();
        let expected = [
            "can't read /data/shepherd.db; see to its disk and its permissions, then restart the daemon",
            "/data/shepherd.db is locked by another program; end whatever has it open, such as `sqlite3`",
            "no room to write to /data/shepherd.db; free some space on its disk",
            "/data/shepherd.db is damaged: its tables have been changed; restart the daemon, which will put it aside",
            "a write to /data/shepherd.db failed before; restart the daemon once the disk is in order",
            "the usage of entry `chess` by `ada` on 2024-10-04 is too large to be counted; no day is so long, so report \
             this as a fault of Shepherd",
            "event 0 of the batch can't be written to the audit log; report this as a fault of Shepherd",
            "the audit log /data/audit.log can't be continued; see to its disk and run `shepherd audit verify`, then \
             restart the daemon",
            "can't read the audit log /data/audit.log; run `shepherd audit verify`",
            "can't write /data/shepherd.db.head; see to its disk and its permissions",
            "can't write the sign of life /data/shepherd.pulse; see to its disk and its permissions",
        ];
        assert_eq!(told, expected);
    }
}
