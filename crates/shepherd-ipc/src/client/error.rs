//! What can go wrong between a client and the daemon.

use std::io;
use std::path::{Path, PathBuf};

use shepherd_api::ApiError;

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// Nothing listens there.
    #[error("no daemon listens at {}", socket.display())]
    NoDaemon {
        /// Where.
        socket: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file system does not let this user in.
    #[error("this user may not open {}", socket.display())]
    PermissionDenied {
        /// What.
        socket: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The daemon did not answer in time.
    #[error("the daemon at {} does not answer", socket.display())]
    TimedOut {
        /// Where.
        socket: PathBuf,
    },
    /// The daemon answered, and does not want this client.
    #[error("the daemon refuses this connection")]
    Refused(#[source] ApiError),
    /// Something else listens there.
    #[error("what listens at {} does not speak Shepherd's protocol", socket.display())]
    NotShepherd {
        /// Where.
        socket: PathBuf,
    },
    /// Anything else.
    #[error("connecting to {}", socket.display())]
    Io {
        /// Where.
        socket: PathBuf,
        /// What the system said.
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

/// Why a command has no answer that pleases. Only after [`CallError::Refused`] and [`CallError::TimedOut`] the
/// connection is still of use.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The daemon said no.
    #[error("the daemon refuses")]
    Refused(#[source] ApiError),
    /// The daemon ended the connection and said why.
    #[error("the daemon ended the connection")]
    Closed(#[source] ApiError),
    /// The connection is gone.
    #[error("the connection to the daemon is lost")]
    Disconnected(#[source] io::Error),
    /// No answer in time. It may still be carried out.
    #[error("the daemon did not answer in time")]
    TimedOut,
    /// An answer that is none.
    #[error("the daemon's answer can't be read")]
    InvalidReply,
    /// More events came in than are kept for whoever does not ask for them.
    #[error("more events came in than were taken")]
    TooManyEvents,
}

impl CallError {
    pub(crate) fn from_io(source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => Self::TimedOut,
            _ => Self::Disconnected(source),
        }
    }

    /// What the daemon said, if it said anything.
    #[must_use]
    pub fn api_error(&self) -> Option<&ApiError> {
        match self {
            Self::Refused(error) | Self::Closed(error) => Some(error),
            Self::Disconnected(_) | Self::TimedOut | Self::InvalidReply | Self::TooManyEvents => None,
        }
    }
}
