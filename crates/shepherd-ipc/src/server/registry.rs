//! The registry of connections, counted by user.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use rustix::process::{Resource, getrlimit};
use shepherd_util::ClientId;

use super::connected_client::ConnectedClient;
use super::limits::ConnectionLimits;

/// Places beyond the limit that are reserved for administrators, because a few accounts could take all others.
const RESERVED_FOR_ADMINS: usize = 64;

/// The number of connections after which a user has no claim to a reserved place. An administrator who shares a login
/// with a child therefore doesn't lose all reserved places to it.
const MAX_RESERVED_PER_ADMIN: usize = 16;

/// Places beyond these that are reserved for root, who must be able to inspect the daemon.
const RESERVED_FOR_ROOT: usize = 16;

/// The claim of a user to a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SlotPriority {
    /// A user without a claim to reserved places.
    Normal,
    /// A user who can be an administrator, possibly after the PIN.
    Admin,
    Root,
}

#[derive(Debug, Default)]
pub(super) struct ClientRegistry {
    pub(super) clients: HashMap<ClientId, Arc<ConnectedClient>>,
    users: HashMap<u32, UserConnections>,
}

#[derive(Debug, Default)]
struct UserConnections {
    connections: usize,
    bytes: Arc<AtomicUsize>,
}

/// The reason for which there is no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoFreeSlot {
    Total,
    PerUser,
}

impl ClientRegistry {
    /// Takes a place for a connection of this user, and returns the counter of its queued bytes.
    pub(super) fn reserve(
        &mut self,
        uid: u32,
        claim: SlotPriority,
        limits: &ConnectionLimits,
    ) -> Result<Arc<AtomicUsize>, NoFreeSlot> {
        let taken: usize = self.users.values().map(|user| user.connections).sum();
        let own = self.users.get(&uid).map_or(0, |user| user.connections);
        let kept = match claim {
            SlotPriority::Admin if own < MAX_RESERVED_PER_ADMIN => RESERVED_FOR_ADMINS,
            SlotPriority::Normal | SlotPriority::Admin => 0,
            SlotPriority::Root => RESERVED_FOR_ADMINS + RESERVED_FOR_ROOT,
        };
        if taken >= limits.clients.min(descriptor_limit() / 2) + kept {
            return Err(NoFreeSlot::Total);
        }
        if own >= limits.clients_per_user {
            return Err(NoFreeSlot::PerUser);
        }
        let user = self.users.entry(uid).or_default();
        user.connections += 1;
        Ok(Arc::clone(&user.bytes))
    }

    /// Returns a place to the registry.
    pub(super) fn release(&mut self, uid: u32) {
        let Some(user) = self.users.get_mut(&uid) else { return };
        user.connections = user.connections.saturating_sub(1);
        if user.connections == 0 {
            self.users.remove(&uid);
        }
    }
}

/// Returns the number of file descriptors that this process may have.
fn descriptor_limit() -> usize {
    getrlimit(Resource::Nofile).current.and_then(|most| usize::try_from(most).ok()).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the number of places that a user gets.
    fn reserve_until_full(registry: &mut ClientRegistry, uid: u32, claim: SlotPriority) -> usize {
        (0..5_000).take_while(|_| registry.reserve(uid, claim, &ConnectionLimits::default()).is_ok()).count()
    }

    // S11.4
    #[test]
    fn accounts_that_take_all_places_lock_out_no_administrator() {
        let limits = ConnectionLimits { clients: 64, clients_per_user: 16, ..ConnectionLimits::default() };
        let mut registry = ClientRegistry::default();
        let mut take =
            |uid, claim| (0..100).take_while(|_| registry.reserve(uid, claim, &limits).is_ok()).count();
        let children: Vec<usize> = (1_001..=1_005).map(|uid| take(uid, SlotPriority::Normal)).collect();
        assert_eq!(children, [16, 16, 16, 16, 0]);
        assert_eq!(take(1_000, SlotPriority::Admin), 16, "and the other parent");
        assert_eq!(take(999, SlotPriority::Admin), 16);
        assert_eq!((take(998, SlotPriority::Admin), take(997, SlotPriority::Admin)), (16, 16));
        assert_eq!((take(996, SlotPriority::Admin), take(0, SlotPriority::Root)), (0, 16));
    }

    #[test]
    fn a_released_place_is_free_again() {
        let mut registry = ClientRegistry::default();
        let most = reserve_until_full(&mut registry, 1_000, SlotPriority::Normal);
        registry.release(1_000);
        assert_eq!((most > 1, reserve_until_full(&mut registry, 1_000, SlotPriority::Normal)), (true, 1));
    }
}
