//! The socket between Shepherd's daemon and its clients (S11): framing, credentials, roles, limits, and the clients'
//! side of it.
//!
//! Without features it is the blocking [`Client`] and nothing that needs a runtime.
//!
//! Start at [`Client`] and [`Watch`].

mod client;
mod frame;

pub use client::{CallError, Client, ClientOptions, ConnectError, Pushed, Update, Watch, WatchError};
pub use frame::{FrameDecoder, FrameTooLarge, MAX_ADMIN_FRAME, MAX_FRAME, MAX_REPLY_FRAME};
