//! Records a turn for the memory, and turns memories back into messages for the model.

use std::collections::BTreeSet;

use collieclaw_providers::{AnsweredBy, ChatMessage, ChatRole, ToolCall};
use jiff::Timestamp;
use serde_json::{Map, Value};

use super::{AgentRuntime, TurnError};
use crate::ids;
use crate::memory::{ConversationExchange, ConversationTurn, StoredToolResult};
use crate::runtime::{CallOutcome, FinishedCall};

/// The record of a turn that is still running.
pub(super) struct TurnRecorder<'r> {
    conversation: &'r str,
    runtime: &'r AgentRuntime,
    turns: Vec<ConversationTurn>,
    call_outcomes: Vec<CallOutcome>,
    answered_by: Option<AnsweredBy>,
}

impl<'r> TurnRecorder<'r> {
    pub(super) fn new(conversation: &'r str, runtime: &'r AgentRuntime) -> Self {
        Self { conversation, runtime, turns: Vec::new(), call_outcomes: Vec::new(), answered_by: None }
    }

    pub(super) fn conversation(&self) -> &'r str {
        self.conversation
    }

    /// Makes the ids of calls unique within the turn. Results are matched with calls by id, and many servers count
    /// from the beginning again in each round.
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

    /// Sets the provider and model of the turns that follow.
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

    pub(super) fn add_finished_call(&mut self, call: &ToolCall, finished: FinishedCall) {
        let FinishedCall { outcome, text, receipt_id } = finished;
        self.add_tool_result(StoredToolResult {
            call_id: call.id.clone(),
            tool: call.name.clone(),
            success: outcome.is_completed(),
            output: text,
            receipt_id,
        });
        self.call_outcomes.push(outcome);
    }

    /// Adds a call whose receipt can't be written. The tool may have run nevertheless.
    pub(super) fn add_missing_receipt(&mut self, call: &ToolCall) {
        self.add_unknown_result(
            call,
            "error: could not write the receipt of this call. The tool may have run: check its effects before you call \
             it again",
        );
    }

    /// Adds a result for a call that has no outcome, because no receipt says how it ended.
    fn add_unknown_result(&mut self, call: &ToolCall, text: &str) {
        self.add_tool_result(StoredToolResult {
            call_id: call.id.clone(),
            tool: call.name.clone(),
            success: false,
            output: text.to_owned(),
            receipt_id: None,
        });
    }

    fn add_tool_result(&mut self, result: StoredToolResult) {
        let turn = self.new_turn(ChatRole::Tool, &result.output);
        self.turns.push(ConversationTurn { tool_results: vec![result], ..turn });
    }

    pub(super) fn add_answer(&mut self, text: &str) {
        let turn = self.new_turn(ChatRole::Assistant, text);
        self.turns.push(turn);
    }

    /// Adds the error that ended the turn. Each call without a result gets one first, because model servers refuse
    /// conversations in which a call has no result.
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
            self.add_unknown_result(&call, "error: the turn ended before this call ran");
        }
        let mut turn = self.new_turn(ChatRole::Assistant, &format!("[no answer: {error}]"));
        turn.metadata.insert("error".to_owned(), Value::from(error.to_string()));
        self.turns.push(turn);
    }

    pub(super) fn finish(self) -> (ConversationExchange, Vec<CallOutcome>) {
        (ConversationExchange { turns: self.turns }, self.call_outcomes)
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

/// Returns the messages that the model sees of an earlier turn.
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
