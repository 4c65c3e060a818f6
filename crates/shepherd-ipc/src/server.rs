//! The daemon's side of the socket: everything that a client can do wrong ends here.
//!
//! ```text
//! socket ─▶ connection task ──▶ two bounded lanes ────▶ the daemon's loop
//!           credentials, hello,       Incoming           owns the state
//!           lines, roles, rates                                │
//! socket ◀─ outbox, bounded ◀───────────────────────────── Hub ◀
//! ```
//!
//! Each client has a task and an outbox. A task reads a line only when the client has room for one more answer, so
//! what a client sends too fast waits in its own socket. The loop never waits for a client: what it says goes into
//! outboxes, and who does not empty its own misses events and is told so.

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

/// How long to wait when no connection can be accepted: descriptors that ran out are not found by looking harder.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// How long the clients are given to read the last word.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(1);

/// Where and how to listen.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// The socket's path.
    pub socket: PathBuf,
    /// The mode of the socket's file. Whoever may write to it may connect, and is then asked for credentials.
    pub mode: u32,
    /// The group of the socket's file, if it is to be another than the daemon's.
    pub group: Option<u32>,
    /// What the daemon says of itself.
    pub daemon_version: String,
    /// How much of everything.
    pub limits: ConnectionLimits,
}

/// A client as it was when it said something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientInfo {
    /// Which connection.
    pub client_id: ClientId,
    /// What it calls itself; nothing is permitted because of it.
    pub name: String,
    /// Who it is to the kernel.
    pub peer: PeerCredentials,
    /// What it may do.
    pub role: ClientRole,
    /// What it may do after it gave the PIN.
    pub role_with_pin: ClientRole,
    /// Whose time it uses; `Normal` if the policy does not say.
    pub profile: Option<ProfileId>,
}

impl ClientInfo {
    /// Whether it may see what is a profile's own: an administrator, the profile itself, and whoever the policy has
    /// given no profile, as the front end of a login that all children share.
    #[must_use]
    pub fn may_see(&self, profile: &ProfileId) -> bool {
        self.role == ClientRole::Admin || self.profile.as_ref().is_none_or(|own| own == profile)
    }

    /// What it is called that this client may not do something for which one has to be this: if the PIN would help,
    /// the client is told.
    #[must_use]
    pub fn refusal_code(&self, role: ClientRole) -> ErrorCode {
        if self.role_with_pin >= role { ErrorCode::PinRequired } else { ErrorCode::NotPermitted }
    }
}

/// What the loop is told.
#[derive(Debug)]
pub enum IncomingEvent {
    /// A command that this client's role may give. [`ClientHub::respond`] answers it; each needs an answer.
    Request {
        /// Who.
        client: ClientInfo,
        /// For the answer.
        request_id: u64,
        /// What.
        command: Command,
    },
    /// Somebody gave the right PIN and is an administrator now. For the record.
    Authenticated {
        /// Who.
        client: ClientInfo,
    },
    /// An administrator has set, changed or removed the PIN, or has tried to. For the record.
    PinChange {
        /// Who.
        client: ClientInfo,
        /// Whether there is one now; or why it is as before, for people.
        outcome: Result<bool, String>,
    },
    /// Something was refused and answered. For the record.
    Refused {
        /// Who.
        peer: PeerCredentials,
        /// What it calls itself; empty if it did not come so far.
        name: String,
        /// Which command; `connect` if it was not let in.
        command: &'static str,
        /// Why.
        reason: String,
        /// How many refusals before this one were not handed on, because there were too many.
        unrecorded: u64,
    },
    /// A subscriber fell behind and has caught up. [`ClientHub::resync`] tells it how it stands now.
    NeedsSnapshot {
        /// Who.
        client_id: ClientId,
    },
}

/// A socket that listens. Dropping it ends all connections.
#[derive(Debug)]
pub struct IpcServer {
    hub: ClientHub,
    incoming: LaneReceivers,
    accept_task: JoinHandle<()>,
    _socket: BoundSocket,
}

impl IpcServer {
    /// Listens. It needs a runtime of tokio, and one thread of it is enough.
    ///
    /// # Errors
    /// Another daemon listens there, or the socket can't be made.
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

    /// What to answer with.
    #[must_use]
    pub fn hub(&self) -> &ClientHub {
        &self.hub
    }

    /// The next thing that a client wants. May be cancelled without losing any.
    pub async fn next_event(&mut self) -> Option<IncomingEvent> {
        self.incoming.next_event().await
    }

    /// Ends all connections in order: each is told.
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
    ApiError::new(ErrorCode::ShuttingDown, "The daemon is going down.")
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
        // Whoever connects in a loop gets one turn like everybody else.
        tokio::task::yield_now().await;
    }
}
