//! The history of a procedure's run, reconstructed from its receipts.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::reason::ReceiptReason;
use super::receipt::ReceiptStatus;

/// The tool name in the receipt of a step that asks the model. No real tool can have this name.
pub const AGENT_STEP: &str = "step:agent";
/// The tool name in the receipt of a step that the operator approved.
pub const APPROVED_STEP: &str = "step:approved";
/// The tool name in the receipt of the decision to treat an interrupted step as done.
pub const SKIPPED_STEP: &str = "step:skipped";
/// The tool name in the receipt of the decision to run an interrupted step again.
pub const RERUN_STEP: &str = "step:rerun";
/// The tool name in the receipt of the decision to end a run.
pub const CANCELLED_RUN: &str = "run:cancelled";

/// The history of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunHistory {
    /// The last receipt of each step, by the id of the step.
    pub steps: BTreeMap<String, StepReceipt>,
    /// True if the operator ended the run.
    pub cancelled: bool,
}

/// The last receipt of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepReceipt {
    pub id: String,
    pub kind: StepReceiptKind,
    /// The number of attempts at the step so far.
    pub attempts: usize,
    /// The SHA-256 of the step's output.
    pub output_hash: String,
    /// The SHA-256 of the text of the procedure.
    pub sop_hash: String,
}

/// The event that a receipt of a step records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepReceiptKind {
    /// The step ran and did its work.
    Done,
    /// The step ran and failed.
    Failed,
    /// The step began, and it is unknown how far it got.
    Interrupted,
    /// The step ran, and one of its calls was denied.
    DeniedWithin,
    /// The step was denied and did not run.
    Denied,
    /// The step did not run, because the operator or the model did not answer.
    NotRun,
    /// The operator approved the step.
    Approved,
    /// The operator decided to treat the step as done.
    Skipped,
    /// The operator decided to run the step again.
    Rerun,
}

impl StepReceiptKind {
    /// Returns whether the step has begun, and so may have changed something.
    #[must_use]
    pub fn has_begun(self) -> bool {
        match self {
            Self::Done | Self::Failed | Self::Interrupted | Self::DeniedWithin => true,
            Self::Denied | Self::NotRun | Self::Approved | Self::Skipped | Self::Rerun => false,
        }
    }

    /// Classifies the receipt of an attempt at a step.
    fn of_attempt(tool: &str, status: Option<ReceiptStatus>, reason: &ReceiptReason) -> Self {
        use ReceiptReason::{CallDenied, Cancelled, Estop, Interrupted, NoAnswer};
        match (status, reason) {
            (Some(ReceiptStatus::Failed), Interrupted | Estop | Cancelled) => Self::Interrupted,
            // The process died while the operator was asked.
            (_, Interrupted) => Self::NotRun,
            (_, NoAnswer) if tool == AGENT_STEP => Self::NotRun,
            (_, CallDenied) if tool == AGENT_STEP => Self::DeniedWithin,
            (Some(ReceiptStatus::Allowed), _) => Self::Done,
            (Some(ReceiptStatus::Denied), _) => Self::Denied,
            (Some(ReceiptStatus::Failed) | None, _) => Self::Failed,
        }
    }

    /// Classifies the receipt of a decision of the operator; `None` if the decision is not about a step.
    fn of_decision(name: &str) -> Option<Self> {
        match name {
            APPROVED_STEP => Some(Self::Approved),
            SKIPPED_STEP => Some(Self::Skipped),
            RERUN_STEP => Some(Self::Rerun),
            _ => None,
        }
    }
}

impl RunHistory {
    /// Returns the kind of a step's last receipt.
    #[must_use]
    pub fn last_kind(&self, step: &str) -> Option<StepReceiptKind> {
        self.steps.get(step).map(|receipt| receipt.kind)
    }

    /// Returns whether the last of `begun` attempts at a step did nothing.
    #[must_use]
    pub fn did_not_run(&self, step: &str, begun: usize) -> bool {
        self.steps
            .get(step)
            .is_some_and(|receipt| receipt.kind == StepReceiptKind::NotRun && receipt.attempts >= begun)
    }

    /// Adds a receipt, if it belongs to this run. A later receipt of a step replaces an earlier one.
    pub(super) fn add_receipt(&mut self, run: &str, record: &Map<String, Value>) {
        let text = |name| record.get(name).and_then(Value::as_str);
        if text("conversation_id") != Some(run) {
            return;
        }
        let tool = text("tool").unwrap_or_default();
        let status = text("status").and_then(ReceiptStatus::from_word);
        let reason = ReceiptReason::from(text("reason_code").unwrap_or_default());
        // The name alone proves nothing, because the caller of a tool chooses the name.
        let is_decision = status == Some(ReceiptStatus::Allowed)
            && text("approver") == Some("operator")
            && reason == ReceiptReason::Decided;
        self.cancelled |= is_decision && tool == CANCELLED_RUN;
        let Some((step, id)) = text("step_id").zip(text("id")) else { return };
        let decision = StepReceiptKind::of_decision(tool).filter(|_| is_decision);
        let kind = decision.unwrap_or_else(|| StepReceiptKind::of_attempt(tool, status, &reason));
        let owned = |text: Option<&str>| text.unwrap_or_default().to_owned();
        let before = self.steps.get(step).map_or(0, |receipt| receipt.attempts);
        let receipt = StepReceipt {
            id: id.to_owned(),
            kind,
            attempts: before + usize::from(!is_decision),
            output_hash: owned(text("output_hash").or(text("result_hash"))),
            sop_hash: owned(text("sop_hash")),
        };
        self.steps.insert(step.to_owned(), receipt);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_a_decision_of_the_operator_counts_as_one() {
        let record = json!({ "id": "receipt-1", "conversation_id": "run-1", "tool": CANCELLED_RUN, "status": "allowed",
            "approver": "operator", "reason_code": "decided" });
        let cancels = |name: &str, value: &str| {
            let mut record = record.clone();
            record[name] = value.into();
            let mut history = RunHistory::default();
            record.as_object().into_iter().for_each(|record| history.add_receipt("run-1", record));
            history.cancelled
        };
        assert!(cancels("status", "allowed"));
        for (name, value) in
            [("status", "denied"), ("approver", "none"), ("reason_code", "not-offered"), ("tool", "time")]
        {
            assert!(!cancels(name, value), "{name} = {value}");
        }
    }

    /// The history of a run is read from receipts on disk, also from those of older versions.
    #[test]
    fn the_words_of_a_receipt_tell_how_a_step_ended() {
        let kind = |tool: &str, status: &str, reason: &str| {
            let record = json!({ "id": "receipt-1", "conversation_id": "run-1", "step_id": "s", "tool": tool,
                "status": status, "approver": "operator", "reason_code": reason });
            let mut history = RunHistory::default();
            record.as_object().into_iter().for_each(|record| history.add_receipt("run-1", record));
            history.last_kind("s")
        };
        for (tool, status, reason, expected) in [
            ("time", "allowed", "looks-only", StepReceiptKind::Done),
            ("time", "failed", "tool-failed", StepReceiptKind::Failed),
            ("time", "failed", "a-code-of-next-year", StepReceiptKind::Failed),
            ("time", "a-status-of-next-year", "looks-only", StepReceiptKind::Failed),
            ("time", "failed", "estop", StepReceiptKind::Interrupted),
            ("time", "failed", "cancelled", StepReceiptKind::Interrupted),
            ("time", "failed", "interrupted", StepReceiptKind::Interrupted),
            ("time", "denied", "interrupted", StepReceiptKind::NotRun),
            ("time", "denied", "estop", StepReceiptKind::Denied),
            ("time", "denied", "forbidden-path", StepReceiptKind::Denied),
            ("time", "failed", "no-answer", StepReceiptKind::Failed),
            (AGENT_STEP, "failed", "no-answer", StepReceiptKind::NotRun),
            (AGENT_STEP, "failed", "call-denied", StepReceiptKind::DeniedWithin),
            (AGENT_STEP, "allowed", "answered", StepReceiptKind::Done),
            (APPROVED_STEP, "allowed", "decided", StepReceiptKind::Approved),
            (SKIPPED_STEP, "allowed", "decided", StepReceiptKind::Skipped),
            (RERUN_STEP, "allowed", "decided", StepReceiptKind::Rerun),
            (RERUN_STEP, "allowed", "looks-only", StepReceiptKind::Done),
        ] {
            assert_eq!(kind(tool, status, reason), Some(expected), "{tool}, {status}, {reason}");
        }
    }
}
