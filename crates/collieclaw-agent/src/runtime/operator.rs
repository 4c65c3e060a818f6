//! The person who is asked, and told what goes on.

use std::cell::RefCell;

use collieclaw_gate::GateVerdict;
use collieclaw_providers::cancel::CancelFlag;
use serde_json::Value;

use super::tool_gateway::CallOutcome;

/// Whoever sits in front of it. Whoever stands between passes on both kinds of questions.
pub trait Operator {
    /// Whether anybody is there to be asked. Who is may leave without an answer.
    fn is_available(&self) -> bool {
        true
    }

    /// Asks whether exactly this may run (C7.7).
    fn ask_approval(&mut self, asked: &ApprovalPrompt<'_>) -> ApprovalAnswer;

    /// Asks for words, for a tool that needs to know something. What is said approves nothing.
    fn ask_question(&mut self, question: &OperatorQuestion<'_>) -> OperatorReply;

    /// Tells what goes on.
    fn notify(&mut self, notice: ProgressNotice<'_>) {
        let _ = notice;
    }
}

/// Whoever is there while something runs, and how they make it stop.
pub struct OperatorContext<'a> {
    /// Who is asked, and told.
    pub operator: &'a mut dyn Operator,
    /// Raised when the turn is to end.
    pub cancel: &'a CancelFlag,
}

/// What is asked.
#[derive(Debug, Clone, Copy)]
pub struct ApprovalPrompt<'a> {
    /// The tool.
    pub tool: &'a str,
    /// Its arguments, all of them.
    pub arguments: &'a Value,
    /// What the gate said.
    pub verdict: &'a GateVerdict,
    /// Whether [`ApprovalAnswer::Always`] may be said.
    pub always_option: AlwaysOption,
}

/// Whether a yes can be for good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AlwaysOption {
    /// It can.
    Offered,
    /// It can't: it counts once.
    NotOffered,
}

/// What a tool asks the operator.
#[derive(Clone, Copy)]
pub struct OperatorQuestion<'a> {
    /// The question; the model wrote it.
    pub text: &'a str,
    /// What can be answered; anything, if empty.
    pub choices: &'a [String],
    /// Raised when nobody waits for the answer any more.
    pub cancel: &'a CancelFlag,
}

/// What was said to a tool's question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OperatorReply {
    /// These words.
    Text(String),
    /// Nothing.
    NoAnswer,
    /// Nobody is there to be asked.
    NobodyAvailable,
}

/// What was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApprovalAnswer {
    /// Yes, to exactly this.
    Yes,
    /// Yes, to exactly this in this workspace, and from now on without a question.
    Always,
    /// Anything else.
    No,
    /// Nobody is there to be asked.
    NobodyAvailable,
}

/// What goes on.
#[derive(Debug, Clone, Copy)]
pub enum ProgressNotice<'a> {
    /// The model was asked.
    Thinking,
    /// A bit of the answer, as it comes. The bits make up what [`ProgressNotice::AssistantText`] or the answer of the turn then holds.
    Draft(&'a str),
    /// All bits since the model was asked are void.
    DraftDiscarded,
    /// It has answered.
    ThinkingEnded,
    /// What it says while it asks for tools.
    AssistantText(&'a str),
    /// A call begins.
    CallStarted {
        /// The tool.
        tool: &'a str,
        /// Its arguments.
        arguments: &'a Value,
    },
    /// A call has ended.
    CallEnded {
        /// The tool.
        tool: &'a str,
        /// Its arguments.
        arguments: &'a Value,
        /// How.
        outcome: &'a CallOutcome,
    },
}

/// All that a tool has of the operator: it may ask for words, and approve nothing.
pub trait QuestionChannel {
    /// Asks, and waits for the answer.
    fn ask(&self, question: &OperatorQuestion<'_>) -> OperatorReply;
}

/// An operator of whom nothing but words can be had.
pub(super) struct QuestionOnlyOperator<'o> {
    operator: RefCell<&'o mut dyn Operator>,
}

impl<'o> QuestionOnlyOperator<'o> {
    pub(super) fn new(operator: &'o mut dyn Operator) -> Self {
        Self { operator: RefCell::new(operator) }
    }
}

impl QuestionChannel for QuestionOnlyOperator<'_> {
    fn ask(&self, question: &OperatorQuestion<'_>) -> OperatorReply {
        self.operator.borrow_mut().ask_question(question)
    }
}

/// Nobody is there: what needs a yes is denied.
pub struct AbsentOperator;

impl Operator for AbsentOperator {
    fn is_available(&self) -> bool {
        false
    }

    fn ask_question(&mut self, _: &OperatorQuestion<'_>) -> OperatorReply {
        OperatorReply::NobodyAvailable
    }

    fn ask_approval(&mut self, _: &ApprovalPrompt<'_>) -> ApprovalAnswer {
        ApprovalAnswer::NobodyAvailable
    }
}
