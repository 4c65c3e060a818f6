//! Connections that are taken: so many and no more, each with a client that may leave.

mod connections;
mod peer;
mod token;

pub use connections::{ActivityGuard, ConnectionPool};
pub use peer::{TcpPeer, WeakTcpPeer};
pub use token::{AccessToken, TokenError};
