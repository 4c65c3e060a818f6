//! The operator: the person who is asked for approvals and sees the progress of a turn.

use std::cell::RefCell;

use collieclaw_gate::GateVerdict;
use collieclaw_providers::cancel::CancelFlag;
use serde_json::Value;

use super::call_outcome::FinishedCall;
use super::program_offer::OfferedProgram;

/// The person in front of the agent. An operator that wraps another one passes on both kinds of questions.
pub trait Operator {
    /// Returns whether the operator can be asked. The operator may still leave without answering.
    fn is_available(&self) -> bool {
        true
    }

    /// Asks whether exactly this call may run (C7.7).
    fn ask_approval(&mut self, asked: &ApprovalPrompt<'_>) -> ApprovalAnswer;

    /// Asks whether programs may be allowed in this workspace, from now on. Only an operator at a terminal is asked.
    fn ask_allow(&mut self, asked: &AllowPrompt<'_>) -> AllowAnswer {
        let _ = asked;
        AllowAnswer::No
    }

    /// Asks a question of a tool. The reply approves nothing.
    fn ask_question(&mut self, question: &OperatorQuestion<'_>) -> OperatorReply;

    /// Reports the progress of the turn.
    fn notify(&mut self, notice: ProgressNotice<'_>) {
        let _ = notice;
    }
}

/// The operator of a turn, and the flag that ends the turn.
pub struct TurnControl<'a> {
    pub operator: &'a mut dyn Operator,
    /// Raised when the turn must end.
    pub cancel: &'a CancelFlag,
}

/// A call for which the operator's approval is asked.
#[derive(Debug, Clone, Copy)]
pub struct ApprovalPrompt<'a> {
    pub tool: &'a str,
    /// All arguments of the call.
    pub arguments: &'a Value,
    /// The effect of the call, such as a diff, if the tool can tell it beforehand.
    pub preview: Option<&'a str>,
    pub verdict: &'a GateVerdict,
    pub permanent_approval: PermanentApproval,
}

/// Programs that a refused call needs.
#[derive(Debug, Clone, Copy)]
pub struct AllowPrompt<'a> {
    pub tool: &'a str,
    /// All arguments of the call.
    pub arguments: &'a Value,
    pub programs: &'a [OfferedProgram],
}

/// The operator's answer to an [`AllowPrompt`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AllowAnswer {
    Yes,
    No,
}

/// Whether the operator can approve a call permanently, by the answer [`ApprovalAnswer::Always`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PermanentApproval {
    Offered,
    /// An answer of `Always` counts as `Yes`.
    NotOffered,
}

/// A question that a tool asks the operator.
#[derive(Clone, Copy)]
pub struct OperatorQuestion<'a> {
    /// The question. The model wrote it.
    pub text: &'a str,
    /// The possible answers; if empty, any answer is possible.
    pub choices: &'a [String],
    /// Raised when the answer is no longer needed.
    pub cancel: &'a CancelFlag,
}

/// The operator's reply to a question of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OperatorReply {
    Text(String),
    NoAnswer,
    /// The operator can't be asked.
    Unavailable,
}

/// The operator's answer to an approval prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApprovalAnswer {
    /// The operator approves exactly this call.
    Yes,
    /// The operator approves exactly this call in this workspace, now and later without a question.
    Always,
    /// The operator gave any other answer.
    No,
    /// The operator can't be asked.
    Unavailable,
}

/// The progress of a turn.
#[derive(Debug, Clone, Copy)]
pub enum ProgressNotice<'a> {
    /// A request was sent to the model.
    Thinking,
    /// A part of the answer, as it arrives. [`ProgressNotice::AssistantText`] or the answer of the turn holds all parts.
    Draft(&'a str),
    /// All parts of the current answer are discarded.
    DraftDiscarded,
    /// The model has answered.
    ThinkingEnded,
    /// The text that comes with the model's tool calls.
    AssistantText(&'a str),
    /// A tool is about to run.
    CallStarted { tool: &'a str, arguments: &'a Value },
    /// A call is over, whether or not its tool ran.
    CallEnded { tool: &'a str, arguments: &'a Value, call: &'a FinishedCall },
}

/// The only access that a tool has to the operator: a tool can ask questions, and never gets an approval.
pub trait QuestionChannel {
    /// Asks, and waits for the answer.
    fn ask(&self, question: &OperatorQuestion<'_>) -> OperatorReply;
}

/// An operator who can only be asked questions.
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

/// The channel of a tool that only shows what a call would do.
pub(super) struct NoQuestions;

impl QuestionChannel for NoQuestions {
    fn ask(&self, _: &OperatorQuestion<'_>) -> OperatorReply {
        OperatorReply::Unavailable
    }
}

/// An operator who can never be asked, so that calls that need an approval are denied.
pub struct AbsentOperator;

impl Operator for AbsentOperator {
    fn is_available(&self) -> bool {
        false
    }

    fn ask_question(&mut self, _: &OperatorQuestion<'_>) -> OperatorReply {
        OperatorReply::Unavailable
    }

    fn ask_approval(&mut self, _: &ApprovalPrompt<'_>) -> ApprovalAnswer {
        ApprovalAnswer::Unavailable
    }
}
