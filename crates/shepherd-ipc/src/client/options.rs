//! Settings of a client.

use std::path::PathBuf;
use std::time::Duration;

/// The time to wait for the handshake. A daemon answers within microseconds; one that takes longer hangs, or the
/// machine does.
const DEFAULT_CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// The time to wait for a reply. The slowest commands write to a disk that may be slow.
const DEFAULT_CALL_TIMEOUT: Duration = Duration::from_secs(30);

/// Settings of a client. Start with [`ClientOptions::new`] and change what doesn't fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientOptions {
    /// The path of the daemon's socket.
    pub socket: PathBuf,
    /// The client's own name, for the daemon's log.
    pub name: String,
    /// The time to wait for the daemon's greeting.
    pub connect_timeout: Duration,
    /// The time to wait for a reply.
    pub call_timeout: Duration,
}

impl ClientOptions {
    /// Creates the settings of a client with this name, for the daemon at this socket.
    #[must_use]
    pub fn new(socket: impl Into<PathBuf>, name: impl Into<String>) -> Self {
        Self {
            socket: socket.into(),
            name: name.into(),
            connect_timeout: DEFAULT_CONNECT_TIMEOUT,
            call_timeout: DEFAULT_CALL_TIMEOUT,
        }
    }
}
