//! One connected client, as the hub and its task share it.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use shepherd_util::ClientId;

use super::outbox::Outbox;
use crate::Peer;

/// Characters of a client's own name that are kept.
const MOST_OF_A_NAME: usize = 64;

#[derive(Debug)]
pub(super) struct Client {
    pub(super) client_id: ClientId,
    pub(super) peer: Peer,
    pub(super) outbox: Arc<Outbox>,
    name: OnceLock<String>,
    elevation: Mutex<Option<Elevation>>,
}

/// That the PIN was given on this connection.
#[derive(Clone, Copy, Debug)]
struct Elevation {
    /// Which PIN it was; another one ends it.
    generation: u64,
    /// Time since boot, suspend included.
    until: Duration,
}

impl Client {
    pub(super) fn new(client_id: ClientId, peer: Peer, outbox: Outbox) -> Self {
        let (name, elevation) = (OnceLock::new(), Mutex::new(None));
        Self { client_id, peer, outbox: Arc::new(outbox), name, elevation }
    }

    /// What the client calls itself; only the first time counts. It ends up in logs, in brackets behind what the
    /// kernel says, so nothing in it can do anything there or look like more of what the kernel says.
    pub(super) fn introduce(&self, name: &str) {
        let _ = self.name.set(name.chars().filter(is_harmless).take(MOST_OF_A_NAME).collect());
    }

    pub(super) fn name(&self) -> &str {
        self.name.get().map_or("", String::as_str)
    }

    pub(super) fn elevate(&self, generation: u64, until: Duration) {
        *self.elevation.lock().unwrap_or_else(PoisonError::into_inner) =
            Some(Elevation { generation, until });
    }

    pub(super) fn is_elevated(&self, generation: u64, now: Duration) -> bool {
        let elevation = *self.elevation.lock().unwrap_or_else(PoisonError::into_inner);
        elevation.is_some_and(|elevation| elevation.generation == generation && now < elevation.until)
    }
}

/// Neither a bracket, nor what steers a terminal, nor what can't be seen.
fn is_harmless(character: &char) -> bool {
    let is_hidden = matches!(character,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}');
    !character.is_control() && !is_hidden && !matches!(character, '(' | ')')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_no_second_actor_in_the_log() {
        let check = |said: &str, kept: &str| {
            let peer = Peer { uid: 1_000, gid: 1_000, pid: None };
            let client = Client::new(ClientId::from_random(1), peer, Outbox::new(Arc::default()));
            client.introduce(said);
            assert_eq!(client.name(), kept);
        };
        check("Bildschirm im Flur", "Bildschirm im Flur");
        check("a) uid 0 (root", "a uid 0 root");
        check("a\u{202e}\x1b[2Kb\n", "a[2Kb");
        check(&"x".repeat(100), &"x".repeat(MOST_OF_A_NAME));
    }
}
