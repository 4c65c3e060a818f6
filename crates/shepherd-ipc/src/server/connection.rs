//! A connection, from its first byte to its last.

mod request_reader;

use std::io::{self, ErrorKind, Write};
use std::sync::Arc;
use std::time::Duration;

use shepherd_api::{ApiError, Command, ErrorCode};
use shepherd_util::ClientId;
use tokio::net::UnixStream;
use tokio::net::unix::WriteHalf;
use tokio::time::timeout;

use super::IncomingEvent;
use super::connected_client::ConnectedClient;
use super::hub::ClientHub;
use super::outbox::{ClientOutbox, WriterStep};
use super::registry::NoFreeSlot;
use super::server_state::ServerState;
use super::wire::{closing_line, not_permitted_error};
use crate::PeerCredentials;
use request_reader::{ReadEnd, RequestReader};

/// The time that a client gets to read why its connection ends.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// The cost class of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CommandCost {
    /// Takes microseconds to answer.
    Cheap,
    /// Takes milliseconds with a thousand entries.
    Listing,
    /// Is evaluated, calculated or written to disk.
    Expensive,
}

impl CommandCost {
    fn of_command(command: &Command) -> Self {
        match command {
            Command::GetState {} | Command::Health {} | Command::Metrics {} | Command::SubscribeEvents {} => {
                Self::Cheap
            }
            Command::ListEntries { .. } | Command::Timeline { .. } | Command::Usage { .. } => Self::Listing,
            Command::Launch { .. }
            | Command::StopCurrent { .. }
            | Command::ReloadConfig {}
            | Command::ExtendCurrent { .. }
            | Command::SetPolicy { .. }
            | Command::GetPolicy {}
            | Command::ReadSessionLog { .. }
            | Command::Why { .. }
            | Command::CheckLogin { .. }
            | Command::RequestTime { .. }
            | Command::ListRequests {}
            | Command::MarkRequestSeen { .. }
            | Command::DecideRequest { .. }
            | Command::Grant { .. }
            | Command::RevokeGrant { .. }
            | Command::ListGrants {}
            | Command::SwitchMode { .. }
            | Command::ConfirmClock {}
            | Command::ReadAudit { .. }
            | Command::Authenticate { .. }
            | Command::SetPin { .. } => Self::Expensive,
        }
    }
}

/// Accepts a connection, or sends the client the reason for the refusal.
pub(super) fn accept_connection(stream: UnixStream, hub: &ClientHub) {
    let shared = &hub.shared;
    // A peer that the kernel can't identify gets no access.
    let Ok(peer) = stream.peer_cred().map(|found| PeerCredentials {
        uid: found.uid(),
        gid: found.gid(),
        pid: found.pid(),
    }) else {
        return;
    };
    match register_client(shared, peer) {
        Ok(client) => {
            shared.counters.accepted.add(1);
            let guard = RegisteredClient { shared: Arc::clone(shared), client };
            tokio::spawn(async move { serve(stream, &guard).await });
        }
        Err(error) => {
            shared.counters.rejected.add(1);
            if error.code == ErrorCode::NotPermitted
                && let Some(refusal) = shared.record_refusal(peer, "", "connect", &error.sentence)
            {
                // If the loop is too busy to record the refusal, it is only counted.
                let _ = shared.lanes.quick.try_send(refusal);
            }
            reject_connection(stream, error);
        }
    }
}

fn register_client(
    shared: &Arc<ServerState>,
    peer: PeerCredentials,
) -> Result<Arc<ConnectedClient>, ApiError> {
    let mut bits = [0; 16];
    getrandom::fill(&mut bits).map_err(|_| {
        ApiError::new(
            ErrorCode::Internal,
            "The system provides no random numbers for the id of the connection.",
        )
    })?;
    let claim = shared.slot_priority(&peer).ok_or_else(not_permitted_error)?;
    let mut registry = shared.registry();
    let user_bytes = registry.reserve(peer.uid, claim, &shared.limits).map_err(|full| {
        let whose = match full {
            NoFreeSlot::Total => "in all",
            NoFreeSlot::PerUser => "of this user",
        };
        ApiError::new(ErrorCode::TooManyClients, format!("Too many clients {whose} are connected."))
    })?;
    let client_id = ClientId::from_random(u128::from_ne_bytes(bits));
    let client = Arc::new(ConnectedClient::new(client_id.clone(), peer, ClientOutbox::new(user_bytes)));
    registry.clients.insert(client_id, Arc::clone(&client));
    Ok(client)
}

/// Sends the reason if it fits the client's buffer, without waiting.
fn reject_connection(stream: UnixStream, error: ApiError) {
    if let (Ok(mut stream), Some(line)) = (stream.into_std(), closing_line(error)) {
        let _ = stream.write(&line);
    }
}

/// The registration of a client, for as long as this value lives.
struct RegisteredClient {
    shared: Arc<ServerState>,
    client: Arc<ConnectedClient>,
}

impl Drop for RegisteredClient {
    fn drop(&mut self) {
        let mut registry = self.shared.registry();
        registry.clients.remove(&self.client.client_id);
        registry.release(self.client.peer.uid);
        drop(registry);
        self.shared.client_left.notify_one();
    }
}

async fn serve(mut stream: UnixStream, RegisteredClient { shared, client }: &RegisteredClient) {
    let (reader, writer) = stream.split();
    let mut writing = std::pin::pin!(write_loop(&writer, shared, client));
    let ending = tokio::select! {
        ending = RequestReader::new(shared, client).run(&reader) => ending,
        () = &mut writing => return,
    };
    let patience = match ending {
        ReadEnd::ClientClosed => {
            client.outbox.half_close();
            shared.limits.write_timeout
        }
        ReadEnd::ProtocolError(error) => {
            shared.counters.protocol_errors.add(1);
            client.outbox.close(closing_line(error));
            CLOSE_TIMEOUT
        }
        ReadEnd::ConnectionClosed => CLOSE_TIMEOUT,
    };
    // A client that stops reading loses the rest.
    let _ = timeout(patience, writing).await;
}

async fn write_loop(writer: &WriteHalf<'_>, shared: &ServerState, client: &ConnectedClient) {
    loop {
        match client.outbox.next_step().await {
            WriterStep::Write(outgoing) => {
                if write_all(writer, &outgoing.line, shared.limits.write_timeout).await.is_err() {
                    return;
                }
            }
            WriterStep::RequestSnapshot => {
                let request = IncomingEvent::NeedsSnapshot { client_id: client.client_id.clone() };
                if shared.lanes.quick.send(request).await.is_err() {
                    return;
                }
            }
            WriterStep::End => return,
        }
    }
}

/// Writes a line to a client that reads at least a part of it in every `patience`.
async fn write_all(writer: &WriteHalf<'_>, mut rest: &[u8], patience: Duration) -> io::Result<()> {
    while !rest.is_empty() {
        match writer.try_write(rest) {
            Ok(written) => rest = rest.get(written..).unwrap_or_default(),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                timeout(patience, writer.writable()).await??;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
