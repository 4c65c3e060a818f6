//! Why a journal can't be used, and what somebody can do about it.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// Why a journal can't be used.
#[derive(Debug, Error)]
pub enum JournalError {
    /// The system refused.
    #[error("can't {step} {}", .path.display())]
    File {
        /// What was being done.
        step: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Others could have written it, and with it what is run.
    #[error("{} can be changed by others, so it is not trusted", .path.display())]
    UntrustedOwner {
        /// The file or folder.
        path: PathBuf,
    },
    /// It is not what we have written.
    #[error("{} is damaged in line {line}, so the run does not go on", .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Which.
        line: usize,
    },
    /// It lies where the journal of another run belongs.
    #[error("{} is the journal of {run}, under another name", .path.display())]
    Renamed {
        /// The file.
        path: PathBuf,
        /// Whose it is.
        run: String,
    },
    /// There were no receipts that tell of procedures when it was begun.
    #[error("{} is of an older version, whose receipts vouched for no procedure, so the run can't go on", .path.display())]
    OlderVersion {
        /// The file.
        path: PathBuf,
    },
    /// No receipt tells of a step that the journal tells of.
    #[error("{} does not agree with the receipts, at the step `{step}`: {fault}", .path.display())]
    WithoutReceipt {
        /// The file.
        path: PathBuf,
        /// The step.
        step: String,
        /// What the journal tells.
        fault: &'static str,
    },
    /// The receipts tell something else.
    #[error("{} does not agree with the receipts, at the step `{step}`: {fault}", .path.display())]
    ContradictsReceipts {
        /// The file.
        path: PathBuf,
        /// The step of which they tell something else.
        step: String,
        /// What.
        fault: &'static str,
    },
    /// Another process carries the run out.
    #[error("another process carries out {run}")]
    Busy {
        /// Which.
        run: String,
    },
    /// There is none.
    #[error("there is no run `{run}`")]
    Unknown {
        /// The name.
        run: String,
    },
    /// The beginning of a name that several have.
    #[error("`{run}` is the beginning of several runs")]
    Ambiguous {
        /// The beginning.
        run: String,
    },
}

impl JournalError {
    /// What somebody can do about it, where that is not in the error itself.
    #[must_use]
    pub fn cure(&self) -> Option<&'static str> {
        match self {
            Self::UntrustedOwner { .. } => {
                Some("it must be a plain file of yours: `chmod go-w` it, and its folder")
            }
            Self::Renamed { .. } => Some("give it its name back if that run has no journal, else remove it"),
            Self::OlderVersion { .. } => Some("`collieclaw sop cancel RUN`, and begin anew"),
            Self::WithoutReceipt { .. } => Some(
                "if `receipts.enabled` was false for a while, this is why; if not, the journal was changed: either way \
                 `collieclaw sop cancel RUN`, and begin anew",
            ),
            Self::ContradictsReceipts { .. } => Some(
                "somebody has changed it: compare with `collieclaw receipt list`, put it back from a copy, or end the run \
                 with `collieclaw sop cancel RUN`",
            ),
            Self::Unknown { .. } | Self::Ambiguous { .. } => Some("`collieclaw sop status` shows them"),
            Self::File { .. } | Self::Damaged { .. } | Self::Busy { .. } => None,
        }
    }
}

pub(super) fn file_error(step: &'static str, path: &Path) -> impl FnOnce(io::Error) -> JournalError {
    let path = path.to_owned();
    move |source| JournalError::File { step, path, source }
}
