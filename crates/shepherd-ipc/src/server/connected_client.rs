//! The data of a connected client that the hub and the client's task share.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use shepherd_util::ClientId;
use ward_terminal::is_invisible;

use super::outbox::ClientOutbox;
use crate::PeerCredentials;

/// The longest name that is kept of a client, in characters.
const MAX_NAME_CHARS: usize = 64;

#[derive(Debug)]
pub(super) struct ConnectedClient {
    pub(super) client_id: ClientId,
    pub(super) peer: PeerCredentials,
    pub(super) outbox: Arc<ClientOutbox>,
    name: OnceLock<String>,
    elevation: Mutex<Option<PinElevation>>,
}

/// The administrator rights of a connection on which the PIN was given.
#[derive(Clone, Copy, Debug)]
struct PinElevation {
    /// The PIN's generation, which changes with each new PIN. An elevation ends with its generation.
    generation: u64,
    /// The end of the elevation, as time since boot including suspend.
    until: Duration,
}

impl ConnectedClient {
    pub(super) fn new(client_id: ClientId, peer: PeerCredentials, outbox: ClientOutbox) -> Self {
        let (name, elevation) = (OnceLock::new(), Mutex::new(None));
        Self { client_id, peer, outbox: Arc::new(outbox), name, elevation }
    }

    /// Sets the name that the client gave itself; only the first name counts. Logs show it in brackets after the
    /// credentials from the kernel, so characters that could control a terminal or end the brackets are removed.
    pub(super) fn set_name(&self, name: &str) {
        let _ = self.name.set(name.chars().filter(is_safe_in_log).take(MAX_NAME_CHARS).collect());
    }

    pub(super) fn name(&self) -> &str {
        self.name.get().map_or("", String::as_str)
    }

    pub(super) fn elevate(&self, generation: u64, until: Duration) {
        *self.elevation.lock().unwrap_or_else(PoisonError::into_inner) =
            Some(PinElevation { generation, until });
    }

    pub(super) fn is_elevated(&self, generation: u64, now: Duration) -> bool {
        let elevation = *self.elevation.lock().unwrap_or_else(PoisonError::into_inner);
        elevation.is_some_and(|elevation| elevation.generation == generation && now < elevation.until)
    }
}

/// Returns true if a character is visible and not a bracket.
fn is_safe_in_log(character: &char) -> bool {
    !is_invisible(*character) && !matches!(character, '(' | ')')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_name_cannot_forge_log_text() {
        let check = |given: &str, kept: &str| {
            let peer = PeerCredentials { uid: 1_000, gid: 1_000, pid: None };
            let client =
                ConnectedClient::new(ClientId::from_random(1), peer, ClientOutbox::new(Arc::default()));
            client.set_name(given);
            assert_eq!(client.name(), kept);
        };
        check("Screen in the hall", "Screen in the hall");
        check("a) uid 0 (root", "a uid 0 root");
        check("a\u{202e}\x1b[2Kb\n", "a[2Kb");
        check(&"x".repeat(100), &"x".repeat(MAX_NAME_CHARS));
    }
}
