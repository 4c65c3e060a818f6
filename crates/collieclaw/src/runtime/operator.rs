//! The person who is asked, and told what goes on.

use collieclaw_gate::Verdict;
use serde_json::Value;

use super::door::Outcome;
use crate::cancel::Cancel;

/// Whoever sits in front of it. The default one is nobody: nothing is approved.
pub trait Operator {
    /// Asks whether exactly this may run (C7.7).
    fn ask(&mut self, asked: &Asked<'_>) -> Answer;

    /// Tells what goes on.
    fn notice(&mut self, notice: Notice<'_>) {
        let _ = notice;
    }
}

/// Whoever is there while something runs, and how they make it stop.
pub struct Attended<'a> {
    /// Who is asked, and told.
    pub operator: &'a mut dyn Operator,
    /// Raised when the turn is to end.
    pub cancel: &'a Cancel,
}

/// What is asked.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// The tool.
    pub tool: &'a str,
    /// Its arguments, all of them.
    pub arguments: &'a Value,
    /// What the gate said.
    pub verdict: &'a Verdict,
}

/// What was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// Yes, to exactly this.
    Yes,
    /// Anything else.
    No,
    /// Nobody is there to be asked.
    Nobody,
}

/// What goes on.
#[derive(Debug, Clone, Copy)]
pub enum Notice<'a> {
    /// The model was asked.
    Thinking,
    /// A bit of the answer, as it comes. The bits make up what [`Notice::Says`] or the answer of the turn then holds.
    Draft(&'a str),
    /// All bits since the model was asked are void.
    DraftVoid,
    /// It has answered.
    Thought,
    /// What it says while it asks for tools.
    Says(&'a str),
    /// A call begins.
    Calls {
        /// The tool.
        tool: &'a str,
        /// Its arguments.
        arguments: &'a Value,
    },
    /// A call has ended.
    Called {
        /// The tool.
        tool: &'a str,
        /// How.
        outcome: &'a Outcome,
    },
}
