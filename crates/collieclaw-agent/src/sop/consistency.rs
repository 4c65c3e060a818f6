//! Whether a journal tells what the receipts tell. Those are chained and signed and the journal is not: a line that was
//! added, altered or cut off does not agree with them.

use super::error::JournalError;
use super::journal::SopRun;
use super::journal_entry::{EndedStep, StepStatus};
use super::state::SopRunState;
use super::{Sop, SopStep};
use crate::receipts::{RunHistory, StepReceipt, StepReceiptKind, hash_text};

impl SopRun {
    /// Finds what only one of them tells. The step that is next is none of it: a crash may leave a receipt, and no line.
    pub(super) fn check_against_receipts(&self, sop: &Sop, trail: &RunHistory) -> Result<(), JournalError> {
        let next = match self.state(sop) {
            SopRunState::Waiting { step, .. }
            | SopRunState::Interrupted { step }
            | SopRunState::Ready { step } => Some(step),
            SopRunState::Finished | SopRunState::Failed { .. } | SopRunState::Cancelled => None,
        };
        for step in &sop.steps {
            let trace = trail.steps.get(&step.id);
            let fault = match trace {
                Some(trace) if trace.sop_hash.is_empty() => {
                    return Err(JournalError::OlderVersion { path: self.path.clone() });
                }
                Some(trace) if trace.sop_hash != self.header.sop_hash => {
                    Some("the receipts are of another procedure than the copy in it")
                }
                trace if next.as_ref() == Some(&step.id) => {
                    self.journal_claim(step).and_then(|claim| claim.fault(trace))
                }
                trace => self.journal_claim(step).unwrap_or(JournalClaim::Nothing).fault(trace),
            };
            if let Some(fault) = fault {
                let (path, step) = (self.path.clone(), step.id.clone());
                return Err(match trace {
                    None => JournalError::WithoutReceipt { path, step, fault },
                    Some(_) => JournalError::ContradictsReceipts { path, step, fault },
                });
            }
        }
        Ok(())
    }

    /// What the journal claims of a step that is over.
    fn journal_claim(&self, step: &SopStep) -> Option<JournalClaim<'_>> {
        match self.ended_step(&step.id) {
            Some(ended) => Some(JournalClaim::Ended(ended)),
            None if self.is_approved(&step.id) => Some(JournalClaim::Approved),
            None if self.is_skipped(&step.id) => Some(JournalClaim::Skipped),
            None => None,
        }
    }
}

enum JournalClaim<'c> {
    Ended(&'c EndedStep),
    Approved,
    Skipped,
    Nothing,
}

impl JournalClaim<'_> {
    /// What a receipt says against it.
    fn fault(&self, trace: Option<&StepReceipt>) -> Option<&'static str> {
        let mark = trace.map(|trace| trace.kind);
        match self {
            Self::Ended(ended) => end_fault(ended, trace),
            Self::Approved => (mark != Some(StepReceiptKind::Approved))
                .then_some("it was approved, and no receipt tells so"),
            Self::Skipped => (mark != Some(StepReceiptKind::Skipped))
                .then_some("it was taken as done, and no receipt tells so"),
            Self::Nothing => {
                mark.map(|_| "the receipts tell of it, and the journal does not: it was cut back")
            }
        }
    }
}

fn end_fault(ended: &EndedStep, trace: Option<&StepReceipt>) -> Option<&'static str> {
    let Some(trace) = trace.filter(|trace| ended.receipt_id.as_ref() == Some(&trace.id)) else {
        return Some(match trace {
            None => "it has ended, and there is no receipt of it",
            Some(_) => "it has ended, and its last receipt does not tell so",
        });
    };
    let fits = match ended.end {
        StepStatus::Done => trace.kind == StepReceiptKind::Done,
        StepStatus::Failed => trace.kind == StepReceiptKind::Failed,
        StepStatus::Denied => matches!(trace.kind, StepReceiptKind::Denied | StepReceiptKind::DeniedWithin),
    };
    if !fits {
        return Some("its receipt tells of another end");
    }
    (hash_text(&ended.output) != trace.output_hash).then_some("what it gave is not what its receipt tells of")
}
