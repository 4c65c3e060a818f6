//! What the receipts tell of a run of a procedure.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::receipt::Status;

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
pub const DECIDED: &str = "decided";
/// The reason of a step whose model was not there: nothing has happened.
pub const NO_ANSWER: &str = "no-answer";
/// The reason of a step whose model was denied a call.
pub const CALL_DENIED: &str = "call-denied";

/// What the receipts tell of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trail {
    /// Of each step the last receipt.
    pub steps: BTreeMap<String, Trace>,
    /// Whether somebody has ended it.
    pub cancelled: bool,
}

/// What the last receipt of a step tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    /// Its id.
    pub id: String,
    /// What it is of.
    pub mark: Mark,
    /// How often the step was attempted.
    pub attempts: usize,
    /// The hash of what the step gave.
    pub output_hash: String,
    /// The hash of the procedure that it is a step of.
    pub sop_hash: String,
}

/// What a receipt of a step is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
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

impl Mark {
    /// Whether the step has begun, and may have left something.
    #[must_use]
    pub fn began(self) -> bool {
        match self {
            Self::Done | Self::Failed | Self::Interrupted | Self::DeniedWithin => true,
            Self::Denied | Self::NotRun | Self::Approved | Self::Skipped | Self::Rerun => false,
        }
    }
}

impl Trail {
    /// What the last receipt of a step is of.
    #[must_use]
    pub fn mark(&self, step: &str) -> Option<Mark> {
        self.steps.get(step).map(|trace| trace.mark)
    }

    /// Whether a step that has begun so often has done nothing, the last time.
    #[must_use]
    pub fn did_not_run(&self, step: &str, begun: usize) -> bool {
        self.steps.get(step).is_some_and(|trace| trace.mark == Mark::NotRun && trace.attempts >= begun)
    }

    /// Takes in a receipt, if it is of this run; later ones go before earlier ones.
    pub(super) fn take(&mut self, run: &str, record: &Map<String, Value>) {
        let text = |name| record.get(name).and_then(Value::as_str);
        if text("conversation_id") != Some(run) {
            return;
        }
        let tool = text("tool").unwrap_or_default();
        let decision = decision(record).unwrap_or_default();
        self.cancelled |= decision == CANCELLED_RUN;
        let Some((step, id)) = text("step_id").zip(text("id")) else { return };
        let mark = match (tool, text("status"), text("reason_code")) {
            _ if decision == APPROVED_STEP => Mark::Approved,
            _ if decision == SKIPPED_STEP => Mark::Skipped,
            _ if decision == RERUN_STEP => Mark::Rerun,
            (_, _, Some("interrupted" | "estop" | "cancelled"))
                if text("status") == Some(Status::Failed.word()) =>
            {
                Mark::Interrupted
            }
            // The model was not there, or its process died while somebody was asked.
            (AGENT_STEP, _, Some(NO_ANSWER)) | (_, _, Some("interrupted")) => Mark::NotRun,
            (AGENT_STEP, _, Some(CALL_DENIED)) => Mark::DeniedWithin,
            (_, Some(status), _) if status == Status::Allowed.word() => Mark::Done,
            (_, Some(status), _) if status == Status::Denied.word() => Mark::Denied,
            _ => Mark::Failed,
        };
        let owned = |text: Option<&str>| text.unwrap_or_default().to_owned();
        let output_hash = owned(text("output_hash").or(text("result_hash")));
        let before = self.steps.get(step).map_or(0, |trace| trace.attempts);
        let attempts = before + usize::from(decision.is_empty());
        let sop_hash = owned(text("sop_hash"));
        let trace = Trace { id: id.to_owned(), mark, attempts, output_hash, sop_hash };
        self.steps.insert(step.to_owned(), trace);
    }
}

/// What the operator has decided, if this is a receipt of that. Its name alone proves nothing: whoever calls tools
/// chooses names.
fn decision(record: &Map<String, Value>) -> Option<&str> {
    let text = |name| record.get(name).and_then(Value::as_str);
    let decided = text("status") == Some(Status::Allowed.word())
        && text("approver") == Some("operator")
        && text("reason_code") == Some(DECIDED);
    text("tool").filter(|_| decided)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_decision_is_one_that_the_operator_has_made() {
        let record = json!({ "id": "receipt-1", "conversation_id": "run-1", "tool": CANCELLED_RUN, "status": "allowed",
            "approver": "operator", "reason_code": DECIDED });
        let cancels = |name: &str, value: &str| {
            let mut record = record.clone();
            record[name] = value.into();
            let mut trail = Trail::default();
            record.as_object().into_iter().for_each(|record| trail.take("run-1", record));
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
