//! What the operator decides about a run: each decision has its receipt before the journal has its line.

use serde_json::{Value, json};

use super::engine::{Engine, OnInterrupted, SopError};
use super::entry::Entry;
use super::error::JournalError;
use super::journal::Run;
use crate::receipts::{
    APPROVED_STEP, CANCELLED_RUN, DECIDED, Ending, RERUN_STEP, ReceiptError, SKIPPED_STEP, Status, Trail,
};
use crate::runtime::{By, Deed, Door, OfStep};

impl Run {
    /// Ends it for good.
    ///
    /// # Errors
    /// When that can't be written down.
    pub fn cancel(&mut self, door: &Door) -> Result<(), SopError> {
        let about = json!({ "sop": self.header.sop });
        let deed =
            Deed { run: &self.header.run, step: None, name: CANCELLED_RUN, about: &about, by: By::Operator };
        door.note(deed, &Ending::new(Status::Allowed, "").because(DECIDED))?;
        Ok(self.write_cancelled()?)
    }

    /// Whose a step is, for its receipt.
    pub(super) fn of_step<'s>(&'s self, id: &'s str) -> OfStep<'s> {
        OfStep { id, sop_hash: &self.header.sop_hash }
    }
}

impl Engine<'_> {
    /// Approves the step that a run waits for, and that was shown with this prompt.
    ///
    /// # Errors
    /// When that can't be written down, and when the journal does not agree with the receipts.
    pub fn approve(&self, run: &mut Run, step: &str, prompt: &str) -> Result<(), SopError> {
        self.agreed(run)?;
        self.note(run, step, APPROVED_STEP, &json!({ "prompt": prompt }))?;
        Ok(run.write_approved(step)?)
    }

    /// What the receipts tell of a run that others have carried out before, if its journal tells the same.
    pub(super) fn agreed(&self, run: &mut Run) -> Result<Trail, SopError> {
        let receipts = self.runtime.door.receipts.borrow();
        if run.is_new() || !receipts.are_written() {
            return Ok(Trail::default());
        }
        // Whoever puts a copy in the place of a journal takes its lock away, and not its call.
        if receipts.is_under_way(&run.header.run)? {
            return Err(JournalError::Busy { run: run.header.run.clone() }.into());
        }
        let trail = receipts.of_run(&run.header.run)?;
        run.agrees(self.sop, &trail)?;
        if trail.cancelled && !run.is_cancelled() {
            // Its line was lost; the decision was not.
            run.write_cancelled()?;
        }
        Ok(trail)
    }

    /// What becomes of an interrupted step, if that is decided.
    pub(super) fn decided(
        &self,
        run: &Run,
        id: &str,
        interrupted: OnInterrupted,
    ) -> Result<Option<Entry>, ReceiptError> {
        let step = id.to_owned();
        match interrupted {
            OnInterrupted::Rerun => {
                self.note(run, id, RERUN_STEP, &json!({}))?;
                Ok(Some(Entry::Rerun { step }))
            }
            OnInterrupted::Skip => {
                self.note(run, id, SKIPPED_STEP, &json!({}))?;
                Ok(Some(Entry::Skipped { step }))
            }
            // Nobody has decided anything, and whoever comes next finds the same.
            OnInterrupted::Ask => {
                let found = self.sop.steps.iter().find(|step| step.id == id);
                Ok(found.filter(|found| self.only_looks(found)).map(|_| Entry::Rerun { step }))
            }
        }
    }

    fn note(&self, run: &Run, step: &str, name: &str, about: &Value) -> Result<(), ReceiptError> {
        let deed =
            Deed { run: &run.header.run, step: Some(run.of_step(step)), name, about, by: By::Operator };
        self.runtime.door.note(deed, &Ending::new(Status::Allowed, "").because(DECIDED)).map(drop)
    }
}
