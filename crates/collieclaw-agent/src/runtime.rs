//! The agent loop, and the gateway through which every tool call goes.

mod call_outcome;
mod operator;
mod program_offer;
mod prompt;
mod rules;
mod tool_gateway;
mod turn;

pub use call_outcome::{CallFault, CallOutcome, FinishedCall, ToolRun};
pub use operator::{
    AbsentOperator, AllowAnswer, AllowPrompt, AlwaysOption, ApprovalAnswer, ApprovalPrompt, Operator,
    OperatorQuestion, OperatorReply, ProgressNotice, QuestionChannel, TurnControl,
};
pub use program_offer::{AmendableRules, OfferedProgram, ProgramAllower, RuleAmendment};
pub use rules::CallRules;
pub use tool_gateway::{
    ActionInProgress, CallGrant, DecidedBy, SopRunAction, StepRef, ToolGateway, ToolOffer, ToolRequest,
};
pub use turn::{AgentRuntime, TurnError, TurnReport};
