//! One turn: a message in, rounds of model and tools, an answer out, all of it kept whole or not at all (C9).

mod recorder;

use std::collections::BTreeSet;
use std::rc::Rc;

use collieclaw_providers::{
    ChatMessage, ChatRequest, ChatResponse, DraftEvent, MOST_CALLS, Provider, ProviderError, ToolCall,
    ToolSchema,
};
use serde_json::{Map, Value};
use thiserror::Error;

use super::operator::{OperatorContext, ProgressNotice};
use super::prompt::{ToolAvailability, system_prompt};
use super::tool_gateway::{CallStatus, ToolGateway, ToolOffer, ToolRequest};
use crate::config::Config;
use crate::estop;
use crate::events::AgentEvent;
use crate::memory::MemoryError;
use crate::receipts::ReceiptError;
use crate::usage::CONVERSATION_KEY;
use recorder::TurnRecorder;

/// What the model may do in a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RoundMode {
    ToolsAllowed,
    AnswerOnly,
}

/// An agent: a door, a model, and limits.
pub struct AgentRuntime {
    /// The way to the tools.
    pub tool_gateway: ToolGateway,
    /// Who answers.
    pub provider: Rc<dyn Provider>,
    /// Which model.
    pub model: String,
    /// The tools that the model is told of.
    pub offered_tools: BTreeSet<String>,
    /// How often it may ask for tools in one turn.
    pub max_tool_rounds: u32,
    /// How many earlier messages it is shown.
    pub recent_turns: u32,
}

/// How a turn went. All of it is true at once: what was denied stays denied when the provider fails afterwards.
#[derive(Debug)]
#[must_use = "an answer, an error or a denial that nobody hears of"]
pub struct TurnReport {
    /// The answer, or why there is none.
    pub answer: Result<String, TurnError>,
    /// How each call ended, in order.
    pub call_statuses: Vec<CallStatus>,
    /// Whether the turn is remembered.
    pub persisted: Result<(), MemoryError>,
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

impl AgentRuntime {
    /// From the configuration.
    #[must_use]
    pub fn new(door: ToolGateway, provider: Rc<dyn Provider>, model: String, config: &Config) -> Self {
        Self {
            tool_gateway: door,
            provider,
            model,
            offered_tools: config.channels.cli.tools_allow.iter().cloned().collect(),
            max_tool_rounds: config.limits.max_tool_rounds,
            recent_turns: config.memory.recent_turns,
        }
    }

    /// One turn of a conversation. What happened is kept, also when it ends in an error. The metadata is for whoever
    /// chooses a provider, such as a [hint](collieclaw_providers::hinted).
    pub fn run_turn(
        &self,
        metadata: &Map<String, Value>,
        conversation: &str,
        message: &str,
        attended: &mut OperatorContext<'_>,
    ) -> TurnReport {
        let earlier = match self.tool_gateway.memory.recent(conversation, self.recent_turns as usize) {
            Ok(earlier) => earlier,
            Err(error) => {
                return TurnReport {
                    answer: Err(error.into()),
                    call_statuses: Vec::new(),
                    persisted: Ok(()),
                };
            }
        };
        let mut messages: Vec<ChatMessage> =
            earlier.into_iter().flat_map(recorder::messages_from_turn).collect();
        messages.push(ChatMessage::user(message));
        let mut record = TurnRecorder::new(conversation, self);
        record.add_user_message(message);
        let mut metadata = metadata.clone();
        metadata.insert(CONVERSATION_KEY.to_owned(), Value::from(conversation));
        let answer = self.run_rounds(messages, &metadata, &mut record, attended);
        match &answer {
            Ok(text) => record.add_answer(text),
            Err(error) => record.add_turn_error(error),
        }
        let (exchange, fates) = record.finish();
        let kept = self.tool_gateway.memory.persist(&exchange);
        if kept.is_ok() {
            self.tool_gateway
                .events
                .emit(AgentEvent::MemoryPersisted { conversation, turns: exchange.turns.len() });
        }
        TurnReport { answer, call_statuses: fates, persisted: kept }
    }

    fn run_rounds(
        &self,
        mut messages: Vec<ChatMessage>,
        metadata: &Map<String, Value>,
        record: &mut TurnRecorder<'_>,
        attended: &mut OperatorContext<'_>,
    ) -> Result<String, TurnError> {
        for round in 0..=self.max_tool_rounds {
            let may =
                if round == self.max_tool_rounds { RoundMode::AnswerOnly } else { RoundMode::ToolsAllowed };
            let mut response = self.ask_model(&messages, metadata, may, attended)?;
            record.set_answered_by(response.answered_by.take());
            if response.tool_calls.is_empty() {
                return Ok(response.final_text);
            }
            if may == RoundMode::AnswerOnly {
                break;
            }
            if response.tool_calls.len() > MOST_CALLS {
                return Err(TurnError::TooManyCalls);
            }
            if !response.final_text.is_empty() {
                attended.operator.notify(ProgressNotice::AssistantText(&response.final_text));
            }
            record.deduplicate_call_ids(&mut response.tool_calls);
            record.add_tool_calls(&response.final_text, &response.tool_calls);
            messages.push(ChatMessage::assistant(response.final_text, response.tool_calls.clone()));
            for call in &response.tool_calls {
                let outcome = self
                    .call_tool(record.conversation(), call, attended)
                    .inspect_err(|_| record.add_missing_receipt(call))?;
                record.add_tool_result(call, &outcome);
                messages.push(ChatMessage::tool(&call.id, outcome.text));
            }
            if attended.cancel.reason().is_some() {
                return Err(TurnError::Cancelled);
            }
        }
        Err(TurnError::TooManyRounds { rounds: self.max_tool_rounds })
    }

    fn call_tool(
        &self,
        conversation_id: &str,
        call: &ToolCall,
        attended: &mut OperatorContext<'_>,
    ) -> Result<super::CallOutcome, ReceiptError> {
        let offer =
            if self.offered_tools.contains(&call.name) { ToolOffer::Listed } else { ToolOffer::Unlisted };
        let wish = ToolRequest { conversation_id, tool: &call.name, arguments: &call.arguments, offer };
        self.tool_gateway.call(wish, attended)
    }

    fn ask_model(
        &self,
        messages: &[ChatMessage],
        metadata: &Map<String, Value>,
        may: RoundMode,
        attended: &mut OperatorContext<'_>,
    ) -> Result<ChatResponse, TurnError> {
        let stopped = estop::is_set(&self.tool_gateway.home);
        let tools = if stopped || may == RoundMode::AnswerOnly { Vec::new() } else { self.offered_schemas() };
        let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
        let told = if stopped { ToolAvailability::Stopped } else { ToolAvailability::Offered(&names) };
        let request = ChatRequest {
            system_prompt: system_prompt(&self.tool_gateway.rules.policy, told),
            messages: messages.to_vec(),
            model: self.model.clone(),
            temperature: None,
            metadata: metadata.clone(),
            tools,
        };
        attended.operator.notify(ProgressNotice::Thinking);
        let operator = &mut *attended.operator;
        let mut heard = false;
        let mut tell = |draft: DraftEvent<'_>| {
            heard = draft != DraftEvent::Discard;
            operator.notify(match draft {
                DraftEvent::Text(text) => ProgressNotice::Draft(text),
                DraftEvent::Discard => ProgressNotice::DraftDiscarded,
            });
        };
        let answered = self.provider.chat(&request, &mut tell, attended.cancel);
        if heard && answered.is_err() {
            attended.operator.notify(ProgressNotice::DraftDiscarded);
        }
        attended.operator.notify(ProgressNotice::ThinkingEnded);
        match answered {
            Err(ProviderError::Cancelled { .. }) => Err(TurnError::Cancelled),
            Err(error) => {
                let provider = self.provider.name();
                self.tool_gateway
                    .events
                    .emit(AgentEvent::ProviderFailed { provider, error: &error.to_string() });
                Err(error.into())
            }
            Ok(response) => Ok(response),
        }
    }

    fn offered_schemas(&self) -> Vec<ToolSchema> {
        let offered =
            self.tool_gateway.rules.tools.iter().filter(|tool| self.offered_tools.contains(tool.name()));
        offered
            .map(|tool| ToolSchema {
                name: tool.name().to_owned(),
                description: tool.description().to_owned(),
                parameters: tool.parameters_schema(),
            })
            .collect()
    }
}
