//! Who is connected, and how many of each user.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use rustix::process::{Resource, getrlimit};
use shepherd_util::ClientId;

use super::client::Client;
use super::limits::Limits;

/// Places beyond the limit that are kept for root, who has to be able to look what is going on.
const KEPT_FOR_ROOT: usize = 16;

#[derive(Debug, Default)]
pub(super) struct Registry {
    pub(super) clients: HashMap<ClientId, Arc<Client>>,
    users: HashMap<u32, User>,
}

#[derive(Debug, Default)]
struct User {
    connections: usize,
    bytes: Arc<AtomicUsize>,
}

/// Why there is no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Full {
    ForEverybody,
    ForThisUser,
}

impl Registry {
    /// Takes a place for a connection of this user, and says where its waiting bytes are counted.
    pub(super) fn reserve(&mut self, uid: u32, limits: &Limits) -> Result<Arc<AtomicUsize>, Full> {
        let is_root = uid == 0;
        let taken: usize = self.users.values().map(|user| user.connections).sum();
        let places = limits.clients.min(descriptors() / 2) + if is_root { KEPT_FOR_ROOT } else { 0 };
        if taken >= places {
            return Err(Full::ForEverybody);
        }
        let user = self.users.entry(uid).or_default();
        if user.connections >= limits.clients_of_one_user {
            return Err(Full::ForThisUser);
        }
        user.connections += 1;
        Ok(Arc::clone(&user.bytes))
    }

    /// Gives a place back.
    pub(super) fn release(&mut self, uid: u32) {
        let Some(user) = self.users.get_mut(&uid) else { return };
        user.connections = user.connections.saturating_sub(1);
        if user.connections == 0 {
            self.users.remove(&uid);
        }
    }
}

/// How many descriptors this process may have.
fn descriptors() -> usize {
    getrlimit(Resource::Nofile).current.and_then(|most| usize::try_from(most).ok()).unwrap_or(usize::MAX)
}
