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
    AbsentOperator, AllowAnswer, AllowPrompt, ApprovalAnswer, ApprovalPrompt, Operator, OperatorQuestion,
    OperatorReply, PermanentApproval, ProgressNotice, QuestionChannel, TurnControl,
};
pub use program_offer::{OfferedProgram, ProgramAllower, RuleUpdates, UpdatedRules};
pub use rules::CallRules;
pub use tool_gateway::{
    ActionInProgress, CallGrant, DecidedBy, SopRunAction, StepRef, ToolGateway, ToolOffer, ToolRequest,
};
pub use turn::{AgentRuntime, TurnError, TurnReport};
