//! The state of a watcher between connections, shared by the blocking and the asynchronous one.

use std::time::{Duration, Instant};

use shepherd_api::{ClientState, DaemonStateSnapshot, Event, RequiredRefresh};

use crate::client::{CallError, ConnectError, ServerPush};

/// The first delay before a reconnection. A restarted daemon is back within this time.
const MIN_RETRY_DELAY: Duration = Duration::from_millis(100);

/// The longest delay: a front end follows at once when a person starts the daemon.
pub(super) const MAX_RETRY_DELAY: Duration = Duration::from_secs(2);

/// An update from a watcher.
#[derive(Debug)]
pub enum WatchUpdate {
    /// A new snapshot: after connecting, and after events were dropped.
    Resynced {
        /// The number of dropped events, if the daemon reported it.
        missed: u64,
    },
    /// An event, which the state already includes.
    Event {
        /// The event itself.
        event: Box<Event>,
        /// The data to request again, if the client shows it.
        refresh: RequiredRefresh,
    },
    /// The connection is lost and will be retried; the known state is old.
    Disconnected {
        /// The reason for the loss.
        error: WatchError,
    },
}

/// The reason for which a watcher isn't connected.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// A connection could not be made.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The connection was lost.
    #[error(transparent)]
    Call(#[from] CallError),
}

/// The connection, or the time of the next attempt, with the latest known state.
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

    pub(super) fn is_connected(&self) -> bool {
        matches!(self.connection, WatchConnection::Up(_))
    }

    pub(super) fn apply_push(&mut self, pushed: ServerPush) -> WatchUpdate {
        match (pushed, &mut self.state) {
            (ServerPush::FellBehind { missed, snapshot }, _) => self.replace_state(snapshot, missed),
            (ServerPush::Event(event), Some(state)) => {
                let refresh = state.apply(&event);
                WatchUpdate::Event { event: Box::new(event), refresh }
            }
            // A connected watcher always has a state.
            (ServerPush::Event(event), None) => {
                WatchUpdate::Event { event: Box::new(event), refresh: RequiredRefresh::Everything }
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
