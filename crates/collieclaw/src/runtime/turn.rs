//! One turn: a message in, rounds of model and tools, an answer out, all of it kept whole or not at all (C9).

mod record;

use std::collections::BTreeSet;

use thiserror::Error;

use super::door::{Door, Fate, Offer, Wish};
use super::operator::{Notice, Operator};
use super::prompt::system_prompt;
use crate::cancel::Cancel;
use crate::config::Config;
use crate::estop;
use crate::events::Event;
use crate::memory::MemoryError;
use crate::providers::{ChatRequest, ChatResponse, Message, Provider, ProviderError, ToolCall, ToolSchema};
use crate::receipts::ReceiptError;
use record::Record;

/// More calls in one answer are a mistake of the model, or worse.
const MOST_CALLS_AT_ONCE: usize = 64;

/// An agent: a door, a model, and limits.
pub struct Runtime {
    /// The way to the tools.
    pub door: Door,
    /// Who answers.
    pub provider: Box<dyn Provider>,
    /// Which model.
    pub model: String,
    /// The tools that the model is told of.
    pub offered: BTreeSet<String>,
    /// How often it may ask for tools in one turn.
    pub max_tool_rounds: u32,
    /// How many earlier messages it is shown.
    pub recent_turns: u32,
}

/// How a turn went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// The answer.
    pub text: String,
    /// How each call ended, in order.
    pub fates: Vec<Fate>,
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
    #[error("the model asked for {calls} tools at once, and {MOST_CALLS_AT_ONCE} are the most")]
    TooManyCalls {
        /// How many.
        calls: usize,
    },
    /// The operator cancelled it.
    #[error("cancelled")]
    Cancelled,
}

impl Runtime {
    /// From the configuration.
    #[must_use]
    pub fn new(door: Door, provider: Box<dyn Provider>, model: String, config: &Config) -> Self {
        Self {
            door,
            provider,
            model,
            offered: config.channels.cli.tools_allow.iter().cloned().collect(),
            max_tool_rounds: config.limits.max_tool_rounds,
            recent_turns: config.memory.recent_turns,
        }
    }

    /// One turn of a conversation. What happened is kept, also when it ends in an error.
    ///
    /// # Errors
    /// When there is no answer, with the reason.
    pub fn turn(
        &self,
        conversation: &str,
        message: &str,
        operator: &mut dyn Operator,
        cancel: &Cancel,
    ) -> Result<Report, TurnError> {
        let earlier = self.door.memory.recent(conversation, self.recent_turns as usize)?;
        let mut messages: Vec<Message> = earlier.into_iter().flat_map(record::messages).collect();
        messages.push(Message::user(message));
        let mut record = Record::new(conversation, self);
        record.user(message);
        let mut fates = Vec::new();
        let ended = self.rounds(conversation, messages, &mut record, &mut fates, (operator, cancel));
        match &ended {
            Ok(text) => record.answer(text),
            Err(error) => record.broke_off(error),
        }
        let exchange = record.exchange();
        self.door.memory.persist(&exchange)?;
        self.door.events.tell(Event::MemoryPersisted { conversation, turns: exchange.turns.len() });
        Ok(Report { text: ended?, fates })
    }

    fn rounds(
        &self,
        conversation: &str,
        mut messages: Vec<Message>,
        record: &mut Record<'_>,
        fates: &mut Vec<Fate>,
        (operator, cancel): (&mut dyn Operator, &Cancel),
    ) -> Result<String, TurnError> {
        for round in 0..=self.max_tool_rounds {
            let last = round == self.max_tool_rounds;
            let response = self.ask(&messages, last, (operator, cancel))?;
            if response.tool_calls.is_empty() {
                return Ok(response.final_text);
            }
            if last {
                break;
            }
            if response.tool_calls.len() > MOST_CALLS_AT_ONCE {
                return Err(TurnError::TooManyCalls { calls: response.tool_calls.len() });
            }
            if !response.final_text.is_empty() {
                operator.notice(Notice::Says(&response.final_text));
            }
            record.calls(&response.final_text, &response.tool_calls);
            messages.push(Message::assistant(response.final_text, response.tool_calls.clone()));
            for call in &response.tool_calls {
                let outcome = self.call(conversation, call, (operator, cancel))?;
                fates.push(outcome.fate);
                record.result(call, &outcome);
                messages.push(Message::tool(&call.id, outcome.text));
            }
            if cancel.why().is_some() {
                return Err(TurnError::Cancelled);
            }
        }
        Err(TurnError::TooManyRounds { rounds: self.max_tool_rounds })
    }

    fn call(
        &self,
        conversation_id: &str,
        call: &ToolCall,
        (operator, cancel): (&mut dyn Operator, &Cancel),
    ) -> Result<super::Outcome, ReceiptError> {
        let offer = if self.offered.contains(&call.name) { Offer::Listed } else { Offer::Unlisted };
        let wish = Wish { conversation_id, tool: &call.name, arguments: &call.arguments, offer };
        self.door.call(wish, operator, cancel)
    }

    fn ask(
        &self,
        messages: &[Message],
        last: bool,
        (operator, cancel): (&mut dyn Operator, &Cancel),
    ) -> Result<ChatResponse, TurnError> {
        let stopped = estop::is_set(&self.door.home);
        let tools = if stopped || last { Vec::new() } else { self.schemas() };
        let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
        let request = ChatRequest {
            system_prompt: system_prompt(&self.door.rules.policy, &names, stopped),
            messages: messages.to_vec(),
            model: self.model.clone(),
            temperature: None,
            metadata: serde_json::Map::new(),
            tools,
        };
        operator.notice(Notice::Thinking);
        let answered = self.provider.chat(&request, cancel);
        operator.notice(Notice::Thought);
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
