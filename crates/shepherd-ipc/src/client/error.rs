//! Errors between a client and the daemon.

use std::io;
use std::path::{Path, PathBuf};

use shepherd_api::ApiError;

/// The error for a connection that could not be made.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// Nothing listens on the socket.
    #[error("no daemon listens at {}", socket.display())]
    NoDaemon {
        /// The path of the socket.
        socket: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The file system denies this user the access.
    #[error("permission denied for {}", socket.display())]
    PermissionDenied {
        /// The path that is closed.
        socket: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The daemon did not answer in time.
    #[error("the daemon at {} does not answer", socket.display())]
    TimedOut {
        /// The path of the socket.
        socket: PathBuf,
    },
    /// The daemon answered and refused this client.
    #[error("the daemon refused the connection")]
    Refused(#[source] ApiError),
    /// Another program listens on the socket.
    #[error("the program at {} does not speak Shepherd's protocol", socket.display())]
    NotShepherd {
        /// The path of the socket.
        socket: PathBuf,
    },
    /// Any other failure.
    #[error("could not connect to {}", socket.display())]
    Io {
        /// The path of the socket.
        socket: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
}

impl ConnectError {
    pub(crate) fn from_io(socket: &Path, source: io::Error) -> Self {
        let socket = socket.to_owned();
        match source.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => Self::NoDaemon { socket, source },
            io::ErrorKind::PermissionDenied => Self::PermissionDenied { socket, source },
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => Self::TimedOut { socket },
            _ => Self::Io { socket, source },
        }
    }

    pub(crate) fn from_call(socket: &Path, error: CallError) -> Self {
        let socket = socket.to_owned();
        match error {
            CallError::Refused(error) | CallError::Closed(error) => Self::Refused(error),
            CallError::TimedOut => Self::TimedOut { socket },
            CallError::Disconnected(source) => Self::Io { socket, source },
            CallError::InvalidReply | CallError::TooManyEvents => Self::NotShepherd { socket },
        }
    }
}

/// The error for a command without a successful reply. The connection stays usable only after [`CallError::Refused`]
/// and [`CallError::TimedOut`].
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The daemon refused the command.
    #[error("the daemon refused the command")]
    Refused(#[source] ApiError),
    /// The daemon closed the connection and said why.
    #[error("the daemon closed the connection")]
    Closed(#[source] ApiError),
    /// The connection is lost.
    #[error("the connection to the daemon is lost")]
    Disconnected(#[source] io::Error),
    /// No reply came in time. The daemon may still carry out the command.
    #[error("the daemon did not answer in time")]
    TimedOut,
    /// The reply is invalid.
    #[error("could not read the daemon's answer")]
    InvalidReply,
    /// More events arrived than the client keeps between two reads.
    #[error("too many unread events")]
    TooManyEvents,
}

impl CallError {
    pub(crate) fn from_io(source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => Self::TimedOut,
            _ => Self::Disconnected(source),
        }
    }

    /// Returns the daemon's own error, if it sent one.
    #[must_use]
    pub fn api_error(&self) -> Option<&ApiError> {
        match self {
            Self::Refused(error) | Self::Closed(error) => Some(error),
            Self::Disconnected(_) | Self::TimedOut | Self::InvalidReply | Self::TooManyEvents => None,
        }
    }
}
