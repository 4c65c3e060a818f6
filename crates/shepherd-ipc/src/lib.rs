//! The socket between Shepherd's daemon and its clients (S11): framing, credentials, roles, limits and the client
//! side.
//!
//! Without features the crate contains the blocking [`BlockingClient`] and nothing that needs a runtime. `server` adds
//! the daemon's side, `async-client` the asynchronous client.
//!
//! Start at [`BlockingClient`] and [`DaemonWatcher`], or at [`IpcServer`] and [`AccessRules`].

#![warn(missing_docs)]

#[cfg(feature = "server")]
mod access;
#[cfg(feature = "server")]
mod accounts;
mod client;
mod frame;
#[cfg(feature = "server")]
mod pin;
#[cfg(feature = "server")]
mod server;

#[cfg(feature = "server")]
pub use access::{AccessRules, PeerAuthorizer, PeerCredentials, PeerPermissions, PinState};
#[cfg(feature = "server")]
pub use accounts::{
    AccountResolveError, AccountsReadError, GROUPS_FILE, SystemAccounts, USERS_FILE, resolve_access,
};
#[cfg(feature = "async-client")]
pub use client::{AsyncClient, AsyncDaemonWatcher};
pub use client::{
    BlockingClient, CallError, ClientOptions, ConnectError, DaemonWatcher, ServerPush, WatchError,
    WatchUpdate,
};
pub use frame::{FrameDecoder, FrameTooLarge, MAX_ADMIN_FRAME, MAX_FRAME, MAX_REPLY_FRAME};
#[cfg(feature = "server")]
pub use pin::{PinStore, PinStoreError};
#[cfg(feature = "server")]
pub use server::{
    BindError, ClientHub, ClientInfo, CommandRates, ConnectionCounts, ConnectionLimits, IncomingEvent,
    IpcServer, ServerOptions,
};
