//! The daemon's side of the socket. Every mistake that a client can make is handled here.
//!
//! ```text
//! socket ─▶ connection task ──▶ two bounded lanes ────▶ the daemon's loop
//!           credentials, hello,    IncomingEvent           owns the state
//!           lines, roles, rates                                │
//! socket ◀─ outbox, bounded ◀──────────────────────── ClientHub ◀
//! ```
//!
//! Each client has a task and an outbox. A task reads a line only when the client has room for one more reply, so a
//! client that sends too fast waits in its own socket. The loop never waits for a client: it writes into outboxes, and
//! a client that doesn't empty its outbox misses events and gets a message about it.

mod command_lanes;
mod connected_client;
mod connection;
mod hub;
mod limits;
mod listen;
mod outbox;
mod registry;
mod server_state;
mod wire;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use shepherd_api::{ApiError, ClientRole, Command, ErrorCode};
use shepherd_util::{ClientId, ProfileId};
use tokio::net::UnixListener;
use tokio::task::JoinHandle;

use crate::{PeerAuthorizer, PeerCredentials, PinStore};
use command_lanes::LaneReceivers;
pub use hub::{ClientHub, ConnectionCounts};
pub use limits::{CommandRates, ConnectionLimits};
pub use listen::BindError;
use listen::BoundSocket;

/// The delay after a failed accept: file descriptors that ran out don't come back by retrying at once.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The time that clients get to read the last message.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(1);

/// The settings of the server.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// The path of the socket.
    pub socket: PathBuf,
    /// The mode of the socket file. A user with write permission may connect and is then checked by credentials.
    pub mode: u32,
    /// The group of the socket file, if it differs from the daemon's.
    pub group: Option<u32>,
    /// The daemon's greeting.
    pub daemon_version: String,
    /// The limits for clients.
    pub limits: ConnectionLimits,
}

/// A client at the moment of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientInfo {
    /// The id of the connection.
    pub client_id: ClientId,
    /// The client's own name, which grants no permission.
    pub name: String,
    /// The identity that the kernel reports.
    pub peer: PeerCredentials,
    /// The current role of the client.
    pub role: ClientRole,
    /// The role after the PIN was given.
    pub role_with_pin: ClientRole,
    /// The profile whose time the client uses; `None` if the policy names none.
    pub profile: Option<ProfileId>,
}

impl ClientInfo {
    /// Returns whether the client may see the data of a profile: an administrator, the profile itself, and a client
    /// without a profile, such as the front end of a login that all children share.
    #[must_use]
    pub fn may_see(&self, profile: &ProfileId) -> bool {
        self.role == ClientRole::Admin || self.profile.as_ref().is_none_or(|own| own == profile)
    }

    /// Returns the error code for a missing role, which tells the client whether the PIN would help.
    #[must_use]
    pub fn refusal_code(&self, role: ClientRole) -> ErrorCode {
        if self.role_with_pin >= role { ErrorCode::PinRequired } else { ErrorCode::NotPermitted }
    }
}

/// An event for the daemon's loop.
#[derive(Debug)]
pub enum IncomingEvent {
    /// A command that the client's role permits. The loop must answer each with [`ClientHub::respond`].
    Request {
        /// The client that sent the command.
        client: ClientInfo,
        /// The id of the request, for the answer.
        request_id: u64,
        /// The command itself.
        command: Command,
    },
    /// A client gave the correct PIN and is an administrator now. For the audit log.
    Authenticated {
        /// The client that gave the PIN.
        client: ClientInfo,
    },
    /// An administrator tried to set, change or remove the PIN. For the audit log.
    PinChange {
        /// The client that changed the PIN.
        client: ClientInfo,
        /// True if a PIN is set now; or, for people, the reason why nothing changed.
        outcome: Result<bool, String>,
    },
    /// A command was refused and answered. For the audit log.
    Refused {
        /// The identity of the client.
        peer: PeerCredentials,
        /// The client's own name; empty before the handshake.
        name: String,
        /// The name of the command; `connect` for a refused connection.
        command: &'static str,
        /// The reason for the refusal.
        reason: String,
        /// The number of earlier refusals that were not reported, because there were too many.
        unrecorded: u64,
    },
    /// A subscriber that fell behind has caught up. [`ClientHub::send_snapshot`] sends it a new snapshot.
    NeedsSnapshot {
        /// The id of the subscriber.
        client_id: ClientId,
    },
}

/// A listening socket. Dropping it closes all connections.
#[derive(Debug)]
pub struct IpcServer {
    hub: ClientHub,
    incoming: LaneReceivers,
    accept_task: JoinHandle<()>,
    _socket: BoundSocket,
}

impl IpcServer {
    /// Starts to listen. It needs a tokio runtime; one thread is enough.
    ///
    /// # Errors
    /// Another daemon listens there, or the socket can't be created.
    pub fn bind(
        options: ServerOptions,
        gatekeeper: Arc<dyn PeerAuthorizer>,
        pin: PinStore,
    ) -> Result<Self, BindError> {
        let (socket, listener) = listen::bind_socket(&options.socket, options.mode, options.group)?;
        let listener = UnixListener::from_std(listener).map_err(|source| BindError::Io {
            step: "watch",
            path: options.socket.clone(),
            source,
        })?;
        let (lanes, incoming) = command_lanes::lane_channels();
        let hub = ClientHub::new(options.daemon_version, options.limits, gatekeeper, pin, lanes);
        let accepting = tokio::spawn(accept(listener, hub.clone()));
        Ok(Self { hub, incoming, accept_task: accepting, _socket: socket })
    }

    /// Returns the handle for replies and events.
    #[must_use]
    pub fn hub(&self) -> &ClientHub {
        &self.hub
    }

    /// Waits for the next event from a client. A cancellation loses no event.
    pub async fn next_event(&mut self) -> Option<IncomingEvent> {
        self.incoming.next_event().await
    }

    /// Closes all connections in order, and tells each client.
    pub async fn shutdown(mut self) {
        self.accept_task.abort();
        self.incoming.close();
        self.hub.close_all(&shutting_down_error());
        let _ = tokio::time::timeout(SHUTDOWN_TIMEOUT, self.hub.wait_until_disconnected()).await;
    }
}

impl Drop for IpcServer {
    fn drop(&mut self) {
        self.accept_task.abort();
        self.hub.close_all(&shutting_down_error());
    }
}

fn shutting_down_error() -> ApiError {
    ApiError::new(ErrorCode::ShuttingDown, "The daemon is shutting down.")
}

async fn accept(listener: UnixListener, hub: ClientHub) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => connection::accept_connection(stream, &hub),
            Err(_) => {
                hub.shared.counters.failed_accepts.add(1);
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
        // A client that connects in a loop gets one turn like all others.
        tokio::task::yield_now().await;
    }
}
