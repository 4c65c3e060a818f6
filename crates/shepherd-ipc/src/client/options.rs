//! How a client behaves.

use std::path::PathBuf;
use std::time::Duration;

/// How long a client waits for the daemon to take it. A daemon answers within microseconds; one that does not within
/// this time hangs, or the machine does.
const DEFAULT_CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a client waits for an answer. The slowest commands write to a disk that may be slow.
const DEFAULT_CALL_TIMEOUT: Duration = Duration::from_secs(30);

/// How a client behaves. Change what [`ClientOptions::new`] chose where that does not fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientOptions {
    /// Where the daemon listens.
    pub socket: PathBuf,
    /// What the client calls itself, for the daemon's log.
    pub name: String,
    /// How long to wait until the daemon has said welcome.
    pub connect_timeout: Duration,
    /// How long to wait for an answer.
    pub call_timeout: Duration,
}

impl ClientOptions {
    /// A client of this name for the daemon that listens there.
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
