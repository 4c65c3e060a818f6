//! Errors about journals, each with what the operator can do about it.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// The reason why a journal can't be used.
#[derive(Debug, Error)]
pub enum JournalError {
    #[error("could not {step} {}", .path.display())]
    File {
        /// The operation that failed, as a verb.
        step: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    /// Other users could have written the journal, and with it the procedure that runs.
    #[error("{} can be changed by others, so it is not trusted", .path.display())]
    UntrustedOwner { path: PathBuf },
    #[error("{} is damaged in line {line}, so the run can't continue", .path.display())]
    Damaged { path: PathBuf, line: usize },
    /// The name of the file belongs to the journal of another run.
    #[error("{} is the journal of {run} under another name", .path.display())]
    Renamed { path: PathBuf, run: String },
    /// The run was begun by a version whose receipts don't name the procedure.
    #[error("{} was begun by an older version, whose receipts don't name the procedure, so the run can't continue", .path.display())]
    OlderVersion { path: PathBuf },
    /// The journal has a step that has no receipt.
    #[error("{} does not match the receipts at the step `{step}`: {fault}", .path.display())]
    WithoutReceipt { path: PathBuf, step: String, fault: &'static str },
    /// The receipts contradict the journal about a step.
    #[error("{} does not match the receipts at the step `{step}`: {fault}", .path.display())]
    ContradictsReceipts { path: PathBuf, step: String, fault: &'static str },
    #[error("{run} is already running in another process")]
    Busy { run: String },
    #[error("no such run `{run}`")]
    Unknown { run: String },
    /// Several runs begin with the given text.
    #[error("several runs begin with `{run}`")]
    Ambiguous { run: String },
}

impl JournalError {
    /// Returns what the operator can do about the error, where the error doesn't say it itself.
    #[must_use]
    pub fn cure(&self) -> Option<&'static str> {
        match self {
            Self::UntrustedOwner { .. } => {
                Some("only you may be able to write the file: run `chmod go-w` on it and on its folder")
            }
            Self::Renamed { .. } => {
                Some("rename the file to its run if that run has no journal, otherwise remove it")
            }
            Self::OlderVersion { .. } => {
                Some("cancel the run with `collieclaw sop cancel RUN` and start again")
            }
            Self::WithoutReceipt { .. } => Some(
                "either `receipts.enabled` was false for a while, or the journal was changed: cancel the run with \
                 `collieclaw sop cancel RUN` and start again",
            ),
            Self::ContradictsReceipts { .. } => Some(
                "the journal was changed: compare it with `collieclaw receipt list`, restore it from a backup, or \
                 cancel the run with `collieclaw sop cancel RUN`",
            ),
            Self::Unknown { .. } | Self::Ambiguous { .. } => {
                Some("run `collieclaw sop status` to see the runs")
            }
            Self::File { .. } | Self::Damaged { .. } | Self::Busy { .. } => None,
        }
    }
}

pub(super) fn file_error(step: &'static str, path: &Path) -> impl FnOnce(io::Error) -> JournalError {
    let path = path.to_owned();
    move |source| JournalError::File { step, path, source }
}
