//! Compares a journal with the receipts. The receipts are chained and signed and the journal is not, so a line of the
//! journal that was added, changed or removed shows in the comparison.

use super::error::JournalError;
use super::journal::SopRun;
use super::journal_entry::{EndedStep, StepStatus};
use super::state::SopRunState;
use super::{Sop, SopStep};
use crate::receipts::{RunHistory, StepReceipt, StepReceiptKind, hash_text};

impl SopRun {
    /// Checks that journal and receipts agree about every step except the next one: a crash may leave the receipt of the
    /// next step without a line in the journal.
    pub(super) fn check_against_receipts(&self, sop: &Sop, history: &RunHistory) -> Result<(), JournalError> {
        let next = match self.state(sop) {
            SopRunState::Waiting { step, .. }
            | SopRunState::Interrupted { step }
            | SopRunState::Ready { step } => Some(step),
            SopRunState::Finished | SopRunState::Failed { .. } | SopRunState::Cancelled => None,
        };
        for step in &sop.steps {
            let receipt = history.steps.get(&step.id);
            let fault = match receipt {
                Some(receipt) if receipt.sop_hash.is_empty() => {
                    return Err(JournalError::OlderVersion { path: self.path.clone() });
                }
                Some(receipt) if receipt.sop_hash != self.header.sop_hash => {
                    Some("the receipts name another procedure than the journal")
                }
                receipt if next.as_ref() == Some(&step.id) => {
                    self.journal_claim(step).and_then(|claim| claim.fault(receipt))
                }
                receipt => self.journal_claim(step).unwrap_or(JournalClaim::Nothing).fault(receipt),
            };
            if let Some(fault) = fault {
                let (path, step) = (self.path.clone(), step.id.clone());
                return Err(match receipt {
                    None => JournalError::WithoutReceipt { path, step, fault },
                    Some(_) => JournalError::ContradictsReceipts { path, step, fault },
                });
            }
        }
        Ok(())
    }

    /// Returns the claim of the journal about a step that has ended.
    fn journal_claim(&self, step: &SopStep) -> Option<JournalClaim<'_>> {
        match self.ended_step(&step.id) {
            Some(ended) => Some(JournalClaim::Ended(ended)),
            None if self.is_approved(&step.id) => Some(JournalClaim::Approved),
            None if self.is_skipped(&step.id) => Some(JournalClaim::Skipped),
            None => None,
        }
    }
}

/// A claim of the journal about a step.
enum JournalClaim<'c> {
    Ended(&'c EndedStep),
    Approved,
    Skipped,
    Nothing,
}

impl JournalClaim<'_> {
    /// Returns the contradiction between the claim and the last receipt of the step, if there is one.
    fn fault(&self, receipt: Option<&StepReceipt>) -> Option<&'static str> {
        let kind = receipt.map(|receipt| receipt.kind);
        match self {
            Self::Ended(ended) => end_fault(ended, receipt),
            Self::Approved => (kind != Some(StepReceiptKind::Approved))
                .then_some("the journal says that the step was approved, but no receipt confirms it"),
            Self::Skipped => (kind != Some(StepReceiptKind::Skipped))
                .then_some("the journal says that the step was skipped, but no receipt confirms it"),
            Self::Nothing => kind.map(|_| "the step has a receipt, but no lines in the journal"),
        }
    }
}

fn end_fault(ended: &EndedStep, last: Option<&StepReceipt>) -> Option<&'static str> {
    let Some(receipt) = last.filter(|last| ended.receipt_id.as_ref() == Some(&last.id)) else {
        return Some(match last {
            None => "the journal says that the step has ended, but no receipt confirms it",
            Some(_) => "the journal names another receipt than the last one of the step",
        });
    };
    let fits = match ended.end {
        StepStatus::Done => receipt.kind == StepReceiptKind::Done,
        StepStatus::Failed => receipt.kind == StepReceiptKind::Failed,
        StepStatus::Denied => matches!(receipt.kind, StepReceiptKind::Denied | StepReceiptKind::DeniedWithin),
    };
    if !fits {
        return Some("the receipt shows another outcome than the journal");
    }
    (hash_text(&ended.output) != receipt.output_hash)
        .then_some("the output in the journal doesn't match the receipt")
}
