//! A watcher that follows the daemon's state: subscribed, and reconnected after a loss.

use std::thread::sleep;
use std::time::{Duration, Instant};

use shepherd_api::{ClientState, DaemonStateSnapshot};

use crate::client::watch_state::{MAX_RETRY_DELAY, WatchConnection, WatchState};
use crate::client::{BlockingClient, CallError, ClientOptions, WatchError, WatchUpdate};

/// The shortest wait for an event, because a socket timeout of zero means no timeout.
const SHORTEST_WAIT: Duration = Duration::from_millis(1);

/// Follows the daemon's state over its own connection.
#[derive(Debug)]
pub struct DaemonWatcher {
    options: ClientOptions,
    watch_state: WatchState<BlockingClient>,
}

impl DaemonWatcher {
    /// Creates a watcher that isn't connected yet.
    #[must_use]
    pub fn new(options: ClientOptions) -> Self {
        Self { options, watch_state: WatchState::new() }
    }

    /// Returns the latest known state; `None` before the first connection.
    #[must_use]
    pub fn state(&self) -> Option<&ClientState> {
        self.watch_state.state.as_ref()
    }

    /// Returns whether the state is kept up to date.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.watch_state.is_connected()
    }

    /// Waits for the next update; `None` if there was none in this time.
    pub fn next_within(&mut self, within: Duration) -> Option<WatchUpdate> {
        match &mut self.watch_state.connection {
            WatchConnection::Up(client) => match client.next_push(Some(within.max(SHORTEST_WAIT))) {
                Ok(pushed) => Some(self.watch_state.apply_push(pushed)),
                Err(CallError::TimedOut) => None,
                Err(error) => Some(self.watch_state.set_disconnected(error.into())),
            },
            WatchConnection::Down { retry_at, .. } => {
                let wait = retry_at.saturating_duration_since(Instant::now());
                sleep(wait.min(within));
                if wait > within {
                    return None;
                }
                Some(match connect_and_subscribe(&self.options) {
                    Ok((client, snapshot)) => self.watch_state.set_connected(client, snapshot),
                    Err(error) => self.watch_state.set_disconnected(error),
                })
            }
        }
    }
}

fn connect_and_subscribe(
    options: &ClientOptions,
) -> Result<(BlockingClient, DaemonStateSnapshot), WatchError> {
    let mut client = BlockingClient::connect(options)?;
    let snapshot = client.subscribe()?;
    Ok((client, snapshot))
}

/// An iterator over all updates. It never ends, because a daemon that is gone may come back.
impl Iterator for DaemonWatcher {
    type Item = WatchUpdate;

    fn next(&mut self) -> Option<WatchUpdate> {
        loop {
            if let Some(update) = self.next_within(MAX_RETRY_DELAY) {
                return Some(update);
            }
        }
    }
}
