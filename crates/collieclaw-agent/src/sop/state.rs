//! Where a run stands: what follows from its procedure and its journal.

use serde::Serialize;

use super::journal::{SopRun, StepPhase};
use super::journal_entry::StepStatus;
use super::{OnFailure, Sop, StepAction};

/// Where a run stands, as its journal tells.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum SopRunState {
    /// All steps have ended.
    Finished,
    /// A step has failed, and the run is over.
    Failed {
        /// Which.
        step: String,
    },
    /// Somebody ended it.
    Cancelled,
    /// Somebody has to approve.
    Waiting {
        /// Which step.
        step: String,
        /// What they are asked.
        prompt: String,
    },
    /// A step began, and its process died: nobody knows how far it came.
    Interrupted {
        /// Which.
        step: String,
    },
    /// The step is next.
    Ready {
        /// Which.
        step: String,
    },
}

impl SopRunState {
    /// Whether nothing follows any more.
    #[must_use]
    pub fn is_over(&self) -> bool {
        match self {
            Self::Finished | Self::Failed { .. } | Self::Cancelled => true,
            Self::Waiting { .. } | Self::Interrupted { .. } | Self::Ready { .. } => false,
        }
    }
}

impl SopRun {
    /// Where it stands.
    #[must_use]
    pub fn state(&self, sop: &Sop) -> SopRunState {
        if self.is_cancelled() {
            return SopRunState::Cancelled;
        }
        for step in &sop.steps {
            let id = || step.id.clone();
            match (&step.action, self.ended_step(&step.id)) {
                (StepAction::Approval { prompt }, _) if !self.is_approved(&step.id) => {
                    return SopRunState::Waiting { step: id(), prompt: prompt.clone() };
                }
                (StepAction::Approval { .. }, _) => {}
                (_, Some(ended)) if ended.end != StepStatus::Done && step.on_failure == OnFailure::Abort => {
                    return SopRunState::Failed { step: id() };
                }
                (_, Some(_)) => {}
                (_, None) if self.is_skipped(&step.id) => {}
                (_, None) if self.phase(&step.id) == StepPhase::Started => {
                    return SopRunState::Interrupted { step: id() };
                }
                (_, None) => return SopRunState::Ready { step: id() },
            }
        }
        SopRunState::Finished
    }
}
