//! Goes on with a run, step by step: each through the door, its end on disk before the next begins.

mod agent_step;

use jiff::Timestamp;
use serde_json::Value;
use thiserror::Error;

use super::error::JournalError;
use super::journal::{SopRun, SyncMode};
use super::journal_entry::{EndedStep, JournalEntry, StepStatus};
use super::state::SopRunState;
use super::{CONTENT, Sop, SopStep, StepAction};
use crate::memory::MemoryError;
use crate::receipts::{CallEnding, ReceiptError, ReceiptStatus, StepReceiptKind};
use crate::runtime::{
    AgentRuntime, CallStatus, DecidedBy, OperatorContext, ProcedureAction, ToolOffer, ToolRequest, TurnError,
};

/// Carries out a procedure.
pub struct SopEngine<'e> {
    /// Where calls and questions to the model go.
    pub runtime: &'e AgentRuntime,
    /// What is carried out.
    pub sop: &'e Sop,
}

/// What is done with a step that was interrupted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnInterrupted {
    /// It runs once more if it only looks; else somebody has to look at what it left.
    Ask,
    /// It runs once more: somebody has looked.
    Rerun,
    /// It counts as done, and gives nothing: somebody has looked.
    Skip,
}

/// Why a run does not go on now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SopRunHalt {
    /// It is over: finished, failed or cancelled.
    Over(SopRunState),
    /// Somebody has to approve.
    Waiting {
        /// Which step.
        step: String,
        /// What they are asked.
        prompt: String,
    },
    /// A step was interrupted, and may have done something.
    Interrupted {
        /// Which.
        step: String,
        /// What its call left behind.
        receipt_id: Option<String>,
    },
    /// It was stopped at this step, and goes on there.
    Stopped {
        /// Which.
        step: String,
        /// How.
        status: CallStatus,
    },
}

/// Why a run can't go on.
#[derive(Debug, Error)]
pub enum SopError {
    /// The journal can't be used.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// A receipt can't be written.
    #[error(transparent)]
    Receipt(#[from] ReceiptError),
    /// The model has no answer, and nothing has happened.
    #[error(transparent)]
    Turn(#[from] TurnError),
    /// The memory can't be used.
    #[error(transparent)]
    Memory(#[from] MemoryError),
}

/// What a step came to: an end, or none yet.
enum StepResult {
    Ended(EndedStep),
    Halted(SopRunHalt),
}

impl SopEngine<'_> {
    /// Goes on until the run is over, or can't for now.
    ///
    /// # Errors
    /// When something can't be written down, or the model can't be asked.
    pub fn run_until_halt(
        &self,
        run: &mut SopRun,
        interrupted: OnInterrupted,
        attended: &mut OperatorContext<'_>,
    ) -> Result<SopRunHalt, SopError> {
        let mut trail = self.checked_history(run)?;
        loop {
            let id = match run.state(self.sop) {
                // That somebody approved, or that a step began, may be missing in a journal; its receipt is not.
                SopRunState::Waiting { step, .. }
                    if trail.last_kind(&step) == Some(StepReceiptKind::Approved) =>
                {
                    run.append_approved(&step)?;
                    continue;
                }
                SopRunState::Waiting { step, prompt } => return Ok(SopRunHalt::Waiting { step, prompt }),
                // Its process died while somebody was asked: the receipt tells that nothing ran.
                SopRunState::Interrupted { step } if trail.did_not_run(&step, run.begin_count(&step)) => {
                    run.append_entry(JournalEntry::Void { step }, SyncMode::Now)?;
                    continue;
                }
                SopRunState::Interrupted { step } => {
                    match self.decide_interrupted(run, &step, interrupted)? {
                        Some(decision) => {
                            trail.steps.remove(&step);
                            run.append_entry(decision, SyncMode::Now)?;
                            continue;
                        }
                        None => {
                            let receipt_id = trail.steps.remove(&step).map(|trace| trace.id);
                            return Ok(SopRunHalt::Interrupted { step, receipt_id });
                        }
                    }
                }
                SopRunState::Ready { step }
                    if trail.last_kind(&step).is_some_and(StepReceiptKind::has_begun) =>
                {
                    run.append_entry(JournalEntry::Began { step }, SyncMode::Now)?;
                    continue;
                }
                SopRunState::Ready { step } => step,
                over => return Ok(SopRunHalt::Over(over)),
            };
            let Some(step) = self.sop.steps.iter().find(|step| step.id == id) else {
                return Ok(SopRunHalt::Over(SopRunState::Finished));
            };
            if attended.cancel.reason().is_some() {
                return Ok(SopRunHalt::Stopped { step: id, status: CallStatus::Cancelled });
            }
            let came = match &step.action {
                StepAction::Agent { prompt } => self.run_agent_step(step, prompt, run, attended)?,
                StepAction::Tool { .. } | StepAction::Approval { .. } => {
                    self.call_step_tool(step, run, attended)?
                }
            };
            match came {
                StepResult::Ended(ended) => run.append_entry(JournalEntry::Ended(ended), SyncMode::Now)?,
                StepResult::Halted(halt) => return Ok(halt),
            }
        }
    }

    fn call_step_tool(
        &self,
        step: &SopStep,
        run: &mut SopRun,
        attended: &mut OperatorContext<'_>,
    ) -> Result<StepResult, SopError> {
        let content = match step.content_from().map(|from| (from, run.ended_step(from))) {
            None => None,
            Some((_, Some(EndedStep { end: StepStatus::Done, output, .. }))) => Some(output.clone()),
            Some((from, _)) => {
                let why = format!("error: the step `{from}` has nothing to give, because it did not work");
                return self.fail_without_call(step, run, why);
            }
        };
        let Some((tool, arguments)) = step.call_arguments(content.as_deref()) else {
            return Ok(StepResult::Ended(new_ended_step(step, StepStatus::Done, String::new())));
        };
        // The door makes durable that it begins before anything runs.
        let durable = match self.runtime.tool_gateway.receipts.borrow().is_enabled() {
            true => SyncMode::Later,
            false => SyncMode::Now,
        };
        run.append_entry(JournalEntry::Began { step: step.id.clone() }, durable)?;
        let outcome = self.request_call(run, step, (tool, &arguments), attended)?;
        let end = match outcome.status {
            CallStatus::Done => StepStatus::Done,
            CallStatus::Failed => StepStatus::Failed,
            CallStatus::Denied => StepStatus::Denied,
            fate @ (CallStatus::NobodyToAsk | CallStatus::Stopped | CallStatus::Cancelled) => {
                // What was stopped while it ran stays begun: nobody knows how far it came.
                if !outcome.did_run() {
                    run.append_entry(JournalEntry::Void { step: step.id.clone() }, SyncMode::Now)?;
                }
                return Ok(StepResult::Halted(SopRunHalt::Stopped { step: step.id.clone(), status: fate }));
            }
        };
        let receipt_id = outcome.receipt_id;
        Ok(StepResult::Ended(EndedStep { receipt_id, ..new_ended_step(step, end, outcome.output) }))
    }

    /// A call that lacks something is not attempted; the step has its receipt all the same.
    fn fail_without_call(&self, step: &SopStep, run: &SopRun, why: String) -> Result<StepResult, SopError> {
        let (name, about) = step.call_arguments(None).unwrap_or((CONTENT, Value::Null));
        let of_step = Some(run.step_ref(&step.id));
        let deed = ProcedureAction {
            run: &run.header.run,
            step: of_step,
            name,
            arguments: &about,
            decided_by: DecidedBy::Rules,
        };
        let ending = CallEnding::new(ReceiptStatus::Failed, &why).with_reason("nothing-to-give");
        let receipt_id = self.runtime.tool_gateway.record_action(deed, &ending)?;
        Ok(StepResult::Ended(EndedStep { receipt_id, ..new_ended_step(step, StepStatus::Failed, why) }))
    }

    fn request_call(
        &self,
        run: &SopRun,
        step: &SopStep,
        (tool, arguments): (&str, &Value),
        attended: &mut OperatorContext<'_>,
    ) -> Result<crate::runtime::CallOutcome, ReceiptError> {
        let conversation_id = run.header.run.as_str();
        let wish =
            ToolRequest { conversation_id, tool, arguments, offer: ToolOffer::Step(run.step_ref(&step.id)) };
        self.runtime.tool_gateway.call(wish, attended)
    }
}

fn new_ended_step(step: &SopStep, end: StepStatus, output: String) -> EndedStep {
    EndedStep { step: step.id.clone(), end, output, receipt_id: None, at: Timestamp::now() }
}
