//! What a turn leaves in the memory, and what the memory gives back to the model.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::{Runtime, TurnError};
use crate::ids;
use crate::memory::{Exchange, ToolOutcome, Turn};
use crate::providers::{AnsweredBy, Message, Role, ToolCall};
use crate::runtime::{Fate, Outcome};

/// A turn while it goes on.
pub(super) struct Record<'r> {
    conversation: &'r str,
    runtime: &'r Runtime,
    turns: Vec<Turn>,
    fates: Vec<Fate>,
    answered_by: Option<AnsweredBy>,
}

impl<'r> Record<'r> {
    pub(super) fn new(conversation: &'r str, runtime: &'r Runtime) -> Self {
        Self { conversation, runtime, turns: Vec::new(), fates: Vec::new(), answered_by: None }
    }

    pub(super) fn conversation(&self) -> &'r str {
        self.conversation
    }

    /// Results are matched by the ids of calls, and many servers begin to count anew in each round.
    pub(super) fn name_apart(&self, calls: &mut [ToolCall]) {
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
    pub(super) fn answered_by(&mut self, who: Option<AnsweredBy>) {
        self.answered_by = who;
    }

    pub(super) fn user(&mut self, message: &str) {
        let turn = self.turn(Role::User, message);
        self.turns.push(turn);
    }

    pub(super) fn calls(&mut self, says: &str, calls: &[ToolCall]) {
        let turn = Turn { tool_calls: calls.to_vec(), ..self.turn(Role::Assistant, says) };
        self.turns.push(turn);
    }

    pub(super) fn result(&mut self, call: &ToolCall, outcome: &Outcome) {
        self.fates.push(outcome.fate);
        let result = ToolOutcome {
            call_id: call.id.clone(),
            tool: call.name.clone(),
            success: outcome.fate == Fate::Done,
            output: outcome.text.clone(),
            receipt_id: outcome.receipt_id.clone(),
        };
        let turn = Turn { tool_results: vec![result], ..self.turn(Role::Tool, &outcome.text) };
        self.turns.push(turn);
    }

    /// A call whose receipt can't be written. It may have run all the same.
    pub(super) fn without_receipt(&mut self, call: &ToolCall) {
        self.failed(
            call,
            "error: its receipt can't be written; whether it ran is not known, so look before it is asked for again",
        );
    }

    fn failed(&mut self, call: &ToolCall, text: &str) {
        self.result(call, &Outcome::not_run(Fate::Failed, text.to_owned(), None));
    }

    pub(super) fn answer(&mut self, text: &str) {
        let turn = self.turn(Role::Assistant, text);
        self.turns.push(turn);
    }

    /// Calls without a result would be refused by the next server that sees them, so each gets one.
    pub(super) fn broke_off(&mut self, error: &TurnError) {
        let answered: Vec<&str> = self
            .turns
            .iter()
            .flat_map(|turn| &turn.tool_results)
            .map(|result| result.call_id.as_str())
            .collect();
        let open: Vec<ToolCall> =
            self.earlier_calls().filter(|call| !answered.contains(&call.id.as_str())).cloned().collect();
        for call in open {
            self.failed(&call, "error: the turn ended before this ran");
        }
        let mut turn = self.turn(Role::Assistant, &format!("[no answer: {error}]"));
        turn.metadata.insert("error".to_owned(), Value::from(error.to_string()));
        self.turns.push(turn);
    }

    pub(super) fn end(self) -> (Exchange, Vec<Fate>) {
        (Exchange { turns: self.turns }, self.fates)
    }

    fn turn(&self, role: Role, content: &str) -> Turn {
        let (provider, model) = match &self.answered_by {
            Some(who) => (who.provider.as_str(), who.model.as_str()),
            None => (self.runtime.provider.name(), self.runtime.model.as_str()),
        };
        Turn {
            conversation_id: self.conversation.to_owned(),
            turn_id: ids::fresh("turn"),
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
pub(super) fn messages(turn: Turn) -> Vec<Message> {
    match turn.role {
        Role::User => vec![Message::user(turn.content)],
        Role::Assistant => vec![Message::assistant(turn.content, turn.tool_calls)],
        Role::Tool => {
            turn.tool_results.into_iter().map(|result| Message::tool(result.call_id, result.output)).collect()
        }
    }
}
