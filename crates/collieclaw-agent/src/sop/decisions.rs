//! What the operator decides about a run: each decision has its receipt before the journal has its line.

use serde_json::{Value, json};

use super::engine::{OnInterrupted, SopEngine, SopError};
use super::error::JournalError;
use super::journal::SopRun;
use super::journal_entry::JournalEntry;
use crate::receipts::{
    APPROVED_STEP, CANCELLED_RUN, CallEnding, REASON_DECIDED, RERUN_STEP, ReceiptError, ReceiptStatus,
    RunHistory, SKIPPED_STEP,
};
use crate::runtime::{DecidedBy, ProcedureAction, StepRef, ToolGateway};

impl SopRun {
    /// Ends it for good.
    ///
    /// # Errors
    /// When that can't be written down.
    pub fn cancel(&mut self, door: &ToolGateway) -> Result<(), SopError> {
        let about = json!({ "sop": self.header.sop });
        let deed = ProcedureAction {
            run: &self.header.run,
            step: None,
            name: CANCELLED_RUN,
            arguments: &about,
            decided_by: DecidedBy::Operator,
        };
        door.record_action(deed, &CallEnding::new(ReceiptStatus::Allowed, "").with_reason(REASON_DECIDED))?;
        Ok(self.append_cancelled()?)
    }

    /// Whose a step is, for its receipt.
    pub(super) fn step_ref<'s>(&'s self, id: &'s str) -> StepRef<'s> {
        StepRef { id, sop_hash: &self.header.sop_hash }
    }
}

impl SopEngine<'_> {
    /// Approves the step that a run waits for, and that was shown with this prompt.
    ///
    /// # Errors
    /// When that can't be written down, and when the journal does not agree with the receipts.
    pub fn approve(&self, run: &mut SopRun, step: &str, prompt: &str) -> Result<(), SopError> {
        self.checked_history(run)?;
        self.record_decision(run, step, APPROVED_STEP, &json!({ "prompt": prompt }))?;
        Ok(run.append_approved(step)?)
    }

    /// What the receipts tell of a run that others have carried out before, if its journal tells the same.
    pub(super) fn checked_history(&self, run: &mut SopRun) -> Result<RunHistory, SopError> {
        let receipts = self.runtime.tool_gateway.receipts.borrow();
        if run.is_new() || !receipts.is_enabled() {
            return Ok(RunHistory::default());
        }
        // Whoever puts a copy in the place of a journal takes its lock away, and not its call.
        if receipts.is_run_in_progress(&run.header.run)? {
            return Err(JournalError::Busy { run: run.header.run.clone() }.into());
        }
        let trail = receipts.run_history(&run.header.run)?;
        run.check_against_receipts(self.sop, &trail)?;
        if trail.cancelled && !run.is_cancelled() {
            // Its line was lost; the decision was not.
            run.append_cancelled()?;
        }
        Ok(trail)
    }

    /// What becomes of an interrupted step, if that is decided.
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
            // Nobody has decided anything, and whoever comes next finds the same.
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
        about: &Value,
    ) -> Result<(), ReceiptError> {
        let deed = ProcedureAction {
            run: &run.header.run,
            step: Some(run.step_ref(step)),
            name,
            arguments: about,
            decided_by: DecidedBy::Operator,
        };
        self.runtime
            .tool_gateway
            .record_action(deed, &CallEnding::new(ReceiptStatus::Allowed, "").with_reason(REASON_DECIDED))
            .map(drop)
    }
}
