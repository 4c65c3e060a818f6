//! The socket between Shepherd's daemon and its clients (S11): framing, credentials, roles, limits, and the clients'
//! side of it.
//!
//! Without features it is the blocking [`Client`] and nothing that needs a runtime. `server` adds the daemon's side,
//! `async-client` the same client for whoever has a runtime.
//!
//! Start at [`Client`] and [`Watch`], or at [`Server`] and [`Authority`].

#![warn(missing_docs)]

#[cfg(feature = "server")]
mod accounts;
#[cfg(feature = "server")]
mod authority;
mod client;
mod frame;
#[cfg(feature = "server")]
mod pin;
#[cfg(feature = "server")]
mod server;

#[cfg(feature = "server")]
pub use accounts::{AccountFault, Accounts, AccountsError, resolve};
#[cfg(feature = "server")]
pub use authority::{Authority, Gatekeeper, Peer, PinState, Standing};
#[cfg(feature = "async-client")]
pub use client::{AsyncClient, AsyncWatch};
pub use client::{CallError, Client, ClientOptions, ConnectError, Pushed, Update, Watch, WatchError};
pub use frame::{FrameDecoder, FrameTooLarge, MAX_ADMIN_FRAME, MAX_FRAME, MAX_REPLY_FRAME};
#[cfg(feature = "server")]
pub use pin::{PinError, PinKeeper};
#[cfg(feature = "server")]
pub use server::{BindError, ClientInfo, Counts, Hub, Incoming, Limits, Rates, Server, ServerOptions};
