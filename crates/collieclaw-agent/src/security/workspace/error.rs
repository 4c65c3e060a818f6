//! Errors of file access.

use std::io;

use collieclaw_gate::GateReason;
use collieclaw_providers::net::WaitError;
use rustix::io::Errno;

/// An error of file access. The message continues a sentence that starts with the path.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    #[error("does not exist")]
    Missing,
    /// A folder was found where a file is needed.
    #[error("is a folder")]
    IsAFolder,
    /// A file was found where a folder is needed.
    #[error("is not a folder")]
    NotAFolder,
    /// The path leads to a device, a pipe or a socket.
    #[error("is neither a file nor a folder")]
    NotAFile,
    /// The path leads to a pseudo file of the kernel, such as those in `/proc`.
    #[error("is a pseudo file of the kernel")]
    PseudoFile,
    /// The path is a broken symlink. Its target is not created, because the symlink may be a trap.
    #[error("is a broken symlink")]
    DanglingLink,
    /// The symlinks form a loop, or lead through `/proc`.
    #[error("can't be resolved: its symlinks form a loop or lead through /proc")]
    UnresolvableLinks,
    /// Other processes changed the path in every attempt.
    #[error("is being changed by another process; try again")]
    ChangedMeanwhile,
    /// The new path of an entry is taken.
    #[error("exists already")]
    Exists,
    /// A folder can't be moved into one of its own folders.
    #[error("can't be moved into itself")]
    IntoItself,
    /// The entry would have to be copied to another file system.
    #[error("is too large to be copied to another file system")]
    TooLarge,
    /// The entry was copied to another file system, and then a part of it could not be removed.
    #[error("was copied, but not everything could be removed from its old place: {0}")]
    PartlyRemoved(Errno),
    /// A rule forbids the real path.
    #[error("may not be used: {}", .0.detail())]
    Refused(GateReason),
    /// The deadline has passed, or the call was cancelled.
    #[error("{0}")]
    Stopped(WaitError),
    #[error("can't be accessed: {0}")]
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
