//! The outcome of a tool call. The text for the model, the receipt, the operator's view, the result of a procedure's step
//! and the exit code are all derived from it.

use std::time::Duration;

use serde_json::{Map, Value};
use thiserror::Error;

use super::tool_gateway::DecidedBy;
use crate::receipts::{CallEnding, ExecutedCommands, ReceiptReason, ReceiptStatus, hash_text};
use crate::tools::{BadArguments, ToolEnd};
use collieclaw_providers::cancel::CancelReason;

/// A finished tool call, with its receipt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FinishedCall {
    pub outcome: CallOutcome,
    /// The text that the model gets.
    pub text: String,
    /// `None` if receipts are off.
    pub receipt_id: Option<String>,
}

/// The outcome of a tool call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallOutcome {
    /// The tool ran and did its work.
    Completed {
        run: ToolRun,
        /// The tool's own output, for a step of a procedure whose output later steps can use. `None` for other calls,
        /// and for an output that is longer than the limit.
        step_output: Option<String>,
    },
    /// The tool ran and reported an error.
    Failed { run: ToolRun, error: String },
    /// Something went wrong before the tool could run.
    NotRun(CallFault),
    /// A rule or the operator said no.
    Denied { by: DecidedBy },
    /// The call needs an approval, and no operator is available.
    NoOperator,
    /// The emergency stop or the operator ended the call.
    Stopped {
        by: CancelReason,
        /// The run that was ended; `None` if the tool had not begun to run.
        began: Option<ToolRun>,
    },
}

/// Facts about a tool that ran, however it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolRun {
    /// The time that the tool took, without the time for the approval.
    pub elapsed: Duration,
    /// Facts that the tool reported, such as an exit code.
    pub metadata: Map<String, Value>,
    /// The parts of the sandbox that were in force, if the tool ran in one.
    pub sandbox: Option<String>,
    /// The programs that the tool ran and that were judged one by one.
    pub commands: ExecutedCommands,
}

/// A fault other than a denial that prevents a tool from running.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CallFault {
    #[error(transparent)]
    BadArguments(#[from] BadArguments),
    #[error("no such tool")]
    NoSuchTool,
    #[error("the machine is out of descriptors or threads: {0}")]
    OutOfResources(String),
    #[error("could not write the call intent")]
    NoIntent,
    /// The call can't do its work, so the operator was not asked.
    #[error("{0}")]
    WouldFail(String),
    #[error("too many calls are waiting; call again later")]
    TooManyCalls,
}

impl CallFault {
    fn reason(&self) -> ReceiptReason {
        match self {
            Self::BadArguments(_) | Self::NoSuchTool => ReceiptReason::BadArguments,
            Self::OutOfResources(_) => ReceiptReason::OutOfResources,
            Self::NoIntent => ReceiptReason::NoIntent,
            Self::WouldFail(_) => ReceiptReason::ToolFailed,
            Self::TooManyCalls => ReceiptReason::TooManyCalls,
        }
    }
}

impl CallOutcome {
    /// Returns the outcome of a tool that ran. `stopped_by` is set if the run was stopped before it ended; `step_output`
    /// is kept if the tool did its work.
    pub(super) fn of_run(
        run: ToolRun,
        end: &ToolEnd,
        stopped_by: Option<CancelReason>,
        step_output: Option<String>,
    ) -> Self {
        match (end, stopped_by) {
            // A tool that finished before the stop reached it has done its work, and the receipt says so.
            (ToolEnd::Done, _) => Self::Completed { run, step_output },
            (ToolEnd::Failed(error), None) => Self::Failed { run, error: error.clone() },
            (ToolEnd::Failed(_) | ToolEnd::Cancelled, Some(by)) => Self::Stopped { by, began: Some(run) },
            (ToolEnd::Cancelled, None) => Self::Stopped { by: CancelReason::Operator, began: Some(run) },
        }
    }

    /// Returns the code of this outcome in JSON output.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Completed { .. } => "done",
            Self::Failed { .. } | Self::NotRun(_) => "failed",
            Self::Denied { .. } => "denied",
            Self::NoOperator => "no-operator",
            Self::Stopped { by: CancelReason::Estop, .. } => "stopped",
            Self::Stopped { by: CancelReason::Operator, .. } => "cancelled",
        }
    }

    #[must_use]
    pub fn is_completed(&self) -> bool {
        matches!(self, Self::Completed { .. })
    }

    /// Returns the facts about the tool's run; `None` if the tool never ran.
    #[must_use]
    pub fn tool_run(&self) -> Option<&ToolRun> {
        match self {
            Self::Completed { run, .. } | Self::Failed { run, .. } => Some(run),
            Self::Stopped { began, .. } => began.as_ref(),
            Self::NotRun(_) | Self::Denied { .. } | Self::NoOperator => None,
        }
    }

    /// Returns the part of the receipt that says how the call ended. `text` is the text that the model gets.
    pub(super) fn ending(&self, text: &str) -> CallEnding {
        let step_output = match self {
            Self::Completed { step_output, .. } => step_output.as_deref(),
            _ => None,
        };
        CallEnding {
            reason: self.receipt_reason(),
            output_hash: step_output.map(hash_text),
            sandbox: self.tool_run().and_then(|run| run.sandbox.clone()),
            network: self.tool_run().and_then(|run| run.metadata.get("network").cloned()),
            commands: self.tool_run().map(|run| run.commands.clone()).unwrap_or_default(),
            ..CallEnding::new(self.receipt_status(), text)
        }
    }

    fn receipt_status(&self) -> ReceiptStatus {
        match self {
            Self::Completed { .. } => ReceiptStatus::Allowed,
            Self::Failed { .. } | Self::NotRun(_) | Self::Stopped { began: Some(_), .. } => {
                ReceiptStatus::Failed
            }
            Self::Denied { .. } | Self::NoOperator | Self::Stopped { began: None, .. } => {
                ReceiptStatus::Denied
            }
        }
    }

    /// Returns the reason that replaces the gate's reason in the receipt, if there is one.
    fn receipt_reason(&self) -> Option<ReceiptReason> {
        match self {
            Self::Completed { .. } | Self::Denied { by: DecidedBy::Rules } => None,
            Self::Failed { .. } => Some(ReceiptReason::ToolFailed),
            Self::NotRun(fault) => Some(fault.reason()),
            Self::Denied { by: DecidedBy::Operator } => Some(ReceiptReason::OperatorRefused),
            Self::NoOperator => Some(ReceiptReason::NoOperator),
            Self::Stopped { by, .. } => Some((*by).into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool_run() -> ToolRun {
        ToolRun {
            elapsed: Duration::ZERO,
            metadata: Map::new(),
            sandbox: Some("all".to_owned()),
            commands: ExecutedCommands::default(),
        }
    }

    /// The words are those that receipts and JSON output have always had.
    #[test]
    fn each_outcome_has_its_code_and_its_words_in_the_receipt() {
        let stopped = |by, began| CallOutcome::Stopped { by, began };
        let denied = |by| CallOutcome::Denied { by };
        let bad = BadArguments::new("time", "no");
        let (error, step_output) = ("no".to_owned(), Some("noon".to_owned()));
        for (outcome, code, status, reason, ran) in [
            (CallOutcome::Completed { run: tool_run(), step_output }, "done", "allowed", None, true),
            (CallOutcome::Failed { run: tool_run(), error }, "failed", "failed", Some("tool-failed"), true),
            (CallOutcome::NotRun(bad.into()), "failed", "failed", Some("bad-arguments"), false),
            (CallOutcome::NotRun(CallFault::NoSuchTool), "failed", "failed", Some("bad-arguments"), false),
            (
                CallOutcome::NotRun(CallFault::OutOfResources(String::new())),
                "failed",
                "failed",
                Some("out-of-resources"),
                false,
            ),
            (CallOutcome::NotRun(CallFault::NoIntent), "failed", "failed", Some("no-intent"), false),
            (
                CallOutcome::NotRun(CallFault::WouldFail(String::new())),
                "failed",
                "failed",
                Some("tool-failed"),
                false,
            ),
            (CallOutcome::NotRun(CallFault::TooManyCalls), "failed", "failed", Some("too-many-calls"), false),
            (denied(DecidedBy::Rules), "denied", "denied", None, false),
            (denied(DecidedBy::Operator), "denied", "denied", Some("operator-refused"), false),
            (CallOutcome::NoOperator, "no-operator", "denied", Some("no-operator"), false),
            (stopped(CancelReason::Estop, None), "stopped", "denied", Some("estop"), false),
            (stopped(CancelReason::Estop, Some(tool_run())), "stopped", "failed", Some("estop"), true),
            (stopped(CancelReason::Operator, None), "cancelled", "denied", Some("cancelled"), false),
            (
                stopped(CancelReason::Operator, Some(tool_run())),
                "cancelled",
                "failed",
                Some("cancelled"),
                true,
            ),
        ] {
            let ending = outcome.ending("text");
            assert_eq!((outcome.code(), ending.status.as_str()), (code, status), "{outcome:?}");
            assert_eq!(ending.reason.as_ref().map(ReceiptReason::code), reason, "{outcome:?}");
            assert_eq!((outcome.tool_run().is_some(), ending.sandbox.is_some()), (ran, ran), "{outcome:?}");
            assert_eq!(ending.result_hash, hash_text("text"));
            assert_eq!(ending.output_hash, outcome.is_completed().then(|| hash_text("noon")));
        }
    }

    #[test]
    fn a_tool_that_is_stopped_at_once_counts_as_begun() {
        let outcome = CallOutcome::of_run(tool_run(), &ToolEnd::Cancelled, Some(CancelReason::Estop), None);
        assert_eq!(outcome, CallOutcome::Stopped { by: CancelReason::Estop, began: Some(tool_run()) });
    }

    #[test]
    fn work_that_was_done_before_a_stop_counts_as_done() {
        for stopped_by in [None, Some(CancelReason::Estop), Some(CancelReason::Operator)] {
            let outcome = CallOutcome::of_run(tool_run(), &ToolEnd::Done, stopped_by, None);
            assert!(outcome.is_completed(), "{stopped_by:?}");
        }
    }
}
