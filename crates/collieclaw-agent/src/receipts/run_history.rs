//! What the receipts tell of a run of a procedure.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::receipt::ReceiptStatus;

/// What stands for a tool's name in the receipt of a step that asks the model. No tool has such a name.
pub const AGENT_STEP: &str = "step:agent";
/// Of a step that somebody has approved.
pub const APPROVED_STEP: &str = "step:approved";
/// Of the decision to take an interrupted step as done.
pub const SKIPPED_STEP: &str = "step:skipped";
/// Of the decision to run an interrupted step once more.
pub const RERUN_STEP: &str = "step:rerun";
/// Of the decision to end a run.
pub const CANCELLED_RUN: &str = "run:cancelled";

/// The reason of what somebody has decided. No rule of the gate has it.
pub const REASON_DECIDED: &str = "decided";
/// The reason of a step whose model was not there: nothing has happened.
pub const REASON_NO_ANSWER: &str = "no-answer";
/// The reason of a step whose model was denied a call.
pub const REASON_CALL_DENIED: &str = "call-denied";

/// What the receipts tell of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunHistory {
    /// Of each step the last receipt.
    pub steps: BTreeMap<String, StepReceipt>,
    /// Whether somebody has ended it.
    pub cancelled: bool,
}

/// What the last receipt of a step tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepReceipt {
    /// Its id.
    pub id: String,
    /// What it is of.
    pub kind: StepReceiptKind,
    /// How often the step was attempted.
    pub attempts: usize,
    /// The hash of what the step gave.
    pub output_hash: String,
    /// The hash of the procedure that it is a step of.
    pub sop_hash: String,
}

/// What a receipt of a step is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepReceiptKind {
    /// It ran, and worked.
    Done,
    /// It ran, and didn't work.
    Failed,
    /// It began, and nobody knows how far it came.
    Interrupted,
    /// It ran, and was denied something.
    DeniedWithin,
    /// It did not run: it was denied.
    Denied,
    /// It did not run: nobody has answered.
    NotRun,
    /// Somebody has approved.
    Approved,
    /// Somebody has taken it as done.
    Skipped,
    /// Somebody has decided to run it once more.
    Rerun,
}

impl StepReceiptKind {
    /// Whether the step has begun, and may have left something.
    #[must_use]
    pub fn has_begun(self) -> bool {
        match self {
            Self::Done | Self::Failed | Self::Interrupted | Self::DeniedWithin => true,
            Self::Denied | Self::NotRun | Self::Approved | Self::Skipped | Self::Rerun => false,
        }
    }
}

impl RunHistory {
    /// What the last receipt of a step is of.
    #[must_use]
    pub fn last_kind(&self, step: &str) -> Option<StepReceiptKind> {
        self.steps.get(step).map(|trace| trace.kind)
    }

    /// Whether a step that has begun so often has done nothing, the last time.
    #[must_use]
    pub fn did_not_run(&self, step: &str, begun: usize) -> bool {
        self.steps
            .get(step)
            .is_some_and(|trace| trace.kind == StepReceiptKind::NotRun && trace.attempts >= begun)
    }

    /// Takes in a receipt, if it is of this run; later ones go before earlier ones.
    pub(super) fn add_receipt(&mut self, run: &str, record: &Map<String, Value>) {
        let text = |name| record.get(name).and_then(Value::as_str);
        if text("conversation_id") != Some(run) {
            return;
        }
        let tool = text("tool").unwrap_or_default();
        let decision = operator_decision(record).unwrap_or_default();
        self.cancelled |= decision == CANCELLED_RUN;
        let Some((step, id)) = text("step_id").zip(text("id")) else { return };
        let mark = match (tool, text("status"), text("reason_code")) {
            _ if decision == APPROVED_STEP => StepReceiptKind::Approved,
            _ if decision == SKIPPED_STEP => StepReceiptKind::Skipped,
            _ if decision == RERUN_STEP => StepReceiptKind::Rerun,
            (_, _, Some("interrupted" | "estop" | "cancelled"))
                if text("status") == Some(ReceiptStatus::Failed.as_str()) =>
            {
                StepReceiptKind::Interrupted
            }
            // The model was not there, or its process died while somebody was asked.
            (AGENT_STEP, _, Some(REASON_NO_ANSWER)) | (_, _, Some("interrupted")) => StepReceiptKind::NotRun,
            (AGENT_STEP, _, Some(REASON_CALL_DENIED)) => StepReceiptKind::DeniedWithin,
            (_, Some(status), _) if status == ReceiptStatus::Allowed.as_str() => StepReceiptKind::Done,
            (_, Some(status), _) if status == ReceiptStatus::Denied.as_str() => StepReceiptKind::Denied,
            _ => StepReceiptKind::Failed,
        };
        let owned = |text: Option<&str>| text.unwrap_or_default().to_owned();
        let output_hash = owned(text("output_hash").or(text("result_hash")));
        let before = self.steps.get(step).map_or(0, |trace| trace.attempts);
        let attempts = before + usize::from(decision.is_empty());
        let sop_hash = owned(text("sop_hash"));
        let trace = StepReceipt { id: id.to_owned(), kind: mark, attempts, output_hash, sop_hash };
        self.steps.insert(step.to_owned(), trace);
    }
}

/// What the operator has decided, if this is a receipt of that. Its name alone proves nothing: whoever calls tools
/// chooses names.
fn operator_decision(record: &Map<String, Value>) -> Option<&str> {
    let text = |name| record.get(name).and_then(Value::as_str);
    let decided = text("status") == Some(ReceiptStatus::Allowed.as_str())
        && text("approver") == Some("operator")
        && text("reason_code") == Some(REASON_DECIDED);
    text("tool").filter(|_| decided)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_decision_is_one_that_the_operator_has_made() {
        let record = json!({ "id": "receipt-1", "conversation_id": "run-1", "tool": CANCELLED_RUN, "status": "allowed",
            "approver": "operator", "reason_code": REASON_DECIDED });
        let cancels = |name: &str, value: &str| {
            let mut record = record.clone();
            record[name] = value.into();
            let mut trail = RunHistory::default();
            record.as_object().into_iter().for_each(|record| trail.add_receipt("run-1", record));
            trail.cancelled
        };
        assert!(cancels("status", "allowed"));
        for (name, value) in
            [("status", "denied"), ("approver", "none"), ("reason_code", "not-offered"), ("tool", "time")]
        {
            assert!(!cancels(name, value), "{name} = {value}");
        }
    }
}
