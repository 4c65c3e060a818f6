//! The errors of opening, appending to and reading a log.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use crate::chain::SealError;
use crate::key::KeyId;
use crate::plural::record_count;

/// The error for a log that can't be continued. No record is lost: if a torn line was already moved to a file
/// of its own, the log records that as soon as it can be continued.
#[derive(Debug, Error)]
pub enum LedgerOpenError {
    /// An operation on a file of the log failed.
    #[error("could not {step} {}", path.display())]
    File {
        /// The operation that failed, as a verb.
        step: &'static str,
        /// The path of the file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The last record was changed, or was not written by a ledger of this format.
    #[error("the last record of {} is damaged: {fault}; verify the log, then move it aside", path.display())]
    LastRecordDamaged {
        /// The file that contains the record.
        path: PathBuf,
        /// The reason for rejecting the record.
        fault: String,
    },
    /// The log is signed, but no key was given.
    #[error("{} is signed with key {key_id}, but no key was given", path.display())]
    KeyNeeded {
        /// The path of the log.
        path: PathBuf,
        /// The key that signed the log.
        key_id: KeyId,
    },
    /// The log is signed with a different key.
    #[error("{} is signed with key {key_id}, but the given key is {given}", path.display())]
    WrongKey {
        /// The path of the log.
        path: PathBuf,
        /// The key that signed the log.
        key_id: KeyId,
        /// The key that was given.
        given: KeyId,
    },
    /// Records at the end of the log are missing.
    #[error(
        "{} was truncated: its head covers {}, but it has {found}; restore it, or move it aside",
        path.display(),
        record_count(*covered)
    )]
    Truncated {
        /// The path of the log.
        path: PathBuf,
        /// The number of records that the head covers.
        covered: u64,
        /// The number of records that are left.
        found: u64,
    },
    /// A closed segment is missing or empty. Closed segments are numbered from 1 without gaps.
    #[error("the closed segment {} is missing; restore it, or move the log and its other segments aside", path.display())]
    SegmentMissing {
        /// The path of the missing segment.
        path: PathBuf,
    },
    /// The log and its head match each other, but a record that this writer has seen is missing: an older
    /// copy was put back, or the log was removed.
    #[error(
        "{} was replaced while it was open: record {known} is missing; restore the log with its head, or open it again",
        path.display()
    )]
    Replaced {
        /// The path of the log.
        path: PathBuf,
        /// The number of the last record that this writer has seen.
        known: u64,
    },
    /// The log has records, but no head that would show whether there were more. To continue such a log,
    /// somebody has to decide to use
    /// [`LedgerOptions::adopt_without_head`](crate::LedgerOptions::adopt_without_head).
    #[error(
        "{} has records but no readable head, so nothing shows whether it was truncated; \
         verify it, then restore the head, or adopt the log without one",
        path.display()
    )]
    HeadMissing {
        /// The path of the log.
        path: PathBuf,
    },
    /// A key was given, but the log has unsigned records. To continue such a log, somebody has to decide to
    /// use [`LedgerOptions::adopt_unsigned`](crate::LedgerOptions::adopt_unsigned).
    #[error(
        "{} has records that are not signed: anybody may have written them, and signatures with key {given} would cover them too; \
         verify the log, then adopt it unsigned, or move it aside",
        path.display()
    )]
    NotSigned {
        /// The path of the log.
        path: PathBuf,
        /// The key that was given.
        given: KeyId,
    },
    /// The log was repaired, but the record about that can't be written. The next call of
    /// [`Ledger::open`](crate::Ledger::open) tries again.
    #[error("could not record the recovery of {}", path.display())]
    Recovery {
        /// The path of the log.
        path: PathBuf,
        /// The error of writing the record.
        source: Box<LedgerAppendError>,
    },
    /// The head belongs to other records, or was not written by the holder of the key.
    #[error("{} doesn't match its log: {fault}; verify the log, then move both aside", path.display())]
    HeadMismatch {
        /// The path of the head file.
        path: PathBuf,
        /// The difference that was found.
        fault: String,
    },
}

/// The error for records that were not appended. The log is unchanged unless the variant says otherwise.
#[derive(Debug, Error)]
pub enum LedgerAppendError {
    /// A record contains something that a log can't hold.
    #[error("could not append record {index}")]
    Record {
        /// The index of the record among those given, starting at 0.
        index: usize,
        /// The reason for rejecting the record.
        source: SealError,
    },
    /// The log can't be continued.
    #[error(transparent)]
    Log(#[from] LedgerOpenError),
    /// A write failed and was rolled back.
    #[error("could not {step} {}", path.display())]
    Write {
        /// The operation that failed, as a verb.
        step: &'static str,
        /// The path of the file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A write failed and could not be rolled back. The next append or open will find a torn line, or a
    /// record that was never acknowledged.
    #[error("could not {step} {}, nor undo the partial write ({rollback})", path.display())]
    Rollback {
        /// The operation that failed first, as a verb.
        step: &'static str,
        /// The path of the file.
        path: PathBuf,
        /// The error of the failed operation.
        source: io::Error,
        /// The error of the rollback.
        rollback: io::Error,
    },
}

impl LedgerAppendError {
    /// Converts a failed write into the error for a failed write whose rollback failed too.
    pub(crate) fn with_rollback_error(self, rollback: io::Error) -> Self {
        match self {
            Self::Write { step, path, source } => Self::Rollback { step, path, source, rollback },
            other => other,
        }
    }
}

/// The error for a log that can't be read.
#[derive(Debug, Error)]
pub enum LedgerReadError {
    /// An operation on a file of the log failed.
    #[error("could not {step} {}", path.display())]
    File {
        /// The operation that failed, as a verb.
        step: &'static str,
        /// The path of the file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The path has no log, no segments and no head.
    #[error("there is no log at {}", path.display())]
    NoLog {
        /// The path that was given.
        path: PathBuf,
    },
}
