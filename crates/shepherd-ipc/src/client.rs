//! The other end of the socket: for whoever wants something of the daemon.

#[cfg(feature = "async-client")]
mod asynchronous;
mod blocking;
mod conversation;
mod error;
mod options;
mod picture;
mod watch;

#[cfg(feature = "async-client")]
pub use asynchronous::{AsyncClient, AsyncWatch};
pub use blocking::Client;
pub use conversation::Pushed;
pub use error::{CallError, ConnectError};
pub use options::ClientOptions;
pub use picture::{Update, WatchError};
pub use watch::Watch;
