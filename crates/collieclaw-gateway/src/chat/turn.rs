//! A single turn, with its own thread and its own tool gateway.

use std::sync::Arc;

use axum::http::StatusCode;
use collieclaw_agent::channel::Channel;
use collieclaw_agent::events::AgentEvent;
use collieclaw_agent::ids;
use collieclaw_agent::runtime::{AgentRuntime, TurnControl, TurnError};
use collieclaw_listen::TcpPeer;
use collieclaw_providers::cancel::{CancelFlag, CancelReason};
use collieclaw_providers::{ProviderError, hint_metadata};
use tokio::sync::mpsc::{Receiver, channel};
use tokio::task::AbortHandle;
use ward_diag::ErrorChain;

use super::ChatRequestBody;
use crate::remote_operator::{ChatEvent, ChatOutcome, RemoteOperator};
use crate::response::ErrorResponse;
use crate::state::{GatewayState, TURN_RETRY_AFTER};
use crate::turns::TurnGuard;

/// A running turn. It is cancelled when its client disconnects or this value is dropped, because the answer could not be
/// delivered.
pub(super) struct RunningTurn {
    pub(super) conversation: String,
    pub(super) events: Receiver<ChatEvent>,
    cancel: CancelFlag,
    disconnect_watch: AbortHandle,
}

/// The number of events that a client may leave unread before the turn waits.
const EVENT_BUFFER: usize = 64;

impl RunningTurn {
    pub(super) fn begin(
        gateway: &Arc<GatewayState>,
        message: ChatRequestBody,
        peer: TcpPeer,
    ) -> Result<Self, ErrorResponse> {
        let no_means = |error: std::io::Error| {
            let message = format!("the machine is out of descriptors or threads: {error}");
            ErrorResponse::new(StatusCode::SERVICE_UNAVAILABLE, "out-of-resources", message)
                .with_retry_after(TURN_RETRY_AFTER)
        };
        let cancel = CancelFlag::new().map_err(no_means)?;
        let conversation = message.conversation_id.clone().unwrap_or_else(|| ids::random_id("conversation"));
        let (sender, events) = channel(EVENT_BUFFER);
        let guard = gateway.begin_turn(&conversation, &cancel, &sender)?;
        let holder = TurnRunner {
            operator: RemoteOperator {
                gateway: Arc::clone(gateway),
                conversation: conversation.clone(),
                events: sender,
                cancel: cancel.clone(),
                drafted: false,
            },
            message,
        };
        std::thread::Builder::new()
            .name("turn".to_owned())
            .spawn(move || holder.run(guard))
            .map_err(no_means)?;
        let watch = cancel_on_disconnect(peer, cancel.clone());
        Ok(Self { conversation, events, cancel, disconnect_watch: watch })
    }
}

/// Detects a disconnected client, also if it sent extra bytes after its request: hyper doesn't notice such a disconnect,
/// because it would have to read these bytes first.
fn cancel_on_disconnect(peer: TcpPeer, cancel: CancelFlag) -> AbortHandle {
    let watching = async move {
        let _at_work = peer.mark_active();
        peer.wait_for_disconnect().await;
        cancel.raise(CancelReason::Operator);
    };
    tokio::spawn(watching).abort_handle()
}

impl Drop for RunningTurn {
    fn drop(&mut self) {
        self.disconnect_watch.abort();
        self.cancel.raise(CancelReason::Operator);
    }
}

struct TurnRunner {
    operator: RemoteOperator,
    message: ChatRequestBody,
}

impl TurnRunner {
    fn run(mut self, _going: TurnGuard) {
        let over = self.run_turn();
        let RemoteOperator { gateway, conversation, .. } = self.operator;
        let mut gateway = gateway.channel.clone();
        match over {
            ChatOutcome::Answer(answer) => gateway.send(&conversation, &answer),
            trouble @ ChatOutcome::Failed { .. } => gateway.turns.finish(&conversation, trouble),
        }
    }

    fn run_turn(&mut self) -> ChatOutcome {
        let gateway = &self.operator.gateway;
        let state = gateway.current_config();
        gateway.channel.turns.set_config(&self.operator.conversation, &state.config);
        let runtime = match gateway.open_runtime(&state) {
            Ok(runtime) => runtime,
            Err(message) => return ChatOutcome::Failed { code: "setup", message, retry_after: None },
        };
        if let Some(fault) = &state.fault {
            let what =
                format!("the changed configuration is invalid, so the old one stays in force: {fault}");
            runtime.tool_gateway.events.emit(AgentEvent::Trouble { what: &what });
        }
        self.announce_conversation(&runtime);
        let conversation = self.operator.conversation.clone();
        let cancel = self.operator.cancel.clone();
        let mut control = TurnControl { operator: &mut self.operator, cancel: &cancel };
        let hint = hint_metadata(self.message.hint.as_deref());
        let report = runtime.run_turn(&hint, &conversation, &self.message.message, &mut control);
        match (report.answer, report.persisted) {
            (Ok(answer), Ok(())) => ChatOutcome::Answer(answer),
            (Ok(_), Err(error)) => turn_failure(&TurnError::from(error)),
            (Err(error), _) => {
                if turn_error_code(&error) == "provider" {
                    self.operator.gateway.metrics.provider_errors.increment();
                }
                turn_failure(&error)
            }
        }
    }

    fn announce_conversation(&self, runtime: &AgentRuntime) {
        let conversation = &self.operator.conversation;
        if runtime.tool_gateway.memory.recent(conversation, 1).is_ok_and(|turns| turns.is_empty()) {
            self.operator.gateway.metrics.conversations.increment();
            runtime.tool_gateway.events.emit(AgentEvent::ConversationStarted { conversation });
        }
    }
}

fn turn_failure(error: &TurnError) -> ChatOutcome {
    let retry_after = match error {
        TurnError::Provider(ProviderError::Limit { retry_after, .. }) => *retry_after,
        _ => None,
    };
    ChatOutcome::Failed { code: turn_error_code(error), message: ErrorChain(error).to_string(), retry_after }
}

fn turn_error_code(error: &TurnError) -> &'static str {
    match error {
        TurnError::Provider(ProviderError::Limit { .. }) => "used-up",
        TurnError::Provider(_) => "provider",
        TurnError::Receipt(_) => "receipts",
        TurnError::Memory(_) => "memory",
        TurnError::TooManyRounds { .. } | TurnError::TooManyCalls => "limit",
        TurnError::Cancelled => "cancelled",
    }
}
