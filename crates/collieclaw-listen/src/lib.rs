//! Parts of CollieClaw's loopback servers: a pool with a limited number of connections, clients that may
//! disconnect at any time, and the access token.

mod connections;
mod peer;
mod token;

pub use connections::{ActivityGuard, ConnectionPool};
pub use peer::{TcpPeer, WeakTcpPeer};
pub use token::{AccessToken, TokenError};
