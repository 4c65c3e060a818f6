//! The person who is asked, and told what goes on.

use std::cell::RefCell;

use collieclaw_gate::Verdict;
use serde_json::Value;

use super::door::Outcome;
use crate::cancel::Cancel;

/// Whoever sits in front of it. Whoever stands between passes on both kinds of questions.
pub trait Operator {
    /// Whether anybody is there to be asked. Who is may leave without an answer.
    fn is_there(&self) -> bool {
        true
    }

    /// Asks whether exactly this may run (C7.7).
    fn ask(&mut self, asked: &Asked<'_>) -> Answer;

    /// Asks for words, for a tool that needs to know something. What is said approves nothing.
    fn question(&mut self, question: &Posed<'_>) -> Reply;

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
    /// Whether [`Answer::Always`] may be said.
    pub lasting: Lasting,
}

/// Whether a yes can be for good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lasting {
    /// It can.
    Offered,
    /// It can't: it counts once.
    NotOffered,
}

/// What a tool asks the operator.
#[derive(Clone, Copy)]
pub struct Posed<'a> {
    /// The question; the model wrote it.
    pub text: &'a str,
    /// What can be answered; anything, if empty.
    pub choices: &'a [String],
    /// Raised when nobody waits for the answer any more.
    pub cancel: &'a Cancel,
}

/// What was said to a tool's question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// These words.
    Said(String),
    /// Nothing.
    Nothing,
    /// Nobody is there to be asked.
    Nobody,
}

/// What was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// Yes, to exactly this.
    Yes,
    /// Yes, to exactly this in this workspace, and from now on without a question.
    Always,
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
        /// Its arguments.
        arguments: &'a Value,
        /// How.
        outcome: &'a Outcome,
    },
}

/// All that a tool has of the operator: it may ask for words, and approve nothing.
pub trait Questioner {
    /// Asks, and waits for the answer.
    fn ask(&self, question: &Posed<'_>) -> Reply;
}

/// An operator of whom nothing but words can be had.
pub(super) struct OnlyWords<'o> {
    operator: RefCell<&'o mut dyn Operator>,
}

impl<'o> OnlyWords<'o> {
    pub(super) fn of(operator: &'o mut dyn Operator) -> Self {
        Self { operator: RefCell::new(operator) }
    }
}

impl Questioner for OnlyWords<'_> {
    fn ask(&self, question: &Posed<'_>) -> Reply {
        self.operator.borrow_mut().question(question)
    }
}
