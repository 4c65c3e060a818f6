//! A picture of the daemon that stays true: subscribed, and connected again when the connection was lost.

use std::thread::sleep;
use std::time::{Duration, Instant};

use shepherd_api::{ClientState, DaemonStateSnapshot};

use crate::client::picture::{LONGEST_RETRY, Link, Picture};
use crate::client::{CallError, Client, ClientOptions, Update, WatchError};

/// Shortest wait for an event: a socket can't be told to wait for no time.
const SHORTEST_WAIT: Duration = Duration::from_millis(1);

/// Watches the daemon, over a connection of its own.
#[derive(Debug)]
pub struct Watch {
    options: ClientOptions,
    picture: Picture<Client>,
}

impl Watch {
    /// A watcher that has not connected yet.
    #[must_use]
    pub fn new(options: ClientOptions) -> Self {
        Self { options, picture: Picture::new() }
    }

    /// How it stands, as far as is known; `None` before the first connection.
    #[must_use]
    pub fn state(&self) -> Option<&ClientState> {
        self.picture.state.as_ref()
    }

    /// Whether the state is kept up to date.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        matches!(self.picture.link, Link::Up(_))
    }

    /// The next thing to learn; `None` if there was none in this time.
    pub fn next_within(&mut self, within: Duration) -> Option<Update> {
        match &mut self.picture.link {
            Link::Up(client) => match client.pushed(Some(within.max(SHORTEST_WAIT))) {
                Ok(pushed) => Some(self.picture.learn(pushed)),
                Err(CallError::TimedOut) => None,
                Err(error) => Some(self.picture.lost(error.into())),
            },
            Link::Down { retry_at, .. } => {
                let wait = retry_at.saturating_duration_since(Instant::now());
                sleep(wait.min(within));
                if wait > within {
                    return None;
                }
                Some(match connected(&self.options) {
                    Ok((client, snapshot)) => self.picture.connected(client, snapshot),
                    Err(error) => self.picture.lost(error),
                })
            }
        }
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
