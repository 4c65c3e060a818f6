use std::io;
use std::path::PathBuf;

use thiserror::Error;

use crate::chain::SealError;
use crate::key::KeyId;

/// Why a log can't be written to. No record is lost: a torn line that was put aside by then is
/// told of by the log itself, as soon as it can be continued.
#[derive(Debug, Error)]
pub enum LedgerOpenError {
    /// The system refused.
    #[error("can't {step} {}", path.display())]
    File {
        /// What was being done.
        step: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The last record is not what a ledger of this format writes, or has been changed.
    #[error("the last record of {} can't be continued: {fault}; verify the log, then move it aside", path.display())]
    Broken {
        /// The file that holds it.
        path: PathBuf,
        /// What is wrong.
        fault: String,
    },
    /// The chain is keyed, and there is no key.
    #[error("{} is signed with key {key_id}, and no key was given", path.display())]
    KeyNeeded {
        /// The log.
        path: PathBuf,
        /// The key that signed it.
        key_id: KeyId,
    },
    /// The chain is keyed with another key.
    #[error("{} is signed with key {key_id}, and the key given is {given}", path.display())]
    WrongKey {
        /// The log.
        path: PathBuf,
        /// The key that signed it.
        key_id: KeyId,
        /// The key at hand.
        given: KeyId,
    },
    /// Records that were there are gone.
    #[error(
        "{} was cut: its head vouches for {vouched} records, and it has {found}; restore it, or move it aside",
        path.display()
    )]
    Truncated {
        /// The log.
        path: PathBuf,
        /// How many there were.
        vouched: u64,
        /// How many there are.
        found: u64,
    },
    /// A closed segment is gone or empty: the others are numbered from 1 without gaps.
    #[error("the closed segment {} is missing; restore it, or move the others aside with their log", path.display())]
    SegmentMissing {
        /// Where it was.
        path: PathBuf,
    },
    /// The log and its head fit each other, and are not those that this writer knows: an older
    /// copy was put back, or all was removed.
    #[error(
        "{} was exchanged while it was being written: record {known}, which it had, is not there; \
         restore the log with its head, or open it anew",
        path.display()
    )]
    Replaced {
        /// The log.
        path: PathBuf,
        /// The last record that this writer knows.
        known: u64,
    },
    /// There are records, and no head that could show whether there were more. Adopting them is a
    /// decision: [`LedgerOptions::adopt_without_head`](crate::LedgerOptions::adopt_without_head).
    #[error(
        "{} has records and no readable head, so that nothing shows whether it was cut; \
         verify it, then restore the head, or adopt the log without one",
        path.display()
    )]
    HeadMissing {
        /// The log.
        path: PathBuf,
    },
    /// There is a key, and there are records that nobody signed. Adopting them is a decision:
    /// [`LedgerOptions::adopt_unsigned`](crate::LedgerOptions::adopt_unsigned).
    #[error(
        "{} has records that are not signed, so that anybody may have written them, and the key {given} \
         would vouch for them; verify it, then adopt the unsigned log, or move it aside",
        path.display()
    )]
    NotSigned {
        /// The log.
        path: PathBuf,
        /// The key at hand.
        given: KeyId,
    },
    /// Something was put right, and the record that tells of it can't be written. The next opener
    /// tries again.
    #[error("can't record what was put right in {}", path.display())]
    Recovery {
        /// The log.
        path: PathBuf,
        /// Why.
        source: Box<LedgerAppendError>,
    },
    /// The head belongs to other records, or was not written by the holder of the key.
    #[error("{} does not belong to its log: {fault}; verify the log, then move both aside", path.display())]
    HeadMismatch {
        /// The head file.
        path: PathBuf,
        /// What doesn't fit.
        fault: String,
    },
}

/// Why records were not appended. The log is as it was before, unless the variant says otherwise.
#[derive(Debug, Error)]
pub enum LedgerAppendError {
    /// A record is not fit for a log.
    #[error("record {index} can't be appended")]
    Record {
        /// Which of those given, from 0.
        index: usize,
        /// Why.
        source: SealError,
    },
    /// The log is not fit to be continued.
    #[error(transparent)]
    Log(#[from] LedgerOpenError),
    /// A write failed, and what had been written of it was taken back.
    #[error("can't {step} {}", path.display())]
    Write {
        /// What was being done.
        step: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A write failed and could not be taken back: the next append or open will find a torn line,
    /// or a record that was never acknowledged.
    #[error("can't {step} {}, nor take back what was written of it ({rollback})", path.display())]
    Rollback {
        /// What was being done at first.
        step: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said at first.
        source: io::Error,
        /// What the system said to taking it back.
        rollback: io::Error,
    },
}

impl LedgerAppendError {
    /// The same failure, when taking it back failed too.
    pub(crate) fn with_rollback_error(self, rollback: io::Error) -> Self {
        match self {
            Self::Write { step, path, source } => Self::Rollback { step, path, source, rollback },
            other => other,
        }
    }
}

/// Why a log could not be read.
#[derive(Debug, Error)]
pub enum LedgerReadError {
    /// The system refused.
    #[error("can't {step} {}", path.display())]
    File {
        /// What was being done.
        step: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// There is no log, no segment of one and no head.
    #[error("there is no log at {}", path.display())]
    NoLog {
        /// Where one was looked for.
        path: PathBuf,
    },
}
