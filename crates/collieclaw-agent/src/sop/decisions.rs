//! Decisions of the operator about a run. The receipt of a decision is written before its line in the journal.

use serde_json::{Value, json};

use super::engine::{OnInterrupted, SopEngine, SopError};
use super::error::JournalError;
use super::journal::SopRun;
use super::journal_entry::JournalEntry;
use crate::receipts::{
    APPROVED_STEP, CANCELLED_RUN, CallEnding, RERUN_STEP, ReceiptError, ReceiptReason, ReceiptStatus,
    RunHistory, SKIPPED_STEP,
};
use crate::runtime::{DecidedBy, SopRunAction, StepRef, ToolGateway};

impl SopRun {
    /// Ends the run for good.
    ///
    /// # Errors
    /// Fails if the receipt or the journal can't be written.
    pub fn cancel(&mut self, tool_gateway: &ToolGateway) -> Result<(), SopError> {
        let arguments = json!({ "sop": self.header.sop });
        let action = SopRunAction {
            run: &self.header.run,
            step: None,
            name: CANCELLED_RUN,
            arguments: &arguments,
            decided_by: DecidedBy::Operator,
        };
        tool_gateway.record_action(action, &decision_ending())?;
        Ok(self.append_cancelled()?)
    }

    /// Returns the reference to a step for its receipt.
    pub(super) fn step_ref<'s>(&'s self, id: &'s str) -> StepRef<'s> {
        StepRef { id, sop_hash: &self.header.sop_hash }
    }
}

impl SopEngine<'_> {
    /// Approves the step that a run waits for. `prompt` is the text that the operator saw.
    ///
    /// # Errors
    /// Fails if the receipt or the journal can't be written, or the journal does not agree with the receipts.
    pub fn approve(&self, run: &mut SopRun, step: &str, prompt: &str) -> Result<(), SopError> {
        self.checked_history(run)?;
        self.record_decision(run, step, APPROVED_STEP, &json!({ "prompt": prompt }))?;
        Ok(run.append_approved(step)?)
    }

    /// Returns the history of a run that another process has begun, and checks the journal against it.
    pub(super) fn checked_history(&self, run: &mut SopRun) -> Result<RunHistory, SopError> {
        let receipts = self.runtime.tool_gateway.receipts.borrow();
        if run.is_new() || !receipts.is_enabled() {
            return Ok(RunHistory::default());
        }
        // A copy that replaced the journal has no lock, but the call in progress still has its intent.
        if receipts.is_run_in_progress(&run.header.run)? {
            return Err(JournalError::Busy { run: run.header.run.clone() }.into());
        }
        let history = receipts.run_history(&run.header.run)?;
        run.check_against_receipts(self.sop, &history)?;
        if history.cancelled && !run.is_cancelled() {
            // The journal lost the line about the decision, but the receipt exists.
            run.append_cancelled()?;
        }
        Ok(history)
    }

    /// Returns the journal entry that decides about an interrupted step; `None` if the operator must decide first.
    pub(super) fn decide_interrupted(
        &self,
        run: &SopRun,
        id: &str,
        interrupted: OnInterrupted,
    ) -> Result<Option<JournalEntry>, ReceiptError> {
        let step = id.to_owned();
        match interrupted {
            OnInterrupted::Rerun => {
                self.record_decision(run, id, RERUN_STEP, &json!({}))?;
                Ok(Some(JournalEntry::Rerun { step }))
            }
            OnInterrupted::Skip => {
                self.record_decision(run, id, SKIPPED_STEP, &json!({}))?;
                Ok(Some(JournalEntry::Skipped { step }))
            }
            // A step that changes nothing runs again without a decision, so this leaves no receipt.
            OnInterrupted::Ask => {
                let found = self.sop.steps.iter().find(|step| step.id == id);
                Ok(found.filter(|found| self.is_read_only(found)).map(|_| JournalEntry::Rerun { step }))
            }
        }
    }

    fn record_decision(
        &self,
        run: &SopRun,
        step: &str,
        name: &str,
        arguments: &Value,
    ) -> Result<(), ReceiptError> {
        let action = SopRunAction {
            run: &run.header.run,
            step: Some(run.step_ref(step)),
            name,
            arguments,
            decided_by: DecidedBy::Operator,
        };
        self.runtime.tool_gateway.record_action(action, &decision_ending()).map(drop)
    }
}

fn decision_ending() -> CallEnding {
    CallEnding::new(ReceiptStatus::Allowed, "").with_reason(ReceiptReason::Decided)
}
