//! The state of a run, which follows from its procedure and its journal.

use serde::Serialize;

use super::journal::{SopRun, StepPhase};
use super::journal_entry::StepStatus;
use super::{OnFailure, Sop, StepAction};

/// The state of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum SopRunState {
    /// All steps have ended or were skipped.
    Finished,
    /// The step failed or was denied, and the run is over.
    Failed { step: String },
    /// The operator ended the run.
    Cancelled,
    /// The operator must approve the step.
    Waiting { step: String, prompt: String },
    /// The step began, and its process died or was stopped. It is unknown how far the step got.
    Interrupted { step: String },
    /// The step is next.
    Ready { step: String },
}

impl SopRunState {
    /// Returns whether the run has ended.
    #[must_use]
    pub fn is_over(&self) -> bool {
        match self {
            Self::Finished | Self::Failed { .. } | Self::Cancelled => true,
            Self::Waiting { .. } | Self::Interrupted { .. } | Self::Ready { .. } => false,
        }
    }
}

impl SopRun {
    /// Returns the state of the run.
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
