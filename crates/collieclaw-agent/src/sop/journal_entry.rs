//! What stands in a journal.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// What was begun.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JournalHeader {
    /// `run-` and 32 hex digits.
    pub run: String,
    /// The name of the procedure.
    pub sop: String,
    /// The SHA-256 of its text.
    pub sop_hash: String,
    /// Its text: what was begun is what goes on, whatever becomes of the file.
    pub text: String,
    /// When.
    pub started: Timestamp,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JournalEntry {
    /// A step began.
    Began {
        /// Which.
        step: String,
    },
    /// A step that began has done nothing: it was stopped before.
    Void {
        /// Which.
        step: String,
    },
    /// A step came to its end.
    Ended(EndedStep),
    /// Somebody approved.
    Approved {
        /// Which step.
        step: String,
        /// When.
        at: Timestamp,
    },
    /// Somebody has decided to run an interrupted step once more.
    Rerun {
        /// Which.
        step: String,
    },
    /// Somebody has decided to take an interrupted step as done.
    Skipped {
        /// Which.
        step: String,
    },
    /// Somebody ended the run.
    Cancelled {
        /// When.
        at: Timestamp,
    },
}

/// How a step came to its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndedStep {
    /// Which.
    pub step: String,
    /// How.
    pub end: StepStatus,
    /// What it gave.
    pub output: String,
    /// The receipt of its call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receipt_id: Option<String>,
    /// When.
    pub at: Timestamp,
}

/// How a step ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepStatus {
    /// As it should.
    Done,
    /// It ran, and did not work.
    Failed,
    /// A rule or the operator said no.
    Denied,
}
