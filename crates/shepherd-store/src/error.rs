//! What can go wrong, each with what to do about it.

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

/// What a backend said.
pub(crate) type BackendError = Box<dyn StdError + Send + Sync>;

/// Why a store did not do what it was asked.
#[derive(Debug, Error)]
pub enum StoreError {
    /// The database refused, for a reason of its own or of the disk.
    #[error("can't {step} {}; see to its disk and its permissions, then restart the daemon", path.display())]
    Database {
        /// What was being done.
        step: &'static str,
        /// The database.
        path: PathBuf,
        /// What it said.
        source: BackendError,
    },
    /// Somebody else is writing to the database.
    #[error("{} is locked by another program; end whatever has it open, such as `sqlite3`", path.display())]
    Busy {
        /// The database.
        path: PathBuf,
    },
    /// There is no room for the write.
    #[error("no room to write to {}; free some space on its disk", path.display())]
    DiskFull {
        /// The database.
        path: PathBuf,
    },
    /// What was read is not what was written.
    #[error("{} is damaged: {fault}; restart the daemon, which will put it aside", path.display())]
    Damaged {
        /// The database.
        path: PathBuf,
        /// How that shows.
        fault: String,
    },
    /// The disk failed in the middle of a write, so that nobody knows whether it happened.
    #[error("a write to {} failed before; restart the daemon once the disk is in order", path.display())]
    UncertainCommit {
        /// The database.
        path: PathBuf,
    },
    /// More usage than can be counted.
    #[error("the usage of {} by `{}` on {} is too large to be counted; \
        no day is so long, so report this as a fault of Shepherd", Named(&key.counter), key.profile, key.day)]
    Overflow {
        /// Of what.
        key: Box<UsageKey>,
    },
    /// An event that doesn't fit the audit log.
    #[error(
        "event {index} of the batch can't be written to the audit log; report this as a fault of Shepherd"
    )]
    Event {
        /// Which event of the batch, from 0.
        index: usize,
        /// Why not.
        source: AuditEventError,
    },
    /// A value that JSON has no words for.
    #[error("a value can't be written as JSON; report this as a fault of Shepherd")]
    Encode {
        /// Why not.
        source: serde_json::Error,
    },
    /// The batch before is safe in the database but not yet in the audit log, and as long as that is so there is
    /// no other.
    #[error(
        "the audit log {} can't be continued; see to its disk and run `shepherd audit verify`, then restart the daemon",
        path.display()
    )]
    Audit {
        /// The log.
        path: PathBuf,
        /// What is wrong.
        source: AuditLogError,
    },
    /// The audit log can't be shown.
    #[error("can't read the audit log {}; run `shepherd audit verify`", path.display())]
    ReadAudit {
        /// The log.
        path: PathBuf,
        /// What is wrong.
        source: AuditLogError,
    },
    /// The file that vouches for the database can't be written.
    #[error("can't write {}; see to its disk and its permissions", path.display())]
    Head {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The sign of life can't be written.
    #[error("can't write the sign of life {}; see to its disk and its permissions", path.display())]
    Heartbeat {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A test wanted it so.
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

/// Why an event is not a record of the audit log, or a record not an event.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum AuditEventError {
    /// Not a JSON object.
    #[error("it is not a JSON object")]
    NotAnObject,
    /// Not to be written as JSON, or not what JSON was read.
    #[error("{0}")]
    Json(String),
    /// Not what the ledger takes.
    #[error(transparent)]
    Record(#[from] SealError),
}

/// Why there is no store. Whatever it is, nothing may be granted.
#[derive(Debug, Error)]
pub enum StoreOpenError {
    /// The system refused.
    #[error("can't {step} {}; the daemon's user must be able to, and its disk must be in order", path.display())]
    File {
        /// What was being done.
        step: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Others could change what is in the folder, or in a file of it.
    #[error("{0} has mode {mode:04o}, so that others can change what is in it; run `chmod go-w {0}`", path.display())]
    Mode {
        /// The folder or file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// Somebody else could change what is in the folder, or in a file of it.
    #[error(
        "{0} belongs to user {owner}, who can change what is in it; if you trust what it holds, run `chown {user} {0}`",
        path.display()
    )]
    Owner {
        /// The folder or file.
        path: PathBuf,
        /// Whose it is.
        owner: u32,
        /// Whose it should be: the user that this program runs as.
        user: u32,
    },
    /// There is no folder, and others can write where it should be: they may have renamed it away.
    #[error(
        "there is no {0}, and nobody can tell whether there ever was: {way}; or, if it is new, run `mkdir -m 700 {0}`",
        path.display()
    )]
    Exposed {
        /// The folder.
        path: PathBuf,
        /// Where others can write.
        way: ExposedPath,
    },
    /// Another daemon has the folder.
    #[error("{} is in use by another daemon; end that one first", path.display())]
    InUse {
        /// The folder.
        path: PathBuf,
    },
    /// A database of the future.
    #[error(
        "{} has schema version {found}, and this program knows versions up to {known}; install the newer Shepherd again",
        path.display()
    )]
    NewerSchema {
        /// The database.
        path: PathBuf,
        /// Its version.
        found: i32,
        /// The newest that is known.
        known: i32,
    },
    /// The database is damaged. It is kept aside, and nothing takes its place until an administrator says so.
    #[error(transparent)]
    Damaged(Box<StoreDamage>),
    /// The audit log is not the one that belongs to the database; the database is in order and stays where it is.
    #[error("the audit log {} can't be continued; look at it with `shepherd audit verify`, then begin anew", path.display())]
    Audit {
        /// The log.
        path: PathBuf,
        /// What is wrong.
        source: AuditLogError,
    },
    /// There is nothing to begin anew.
    #[error("the store in {} is in order; it is not begun anew", path.display())]
    NotDamaged {
        /// The folder.
        path: PathBuf,
    },
    /// The database can be opened, but not worked with.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A damaged database, and where it is now.
#[derive(Debug, Error)]
#[error("the store in {} is damaged: {fault}; {kept}; nothing is granted until an administrator begins it anew", folder.display())]
pub struct StoreDamage {
    /// The folder of the store.
    pub folder: PathBuf,
    /// What shows the damage.
    pub fault: String,
    /// Where the files are now.
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

    /// Place, fault and cure, whoever reads it.
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
