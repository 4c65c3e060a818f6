//! What all connections share: who is connected, the rules, the rates, the counters.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use shepherd_api::{ApiError, EventKind, Outcome, Reply, Response, Role, ServerMessage};
use shepherd_util::{ClientId, Clock, KeyedLimiter, MonotonicInstant, ProfileId, SystemClock, Wait};
use tokio::sync::Notify;

use super::client::Client;
use super::connection::Kind;
use super::lanes::Lanes;
use super::limits::Limits;
use super::registry::{Claim, Registry};
use super::wire::line;
use super::{ClientInfo, Incoming};
use crate::{Gatekeeper, Peer, PinKeeper};

/// Users whose rates are remembered one by one; beyond, newcomers share one.
const REMEMBERED_USERS: usize = 1_024;

pub(super) struct Shared {
    pub(super) daemon_version: String,
    pub(super) limits: Limits,
    pub(super) pin: PinKeeper,
    pub(super) lanes: Lanes,
    pub(super) counters: Counters,
    pub(super) someone_left: Notify,
    /// Counts the PINs that there were, so that what one of them opened does not outlive it.
    pin_generation: AtomicU64,
    gatekeeper: RwLock<Arc<dyn Gatekeeper>>,
    registry: Mutex<Registry>,
    users: Mutex<UserRates>,
}

struct UserRates {
    looks: KeyedLimiter<u32>,
    surveys: KeyedLimiter<u32>,
    acts: KeyedLimiter<u32>,
    refusals: KeyedLimiter<u32>,
    unrecorded: u64,
}

#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) accepted: Counter,
    pub(super) turned_away: Counter,
    pub(super) failed_accepts: Counter,
    pub(super) refused: Counter,
    pub(super) rate_limited: Counter,
    pub(super) faults: Counter,
    pub(super) events_left_out: Counter,
}

#[derive(Debug, Default)]
pub(super) struct Counter(AtomicU64);

impl Counter {
    pub(super) fn add(&self, amount: u64) {
        self.0.fetch_add(amount, Ordering::Relaxed);
    }

    pub(super) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// What a client may do at this moment.
#[derive(Clone, Debug)]
pub(super) struct Rights {
    pub(super) role: Role,
    pub(super) role_with_pin: Role,
    pub(super) profile: Option<ProfileId>,
}

/// Who is told of an event.
pub(super) enum Audience<'a> {
    Everybody,
    Profile(&'a ProfileId),
    Admins,
}

impl<'a> Audience<'a> {
    pub(super) fn of(event: &'a EventKind) -> Self {
        match event {
            EventKind::AuditAppended { .. } => Self::Admins,
            EventKind::RequestChanged { request } => Self::Profile(&request.profile),
            EventKind::GrantChanged { grant } => {
                grant.profile.as_ref().map_or(Self::Everybody, Self::Profile)
            }
            EventKind::StateChanged { .. }
            | EventKind::SessionLaunching { .. }
            | EventKind::SessionStarted { .. }
            | EventKind::WarningIssued { .. }
            | EventKind::DeadlineChanged { .. }
            | EventKind::SessionExpired { .. }
            | EventKind::SessionEnded { .. }
            | EventKind::EntriesChanged {}
            | EventKind::PolicyReloaded { .. }
            | EventKind::ModeSwitched { .. }
            | EventKind::ClockTrustChanged { .. }
            | EventKind::Unknown => Self::Everybody,
        }
    }
}

impl Shared {
    pub(super) fn new(
        daemon_version: String,
        limits: Limits,
        gatekeeper: Arc<dyn Gatekeeper>,
        pin: PinKeeper,
        lanes: Lanes,
    ) -> Self {
        let users = UserRates {
            looks: KeyedLimiter::new(limits.of_user.looks, REMEMBERED_USERS),
            surveys: KeyedLimiter::new(limits.of_user.surveys, REMEMBERED_USERS),
            acts: KeyedLimiter::new(limits.of_user.acts, REMEMBERED_USERS),
            refusals: KeyedLimiter::new(limits.recorded_refusals, REMEMBERED_USERS),
            unrecorded: 0,
        };
        Self {
            daemon_version,
            limits,
            pin,
            lanes,
            counters: Counters::default(),
            someone_left: Notify::new(),
            pin_generation: AtomicU64::new(0),
            gatekeeper: RwLock::new(gatekeeper),
            registry: Mutex::default(),
            users: Mutex::new(users),
        }
    }

    pub(super) fn registry(&self) -> MutexGuard<'_, Registry> {
        self.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn client(&self, client_id: &ClientId) -> Option<Arc<Client>> {
        self.registry().clients.get(client_id).cloned()
    }

    pub(super) fn set_gatekeeper(&self, gatekeeper: Arc<dyn Gatekeeper>) {
        *self.gatekeeper.write().unwrap_or_else(PoisonError::into_inner) = gatekeeper;
    }

    /// What a client may do now: the rules and the PIN may have changed since it connected.
    pub(super) fn rights(&self, client: &Client) -> Option<Rights> {
        let gatekeeper = Arc::clone(&self.gatekeeper.read().unwrap_or_else(PoisonError::into_inner));
        let standing = gatekeeper.standing(&client.peer, self.pin.state())?;
        let is_elevated = standing.role != standing.role_with_pin
            && client.is_elevated(self.pin_generation(), now().total());
        Some(Rights {
            role: if is_elevated { standing.role_with_pin } else { standing.role },
            role_with_pin: standing.role_with_pin,
            profile: standing.profile,
        })
    }

    /// What a peer's claim to a place is; `None` if it may not be connected at all.
    pub(super) fn claim(&self, peer: &Peer) -> Option<Claim> {
        let gatekeeper = Arc::clone(&self.gatekeeper.read().unwrap_or_else(PoisonError::into_inner));
        let standing = gatekeeper.standing(peer, self.pin.state())?;
        Some(match standing.role_with_pin {
            _ if peer.uid == 0 => Claim::Root,
            Role::Admin => Claim::Admin,
            Role::Observer | Role::Shell => Claim::None,
        })
    }

    pub(super) fn pin_generation(&self) -> u64 {
        self.pin_generation.load(Ordering::Relaxed)
    }

    pub(super) fn next_pin_generation(&self) -> u64 {
        self.pin_generation.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// From now on, and for a while, this client has given the PIN.
    pub(super) fn elevate(&self, client: &Client, generation: u64) {
        client.elevate(generation, now().total().saturating_add(self.limits.pin_lasts));
    }

    /// A client that used what the PIN opened may go on using it.
    pub(super) fn prolong(&self, client: &Client) {
        let generation = self.pin_generation();
        if client.is_elevated(generation, now().total()) {
            self.elevate(client, generation);
        }
    }

    pub(super) fn is_in(&self, client: &Client, audience: &Audience<'_>) -> bool {
        let sees = |rights: Rights| match audience {
            Audience::Everybody => true,
            Audience::Admins => rights.role == Role::Admin,
            Audience::Profile(profile) => info(client, rights).may_see(profile),
        };
        matches!(audience, Audience::Everybody) || self.rights(client).is_some_and(sees)
    }

    pub(super) fn answer(&self, client: &Client, request_id: u64, result: Result<Reply, ApiError>) {
        let starts_feed = matches!(result, Ok(Reply::Subscribed { .. }));
        let response = Response { id: request_id, result: Outcome::from(result) };
        let Some(line) = line(&ServerMessage::Response(response)) else { return };
        let most_bytes = self.limits.queued_bytes_of_one_user;
        if starts_feed {
            client.outbox.answer_subscription(line, most_bytes);
        } else {
            client.outbox.answer(line, most_bytes);
        }
    }

    /// Whether this user may give one more command now.
    pub(super) fn take_user_rate(&self, uid: u32, kind: Kind) -> Result<(), Wait> {
        let mut users = self.users.lock().unwrap_or_else(PoisonError::into_inner);
        match kind {
            Kind::Look => users.looks.take(&uid, now()),
            Kind::Survey => users.surveys.take(&uid, now()),
            Kind::Act => users.acts.take(&uid, now()),
        }
    }

    /// What to hand on about a refusal; `None` if there were too many.
    pub(super) fn refusal(
        &self,
        peer: Peer,
        name: &str,
        command: &'static str,
        reason: &str,
    ) -> Option<Incoming> {
        self.counters.refused.add(1);
        let mut users = self.users.lock().unwrap_or_else(PoisonError::into_inner);
        if users.refusals.take(&peer.uid, now()).is_err() {
            users.unrecorded = users.unrecorded.saturating_add(1);
            return None;
        }
        let unrecorded = std::mem::take(&mut users.unrecorded);
        Some(Incoming::Refused {
            peer,
            name: name.to_owned(),
            command,
            reason: reason.to_owned(),
            unrecorded,
        })
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Shared").field("counters", &self.counters).finish_non_exhaustive()
    }
}

/// A client as the loop sees it.
pub(super) fn info(client: &Client, rights: Rights) -> ClientInfo {
    ClientInfo {
        client_id: client.client_id.clone(),
        name: client.name().to_owned(),
        peer: client.peer,
        role: rights.role,
        role_with_pin: rights.role_with_pin,
        profile: rights.profile,
    }
}

pub(super) fn now() -> MonotonicInstant {
    SystemClock.now().mono
}
