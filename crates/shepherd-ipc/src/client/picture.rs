//! What a watcher keeps between connections, whichever way it waits.

use std::time::{Duration, Instant};

use shepherd_api::{ClientState, DaemonStateSnapshot, Event, Refresh};

use crate::client::{CallError, ConnectError, Pushed};

/// First wait before a lost connection is tried again. A restarted daemon is back within this time.
const FIRST_RETRY: Duration = Duration::from_millis(100);

/// Longest wait: a person who starts the daemon sees the front end follow at once.
pub(super) const LONGEST_RETRY: Duration = Duration::from_secs(2);

/// What a watcher learns.
#[derive(Debug)]
pub enum Update {
    /// Everything anew: after connecting, and after falling behind.
    Resynced {
        /// How many events were left out, where the daemon said it.
        missed: u64,
    },
    /// Something happened. The state has taken it in.
    Event {
        /// What.
        event: Event,
        /// What to ask for again, if it is shown.
        refresh: Refresh,
    },
    /// There is no connection. It will be tried again; what is known of the state is old.
    Disconnected {
        /// Why.
        error: WatchError,
    },
}

/// Why a watcher is not connected.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// There was none to be had.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// It was lost.
    #[error(transparent)]
    Call(#[from] CallError),
}

/// A connection, or when it is tried again, and the state as far as is known.
#[derive(Debug)]
pub(super) struct Picture<C> {
    pub(super) link: Link<C>,
    pub(super) state: Option<ClientState>,
}

#[derive(Debug)]
pub(super) enum Link<C> {
    Up(C),
    Down { retry_at: Instant, wait: Duration },
}

impl<C> Picture<C> {
    pub(super) fn new() -> Self {
        Self { link: Link::Down { retry_at: Instant::now(), wait: Duration::ZERO }, state: None }
    }

    pub(super) fn learn(&mut self, pushed: Pushed) -> Update {
        match (pushed, &mut self.state) {
            (Pushed::FellBehind { missed, snapshot }, _) => self.resynced(snapshot, missed),
            (Pushed::Event(event), Some(state)) => {
                let refresh = state.apply(&event);
                Update::Event { event, refresh }
            }
            // Whoever is connected has a state.
            (Pushed::Event(event), None) => Update::Event { event, refresh: Refresh::Everything },
        }
    }

    pub(super) fn connected(&mut self, client: C, snapshot: DaemonStateSnapshot) -> Update {
        self.link = Link::Up(client);
        self.resynced(snapshot, 0)
    }

    fn resynced(&mut self, snapshot: DaemonStateSnapshot, missed: u64) -> Update {
        self.state = Some(ClientState::new(snapshot));
        Update::Resynced { missed }
    }

    pub(super) fn lost(&mut self, error: WatchError) -> Update {
        let wait = match self.link {
            Link::Up(_) => FIRST_RETRY,
            Link::Down { wait, .. } => (wait * 2).clamp(FIRST_RETRY, LONGEST_RETRY),
        };
        self.link = Link::Down { retry_at: Instant::now() + wait, wait };
        Update::Disconnected { error }
    }
}
