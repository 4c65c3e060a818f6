//! One turn of a conversation: a message comes in, the model asks for tools in rounds, and an answer goes out. The
//! memory keeps the whole turn or nothing of it (C9).

mod recorder;

use std::collections::BTreeSet;
use std::rc::Rc;

use collieclaw_providers::{
    ChatMessage, ChatRequest, ChatResponse, DraftEvent, MOST_CALLS, Provider, ProviderError, ToolCall,
    ToolSchema,
};
use serde_json::{Map, Value};
use thiserror::Error;

use super::call_outcome::{CallOutcome, FinishedCall};
use super::operator::{ProgressNotice, TurnControl};
use super::prompt::{AddedInstructions, ToolAvailability, read_project_instructions, system_prompt};
use super::tool_gateway::{ToolGateway, ToolOffer, ToolRequest};
use crate::config::Config;
use crate::estop;
use crate::events::AgentEvent;
use crate::memory::MemoryError;
use crate::receipts::ReceiptError;
use crate::usage::CONVERSATION_KEY;
use recorder::TurnRecorder;

/// The answers that the model may give in a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RoundMode {
    ToolsAllowed,
    AnswerOnly,
}

/// An agent: a gateway to its tools, a model, and limits.
pub struct AgentRuntime {
    pub tool_gateway: ToolGateway,
    pub provider: Rc<dyn Provider>,
    pub model: String,
    /// The tools that the model may ask for without an approval for each.
    pub offered_tools: BTreeSet<String>,
    /// The number of rounds in one turn in which the model may ask for tools.
    pub max_tool_rounds: u32,
    /// The number of earlier messages that the model sees.
    pub recent_turns: u32,
    /// The operator's instructions for the model.
    pub operator_instructions: Option<String>,
}

/// The parts of a request to the model that stay the same in all rounds of a turn.
struct TurnRequest<'t> {
    metadata: &'t Map<String, Value>,
    project_instructions: Option<&'t str>,
}

/// The result of a turn. The parts don't exclude each other: a call that was denied stays denied if the provider fails
/// afterwards.
#[derive(Debug)]
#[must_use = "a report holds answers, errors and denials that must be shown"]
pub struct TurnReport {
    pub answer: Result<String, TurnError>,
    /// The outcomes of all calls, in order.
    pub call_outcomes: Vec<CallOutcome>,
    /// The result of storing the turn in the memory.
    pub persisted: Result<(), MemoryError>,
}

/// The reason why a turn has no answer.
#[derive(Debug, Error)]
pub enum TurnError {
    #[error(transparent)]
    Provider(#[from] ProviderError),
    #[error(transparent)]
    Receipt(#[from] ReceiptError),
    #[error(transparent)]
    Memory(#[from] MemoryError),
    #[error("the model asked for tools {rounds} times without an answer (`limits.max_tool_rounds`)")]
    TooManyRounds { rounds: u32 },
    #[error("the model asked for more than {MOST_CALLS} tools at once")]
    TooManyCalls,
    /// The operator cancelled it.
    #[error("cancelled")]
    Cancelled,
}

impl AgentRuntime {
    /// Creates an agent with the limits of the configuration.
    #[must_use]
    pub fn new(
        tool_gateway: ToolGateway,
        provider: Rc<dyn Provider>,
        model: String,
        config: &Config,
    ) -> Self {
        Self {
            tool_gateway,
            provider,
            model,
            offered_tools: config.channels.cli.tools_allow.iter().cloned().collect(),
            max_tool_rounds: config.tool_rounds(),
            recent_turns: config.memory.recent_turns,
            operator_instructions: config.system_prompt.clone(),
        }
    }

    /// Runs one turn of a conversation. The memory keeps the turn even if it ends in an error. A router chooses the
    /// provider by `metadata`, for example by a [hint](collieclaw_providers::hint_metadata).
    pub fn run_turn(
        &self,
        metadata: &Map<String, Value>,
        conversation: &str,
        message: &str,
        control: &mut TurnControl<'_>,
    ) -> TurnReport {
        let earlier = match self.tool_gateway.memory.recent(conversation, self.recent_turns as usize) {
            Ok(earlier) => earlier,
            Err(error) => {
                return TurnReport {
                    answer: Err(error.into()),
                    call_outcomes: Vec::new(),
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
        let project =
            read_project_instructions(&self.tool_gateway.workspace, &self.tool_gateway.rules.policy);
        let turn = TurnRequest { metadata: &metadata, project_instructions: project.as_deref() };
        let answer = self.run_rounds(messages, &turn, &mut record, control);
        match &answer {
            Ok(text) => record.add_answer(text),
            Err(error) => record.add_turn_error(error),
        }
        let (exchange, call_outcomes) = record.finish();
        let persisted = self.tool_gateway.memory.persist(&exchange);
        if persisted.is_ok() {
            self.tool_gateway
                .events
                .emit(AgentEvent::MemoryPersisted { conversation, turns: exchange.turns.len() });
        }
        TurnReport { answer, call_outcomes, persisted }
    }

    fn run_rounds(
        &self,
        mut messages: Vec<ChatMessage>,
        turn: &TurnRequest<'_>,
        record: &mut TurnRecorder<'_>,
        control: &mut TurnControl<'_>,
    ) -> Result<String, TurnError> {
        for round in 0..=self.max_tool_rounds {
            let mode =
                if round == self.max_tool_rounds { RoundMode::AnswerOnly } else { RoundMode::ToolsAllowed };
            let mut response = self.ask_model(&messages, turn, mode, control)?;
            record.set_answered_by(response.answered_by.take());
            if response.tool_calls.is_empty() {
                return Ok(response.final_text);
            }
            if mode == RoundMode::AnswerOnly {
                break;
            }
            if response.tool_calls.len() > MOST_CALLS {
                self.reject_calls(record.conversation(), &response.tool_calls)?;
                return Err(TurnError::TooManyCalls);
            }
            if !response.final_text.is_empty() {
                control.operator.notify(ProgressNotice::AssistantText(&response.final_text));
            }
            record.deduplicate_call_ids(&mut response.tool_calls);
            record.add_tool_calls(&response.final_text, &response.tool_calls);
            messages.push(ChatMessage::assistant(response.final_text, response.tool_calls.clone()));
            for call in &response.tool_calls {
                let finished = self
                    .call_tool(record.conversation(), call, control)
                    .inspect_err(|_| record.add_missing_receipt(call))?;
                messages.push(ChatMessage::tool(&call.id, finished.text.clone()));
                record.add_finished_call(call, finished);
            }
            if control.cancel.reason().is_some() {
                return Err(TurnError::Cancelled);
            }
        }
        Err(TurnError::TooManyRounds { rounds: self.max_tool_rounds })
    }

    /// Writes the receipts of calls that are rejected because there are too many at once. The number of receipts is
    /// limited as well: no provider passes on many more calls than the limit.
    fn reject_calls(&self, conversation_id: &str, calls: &[ToolCall]) -> Result<(), ReceiptError> {
        for call in calls.iter().take(MOST_CALLS + 1) {
            self.tool_gateway.reject(self.tool_request(conversation_id, call))?;
        }
        Ok(())
    }

    fn call_tool(
        &self,
        conversation_id: &str,
        call: &ToolCall,
        control: &mut TurnControl<'_>,
    ) -> Result<FinishedCall, ReceiptError> {
        self.tool_gateway.call(self.tool_request(conversation_id, call), control)
    }

    fn tool_request<'c>(&self, conversation_id: &'c str, call: &'c ToolCall) -> ToolRequest<'c> {
        let offer =
            if self.offered_tools.contains(&call.name) { ToolOffer::Listed } else { ToolOffer::Unlisted };
        ToolRequest { conversation_id, tool: &call.name, arguments: &call.arguments, offer }
    }

    fn ask_model(
        &self,
        messages: &[ChatMessage],
        turn: &TurnRequest<'_>,
        mode: RoundMode,
        control: &mut TurnControl<'_>,
    ) -> Result<ChatResponse, TurnError> {
        let stopped = estop::is_set(&self.tool_gateway.home);
        let tools =
            if stopped || mode == RoundMode::AnswerOnly { Vec::new() } else { self.offered_schemas() };
        let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
        let available = match mode {
            _ if stopped => ToolAvailability::Stopped,
            // With `max_tool_rounds = 0` the model never had a tool.
            RoundMode::AnswerOnly if self.max_tool_rounds > 0 => ToolAvailability::UsedUp,
            RoundMode::AnswerOnly | RoundMode::ToolsAllowed => ToolAvailability::Offered(&names),
        };
        let added = AddedInstructions {
            operator: self.operator_instructions.as_deref(),
            project: turn.project_instructions,
        };
        let request = ChatRequest {
            system_prompt: self.tool_gateway.with_policy(|policy| system_prompt(policy, available, added)),
            messages: messages.to_vec(),
            model: self.model.clone(),
            temperature: None,
            metadata: turn.metadata.clone(),
            tools,
        };
        control.operator.notify(ProgressNotice::Thinking);
        let operator = &mut *control.operator;
        let mut has_draft = false;
        let mut tell = |draft: DraftEvent<'_>| {
            has_draft = draft != DraftEvent::Discard;
            operator.notify(match draft {
                DraftEvent::Text(text) => ProgressNotice::Draft(text),
                DraftEvent::Discard => ProgressNotice::DraftDiscarded,
            });
        };
        let answered = self.provider.chat(&request, &mut tell, control.cancel);
        if has_draft && answered.is_err() {
            control.operator.notify(ProgressNotice::DraftDiscarded);
        }
        control.operator.notify(ProgressNotice::ThinkingEnded);
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
