//! The agent loop, and the one door through which every tool call goes.

mod operator;
mod prompt;
mod rules;
mod tool_gateway;
mod turn;

pub use operator::{
    AbsentOperator, AlwaysOption, ApprovalAnswer, ApprovalPrompt, Operator, OperatorContext,
    OperatorQuestion, OperatorReply, ProgressNotice, QuestionChannel,
};
pub use rules::CallRules;
pub use tool_gateway::{
    ActionInProgress, CallGrant, CallOutcome, CallStatus, DecidedBy, ProcedureAction, StepRef, ToolGateway,
    ToolOffer, ToolRequest,
};
pub use turn::{AgentRuntime, TurnError, TurnReport};
