//! The other end of the socket: for whoever wants something of the daemon.

mod blocking;
mod conversation;
mod error;
mod options;
mod watch;

pub use blocking::Client;
pub use conversation::Pushed;
pub use error::{CallError, ConnectError};
pub use options::ClientOptions;
pub use watch::{Update, Watch, WatchError};
