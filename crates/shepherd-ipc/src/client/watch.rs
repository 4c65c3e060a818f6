//! A picture of the daemon that stays true: subscribed, and connected again when the connection was lost.

use std::time::{Duration, Instant};

use shepherd_api::{ClientState, DaemonStateSnapshot, Event, Refresh};

use crate::client::{CallError, Client, ClientOptions, ConnectError, Pushed};

/// First wait before a lost connection is tried again. A restarted daemon is back within this time.
const FIRST_RETRY: Duration = Duration::from_millis(100);

/// Longest wait: a person who starts the daemon sees the front end follow at once.
const LONGEST_RETRY: Duration = Duration::from_secs(2);

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

/// Watches the daemon, over a connection of its own.
#[derive(Debug)]
pub struct Watch {
    options: ClientOptions,
    link: Link,
    state: Option<ClientState>,
}

#[derive(Debug)]
enum Link {
    Up(Client),
    Down { retry_at: Instant, wait: Duration },
}

impl Watch {
    /// A watcher that has not connected yet.
    #[must_use]
    pub fn new(options: ClientOptions) -> Self {
        Self { options, link: Link::Down { retry_at: Instant::now(), wait: FIRST_RETRY }, state: None }
    }

    /// How it stands, as far as is known; `None` before the first connection.
    #[must_use]
    pub fn state(&self) -> Option<&ClientState> {
        self.state.as_ref()
    }

    /// Whether the state is kept up to date.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        matches!(self.link, Link::Up(_))
    }

    /// The next thing to learn; `None` if there was none in this time.
    pub fn next_within(&mut self, within: Duration) -> Option<Update> {
        let deadline = Instant::now() + within;
        match &mut self.link {
            Link::Up(client) => {
                let pushed = match client.pushed(Some(within.max(Duration::from_millis(1)))) {
                    Ok(pushed) => pushed,
                    Err(CallError::TimedOut) => return None,
                    Err(error) => return Some(self.lost(error.into(), FIRST_RETRY)),
                };
                Some(self.learn(pushed))
            }
            Link::Down { retry_at, wait } => {
                let (retry_at, wait) = (*retry_at, *wait);
                if retry_at > deadline {
                    std::thread::sleep(within);
                    return None;
                }
                std::thread::sleep(retry_at.saturating_duration_since(Instant::now()));
                Some(match connected(&self.options) {
                    Ok((client, snapshot)) => {
                        self.link = Link::Up(client);
                        self.resynced(snapshot, 0)
                    }
                    Err(error) => self.lost(error, (wait * 2).min(LONGEST_RETRY)),
                })
            }
        }
    }

    fn learn(&mut self, pushed: Pushed) -> Update {
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

    fn resynced(&mut self, snapshot: DaemonStateSnapshot, missed: u64) -> Update {
        self.state = Some(ClientState::new(snapshot));
        Update::Resynced { missed }
    }

    fn lost(&mut self, error: WatchError, wait: Duration) -> Update {
        self.link = Link::Down { retry_at: Instant::now() + wait, wait };
        Update::Disconnected { error }
    }
}

fn connected(options: &ClientOptions) -> Result<(Client, DaemonStateSnapshot), WatchError> {
    let mut client = Client::connect(options)?;
    let snapshot = client.subscribe()?;
    Ok((client, snapshot))
}

/// Never ends: a daemon that is gone may come back.
impl Iterator for Watch {
    type Item = Update;

    fn next(&mut self) -> Option<Update> {
        loop {
            if let Some(update) = self.next_within(LONGEST_RETRY) {
                return Some(update);
            }
        }
    }
}
