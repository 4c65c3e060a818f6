//! Procedures: steps that the operator has written down, carried out one after the other, each through the same door
//! (C12).
//!
//! They lie in the home, so that the agent can't write its own. [`read`] takes the text of one and finds every fault in
//! it; a [`Run`] is the journal of one time that it was carried out; the [`SopEngine`] goes on with a run until it is
//! finished, waits, fails or is stopped. What is finished never runs twice, whatever dies in between.

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

/// A procedure without faults.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Sop {
    /// The name of its folder.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// For a provider that chooses by hints.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// One at least.
    pub steps: Vec<SopStep>,
}

/// A step of a procedure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SopStep {
    /// No other step has it.
    pub id: String,
    /// What is done.
    #[serde(flatten)]
    pub action: StepAction,
    /// What a failure means.
    pub on_failure: OnFailure,
}

/// What a step does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum StepAction {
    /// A tool is called.
    Tool {
        /// Which.
        tool: String,
        /// Its arguments, without what comes from another step.
        args: Map<String, Value>,
        /// The earlier step whose output becomes the argument `content`.
        #[serde(skip_serializing_if = "Option::is_none")]
        content_from: Option<String>,
    },
    /// The model is asked; it sees the results of earlier steps.
    Agent {
        /// What for.
        prompt: String,
    },
    /// The run waits until somebody approves.
    Approval {
        /// What they are asked.
        prompt: String,
    },
}

/// What the failure of a step means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum OnFailure {
    /// The run is over.
    Abort,
    /// The next step is next.
    Continue,
}

/// The argument that `content_from` fills.
pub const CONTENT: &str = "content";

impl SopStep {
    /// The arguments of its call, with what came of another step; `None` if it is no call.
    #[must_use]
    pub fn call_arguments(&self, content: Option<&str>) -> Option<(&str, Value)> {
        let StepAction::Tool { tool, args, .. } = &self.action else { return None };
        let mut args = args.clone();
        if let Some(content) = content {
            args.insert(CONTENT.to_owned(), content.into());
        }
        Some((tool, Value::Object(args)))
    }

    /// The step that its content comes from.
    #[must_use]
    pub fn content_from(&self) -> Option<&str> {
        match &self.action {
            StepAction::Tool { content_from, .. } => content_from.as_deref(),
            StepAction::Agent { .. } | StepAction::Approval { .. } => None,
        }
    }
}
