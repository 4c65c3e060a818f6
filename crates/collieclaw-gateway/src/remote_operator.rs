//! The operator behind an HTTP connection: gets the progress of a turn as events, and answers through `/approvals`.

use std::sync::Arc;
use std::time::Duration;

use collieclaw_agent::runtime::{
    ApprovalAnswer, ApprovalPrompt, CallOutcome, Operator, OperatorQuestion, OperatorReply, ProgressNotice,
};
use collieclaw_providers::cancel::{CancelFlag, CancelReason};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::mpsc::Sender;

use super::approvals::ApprovalView;
use super::state::GatewayState;

/// An event of a turn for the client.
#[derive(Debug, Clone)]
pub(super) enum ChatEvent {
    /// A piece of the streamed answer.
    Draft(String),
    /// The pieces since the last tool call are discarded, because another provider starts over.
    DraftDiscarded,
    ToolStarted {
        tool: String,
        arguments: Value,
    },
    /// A tool call has ended or was refused.
    ToolFinished(ToolCallSummary),
    /// An approval or a question is open.
    ApprovalRequested(Box<ApprovalView>),
    TurnFinished(ChatOutcome),
}

/// The end of a tool call.
#[derive(Debug, Clone, Serialize)]
pub(super) struct ToolCallSummary {
    tool: String,
    arguments: Value,
    outcome: &'static str,
    /// The result text that the model gets.
    output: String,
    receipt_id: Option<String>,
    milliseconds: u64,
}

/// The end of a turn.
#[derive(Debug, Clone)]
pub(super) enum ChatOutcome {
    Answer(String),
    Failed { code: &'static str, message: String, retry_after: Option<u64> },
}

impl ChatEvent {
    /// Returns the event name and data for server-sent events.
    pub(super) fn sse_event(&self) -> (&'static str, Value) {
        match self {
            Self::Draft(text) => ("draft", json!({ "text": text })),
            Self::DraftDiscarded => ("draft", json!({ "discarded": true })),
            Self::ToolStarted { tool, arguments } => {
                ("tool", json!({ "phase": "begins", "tool": tool, "arguments": arguments }))
            }
            Self::ToolFinished(ended) => {
                let mut value = json!(ended);
                if let Value::Object(members) = &mut value {
                    members.insert("phase".to_owned(), "ended".into());
                }
                ("tool", value)
            }
            Self::ApprovalRequested(shown) => ("approval", json!(shown)),
            Self::TurnFinished(ChatOutcome::Answer(answer)) => ("answer", json!({ "answer": answer })),
            Self::TurnFinished(ChatOutcome::Failed { code, message, .. }) => {
                ("error", json!({ "code": code, "message": message }))
            }
        }
    }
}

/// The client that sent the message.
pub(super) struct RemoteOperator {
    pub(super) gateway: Arc<GatewayState>,
    pub(super) conversation: String,
    pub(super) events: Sender<ChatEvent>,
    pub(super) cancel: CancelFlag,
    /// True if any text was streamed since the last request to the model.
    pub(super) drafted: bool,
}

impl RemoteOperator {
    /// Sends an event to the client. If the client has disconnected, the turn is cancelled.
    fn send_event(&self, event: ChatEvent) {
        if self.events.blocking_send(event).is_err() {
            self.cancel.raise(CancelReason::Operator);
        }
    }

    fn count_call(&self, outcome: &CallOutcome) {
        self.gateway.metrics.tool_calls.increment();
        match outcome {
            CallOutcome::Denied { .. }
            | CallOutcome::NoOperator
            | CallOutcome::Stopped { by: CancelReason::Estop, .. } => {
                self.gateway.metrics.tool_denials.increment();
            }
            CallOutcome::Completed { .. }
            | CallOutcome::Failed { .. }
            | CallOutcome::NotRun(_)
            | CallOutcome::Stopped { by: CancelReason::Operator, .. } => {}
        }
    }
}

impl Operator for RemoteOperator {
    fn ask_approval(&mut self, asked: &ApprovalPrompt<'_>) -> ApprovalAnswer {
        let gateway = Arc::clone(&self.gateway);
        let Some(open) = gateway.approvals.request_approval(&self.conversation, asked) else {
            return ApprovalAnswer::Unavailable;
        };
        self.send_event(ChatEvent::ApprovalRequested(Box::new(open.view.clone())));
        open.wait_for_decision(&self.cancel, &gateway.home)
    }

    fn ask_question(&mut self, question: &OperatorQuestion<'_>) -> OperatorReply {
        let gateway = Arc::clone(&self.gateway);
        let Some(open) = gateway.approvals.ask_question(&self.conversation, question) else {
            return OperatorReply::Unavailable;
        };
        self.send_event(ChatEvent::ApprovalRequested(Box::new(open.view.clone())));
        open.wait_for_text(question.cancel)
    }

    fn notify(&mut self, notice: ProgressNotice<'_>) {
        match notice {
            ProgressNotice::Thinking => self.drafted = false,
            ProgressNotice::ThinkingEnded => {}
            ProgressNotice::Draft(text) => {
                self.drafted = true;
                self.send_event(ChatEvent::Draft(text.to_owned()));
            }
            ProgressNotice::DraftDiscarded => {
                self.drafted = false;
                self.send_event(ChatEvent::DraftDiscarded);
            }
            // The text was already streamed.
            ProgressNotice::AssistantText(_) if self.drafted => {}
            ProgressNotice::AssistantText(text) => self.send_event(ChatEvent::Draft(text.to_owned())),
            ProgressNotice::CallStarted { tool, arguments } => {
                self.send_event(ChatEvent::ToolStarted {
                    tool: tool.to_owned(),
                    arguments: arguments.clone(),
                });
            }
            ProgressNotice::CallEnded { tool, arguments, call } => {
                self.count_call(&call.outcome);
                let elapsed = call.outcome.tool_run().map_or(Duration::ZERO, |run| run.elapsed);
                self.send_event(ChatEvent::ToolFinished(ToolCallSummary {
                    tool: tool.to_owned(),
                    arguments: arguments.clone(),
                    outcome: call.outcome.code(),
                    output: call.text.clone(),
                    receipt_id: call.receipt_id.clone(),
                    milliseconds: u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX),
                }));
            }
        }
    }
}
