//! The turns that go on, and who listens to them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::http::StatusCode;
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::mpsc::Sender;

use super::answer::Refusal;
use super::desk::TURN_SOON;
use super::operator::{Over, Told};
use crate::cancel::{Cancel, Why};
use crate::config::Config;

/// By their conversation.
#[derive(Clone, Default)]
pub(super) struct Turns {
    open: Arc<Mutex<BTreeMap<String, Open>>>,
}

/// A turn that goes on.
pub(super) struct Open {
    pub(super) cancel: Cancel,
    pub(super) told: Sender<Told>,
    pub(super) seat: OwnedSemaphorePermit,
    /// Its rules, as soon as it has some.
    pub(super) config: Option<Arc<Config>>,
}

impl Turns {
    /// A turn begins, unless one of its conversation goes on. It ends with what is returned, if not before.
    pub(super) fn begin(
        &self,
        conversation: &str,
        open: impl FnOnce() -> Result<Open, Refusal>,
    ) -> Result<Going, Refusal> {
        let mut turns = self.list();
        if turns.contains_key(conversation) {
            let message = "a turn of this conversation goes on";
            return Err(Refusal::new(StatusCode::CONFLICT, "turn-open", message).after(TURN_SOON));
        }
        let open = open()?;
        let told = open.told.clone();
        turns.insert(conversation.to_owned(), open);
        Ok(Going { turns: self.clone(), conversation: conversation.to_owned(), told })
    }

    /// Tells how a turn ended. Whoever hears it may speak at once: the turn is over before.
    pub(super) fn end(&self, conversation: &str, over: Over) {
        let open = self.list().remove(conversation);
        if let Some(Open { told, seat, .. }) = open {
            drop(seat);
            // A client that has gone hears nothing.
            let _ = told.blocking_send(Told::Over(over));
        }
    }

    /// From now on a turn goes by these rules, to its end.
    pub(super) fn goes_by(&self, conversation: &str, config: &Arc<Config>) {
        if let Some(open) = self.list().get_mut(conversation) {
            open.config = Some(Arc::clone(config));
        }
    }

    /// How many go by other rules than these.
    pub(super) fn count_of_others(&self, config: &Arc<Config>) -> usize {
        let others = |open: &&Open| open.config.as_ref().is_some_and(|own| !Arc::ptr_eq(own, config));
        self.list().values().filter(others).count()
    }

    pub(super) fn count(&self) -> usize {
        self.list().len()
    }

    pub(super) fn cancel_all(&self) {
        let going_on: Vec<Cancel> = self.list().values().map(|open| open.cancel.clone()).collect();
        for turn in going_on {
            turn.raise(Why::Operator);
        }
    }

    fn list(&self) -> MutexGuard<'_, BTreeMap<String, Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A turn's right to go on. Dropped, also by a thread that breaks off, the turn is no more.
pub(super) struct Going {
    turns: Turns,
    conversation: String,
    told: Sender<Told>,
}

impl Drop for Going {
    fn drop(&mut self) {
        let mut turns = self.turns.list();
        // The next one of the conversation may have begun.
        if turns.get(&self.conversation).is_some_and(|open| open.told.same_channel(&self.told)) {
            turns.remove(&self.conversation);
        }
    }
}
