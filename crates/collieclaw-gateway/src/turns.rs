//! The running turns, and the clients that receive their events.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::http::StatusCode;
use collieclaw_agent::config::Config;
use collieclaw_providers::cancel::{CancelFlag, CancelReason};
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::mpsc::Sender;

use super::remote_operator::{ChatEvent, ChatOutcome};
use super::response::ErrorResponse;
use super::state::TURN_RETRY_AFTER;

/// The running turns, by conversation.
#[derive(Clone, Default)]
pub(super) struct TurnRegistry {
    turns: Arc<Mutex<BTreeMap<String, OpenTurn>>>,
}

/// A running turn.
pub(super) struct OpenTurn {
    pub(super) cancel: CancelFlag,
    pub(super) events: Sender<ChatEvent>,
    pub(super) slot: OwnedSemaphorePermit,
    /// The hash of its rules, once they are known.
    pub(super) config: Option<Arc<Config>>,
}

impl TurnRegistry {
    /// Registers a turn, unless its conversation already has one. Dropping the returned guard ends the turn.
    pub(super) fn begin(
        &self,
        conversation: &str,
        open: impl FnOnce() -> Result<OpenTurn, ErrorResponse>,
    ) -> Result<TurnGuard, ErrorResponse> {
        let mut turns = self.lock();
        if turns.contains_key(conversation) {
            let message = "a turn of this conversation is still running";
            return Err(ErrorResponse::new(StatusCode::CONFLICT, "turn-open", message)
                .with_retry_after(TURN_RETRY_AFTER));
        }
        let open = open()?;
        let events = open.events.clone();
        turns.insert(conversation.to_owned(), open);
        Ok(TurnGuard { turns: self.clone(), conversation: conversation.to_owned(), events })
    }

    /// Reports the end of a turn. The turn is removed first, so that the client may send the next message at once.
    pub(super) fn finish(&self, conversation: &str, over: ChatOutcome) {
        let open = self.lock().remove(conversation);
        if let Some(OpenTurn { events, slot, .. }) = open {
            drop(slot);
            // A disconnected client gets nothing.
            let _ = events.blocking_send(ChatEvent::TurnFinished(over));
        }
    }

    /// Sets the rules under which a turn runs to its end.
    pub(super) fn set_config(&self, conversation: &str, config: &Arc<Config>) {
        if let Some(open) = self.lock().get_mut(conversation) {
            open.config = Some(Arc::clone(config));
        }
    }

    /// Returns the number of turns that run under other rules than these.
    pub(super) fn count_with_other_config(&self, config: &Arc<Config>) -> usize {
        let others = |open: &&OpenTurn| open.config.as_ref().is_some_and(|own| !Arc::ptr_eq(own, config));
        self.lock().values().filter(others).count()
    }

    pub(super) fn count(&self) -> usize {
        self.lock().len()
    }

    pub(super) fn cancel_all(&self) {
        let going_on: Vec<CancelFlag> = self.lock().values().map(|open| open.cancel.clone()).collect();
        for turn in going_on {
            turn.raise(CancelReason::Operator);
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, OpenTurn>> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The guard of a running turn. Dropping it ends the turn, also if its thread panics.
pub(super) struct TurnGuard {
    turns: TurnRegistry,
    conversation: String,
    events: Sender<ChatEvent>,
}

impl Drop for TurnGuard {
    fn drop(&mut self) {
        let mut turns = self.turns.lock();
        // The next turn of the conversation may already be running, so only our own entry is removed.
        if turns.get(&self.conversation).is_some_and(|open| open.events.same_channel(&self.events)) {
            turns.remove(&self.conversation);
        }
    }
}
