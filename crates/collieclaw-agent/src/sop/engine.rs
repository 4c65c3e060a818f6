//! Runs a procedure step by step. Every step goes through the tool gateway, and its end is on disk before the next step
//! begins.

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
use crate::receipts::{CallEnding, ReceiptError, ReceiptReason, ReceiptStatus, RunHistory, StepReceiptKind};
use crate::runtime::{
    AgentRuntime, CallOutcome, DecidedBy, FinishedCall, SopRunAction, ToolOffer, ToolRequest, TurnControl,
    TurnError,
};
use collieclaw_providers::cancel::CancelReason;

/// The engine that runs a procedure.
pub struct SopEngine<'e> {
    pub runtime: &'e AgentRuntime,
    pub sop: &'e Sop,
}

/// The treatment of an interrupted step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnInterrupted {
    /// Run the step again if it changes nothing; otherwise halt, so that the operator can check its effects.
    Ask,
    /// Run the step again, because the operator has checked its effects.
    Rerun,
    /// Treat the step as done and without output, because the operator has checked its effects.
    Skip,
}

/// The reason why a run has halted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SopRunHalt {
    /// The run is over: finished, failed or cancelled.
    Over(SopRunState),
    /// The operator must approve the step.
    Waiting { step: String, prompt: String },
    /// The step was interrupted and may have changed something.
    Interrupted { step: String, receipt_id: Option<String> },
    /// The call of the step needs an approval, and no operator is available. The run can be resumed at this step.
    NoOperator { step: String },
    /// The emergency stop or the operator stopped the run. The run can be resumed at this step.
    Stopped { step: String, by: CancelReason },
}

/// The reason why a run can't continue.
#[derive(Debug, Error)]
pub enum SopError {
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error(transparent)]
    Receipt(#[from] ReceiptError),
    /// The model gave no answer, and no tool was called.
    #[error(transparent)]
    Turn(#[from] TurnError),
    #[error(transparent)]
    Memory(#[from] MemoryError),
}

/// The next action of a run.
enum NextStep {
    /// The id of the step to run.
    Run(String),
    Halt(SopRunHalt),
}

/// The result of an attempt at a step.
enum StepResult {
    Ended(EndedStep),
    Halted(SopRunHalt),
}

impl SopEngine<'_> {
    /// Runs steps until the run is over or must halt.
    ///
    /// # Errors
    /// Fails if the journal, a receipt or the memory can't be written, or the model gives no answer.
    pub fn run_until_halt(
        &self,
        run: &mut SopRun,
        interrupted: OnInterrupted,
        control: &mut TurnControl<'_>,
    ) -> Result<SopRunHalt, SopError> {
        let mut history = self.checked_history(run)?;
        loop {
            let id = match self.next_step(run, &mut history, interrupted)? {
                NextStep::Run(id) => id,
                NextStep::Halt(halt) => return Ok(halt),
            };
            let Some(step) = self.sop.steps.iter().find(|step| step.id == id) else {
                return Ok(SopRunHalt::Over(SopRunState::Finished));
            };
            if control.cancel.reason().is_some() {
                return Ok(SopRunHalt::Stopped { step: id, by: CancelReason::Operator });
            }
            let result = match &step.action {
                StepAction::Agent { prompt } => self.run_agent_step(step, prompt, run, control)?,
                StepAction::Tool { .. } | StepAction::Approval { .. } => {
                    self.call_step_tool(step, run, control)?
                }
            };
            match result {
                StepResult::Ended(ended) => run.append_entry(JournalEntry::Ended(ended), SyncMode::Now)?,
                StepResult::Halted(halt) => return Ok(halt),
            }
        }
    }

    /// Returns the step to run next. Adds lines first that a crash kept out of the journal: receipts are written before
    /// lines, so the history has an approval or the start of a step even if the journal lacks it.
    fn next_step(
        &self,
        run: &mut SopRun,
        history: &mut RunHistory,
        interrupted: OnInterrupted,
    ) -> Result<NextStep, SopError> {
        loop {
            match run.state(self.sop) {
                SopRunState::Waiting { step, .. }
                    if history.last_kind(&step) == Some(StepReceiptKind::Approved) =>
                {
                    run.append_approved(&step)?;
                }
                SopRunState::Waiting { step, prompt } => {
                    return Ok(NextStep::Halt(SopRunHalt::Waiting { step, prompt }));
                }
                // The process died while the operator was asked. The receipt says that nothing ran.
                SopRunState::Interrupted { step } if history.did_not_run(&step, run.begin_count(&step)) => {
                    run.append_entry(JournalEntry::Void { step }, SyncMode::Now)?;
                }
                SopRunState::Interrupted { step } => {
                    let decision = self.decide_interrupted(run, &step, interrupted)?;
                    let receipt_id = history.steps.remove(&step).map(|receipt| receipt.id);
                    match decision {
                        Some(decision) => run.append_entry(decision, SyncMode::Now)?,
                        None => return Ok(NextStep::Halt(SopRunHalt::Interrupted { step, receipt_id })),
                    }
                }
                SopRunState::Ready { step }
                    if history.last_kind(&step).is_some_and(StepReceiptKind::has_begun) =>
                {
                    run.append_entry(JournalEntry::Began { step }, SyncMode::Now)?;
                }
                SopRunState::Ready { step } => return Ok(NextStep::Run(step)),
                over @ (SopRunState::Finished | SopRunState::Failed { .. } | SopRunState::Cancelled) => {
                    return Ok(NextStep::Halt(SopRunHalt::Over(over)));
                }
            }
        }
    }

    fn call_step_tool(
        &self,
        step: &SopStep,
        run: &mut SopRun,
        control: &mut TurnControl<'_>,
    ) -> Result<StepResult, SopError> {
        let content = match step.content_from().map(|from| (from, run.ended_step(from))) {
            None => None,
            Some((_, Some(EndedStep { end: StepStatus::Done, output, .. }))) => Some(output.clone()),
            Some((from, _)) => {
                let error = format!("error: the step `{from}` has no output, because it did not succeed");
                return self.fail_without_call(step, run, error);
            }
        };
        let Some((tool, arguments)) = step.call_arguments(content.as_deref()) else {
            return Ok(StepResult::Ended(new_ended_step(step, StepStatus::Done, String::new())));
        };
        // With receipts, the gateway writes the intent to disk before the tool runs, so that the journal needs no sync.
        let sync = match self.runtime.tool_gateway.receipts.borrow().is_enabled() {
            true => SyncMode::Later,
            false => SyncMode::Now,
        };
        run.append_entry(JournalEntry::Began { step: step.id.clone() }, sync)?;
        let FinishedCall { outcome, text, receipt_id } =
            self.request_call(run, step, (tool, &arguments), control)?;
        let (status, output) = match outcome {
            CallOutcome::Completed { step_output, .. } => (StepStatus::Done, step_output.unwrap_or(text)),
            CallOutcome::Failed { .. } | CallOutcome::NotRun(_) => (StepStatus::Failed, text),
            CallOutcome::Denied { .. } => (StepStatus::Denied, text),
            CallOutcome::NoOperator => {
                run.append_entry(JournalEntry::Void { step: step.id.clone() }, SyncMode::Now)?;
                return Ok(StepResult::Halted(SopRunHalt::NoOperator { step: step.id.clone() }));
            }
            CallOutcome::Stopped { by, began } => {
                // A step whose tool had begun stays begun in the journal, because it is unknown how far the tool got.
                if began.is_none() {
                    run.append_entry(JournalEntry::Void { step: step.id.clone() }, SyncMode::Now)?;
                }
                return Ok(StepResult::Halted(SopRunHalt::Stopped { step: step.id.clone(), by }));
            }
        };
        Ok(StepResult::Ended(EndedStep { receipt_id, ..new_ended_step(step, status, output) }))
    }

    /// Ends a step whose call lacks an argument. The call is not attempted, and the step has its receipt nevertheless.
    fn fail_without_call(&self, step: &SopStep, run: &SopRun, error: String) -> Result<StepResult, SopError> {
        let (name, arguments) = step.call_arguments(None).unwrap_or((CONTENT, Value::Null));
        let action = SopRunAction {
            run: &run.header.run,
            step: Some(run.step_ref(&step.id)),
            name,
            arguments: &arguments,
            decided_by: DecidedBy::Rules,
        };
        let ending = CallEnding::new(ReceiptStatus::Failed, &error).with_reason(ReceiptReason::MissingInput);
        let receipt_id = self.runtime.tool_gateway.record_action(action, &ending)?;
        Ok(StepResult::Ended(EndedStep { receipt_id, ..new_ended_step(step, StepStatus::Failed, error) }))
    }

    fn request_call(
        &self,
        run: &SopRun,
        step: &SopStep,
        (tool, arguments): (&str, &Value),
        control: &mut TurnControl<'_>,
    ) -> Result<FinishedCall, ReceiptError> {
        let conversation_id = run.header.run.as_str();
        let request =
            ToolRequest { conversation_id, tool, arguments, offer: ToolOffer::Step(run.step_ref(&step.id)) };
        self.runtime.tool_gateway.call(request, control)
    }
}

fn new_ended_step(step: &SopStep, end: StepStatus, output: String) -> EndedStep {
    EndedStep { step: step.id.clone(), end, output, receipt_id: None, at: Timestamp::now() }
}
