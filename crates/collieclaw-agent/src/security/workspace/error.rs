//! Why a file can't be used.

use std::io;

use collieclaw_gate::GateReason;
use collieclaw_providers::net::WaitError;
use rustix::io::Errno;

/// Why a file can't be used. Each reads as the end of a sentence that begins with the path.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// Nothing is there.
    #[error("is not there")]
    Missing,
    /// A folder, where a file is needed.
    #[error("is a folder")]
    IsAFolder,
    /// A file, where a folder is needed.
    #[error("is not a folder")]
    NotAFolder,
    /// A device, a pipe or a socket.
    #[error("is neither a file nor a folder")]
    NotAFile,
    /// What the kernel shows as a file: processes, devices and its own settings.
    #[error("belongs to the kernel, not to a disk")]
    PseudoFile,
    /// A link to nothing. What it leads to is not made: the link may be someone's trap.
    #[error("is a link that leads nowhere")]
    DanglingLink,
    /// The way there is a circle of links, or leads through the files of processes.
    #[error("can't be reached: links go round, or lead through /proc")]
    UnresolvableLinks,
    /// Others changed the way there again and again.
    #[error("is being changed by somebody else; try again")]
    ChangedMeanwhile,
    /// A rule forbids the place that it really is.
    #[error("may not be used: {}", .0.detail())]
    Refused(GateReason),
    /// The time is over, or somebody said stop.
    #[error("{0}")]
    Stopped(WaitError),
    /// The kernel refuses.
    #[error("can't be used: {0}")]
    Io(io::Error),
}

impl From<GateReason> for FileError {
    fn from(reason: GateReason) -> Self {
        Self::Refused(reason)
    }
}

impl From<Errno> for FileError {
    fn from(errno: Errno) -> Self {
        match errno {
            Errno::NOENT => Self::Missing,
            Errno::NOTDIR => Self::NotAFolder,
            Errno::ISDIR => Self::IsAFolder,
            Errno::LOOP => Self::UnresolvableLinks,
            Errno::AGAIN => Self::ChangedMeanwhile,
            other => Self::Io(other.into()),
        }
    }
}

impl From<io::Error> for FileError {
    fn from(error: io::Error) -> Self {
        Errno::from_io_error(&error).map_or(Self::Io(error), Self::from)
    }
}
