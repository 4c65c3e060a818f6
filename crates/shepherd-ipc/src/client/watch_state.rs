//! What a watcher keeps between connections, whichever way it waits.

use std::time::{Duration, Instant};

use shepherd_api::{ClientState, DaemonStateSnapshot, Event, RequiredRefresh};

use crate::client::{CallError, ConnectError, ServerPush};

/// First wait before a lost connection is tried again. A restarted daemon is back within this time.
const MIN_RETRY_DELAY: Duration = Duration::from_millis(100);

/// Longest wait: a person who starts the daemon sees the front end follow at once.
pub(super) const MAX_RETRY_DELAY: Duration = Duration::from_secs(2);

/// What a watcher learns.
#[derive(Debug)]
pub enum WatchUpdate {
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
        refresh: RequiredRefresh,
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
pub(super) struct WatchState<C> {
    pub(super) connection: WatchConnection<C>,
    pub(super) state: Option<ClientState>,
}

#[derive(Debug)]
pub(super) enum WatchConnection<C> {
    Up(C),
    Down { retry_at: Instant, wait: Duration },
}

impl<C> WatchState<C> {
    pub(super) fn new() -> Self {
        Self {
            connection: WatchConnection::Down { retry_at: Instant::now(), wait: Duration::ZERO },
            state: None,
        }
    }

    pub(super) fn apply_push(&mut self, pushed: ServerPush) -> WatchUpdate {
        match (pushed, &mut self.state) {
            (ServerPush::FellBehind { missed, snapshot }, _) => self.replace_state(snapshot, missed),
            (ServerPush::Event(event), Some(state)) => {
                let refresh = state.apply(&event);
                WatchUpdate::Event { event, refresh }
            }
            // Whoever is connected has a state.
            (ServerPush::Event(event), None) => {
                WatchUpdate::Event { event, refresh: RequiredRefresh::Everything }
            }
        }
    }

    pub(super) fn set_connected(&mut self, client: C, snapshot: DaemonStateSnapshot) -> WatchUpdate {
        self.connection = WatchConnection::Up(client);
        self.replace_state(snapshot, 0)
    }

    fn replace_state(&mut self, snapshot: DaemonStateSnapshot, missed: u64) -> WatchUpdate {
        self.state = Some(ClientState::new(snapshot));
        WatchUpdate::Resynced { missed }
    }

    pub(super) fn set_disconnected(&mut self, error: WatchError) -> WatchUpdate {
        let wait = match self.connection {
            WatchConnection::Up(_) => MIN_RETRY_DELAY,
            WatchConnection::Down { wait, .. } => (wait * 2).clamp(MIN_RETRY_DELAY, MAX_RETRY_DELAY),
        };
        self.connection = WatchConnection::Down { retry_at: Instant::now() + wait, wait };
        WatchUpdate::Disconnected { error }
    }
}
