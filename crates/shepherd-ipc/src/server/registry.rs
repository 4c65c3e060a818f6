//! Who is connected, and how many of each user.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use rustix::process::{Resource, getrlimit};
use shepherd_util::ClientId;

use super::client::Client;
use super::limits::Limits;

/// Places beyond the limit that are kept for users who may administer: a few accounts together could take all others.
const KEPT_FOR_ADMINS: usize = 64;

/// Connections with which a user has no claim to a kept place any more. So one who shares its login with a child does
/// not lose them all to it, and there are some left for the next.
const ENOUGH_FOR_AN_ADMIN: usize = 16;

/// Places beyond these that are kept for root, who has to be able to look what is going on.
const KEPT_FOR_ROOT: usize = 16;

/// For whom a place is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Claim {
    /// A user like any other.
    None,
    /// A user who may administer, if need be with the PIN.
    Admin,
    Root,
}

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
    pub(super) fn reserve(
        &mut self,
        uid: u32,
        claim: Claim,
        limits: &Limits,
    ) -> Result<Arc<AtomicUsize>, Full> {
        let taken: usize = self.users.values().map(|user| user.connections).sum();
        let own = self.users.get(&uid).map_or(0, |user| user.connections);
        let kept = match claim {
            Claim::Admin if own < ENOUGH_FOR_AN_ADMIN => KEPT_FOR_ADMINS,
            Claim::None | Claim::Admin => 0,
            Claim::Root => KEPT_FOR_ADMINS + KEPT_FOR_ROOT,
        };
        if taken >= limits.clients.min(descriptors() / 2) + kept {
            return Err(Full::ForEverybody);
        }
        if own >= limits.clients_of_one_user {
            return Err(Full::ForThisUser);
        }
        let user = self.users.entry(uid).or_default();
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

#[cfg(test)]
mod tests {
    use super::*;

    /// How many places a user gets.
    fn take_all(registry: &mut Registry, uid: u32, claim: Claim) -> usize {
        (0..5_000).take_while(|_| registry.reserve(uid, claim, &Limits::default()).is_ok()).count()
    }

    // S11.4
    #[test]
    fn accounts_that_take_all_places_lock_out_no_administrator() {
        let limits = Limits { clients: 64, clients_of_one_user: 16, ..Limits::default() };
        let mut registry = Registry::default();
        let mut take =
            |uid, claim| (0..100).take_while(|_| registry.reserve(uid, claim, &limits).is_ok()).count();
        let children: Vec<usize> = (1_001..=1_005).map(|uid| take(uid, Claim::None)).collect();
        assert_eq!(children, [16, 16, 16, 16, 0]);
        assert_eq!(take(1_000, Claim::Admin), 16, "and the other parent");
        assert_eq!(take(999, Claim::Admin), 16);
        assert_eq!((take(998, Claim::Admin), take(997, Claim::Admin)), (16, 16));
        assert_eq!((take(996, Claim::Admin), take(0, Claim::Root)), (0, 16));
    }

    #[test]
    fn a_place_that_is_given_back_is_free() {
        let mut registry = Registry::default();
        let most = take_all(&mut registry, 1_000, Claim::None);
        registry.release(1_000);
        assert_eq!((most > 1, take_all(&mut registry, 1_000, Claim::None)), (true, 1));
    }
}
