//! Where a run stands: what follows from its procedure and its journal.

use serde::Serialize;

use super::entry::End;
use super::journal::{Course, Run};
use super::{Action, OnFailure, Sop};

/// Where a run stands, as its journal tells.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum State {
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

impl State {
    /// Whether nothing follows any more.
    #[must_use]
    pub fn is_over(&self) -> bool {
        match self {
            Self::Finished | Self::Failed { .. } | Self::Cancelled => true,
            Self::Waiting { .. } | Self::Interrupted { .. } | Self::Ready { .. } => false,
        }
    }
}

impl Run {
    /// Where it stands.
    #[must_use]
    pub fn state(&self, sop: &Sop) -> State {
        if self.is_cancelled() {
            return State::Cancelled;
        }
        for step in &sop.steps {
            let id = || step.id.clone();
            match (&step.action, self.ended(&step.id)) {
                (Action::Approval { prompt }, _) if !self.is_approved(&step.id) => {
                    return State::Waiting { step: id(), prompt: prompt.clone() };
                }
                (Action::Approval { .. }, _) => {}
                (_, Some(ended)) if ended.end != End::Done && step.on_failure == OnFailure::Abort => {
                    return State::Failed { step: id() };
                }
                (_, Some(_)) => {}
                (_, None) if self.is_skipped(&step.id) => {}
                (_, None) if self.course(&step.id) == Course::Open => {
                    return State::Interrupted { step: id() };
                }
                (_, None) => return State::Ready { step: id() },
            }
        }
        State::Finished
    }
}
