//! The state that all connections share: clients, rules, rates and counters.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use shepherd_api::{
    ApiError, ApiResponse, ClientRole, CommandReply, CommandResult, EventKind, ServerMessage,
};
use shepherd_util::{
    ClientId, Clock, KeyedLimiter, MonotonicInstant, ProfileId, RateLimitExceeded, SystemClock,
};
use tokio::sync::Notify;

use super::command_lanes::LaneSenders;
use super::connected_client::ConnectedClient;
use super::connection::CommandCost;
use super::limits::ConnectionLimits;
use super::registry::{ClientRegistry, SlotPriority};
use super::wire::encode_line;
use super::{ClientInfo, IncomingEvent};
use crate::{PeerAuthorizer, PeerCredentials, PinStore};

/// The number of users whose rates are counted separately; further users share one count.
const MAX_TRACKED_USERS: usize = 1_024;

pub(super) struct ServerState {
    pub(super) daemon_version: String,
    pub(super) limits: ConnectionLimits,
    pub(super) pin: PinStore,
    pub(super) lanes: LaneSenders,
    pub(super) counters: ConnectionCounters,
    pub(super) client_left: Notify,
    /// Counts the changes of the PIN, so that an elevation ends with its PIN.
    pin_generation: AtomicU64,
    authorizer: RwLock<Arc<dyn PeerAuthorizer>>,
    registry: Mutex<ClientRegistry>,
    users: Mutex<UserRateLimiters>,
}

struct UserRateLimiters {
    cheap: KeyedLimiter<u32>,
    listings: KeyedLimiter<u32>,
    expensive: KeyedLimiter<u32>,
    refusals: KeyedLimiter<u32>,
    unrecorded: u64,
}

#[derive(Debug, Default)]
pub(super) struct ConnectionCounters {
    pub(super) accepted: AtomicCounter,
    pub(super) rejected: AtomicCounter,
    pub(super) failed_accepts: AtomicCounter,
    pub(super) refused: AtomicCounter,
    pub(super) rate_limited: AtomicCounter,
    pub(super) protocol_errors: AtomicCounter,
    pub(super) events_dropped: AtomicCounter,
}

#[derive(Debug, Default)]
pub(super) struct AtomicCounter(AtomicU64);

impl AtomicCounter {
    pub(super) fn add(&self, amount: u64) {
        self.0.fetch_add(amount, Ordering::Relaxed);
    }

    pub(super) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Returns the current permissions of a client.
#[derive(Clone, Debug)]
pub(super) struct ClientPermissions {
    pub(super) role: ClientRole,
    pub(super) role_with_pin: ClientRole,
    pub(super) profile: Option<ProfileId>,
}

/// The recipients of an event.
pub(super) enum EventAudience<'a> {
    Everybody,
    Profile(&'a ProfileId),
    Admins,
}

impl<'a> EventAudience<'a> {
    pub(super) fn of_event(event: &'a EventKind) -> Self {
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

impl ServerState {
    pub(super) fn new(
        daemon_version: String,
        limits: ConnectionLimits,
        gatekeeper: Arc<dyn PeerAuthorizer>,
        pin: PinStore,
        lanes: LaneSenders,
    ) -> Self {
        let users = UserRateLimiters {
            cheap: KeyedLimiter::new(limits.rates_per_user.cheap, MAX_TRACKED_USERS),
            listings: KeyedLimiter::new(limits.rates_per_user.listings, MAX_TRACKED_USERS),
            expensive: KeyedLimiter::new(limits.rates_per_user.expensive, MAX_TRACKED_USERS),
            refusals: KeyedLimiter::new(limits.recorded_refusals, MAX_TRACKED_USERS),
            unrecorded: 0,
        };
        Self {
            daemon_version,
            limits,
            pin,
            lanes,
            counters: ConnectionCounters::default(),
            client_left: Notify::new(),
            pin_generation: AtomicU64::new(0),
            authorizer: RwLock::new(gatekeeper),
            registry: Mutex::default(),
            users: Mutex::new(users),
        }
    }

    pub(super) fn registry(&self) -> MutexGuard<'_, ClientRegistry> {
        self.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn find_client(&self, client_id: &ClientId) -> Option<Arc<ConnectedClient>> {
        self.registry().clients.get(client_id).cloned()
    }

    pub(super) fn set_authorizer(&self, gatekeeper: Arc<dyn PeerAuthorizer>) {
        *self.authorizer.write().unwrap_or_else(PoisonError::into_inner) = gatekeeper;
    }

    /// Returns the current role of a client: rules and PIN may have changed since it connected.
    pub(super) fn permissions(&self, client: &ConnectedClient) -> Option<ClientPermissions> {
        let gatekeeper = Arc::clone(&self.authorizer.read().unwrap_or_else(PoisonError::into_inner));
        let standing = gatekeeper.authorize(&client.peer, self.pin.state())?;
        let is_elevated = standing.role != standing.role_with_pin
            && client.is_elevated(self.pin_generation(), now().total());
        Some(ClientPermissions {
            role: if is_elevated { standing.role_with_pin } else { standing.role },
            role_with_pin: standing.role_with_pin,
            profile: standing.profile,
        })
    }

    /// Returns the claim of a peer to a place; `None` if it may not connect.
    pub(super) fn slot_priority(&self, peer: &PeerCredentials) -> Option<SlotPriority> {
        let gatekeeper = Arc::clone(&self.authorizer.read().unwrap_or_else(PoisonError::into_inner));
        let standing = gatekeeper.authorize(peer, self.pin.state())?;
        Some(match standing.role_with_pin {
            _ if peer.uid == 0 => SlotPriority::Root,
            ClientRole::Admin => SlotPriority::Admin,
            ClientRole::Observer | ClientRole::Shell => SlotPriority::Normal,
        })
    }

    pub(super) fn pin_generation(&self) -> u64 {
        self.pin_generation.load(Ordering::Relaxed)
    }

    pub(super) fn next_pin_generation(&self) -> u64 {
        self.pin_generation.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Elevates this client for a while, because it gave the PIN.
    pub(super) fn elevate(&self, client: &ConnectedClient, generation: u64) {
        client.elevate(generation, now().total().saturating_add(self.limits.pin_elevation_lifetime));
    }

    /// Extends the elevation of a client that used it.
    pub(super) fn extend_elevation(&self, client: &ConnectedClient) {
        let generation = self.pin_generation();
        if client.is_elevated(generation, now().total()) {
            self.elevate(client, generation);
        }
    }

    pub(super) fn may_receive(&self, client: &ConnectedClient, audience: &EventAudience<'_>) -> bool {
        let sees = |rights: ClientPermissions| match audience {
            EventAudience::Everybody => true,
            EventAudience::Admins => rights.role == ClientRole::Admin,
            EventAudience::Profile(profile) => client_info(client, rights).may_see(profile),
        };
        matches!(audience, EventAudience::Everybody) || self.permissions(client).is_some_and(sees)
    }

    pub(super) fn send_reply(
        &self,
        client: &ConnectedClient,
        request_id: u64,
        result: Result<CommandReply, ApiError>,
    ) {
        let starts_feed = matches!(result, Ok(CommandReply::Subscribed { .. }));
        let response = ApiResponse { id: request_id, result: CommandResult::from(result) };
        let Some(line) = encode_line(&ServerMessage::Response(response)) else { return };
        let most_bytes = self.limits.queued_bytes_per_user;
        if starts_feed {
            client.outbox.push_subscription_reply(line, most_bytes);
        } else {
            client.outbox.push_reply(line, most_bytes);
        }
    }

    /// Returns whether this user may give one more command now.
    pub(super) fn take_user_token(&self, uid: u32, kind: CommandCost) -> Result<(), RateLimitExceeded> {
        let mut users = self.users.lock().unwrap_or_else(PoisonError::into_inner);
        match kind {
            CommandCost::Cheap => users.cheap.take(&uid, now()),
            CommandCost::Listing => users.listings.take(&uid, now()),
            CommandCost::Expensive => users.expensive.take(&uid, now()),
        }
    }

    /// Returns the refusal to report; `None` if there were too many.
    pub(super) fn record_refusal(
        &self,
        peer: PeerCredentials,
        name: &str,
        command: &'static str,
        reason: &str,
    ) -> Option<IncomingEvent> {
        self.counters.refused.add(1);
        let mut users = self.users.lock().unwrap_or_else(PoisonError::into_inner);
        if users.refusals.take(&peer.uid, now()).is_err() {
            users.unrecorded = users.unrecorded.saturating_add(1);
            return None;
        }
        let unrecorded = std::mem::take(&mut users.unrecorded);
        Some(IncomingEvent::Refused {
            peer,
            name: name.to_owned(),
            command,
            reason: reason.to_owned(),
            unrecorded,
        })
    }
}

impl fmt::Debug for ServerState {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Shared").field("counters", &self.counters).finish_non_exhaustive()
    }
}

/// Describes a client for the loop.
pub(super) fn client_info(client: &ConnectedClient, rights: ClientPermissions) -> ClientInfo {
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
