//! The handle through which the daemon's loop talks to clients.

use std::sync::Arc;

use shepherd_api::{AdminPin, ApiError, CommandReply, DaemonStateSnapshot, ErrorCode, Event, ServerMessage};
use shepherd_util::{ClientId, ErrorChain};

use super::command_lanes::LaneSenders;
use super::limits::ConnectionLimits;
use super::outbox::EventDelivery;
use super::server_state::{EventAudience, ServerState};
use super::wire::{EventMessage, closing_line, encode_line, not_permitted_error};
use super::{ClientInfo, IncomingEvent};
use crate::{PeerAuthorizer, PinStore};

/// Sends replies and events to clients. It is cheap to clone, and no call waits.
#[derive(Clone, Debug)]
pub struct ClientHub {
    pub(super) shared: Arc<ServerState>,
}

/// Counters since the start, and the current number of connections, for the metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectionCounts {
    /// The current number of connections.
    pub clients: usize,
    /// The current number of subscribers.
    pub subscribers: usize,
    /// The number of accepted connections.
    pub accepted: u64,
    /// The number of refused connections.
    pub rejected: u64,
    /// The number of connections that could not be accepted, because no file descriptor was left.
    pub failed_accepts: u64,
    /// The number of commands that the client's role doesn't permit.
    pub refused: u64,
    /// The number of commands that came too fast.
    pub rate_limited: u64,
    /// The number of connections that were closed because of the client's input or silence.
    pub protocol_errors: u64,
    /// The number of events that subscribers missed because they were too slow.
    pub events_dropped: u64,
}

impl ClientHub {
    pub(super) fn new(
        daemon_version: String,
        limits: ConnectionLimits,
        gatekeeper: Arc<dyn PeerAuthorizer>,
        pin: PinStore,
        lanes: LaneSenders,
    ) -> Self {
        Self { shared: Arc::new(ServerState::new(daemon_version, limits, gatekeeper, pin, lanes)) }
    }

    /// Answers a request. A client that is gone needs no answer. After the reply to `subscribe_events` the client gets
    /// every event that is broadcast.
    pub fn respond(&self, client_id: &ClientId, request_id: u64, result: Result<CommandReply, ApiError>) {
        if let Some(client) = self.shared.find_client(client_id) {
            self.shared.send_reply(&client, request_id, result);
        }
    }

    /// Sends an event to all subscribers that it concerns. Audit records are for administrators; requests and grants of
    /// a profile are for administrators and that profile.
    pub fn broadcast(&self, event: &Event) {
        let Some(line) = encode_line(&EventMessage::new(event)) else { return };
        let audience = EventAudience::of_event(&event.kind);
        let mut left_out = 0;
        for client in self.shared.registry().clients.values() {
            if client.outbox.is_subscribed()
                && self.shared.may_receive(client, &audience)
                && client.outbox.push_event(&line, self.shared.limits.queued_events) == EventDelivery::Dropped
            {
                left_out += 1;
            }
        }
        self.shared.counters.events_dropped.add(left_out);
    }

    /// Answers [`IncomingEvent::NeedsSnapshot`].
    pub fn send_snapshot(&self, client_id: &ClientId, snapshot: DaemonStateSnapshot) {
        if let Some(client) = self.shared.find_client(client_id) {
            client
                .outbox
                .push_snapshot(|missed| encode_line(&ServerMessage::FellBehind { missed, snapshot }));
        }
    }

    /// Applies new rules, also to connected clients. A client that may no longer connect gets a last message.
    pub fn set_authorizer(&self, gatekeeper: Arc<dyn PeerAuthorizer>) {
        self.shared.set_authorizer(gatekeeper);
        for client in self.shared.registry().clients.values() {
            if self.shared.permissions(client).is_none() {
                client.outbox.close(closing_line(not_permitted_error()));
            }
        }
    }

    /// Carries out `set_pin` and answers it later. The administrator who sets the PIN counts as authenticated by it.
    /// A failed change has no effect on any client.
    pub fn change_pin(&self, client: ClientInfo, request_id: u64, pin: Option<AdminPin>) {
        let shared = Arc::clone(&self.shared);
        tokio::spawn(async move {
            let set = pin.is_some();
            let outcome =
                shared.pin.set(pin).await.map(|()| set).map_err(|error| ErrorChain(&error).to_string());
            if outcome.is_ok() {
                let generation = shared.next_pin_generation();
                if let Some(client) = shared.find_client(&client.client_id) {
                    shared.elevate(&client, generation);
                }
            }
            let client_id = client.client_id.clone();
            let event = IncomingEvent::PinChange { client, outcome: outcome.clone() };
            // During shutdown no audit record is written any more.
            let _ = shared.lanes.quick.send(event).await;
            let Some(client) = shared.find_client(&client_id) else { return };
            let result = outcome.map(|set| CommandReply::PinChanged { set }).map_err(|why| {
                let sentence = format!("The PIN could not be changed: {why}.");
                ApiError::new(ErrorCode::StoreUnavailable, sentence)
            });
            shared.send_reply(&client, request_id, result);
        });
    }

    /// Returns the current counters.
    #[must_use]
    pub fn counts(&self) -> ConnectionCounts {
        let counters = &self.shared.counters;
        let registry = self.shared.registry();
        ConnectionCounts {
            clients: registry.clients.len(),
            subscribers: registry.clients.values().filter(|client| client.outbox.is_subscribed()).count(),
            accepted: counters.accepted.get(),
            rejected: counters.rejected.get(),
            failed_accepts: counters.failed_accepts.get(),
            refused: counters.refused.get(),
            rate_limited: counters.rate_limited.get(),
            protocol_errors: counters.protocol_errors.get(),
            events_dropped: counters.events_dropped.get(),
        }
    }

    /// Sends a last message to all clients.
    pub(super) fn close_all(&self, error: &ApiError) {
        let line = closing_line(error.clone());
        for client in self.shared.registry().clients.values() {
            client.outbox.close(line.clone());
        }
    }

    /// Waits until no client is connected.
    pub(super) async fn wait_until_disconnected(&self) {
        while !self.shared.registry().clients.is_empty() {
            self.shared.client_left.notified().await;
        }
    }
}
