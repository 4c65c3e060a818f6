//! What the daemon's loop talks to.

use std::sync::Arc;

use shepherd_api::{ApiError, DaemonStateSnapshot, ErrorCode, Event, Pin, Reply, ServerMessage};
use shepherd_util::{Chain, ClientId};

use super::lanes::Lanes;
use super::limits::Limits;
use super::outbox::Delivery;
use super::shared::{Audience, Shared};
use super::wire::{EventMessage, farewell, line, not_welcome};
use super::{ClientInfo, Incoming};
use crate::{Gatekeeper, PinKeeper};

/// What the daemon answers with. Cheap to clone; nothing here waits.
#[derive(Clone, Debug)]
pub struct Hub {
    pub(super) shared: Arc<Shared>,
}

/// What was counted since the start, and who is connected now. For the metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Connections now.
    pub clients: usize,
    /// Of which subscribers.
    pub subscribers: usize,
    /// Connections that were let in.
    pub accepted: u64,
    /// Connections that were not.
    pub turned_away: u64,
    /// Times that no connection could be taken, for want of descriptors.
    pub failed_accepts: u64,
    /// Commands that the client's role may not give.
    pub refused: u64,
    /// Commands that came too fast.
    pub rate_limited: u64,
    /// Connections that were ended because of what the client sent, or did not send.
    pub faults: u64,
    /// Events that subscribers were too slow for.
    pub events_left_out: u64,
}

impl Hub {
    pub(super) fn new(
        daemon_version: String,
        limits: Limits,
        gatekeeper: Arc<dyn Gatekeeper>,
        pin: PinKeeper,
        lanes: Lanes,
    ) -> Self {
        Self { shared: Arc::new(Shared::new(daemon_version, limits, gatekeeper, pin, lanes)) }
    }

    /// Answers a request. A client that is gone needs no answer. From the reply to `subscribe_events` on, the client
    /// gets every event that is broadcast.
    pub fn respond(&self, client_id: &ClientId, request_id: u64, result: Result<Reply, ApiError>) {
        if let Some(client) = self.shared.client(client_id) {
            self.shared.answer(&client, request_id, result);
        }
    }

    /// Tells all subscribers whom it concerns. Lines of the audit log are for administrators, requests and grants of
    /// a profile for administrators and that profile.
    pub fn broadcast(&self, event: &Event) {
        let Some(line) = line(&EventMessage::new(event)) else { return };
        let audience = Audience::of(&event.kind);
        let mut left_out = 0;
        for client in self.shared.registry().clients.values() {
            if client.outbox.is_subscribed()
                && self.shared.is_in(client, &audience)
                && client.outbox.event(&line, self.shared.limits.queued_events) == Delivery::LeftOut
            {
                left_out += 1;
            }
        }
        self.shared.counters.events_left_out.add(left_out);
    }

    /// Answers [`Incoming::NeedsSnapshot`].
    pub fn resync(&self, client_id: &ClientId, snapshot: DaemonStateSnapshot) {
        if let Some(client) = self.shared.client(client_id) {
            client.outbox.catch_up(|missed| line(&ServerMessage::FellBehind { missed, snapshot }));
        }
    }

    /// Other rules from now on, for those who are connected, too. Who may not be connected any more is told so.
    pub fn set_gatekeeper(&self, gatekeeper: Arc<dyn Gatekeeper>) {
        self.shared.set_gatekeeper(gatekeeper);
        for client in self.shared.registry().clients.values() {
            if self.shared.rights(client).is_none() {
                client.outbox.close(farewell(not_welcome()));
            }
        }
    }

    /// Carries out `set_pin` and answers it, later. The administrator who set it has given it by that.
    /// One that could not be changed changes nothing for anybody.
    pub fn change_pin(&self, client: ClientInfo, request_id: u64, pin: Option<Pin>) {
        let shared = Arc::clone(&self.shared);
        tokio::spawn(async move {
            let set = pin.is_some();
            let outcome = shared.pin.set(pin).await.map(|()| set).map_err(|error| Chain(&error).to_string());
            if outcome.is_ok() {
                let generation = shared.next_pin_generation();
                if let Some(client) = shared.client(&client.client_id) {
                    shared.elevate(&client, generation);
                }
            }
            let client_id = client.client_id.clone();
            let told = Incoming::PinChange { client, outcome: outcome.clone() };
            // Nobody records any more when the daemon goes down.
            let _ = shared.lanes.quick.send(told).await;
            let Some(client) = shared.client(&client_id) else { return };
            let result = outcome.map(|set| Reply::PinChanged { set }).map_err(|why| {
                let sentence = format!("The PIN could not be changed: {why}.");
                ApiError::new(ErrorCode::StoreUnavailable, sentence)
            });
            shared.answer(&client, request_id, result);
        });
    }

    /// What there is to count.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let counters = &self.shared.counters;
        let registry = self.shared.registry();
        Counts {
            clients: registry.clients.len(),
            subscribers: registry.clients.values().filter(|client| client.outbox.is_subscribed()).count(),
            accepted: counters.accepted.get(),
            turned_away: counters.turned_away.get(),
            failed_accepts: counters.failed_accepts.get(),
            refused: counters.refused.get(),
            rate_limited: counters.rate_limited.get(),
            faults: counters.faults.get(),
            events_left_out: counters.events_left_out.get(),
        }
    }

    /// Says a last word to all clients.
    pub(super) fn close_all(&self, error: &ApiError) {
        let line = farewell(error.clone());
        for client in self.shared.registry().clients.values() {
            client.outbox.close(line.clone());
        }
    }

    /// Waits until nobody is connected.
    pub(super) async fn all_gone(&self) {
        while !self.shared.registry().clients.is_empty() {
            self.shared.someone_left.notified().await;
        }
    }
}
