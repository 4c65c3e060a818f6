//! The turns that go on, and who listens to them.

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

/// By their conversation.
#[derive(Clone, Default)]
pub(super) struct TurnRegistry {
    turns: Arc<Mutex<BTreeMap<String, OpenTurn>>>,
}

/// A turn that goes on.
pub(super) struct OpenTurn {
    pub(super) cancel: CancelFlag,
    pub(super) events: Sender<ChatEvent>,
    pub(super) slot: OwnedSemaphorePermit,
    /// Its rules, as soon as it has some.
    pub(super) config: Option<Arc<Config>>,
}

impl TurnRegistry {
    /// A turn begins, unless one of its conversation goes on. It ends with what is returned, if not before.
    pub(super) fn begin(
        &self,
        conversation: &str,
        open: impl FnOnce() -> Result<OpenTurn, ErrorResponse>,
    ) -> Result<TurnGuard, ErrorResponse> {
        let mut turns = self.lock();
        if turns.contains_key(conversation) {
            let message = "a turn of this conversation goes on";
            return Err(ErrorResponse::new(StatusCode::CONFLICT, "turn-open", message)
                .with_retry_after(TURN_RETRY_AFTER));
        }
        let open = open()?;
        let told = open.events.clone();
        turns.insert(conversation.to_owned(), open);
        Ok(TurnGuard { turns: self.clone(), conversation: conversation.to_owned(), events: told })
    }

    /// Tells how a turn ended. Whoever hears it may speak at once: the turn is over before.
    pub(super) fn finish(&self, conversation: &str, over: ChatOutcome) {
        let open = self.lock().remove(conversation);
        if let Some(OpenTurn { events: told, slot: seat, .. }) = open {
            drop(seat);
            // A client that has gone hears nothing.
            let _ = told.blocking_send(ChatEvent::TurnFinished(over));
        }
    }

    /// From now on a turn goes by these rules, to its end.
    pub(super) fn set_config(&self, conversation: &str, config: &Arc<Config>) {
        if let Some(open) = self.lock().get_mut(conversation) {
            open.config = Some(Arc::clone(config));
        }
    }

    /// How many go by other rules than these.
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

/// A turn's right to go on. Dropped, also by a thread that breaks off, the turn is no more.
pub(super) struct TurnGuard {
    turns: TurnRegistry,
    conversation: String,
    events: Sender<ChatEvent>,
}

impl Drop for TurnGuard {
    fn drop(&mut self) {
        let mut turns = self.turns.lock();
        // The next one of the conversation may have begun.
        if turns.get(&self.conversation).is_some_and(|open| open.events.same_channel(&self.events)) {
            turns.remove(&self.conversation);
        }
    }
}
