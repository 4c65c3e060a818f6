use std::path::{Path, PathBuf};

use serde::{Serialize, Serializer};

/// What had to be put right before the log could be continued. Unless it is clean, the ledger has
/// also appended it to the log, as a record whose only member is
/// [`RECOVERY_FIELD`](crate::RECOVERY_FIELD).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[must_use = "a log that needed a recovery should not pass for one that did not"]
pub struct LedgerRecovery {
    /// What a crash left half-written, and no record tells of yet.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub torn: Vec<TornTail>,
    /// What happened to the head.
    pub head: HeadRecovery,
}

impl LedgerRecovery {
    pub(super) const NOTHING: Self = Self { torn: Vec::new(), head: HeadRecovery::InOrder };

    /// Whether there was nothing to put right.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.torn.is_empty() && matches!(self.head, HeadRecovery::InOrder | HeadRecovery::Begun)
    }
}

/// The half-written end of a log, now in a file of its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TornTail {
    /// The number that the record would have had.
    pub sequence: u64,
    /// How many bytes there were.
    pub bytes: u64,
    /// Where they are now; the record has only the name of the file, which is beside the log.
    #[serde(serialize_with = "file_name")]
    pub kept_in: PathBuf,
}

fn file_name<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&path.file_name().unwrap_or_default().to_string_lossy())
}

/// What happened to the head when the log was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum HeadRecovery {
    /// It fits the log.
    InOrder,
    /// There were no records yet, and no head.
    Begun,
    /// A writer died between log and head: the records up to `to` have been checked back to the
    /// head, which vouches for them now.
    BroughtForward {
        /// What the head had vouched for.
        from: u64,
        /// What it vouches for now.
        to: u64,
    },
    /// The log had been written without a key and was adopted: it is signed from here on.
    Signed,
    /// There was no readable head, and the records were adopted without one: nothing shows
    /// whether the log had been cut before.
    Replaced,
}
