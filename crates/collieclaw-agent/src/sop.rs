//! Procedures: steps that the operator wrote down. The steps run one after the other, and each goes through the same
//! tool gateway as a call of the model (C12).
//!
//! Procedures are in the agent's home, where the agent can't write. [`read_sop`] reads a procedure and finds every fault
//! in it. A [`SopRun`] is the journal of one run. The [`SopEngine`] executes a run until it is finished, waits, fails or
//! is stopped. A step that has ended never runs again, even after a crash.

mod consistency;
mod decisions;
mod dry_run;
mod engine;
mod error;
mod journal;
mod journal_entry;
mod prompt;
mod read;
mod runs;
mod state;

use serde::Serialize;
use serde_json::{Map, Value};

pub use dry_run::DryRunResult;
pub use engine::{OnInterrupted, SopEngine, SopError, SopRunHalt};
pub use error::JournalError;
pub use journal::SopRun;
pub use journal_entry::{EndedStep, JournalEntry, JournalHeader, StepStatus};
pub use read::{NAME_RULE, is_sop_name, read_sop};
pub use runs::{SopRunStore, is_run_name};
pub use state::SopRunState;

/// A procedure that was read without faults.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Sop {
    /// The name of the procedure and of its folder.
    pub name: String,
    pub description: String,
    /// The hint by which a router chooses the provider.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The steps in order; at least one.
    pub steps: Vec<SopStep>,
}

/// A step of a procedure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SopStep {
    /// The id of the step, unique within the procedure.
    pub id: String,
    #[serde(flatten)]
    pub action: StepAction,
    pub on_failure: OnFailure,
}

/// The action of a step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum StepAction {
    /// The step calls a tool.
    Tool {
        tool: String,
        /// The arguments of the call, without the content that comes from another step.
        args: Map<String, Value>,
        /// The earlier step whose output becomes the argument `content`.
        #[serde(skip_serializing_if = "Option::is_none")]
        content_from: Option<String>,
    },
    /// The step asks the model, which sees the results of earlier steps.
    Agent { prompt: String },
    /// The run waits until the operator approves the step.
    Approval { prompt: String },
}

/// The consequence of a step's failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum OnFailure {
    /// The run is over.
    Abort,
    /// The run continues with the next step.
    Continue,
}

/// The name of the argument that `content_from` fills.
pub const CONTENT: &str = "content";

/// The key that names the step whose output becomes the content. It stands in `args`, or beside it.
pub(crate) const CONTENT_FROM: &str = "content_from";

impl SopStep {
    /// Returns the tool and the arguments of the step's call, with the content of another step; `None` if the step calls no
    /// tool.
    #[must_use]
    pub fn call_arguments(&self, content: Option<&str>) -> Option<(&str, Value)> {
        let StepAction::Tool { tool, args, .. } = &self.action else { return None };
        let mut args = args.clone();
        if let Some(content) = content {
            args.insert(CONTENT.to_owned(), content.into());
        }
        Some((tool, Value::Object(args)))
    }

    /// Returns the step that the content comes from.
    #[must_use]
    pub fn content_from(&self) -> Option<&str> {
        match &self.action {
            StepAction::Tool { content_from, .. } => content_from.as_deref(),
            StepAction::Agent { .. } | StepAction::Approval { .. } => None,
        }
    }
}
