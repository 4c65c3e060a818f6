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

    /// What the client calls itself; only the first time counts. It ends up in logs, so nothing in it can do
    /// anything there.
    pub(super) fn introduce(&self, name: &str) {
        let harmless = |character: &char| !character.is_control();
        let _ = self.name.set(name.chars().filter(harmless).take(MOST_OF_A_NAME).collect());
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
