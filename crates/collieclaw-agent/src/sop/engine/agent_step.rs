//! A step that asks the model.

use collieclaw_providers::hint_metadata;
use serde_json::json;

use super::{SopEngine, SopError, SopRunHalt, StepResult, new_ended_step};
use crate::estop;
use crate::receipts::{AGENT_STEP, CallEnding, REASON_CALL_DENIED, REASON_NO_ANSWER, ReceiptStatus};
use crate::runtime::{
    CallStatus, DecidedBy, OperatorContext, ProcedureAction, StepRef, TurnError, TurnReport,
};
use crate::sop::SopStep;
use crate::sop::journal::{SopRun, SyncMode};
use crate::sop::journal_entry::{EndedStep, JournalEntry, StepStatus};
use crate::sop::prompt::step_message;

/// What came of a question, and what its receipt says.
struct AgentStepOutcome {
    result: Result<StepResult, SopError>,
    ending: CallEnding,
    /// Nothing has happened.
    nothing_happened: bool,
}

impl SopEngine<'_> {
    pub(super) fn run_agent_step(
        &self,
        step: &SopStep,
        prompt: &str,
        run: &mut SopRun,
        attended: &mut OperatorContext<'_>,
    ) -> Result<StepResult, SopError> {
        let door = &self.runtime.tool_gateway;
        let text = step_message(self.sop, &step.id, prompt, run);
        let about = json!({ "message": text });
        let (name, sop_hash) = (run.header.run.clone(), run.header.sop_hash.clone());
        let of_step = StepRef { id: &step.id, sop_hash: &sop_hash };
        let deed = ProcedureAction {
            run: &name,
            step: Some(of_step),
            name: AGENT_STEP,
            arguments: &about,
            decided_by: DecidedBy::Rules,
        };
        // The model would answer without tools, and that is not what was written down.
        if estop::is_set(&door.home) {
            door.record_action(deed, &CallEnding::new(ReceiptStatus::Denied, "").with_reason("estop"))?;
            return Ok(stopped_step(step, CallStatus::Stopped));
        }
        run.append_entry(JournalEntry::Began { step: step.id.clone() }, SyncMode::Now)?;
        let begun = door.begin_action(deed)?;
        let hint = hint_metadata(self.sop.hint.as_deref());
        let report = self.runtime.run_turn(&hint, &name, &text, attended);
        let answered = conclude_answer(step, report)?;
        let receipt_id = door.finish_action(begun, &answered.ending)?;
        if answered.nothing_happened {
            run.append_entry(JournalEntry::Void { step: step.id.clone() }, SyncMode::Now)?;
        }
        answered.result.map(|came| match came {
            StepResult::Ended(ended) => StepResult::Ended(EndedStep { receipt_id, ..ended }),
            halted @ StepResult::Halted(_) => halted,
        })
    }
}

/// What a turn came to. Without a receipt of one of its calls nothing is concluded.
fn conclude_answer(step: &SopStep, report: TurnReport) -> Result<AgentStepOutcome, SopError> {
    let TurnReport { answer, call_statuses: fates, persisted: kept, .. } = report;
    let nothing = fates.is_empty();
    let halted = [CallStatus::Stopped, CallStatus::Cancelled].into_iter().find(|fate| fates.contains(fate));
    let denied = fates.iter().any(|fate| matches!(fate, CallStatus::Denied | CallStatus::NobodyToAsk));
    let over = |end, status, reason, text: String| {
        let ending = CallEnding::new(status, &text).with_reason(reason);
        AgentStepOutcome {
            result: Ok(StepResult::Ended(new_ended_step(step, end, text))),
            ending,
            nothing_happened: false,
        }
    };
    Ok(match answer {
        Err(TurnError::Receipt(error)) => return Err(error.into()),
        Err(TurnError::Cancelled) => {
            let status = if nothing { ReceiptStatus::Denied } else { ReceiptStatus::Failed };
            let ending = CallEnding::new(status, "").with_reason("cancelled");
            AgentStepOutcome {
                result: Ok(stopped_step(step, CallStatus::Cancelled)),
                ending,
                nothing_happened: nothing,
            }
        }
        Err(error) if nothing => {
            let ending = CallEnding::new(ReceiptStatus::Failed, "").with_reason(REASON_NO_ANSWER);
            AgentStepOutcome { result: Err(error.into()), ending, nothing_happened: true }
        }
        Err(error) => {
            over(StepStatus::Failed, ReceiptStatus::Failed, "step-failed", format!("error: {error}"))
        }
        Ok(text) => match (halted, kept) {
            (Some(fate), _) => {
                let reason = if fate == CallStatus::Stopped { "estop" } else { "cancelled" };
                let ending = CallEnding::new(ReceiptStatus::Failed, &text).with_reason(reason);
                AgentStepOutcome { result: Ok(stopped_step(step, fate)), ending, nothing_happened: false }
            }
            (None, Err(error)) => {
                let ending = CallEnding::new(ReceiptStatus::Failed, &text).with_reason("step-failed");
                AgentStepOutcome { result: Err(error.into()), ending, nothing_happened: false }
            }
            (None, Ok(())) if denied => {
                over(StepStatus::Denied, ReceiptStatus::Failed, REASON_CALL_DENIED, text)
            }
            (None, Ok(())) => over(StepStatus::Done, ReceiptStatus::Allowed, "answered", text),
        },
    })
}

fn stopped_step(step: &SopStep, fate: CallStatus) -> StepResult {
    StepResult::Halted(SopRunHalt::Stopped { step: step.id.clone(), status: fate })
}
