//! The report about the repairs that were made when a log was opened.

use std::path::{Path, PathBuf};

use serde::{Serialize, Serializer};

/// The repairs that were necessary before the log could be continued. Unless it is clean, the ledger has also
/// appended this report to the log, in a record whose only member is
/// [`RECOVERY_FIELD`](crate::RECOVERY_FIELD).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[must_use = "a log that needed a recovery should not pass for one that did not"]
pub struct LedgerRecovery {
    /// The half-written lines that crashes left behind and that no record reports yet.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub torn: Vec<TornTail>,
    /// The state in which the head was found.
    pub head: HeadRecovery,
}

impl LedgerRecovery {
    pub(super) const NOTHING: Self = Self { torn: Vec::new(), head: HeadRecovery::InOrder };

    /// Returns true if nothing had to be repaired.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.torn.is_empty() && matches!(self.head, HeadRecovery::InOrder | HeadRecovery::Begun)
    }
}

/// The half-written end of a log, which was moved to a file of its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TornTail {
    /// The number that the record would have had.
    pub sequence: u64,
    /// The length of the half-written line in bytes.
    pub bytes: u64,
    /// The file that contains the line now. It lies beside the log, and the recovery record contains only its
    /// name.
    #[serde(serialize_with = "file_name")]
    pub kept_in: PathBuf,
}

fn file_name<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&path.file_name().unwrap_or_default().to_string_lossy())
}

/// The state in which the head was found when the log was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum HeadRecovery {
    /// The head matches the log.
    InOrder,
    /// The log is new: there were no records, and no head or an unsigned one.
    Begun,
    /// The head was behind, because a writer died between writing the log and the head. The newer records
    /// were checked, and the head covers them now.
    BroughtForward {
        /// The number of records that the head covered before.
        from: u64,
        /// The number of records that the head covers now.
        to: u64,
    },
    /// The log was written without a key and was adopted. It is signed from here on.
    Signed,
    /// There was no readable head, and the records were adopted without one. Nothing shows whether the log
    /// had been truncated before.
    Replaced,
}
