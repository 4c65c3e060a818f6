//! One connection from its first byte to its last.

mod reading;

use std::io::{self, ErrorKind, Write};
use std::sync::Arc;
use std::time::Duration;

use shepherd_api::{ApiError, Command, ErrorCode};
use shepherd_util::ClientId;
use tokio::net::UnixStream;
use tokio::net::unix::WriteHalf;
use tokio::time::timeout;

use super::Incoming;
use super::client::Client;
use super::hub::Hub;
use super::outbox::{Outbox, Step};
use super::registry::Full;
use super::shared::Shared;
use super::wire::{farewell, not_welcome};
use crate::Peer;
use reading::{Ending, Reading};

/// How long a client has to read why its connection ends.
const FAREWELL_PATIENCE: Duration = Duration::from_secs(2);

/// How much a command costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Microseconds.
    Look,
    /// Milliseconds, if there are a thousand entries.
    Survey,
    /// More.
    Act,
}

impl Kind {
    fn of(command: &Command) -> Self {
        match command {
            Command::GetState {} | Command::Health {} | Command::Metrics {} | Command::SubscribeEvents {} => {
                Self::Look
            }
            Command::ListEntries { .. } | Command::Timeline { .. } | Command::Usage { .. } => Self::Survey,
            Command::Launch { .. }
            | Command::StopCurrent { .. }
            | Command::ReloadConfig {}
            | Command::ExtendCurrent { .. }
            | Command::SetPolicy { .. }
            | Command::GetPolicy {}
            | Command::Why { .. }
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
            | Command::SetPin { .. } => Self::Act,
        }
    }
}

/// Lets a connection in, or tells it why not.
pub(super) fn admit(stream: UnixStream, hub: &Hub) {
    let shared = &hub.shared;
    // A peer that the kernel can't name is nobody.
    let Ok(peer) =
        stream.peer_cred().map(|found| Peer { uid: found.uid(), gid: found.gid(), pid: found.pid() })
    else {
        return;
    };
    match register(shared, peer) {
        Ok(client) => {
            shared.counters.accepted.add(1);
            let guard = Registered { shared: Arc::clone(shared), client };
            tokio::spawn(async move { serve(stream, &guard).await });
        }
        Err(error) => {
            shared.counters.turned_away.add(1);
            if error.code == ErrorCode::NotPermitted
                && let Some(refusal) = shared.refusal(peer, "", "connect", &error.sentence)
            {
                // If the loop is that busy, the counter has to do.
                let _ = shared.lanes.quick.try_send(refusal);
            }
            turn_away(stream, error);
        }
    }
}

fn register(shared: &Arc<Shared>, peer: Peer) -> Result<Arc<Client>, ApiError> {
    let mut bits = [0; 16];
    getrandom::fill(&mut bits).map_err(|_| {
        ApiError::new(ErrorCode::Internal, "There is no randomness to name a connection with.")
    })?;
    let claim = shared.claim(&peer).ok_or_else(not_welcome)?;
    let mut registry = shared.registry();
    let user_bytes = registry.reserve(peer.uid, claim, &shared.limits).map_err(|full| {
        let whose = match full {
            Full::ForEverybody => "in all",
            Full::ForThisUser => "of this user",
        };
        ApiError::new(ErrorCode::TooManyClients, format!("Too many clients {whose} are connected."))
    })?;
    let client_id = ClientId::from_random(u128::from_ne_bytes(bits));
    let client = Arc::new(Client::new(client_id.clone(), peer, Outbox::new(user_bytes)));
    registry.clients.insert(client_id, Arc::clone(&client));
    Ok(client)
}

/// Says why, if the client's buffer takes it; nobody waits for that.
fn turn_away(stream: UnixStream, error: ApiError) {
    if let (Ok(mut stream), Some(line)) = (stream.into_std(), farewell(error)) {
        let _ = stream.write(&line);
    }
}

/// A client that is in the registry for as long as this lives.
struct Registered {
    shared: Arc<Shared>,
    client: Arc<Client>,
}

impl Drop for Registered {
    fn drop(&mut self) {
        let mut registry = self.shared.registry();
        registry.clients.remove(&self.client.client_id);
        registry.release(self.client.peer.uid);
        drop(registry);
        self.shared.someone_left.notify_one();
    }
}

async fn serve(mut stream: UnixStream, Registered { shared, client }: &Registered) {
    let (reader, writer) = stream.split();
    let mut writing = std::pin::pin!(write(&writer, shared, client));
    let ending = tokio::select! {
        ending = Reading::new(shared, client).run(&reader) => ending,
        () = &mut writing => return,
    };
    let patience = match ending {
        Ending::HungUp => {
            client.outbox.half_close();
            shared.limits.write_patience
        }
        Ending::Fault(error) => {
            shared.counters.faults.add(1);
            client.outbox.close(farewell(error));
            FAREWELL_PATIENCE
        }
        Ending::Over => FAREWELL_PATIENCE,
    };
    // Whoever does not read to the end does not get it.
    let _ = timeout(patience, writing).await;
}

async fn write(writer: &WriteHalf<'_>, shared: &Shared, client: &Client) {
    loop {
        match client.outbox.next().await {
            Step::Write(outgoing) => {
                if write_all(writer, &outgoing.line, shared.limits.write_patience).await.is_err() {
                    return;
                }
            }
            Step::AskForSnapshot => {
                let wish = Incoming::NeedsSnapshot { client_id: client.client_id.clone() };
                if shared.lanes.quick.send(wish).await.is_err() {
                    return;
                }
            }
            Step::End => return,
        }
    }
}

/// Writes a line to somebody who takes at least a part of it in every `patience`.
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
