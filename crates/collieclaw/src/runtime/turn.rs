//! One turn: a message in, rounds of model and tools, an answer out, all of it kept whole or not at all (C9).

mod record;

use std::collections::BTreeSet;
use std::rc::Rc;

use serde_json::{Map, Value};
use thiserror::Error;

use super::door::{Door, Fate, Offer, Wish};
use super::operator::{Attended, Notice};
use super::prompt::{ToolsTold, system_prompt};
use crate::config::Config;
use crate::estop;
use crate::events::Event;
use crate::memory::MemoryError;
use crate::providers::{
    ChatRequest, ChatResponse, Draft, MOST_CALLS, Message, Provider, ProviderError, ToolCall, ToolSchema,
};
use crate::receipts::ReceiptError;
use crate::usage::CONVERSATION;
use record::Record;

/// What the model may do in a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum May {
    AskForTools,
    OnlyAnswer,
}

/// An agent: a door, a model, and limits.
pub struct Runtime {
    /// The way to the tools.
    pub door: Door,
    /// Who answers.
    pub provider: Rc<dyn Provider>,
    /// Which model.
    pub model: String,
    /// The tools that the model is told of.
    pub offered: BTreeSet<String>,
    /// How often it may ask for tools in one turn.
    pub max_tool_rounds: u32,
    /// How many earlier messages it is shown.
    pub recent_turns: u32,
}

/// How a turn went. All of it is true at once: what was denied stays denied when the provider fails afterwards.
#[derive(Debug)]
#[must_use = "an answer, an error or a denial that nobody hears of"]
pub struct Report {
    /// The answer, or why there is none.
    pub answer: Result<String, TurnError>,
    /// How each call ended, in order.
    pub fates: Vec<Fate>,
    /// Whether the turn is remembered.
    pub kept: Result<(), MemoryError>,
}

/// Why a turn has no answer.
#[derive(Debug, Error)]
pub enum TurnError {
    /// The provider has none.
    #[error(transparent)]
    Provider(#[from] ProviderError),
    /// A receipt can't be written.
    #[error(transparent)]
    Receipt(#[from] ReceiptError),
    /// The memory can't be used.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// The model asks for tools again and again.
    #[error("the model asked for tools {rounds} times without an answer (`limits.max_tool_rounds`)")]
    TooManyRounds {
        /// How often it may.
        rounds: u32,
    },
    /// The model asks for too much at once.
    #[error("the model asked for more than {MOST_CALLS} tools at once")]
    TooManyCalls,
    /// The operator cancelled it.
    #[error("cancelled")]
    Cancelled,
}

impl Runtime {
    /// From the configuration.
    #[must_use]
    pub fn new(door: Door, provider: Rc<dyn Provider>, model: String, config: &Config) -> Self {
        Self {
            door,
            provider,
            model,
            offered: config.channels.cli.tools_allow.iter().cloned().collect(),
            max_tool_rounds: config.limits.max_tool_rounds,
            recent_turns: config.memory.recent_turns,
        }
    }

    /// One turn of a conversation. What happened is kept, also when it ends in an error. The metadata is for whoever
    /// chooses a provider, such as a [hint](crate::providers::hinted).
    pub fn turn_with(
        &self,
        metadata: &Map<String, Value>,
        conversation: &str,
        message: &str,
        attended: &mut Attended<'_>,
    ) -> Report {
        let earlier = match self.door.memory.recent(conversation, self.recent_turns as usize) {
            Ok(earlier) => earlier,
            Err(error) => return Report { answer: Err(error.into()), fates: Vec::new(), kept: Ok(()) },
        };
        let mut messages: Vec<Message> = earlier.into_iter().flat_map(record::messages).collect();
        messages.push(Message::user(message));
        let mut record = Record::new(conversation, self);
        record.user(message);
        let mut metadata = metadata.clone();
        metadata.insert(CONVERSATION.to_owned(), Value::from(conversation));
        let answer = self.rounds(messages, &metadata, &mut record, attended);
        match &answer {
            Ok(text) => record.answer(text),
            Err(error) => record.broke_off(error),
        }
        let (exchange, fates) = record.end();
        let kept = self.door.memory.persist(&exchange);
        if kept.is_ok() {
            self.door.events.tell(Event::MemoryPersisted { conversation, turns: exchange.turns.len() });
        }
        Report { answer, fates, kept }
    }

    fn rounds(
        &self,
        mut messages: Vec<Message>,
        metadata: &Map<String, Value>,
        record: &mut Record<'_>,
        attended: &mut Attended<'_>,
    ) -> Result<String, TurnError> {
        for round in 0..=self.max_tool_rounds {
            let may = if round == self.max_tool_rounds { May::OnlyAnswer } else { May::AskForTools };
            let mut response = self.ask(&messages, metadata, may, attended)?;
            record.answered_by(response.answered_by.take());
            if response.tool_calls.is_empty() {
                return Ok(response.final_text);
            }
            if may == May::OnlyAnswer {
                break;
            }
            if response.tool_calls.len() > MOST_CALLS {
                return Err(TurnError::TooManyCalls);
            }
            if !response.final_text.is_empty() {
                attended.operator.notice(Notice::Says(&response.final_text));
            }
            record.name_apart(&mut response.tool_calls);
            record.calls(&response.final_text, &response.tool_calls);
            messages.push(Message::assistant(response.final_text, response.tool_calls.clone()));
            for call in &response.tool_calls {
                let outcome = self
                    .call(record.conversation(), call, attended)
                    .inspect_err(|_| record.without_receipt(call))?;
                record.result(call, &outcome);
                messages.push(Message::tool(&call.id, outcome.text));
            }
            if attended.cancel.why().is_some() {
                return Err(TurnError::Cancelled);
            }
        }
        Err(TurnError::TooManyRounds { rounds: self.max_tool_rounds })
    }

    fn call(
        &self,
        conversation_id: &str,
        call: &ToolCall,
        attended: &mut Attended<'_>,
    ) -> Result<super::Outcome, ReceiptError> {
        let offer = if self.offered.contains(&call.name) { Offer::Listed } else { Offer::Unlisted };
        let wish = Wish { conversation_id, tool: &call.name, arguments: &call.arguments, offer };
        self.door.call(wish, attended)
    }

    fn ask(
        &self,
        messages: &[Message],
        metadata: &Map<String, Value>,
        may: May,
        attended: &mut Attended<'_>,
    ) -> Result<ChatResponse, TurnError> {
        let stopped = estop::is_set(&self.door.home);
        let tools = if stopped || may == May::OnlyAnswer { Vec::new() } else { self.schemas() };
        let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
        let told = if stopped { ToolsTold::Stopped } else { ToolsTold::These(&names) };
        let request = ChatRequest {
            system_prompt: system_prompt(&self.door.rules.policy, told),
            messages: messages.to_vec(),
            model: self.model.clone(),
            temperature: None,
            metadata: metadata.clone(),
            tools,
        };
        attended.operator.notice(Notice::Thinking);
        let operator = &mut *attended.operator;
        let mut heard = false;
        let mut tell = |draft: Draft<'_>| {
            heard = draft != Draft::Void;
            operator.notice(match draft {
                Draft::Text(text) => Notice::Draft(text),
                Draft::Void => Notice::DraftVoid,
            });
        };
        let answered = self.provider.chat(&request, &mut tell, attended.cancel);
        if heard && answered.is_err() {
            attended.operator.notice(Notice::DraftVoid);
        }
        attended.operator.notice(Notice::Thought);
        match answered {
            Err(ProviderError::Cancelled { .. }) => Err(TurnError::Cancelled),
            Err(error) => {
                let provider = self.provider.name();
                self.door.events.tell(Event::ProviderFailed { provider, error: &error.to_string() });
                Err(error.into())
            }
            Ok(response) => Ok(response),
        }
    }

    fn schemas(&self) -> Vec<ToolSchema> {
        let offered = self.door.rules.tools.iter().filter(|tool| self.offered.contains(tool.name()));
        offered
            .map(|tool| ToolSchema {
                name: tool.name().to_owned(),
                description: tool.description().to_owned(),
                parameters: tool.parameters_schema(),
            })
            .collect()
    }
}
