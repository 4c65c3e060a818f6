//! Whether a journal tells what the receipts tell. Those are chained and signed and the journal is not: a line that was
//! added, altered or cut off does not agree with them.

use super::entry::{End, Ended};
use super::error::JournalError;
use super::journal::Run;
use super::state::State;
use super::{Sop, Step};
use crate::receipts::{Mark, Trace, Trail, hash_of_text};

impl Run {
    /// Finds what only one of them tells. The step that is next is none of it: a crash may leave a receipt, and no line.
    pub(super) fn agrees(&self, sop: &Sop, trail: &Trail) -> Result<(), JournalError> {
        let next = match self.state(sop) {
            State::Waiting { step, .. } | State::Interrupted { step } | State::Ready { step } => Some(step),
            State::Finished | State::Failed { .. } | State::Cancelled => None,
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
                    self.claims(step).and_then(|claim| claim.fault(trace))
                }
                trace => self.claims(step).unwrap_or(Claim::Nothing).fault(trace),
            };
            if let Some(fault) = fault {
                let (path, step) = (self.path.clone(), step.id.clone());
                return Err(match trace {
                    None => JournalError::Unvouched { path, step, fault },
                    Some(_) => JournalError::Disagrees { path, step, fault },
                });
            }
        }
        Ok(())
    }

    /// What the journal claims of a step that is over.
    fn claims(&self, step: &Step) -> Option<Claim<'_>> {
        match self.ended(&step.id) {
            Some(ended) => Some(Claim::Ended(ended)),
            None if self.is_approved(&step.id) => Some(Claim::Approved),
            None if self.is_skipped(&step.id) => Some(Claim::Skipped),
            None => None,
        }
    }
}

enum Claim<'c> {
    Ended(&'c Ended),
    Approved,
    Skipped,
    Nothing,
}

impl Claim<'_> {
    /// What a receipt says against it.
    fn fault(&self, trace: Option<&Trace>) -> Option<&'static str> {
        let mark = trace.map(|trace| trace.mark);
        match self {
            Self::Ended(ended) => end_fault(ended, trace),
            Self::Approved => {
                (mark != Some(Mark::Approved)).then_some("it was approved, and no receipt tells so")
            }
            Self::Skipped => {
                (mark != Some(Mark::Skipped)).then_some("it was taken as done, and no receipt tells so")
            }
            Self::Nothing => {
                mark.map(|_| "the receipts tell of it, and the journal does not: it was cut back")
            }
        }
    }
}

fn end_fault(ended: &Ended, trace: Option<&Trace>) -> Option<&'static str> {
    let Some(trace) = trace.filter(|trace| ended.receipt_id.as_ref() == Some(&trace.id)) else {
        return Some(match trace {
            None => "it has ended, and there is no receipt of it",
            Some(_) => "it has ended, and its last receipt does not tell so",
        });
    };
    let fits = match ended.end {
        End::Done => trace.mark == Mark::Done,
        End::Failed => trace.mark == Mark::Failed,
        End::Denied => matches!(trace.mark, Mark::Denied | Mark::DeniedWithin),
    };
    if !fits {
        return Some("its receipt tells of another end");
    }
    (hash_of_text(&ended.output) != trace.output_hash)
        .then_some("what it gave is not what its receipt tells of")
}
