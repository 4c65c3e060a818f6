//! The client side of the socket.

#[cfg(feature = "async-client")]
mod async_client;
mod blocking;
mod error;
mod options;
mod protocol;
mod watch_state;
mod watcher;

#[cfg(feature = "async-client")]
pub use async_client::{AsyncClient, AsyncDaemonWatcher};
pub use blocking::BlockingClient;
pub use error::{CallError, ConnectError};
pub use options::ClientOptions;
pub use protocol::ServerPush;
pub use watch_state::{WatchError, WatchUpdate};
pub use watcher::DaemonWatcher;
