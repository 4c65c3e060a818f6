//! The lines of a journal.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// The first line of a journal: the run and a copy of its procedure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JournalHeader {
    /// `run-` and 32 hex digits.
    pub run: String,
    /// The name of the procedure.
    pub sop: String,
    /// The SHA-256 of the procedure's text.
    pub sop_hash: String,
    /// The text of the procedure. The run uses this copy, even if the procedure's file changes.
    pub text: String,
    pub started: Timestamp,
}

/// A later line of a journal: something that happened in the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JournalEntry {
    Began {
        step: String,
    },
    /// The step had begun, and was stopped before it did anything.
    Void {
        step: String,
    },
    Ended(EndedStep),
    /// The operator approved the step.
    Approved {
        step: String,
        at: Timestamp,
    },
    /// The operator decided to run an interrupted step again.
    Rerun {
        step: String,
    },
    /// The operator decided to treat an interrupted step as done.
    Skipped {
        step: String,
    },
    /// The operator ended the run.
    Cancelled {
        at: Timestamp,
    },
}

/// The end of a step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndedStep {
    pub step: String,
    pub end: StepStatus,
    /// The output that later steps can use; after a failure, the error.
    pub output: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receipt_id: Option<String>,
    pub at: Timestamp,
}

/// The final status of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepStatus {
    /// The step did its work.
    Done,
    /// The step ran and failed, or could not run.
    Failed,
    /// A rule or the operator said no.
    Denied,
}
