//! A step that asks the model.

use collieclaw_providers::hint_metadata;
use serde_json::json;

use super::{SopEngine, SopError, SopRunHalt, StepResult, new_ended_step};
use crate::estop;
use crate::memory::MemoryError;
use crate::receipts::{AGENT_STEP, CallEnding, ReceiptError, ReceiptReason, ReceiptStatus};
use crate::runtime::{CallOutcome, DecidedBy, SopRunAction, StepRef, TurnControl, TurnError, TurnReport};
use crate::sop::SopStep;
use crate::sop::journal::{SopRun, SyncMode};
use crate::sop::journal_entry::{EndedStep, JournalEntry, StepStatus};
use crate::sop::prompt::step_message;
use collieclaw_providers::cancel::CancelReason;

/// The outcome of a step that asks the model.
enum AgentStepOutcome {
    /// The step is over.
    Ended { status: StepStatus, reason: ReceiptReason, text: String },
    /// The emergency stop or the operator ended the turn after calls were made.
    Stopped { by: CancelReason, text: String },
    /// The operator cancelled the turn before a call was made, so nothing has happened.
    CancelledBeforeCalls,
    /// The turn failed before a call was made, so nothing has happened.
    NoAnswer(TurnError),
    /// The model answered, and the memory could not keep the turn.
    NotRemembered { error: MemoryError, text: String },
}

impl SopEngine<'_> {
    pub(super) fn run_agent_step(
        &self,
        step: &SopStep,
        prompt: &str,
        run: &mut SopRun,
        control: &mut TurnControl<'_>,
    ) -> Result<StepResult, SopError> {
        let gateway = &self.runtime.tool_gateway;
        let message = step_message(self.sop, &step.id, prompt, run);
        let arguments = json!({ "message": message });
        let (run_name, sop_hash) = (run.header.run.clone(), run.header.sop_hash.clone());
        let action = SopRunAction {
            run: &run_name,
            step: Some(StepRef { id: &step.id, sop_hash: &sop_hash }),
            name: AGENT_STEP,
            arguments: &arguments,
            decided_by: DecidedBy::Rules,
        };
        // Without its tools the model would still answer, but not in the way that the procedure describes.
        if estop::is_set(&gateway.home) {
            let ending = CallEnding::new(ReceiptStatus::Denied, "").with_reason(ReceiptReason::Estop);
            gateway.record_action(action, &ending)?;
            return Ok(stopped_step(step, CancelReason::Estop));
        }
        run.append_entry(JournalEntry::Began { step: step.id.clone() }, SyncMode::Now)?;
        let in_progress = gateway.begin_action(action)?;
        let hint = hint_metadata(self.sop.hint.as_deref());
        let report = self.runtime.run_turn(&hint, &run_name, &message, control);
        let outcome = AgentStepOutcome::of_turn(report)?;
        let receipt_id = gateway.finish_action(in_progress, &outcome.ending())?;
        if outcome.nothing_happened() {
            run.append_entry(JournalEntry::Void { step: step.id.clone() }, SyncMode::Now)?;
        }
        match outcome {
            AgentStepOutcome::Ended { status, text, .. } => {
                Ok(StepResult::Ended(EndedStep { receipt_id, ..new_ended_step(step, status, text) }))
            }
            AgentStepOutcome::Stopped { by, .. } => Ok(stopped_step(step, by)),
            AgentStepOutcome::CancelledBeforeCalls => Ok(stopped_step(step, CancelReason::Operator)),
            AgentStepOutcome::NoAnswer(error) => Err(error.into()),
            AgentStepOutcome::NotRemembered { error, .. } => Err(error.into()),
        }
    }
}

impl AgentStepOutcome {
    /// Returns the outcome of a turn. If the receipt of a call is missing, the effects of the step are unknown, so
    /// the step has no outcome.
    fn of_turn(report: TurnReport) -> Result<Self, ReceiptError> {
        let TurnReport { answer, call_outcomes, persisted } = report;
        let stopped = |wanted: CancelReason| {
            call_outcomes.iter().any(|call| matches!(call, CallOutcome::Stopped { by, .. } if *by == wanted))
        };
        let denied =
            |call: &CallOutcome| matches!(call, CallOutcome::Denied { .. } | CallOutcome::NoOperator);
        let stopped_by = [CancelReason::Estop, CancelReason::Operator].into_iter().find(|by| stopped(*by));
        let ended = |status, reason, text| Self::Ended { status, reason, text };
        Ok(match (answer, stopped_by, persisted) {
            (Err(TurnError::Receipt(error)), _, _) => return Err(error),
            (Err(TurnError::Cancelled), _, _) if call_outcomes.is_empty() => Self::CancelledBeforeCalls,
            (Err(TurnError::Cancelled), _, _) => {
                Self::Stopped { by: CancelReason::Operator, text: String::new() }
            }
            (Err(error), _, _) if call_outcomes.is_empty() => Self::NoAnswer(error),
            (Err(error), _, _) => {
                ended(StepStatus::Failed, ReceiptReason::StepFailed, format!("error: {error}"))
            }
            (Ok(text), Some(by), _) => Self::Stopped { by, text },
            (Ok(text), None, Err(error)) => Self::NotRemembered { error, text },
            (Ok(text), None, Ok(())) if call_outcomes.iter().any(denied) => {
                ended(StepStatus::Denied, ReceiptReason::CallDenied, text)
            }
            (Ok(text), None, Ok(())) => ended(StepStatus::Done, ReceiptReason::Answered, text),
        })
    }

    /// Returns the part of the receipt that says how the step ended.
    fn ending(&self) -> CallEnding {
        let (status, reason, text) = match self {
            Self::Ended { status: StepStatus::Done, reason, text } => {
                (ReceiptStatus::Allowed, reason.clone(), text.as_str())
            }
            Self::Ended { status: StepStatus::Failed | StepStatus::Denied, reason, text } => {
                (ReceiptStatus::Failed, reason.clone(), text.as_str())
            }
            Self::Stopped { by, text } => (ReceiptStatus::Failed, (*by).into(), text.as_str()),
            Self::CancelledBeforeCalls => (ReceiptStatus::Denied, ReceiptReason::Cancelled, ""),
            Self::NoAnswer(_) => (ReceiptStatus::Failed, ReceiptReason::NoAnswer, ""),
            Self::NotRemembered { text, .. } => {
                (ReceiptStatus::Failed, ReceiptReason::StepFailed, text.as_str())
            }
        };
        CallEnding::new(status, text).with_reason(reason)
    }

    fn nothing_happened(&self) -> bool {
        match self {
            Self::CancelledBeforeCalls | Self::NoAnswer(_) => true,
            Self::Ended { .. } | Self::Stopped { .. } | Self::NotRemembered { .. } => false,
        }
    }
}

fn stopped_step(step: &SopStep, by: CancelReason) -> StepResult {
    StepResult::Halted(SopRunHalt::Stopped { step: step.id.clone(), by })
}
