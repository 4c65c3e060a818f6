//! What a turn leaves in the memory, and what the memory gives back to the model.

use std::collections::BTreeSet;

use collieclaw_providers::{AnsweredBy, ChatMessage, ChatRole, ToolCall};
use jiff::Timestamp;
use serde_json::{Map, Value};

use super::{AgentRuntime, TurnError};
use crate::ids;
use crate::memory::{ConversationExchange, ConversationTurn, StoredToolResult};
use crate::runtime::{CallOutcome, CallStatus};

/// A turn while it goes on.
pub(super) struct TurnRecorder<'r> {
    conversation: &'r str,
    runtime: &'r AgentRuntime,
    turns: Vec<ConversationTurn>,
    call_statuses: Vec<CallStatus>,
    answered_by: Option<AnsweredBy>,
}

impl<'r> TurnRecorder<'r> {
    pub(super) fn new(conversation: &'r str, runtime: &'r AgentRuntime) -> Self {
        Self { conversation, runtime, turns: Vec::new(), call_statuses: Vec::new(), answered_by: None }
    }

    pub(super) fn conversation(&self) -> &'r str {
        self.conversation
    }

    /// Results are matched by the ids of calls, and many servers begin to count anew in each round.
    pub(super) fn deduplicate_call_ids(&self, calls: &mut [ToolCall]) {
        let mut taken: BTreeSet<String> = self.earlier_calls().map(|call| call.id.clone()).collect();
        for call in calls {
            while !taken.insert(call.id.clone()) {
                call.id.push('+');
            }
        }
    }

    fn earlier_calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.turns.iter().flat_map(|turn| &turn.tool_calls)
    }

    /// Whose words follow.
    pub(super) fn set_answered_by(&mut self, who: Option<AnsweredBy>) {
        self.answered_by = who;
    }

    pub(super) fn add_user_message(&mut self, message: &str) {
        let turn = self.new_turn(ChatRole::User, message);
        self.turns.push(turn);
    }

    pub(super) fn add_tool_calls(&mut self, says: &str, calls: &[ToolCall]) {
        let turn =
            ConversationTurn { tool_calls: calls.to_vec(), ..self.new_turn(ChatRole::Assistant, says) };
        self.turns.push(turn);
    }

    pub(super) fn add_tool_result(&mut self, call: &ToolCall, outcome: &CallOutcome) {
        self.call_statuses.push(outcome.status);
        let result = StoredToolResult {
            call_id: call.id.clone(),
            tool: call.name.clone(),
            success: outcome.status == CallStatus::Done,
            output: outcome.text.clone(),
            receipt_id: outcome.receipt_id.clone(),
        };
        let turn =
            ConversationTurn { tool_results: vec![result], ..self.new_turn(ChatRole::Tool, &outcome.text) };
        self.turns.push(turn);
    }

    /// A call whose receipt can't be written. It may have run all the same.
    pub(super) fn add_missing_receipt(&mut self, call: &ToolCall) {
        self.add_failure(
            call,
            "error: its receipt can't be written; whether it ran is not known, so look before it is asked for again",
        );
    }

    fn add_failure(&mut self, call: &ToolCall, text: &str) {
        self.add_tool_result(call, &CallOutcome::not_run(CallStatus::Failed, text.to_owned(), None));
    }

    pub(super) fn add_answer(&mut self, text: &str) {
        let turn = self.new_turn(ChatRole::Assistant, text);
        self.turns.push(turn);
    }

    /// Calls without a result would be refused by the next server that sees them, so each gets one.
    pub(super) fn add_turn_error(&mut self, error: &TurnError) {
        let answered: Vec<&str> = self
            .turns
            .iter()
            .flat_map(|turn| &turn.tool_results)
            .map(|result| result.call_id.as_str())
            .collect();
        let open: Vec<ToolCall> =
            self.earlier_calls().filter(|call| !answered.contains(&call.id.as_str())).cloned().collect();
        for call in open {
            self.add_failure(&call, "error: the turn ended before this ran");
        }
        let mut turn = self.new_turn(ChatRole::Assistant, &format!("[no answer: {error}]"));
        turn.metadata.insert("error".to_owned(), Value::from(error.to_string()));
        self.turns.push(turn);
    }

    pub(super) fn finish(self) -> (ConversationExchange, Vec<CallStatus>) {
        (ConversationExchange { turns: self.turns }, self.call_statuses)
    }

    fn new_turn(&self, role: ChatRole, content: &str) -> ConversationTurn {
        let (provider, model) = match &self.answered_by {
            Some(who) => (who.provider.as_str(), who.model.as_str()),
            None => (self.runtime.provider.name(), self.runtime.model.as_str()),
        };
        ConversationTurn {
            conversation_id: self.conversation.to_owned(),
            turn_id: ids::random_id("turn"),
            timestamp: Timestamp::now(),
            role,
            content: content.to_owned(),
            tool_calls: Vec::new(),
            tool_results: Vec::new(),
            provider: provider.to_owned(),
            model: model.to_owned(),
            metadata: Map::new(),
        }
    }
}

/// What the model is shown of an earlier turn.
pub(super) fn messages_from_turn(turn: ConversationTurn) -> Vec<ChatMessage> {
    match turn.role {
        ChatRole::User => vec![ChatMessage::user(turn.content)],
        ChatRole::Assistant => vec![ChatMessage::assistant(turn.content, turn.tool_calls)],
        ChatRole::Tool => turn
            .tool_results
            .into_iter()
            .map(|result| ChatMessage::tool(result.call_id, result.output))
            .collect(),
    }
}
