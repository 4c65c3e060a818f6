//! Creates the socket file. It belongs to this daemon alone and is never open wider than it should be.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FlockOperation, Gid, Mode, chmodat, chownat, fchmod, flock};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, listen, socket_with,
};
use rustix::thread::set_thread_res_gid;
use shepherd_util::MAX_SOCKET_PATH;

/// The number of connections that the kernel queues before they are accepted; its own limit may be lower.
const BACKLOG: i32 = 4_096;

/// The error for a socket that can't be created.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// Another daemon listens on the socket.
    #[error("another daemon listens at {}", socket.display())]
    InUse {
        /// The path of the socket.
        socket: PathBuf,
    },
    /// The path exists and isn't a socket, so it isn't ours to remove.
    #[error("{} is not a socket; move it away", socket.display())]
    NotASocket {
        /// The path of the file.
        socket: PathBuf,
    },
    /// The path is too long for the kernel.
    #[error("the socket's path has {length} bytes, but the system allows {MAX_SOCKET_PATH}")]
    PathTooLong {
        /// The length of the path.
        length: usize,
    },
    /// Any other failure.
    #[error("could not {step} {}", path.display())]
    Io {
        /// The operation that failed.
        step: &'static str,
        /// The path of the file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
}

/// A bound socket. Dropping it removes the file, if the file is still ours.
#[derive(Debug)]
pub(super) struct BoundSocket {
    path: PathBuf,
    device: u64,
    inode: u64,
    /// A lock that is held while the daemon listens, so that of two daemons that start at the same time one fails.
    _lock: File,
}

/// Binds and listens. The socket file is created for its owner alone and only then opened to the users of `mode`.
pub(super) fn bind_socket(
    path: &Path,
    mode: u32,
    group: Option<u32>,
) -> Result<(BoundSocket, UnixListener), BindError> {
    let length = path.as_os_str().len();
    if length > MAX_SOCKET_PATH {
        return Err(BindError::PathTooLong { length });
    }
    let lock = lock_socket(path)?;
    remove_stale_socket(path)?;
    let failed = |step| move |error: Errno| io_error(step, path, error.into());
    let socket = new_socket().map_err(failed("make a socket for"))?;
    // The file gets the mode of the socket at bind time; the umask can only remove bits.
    fchmod(&socket, Mode::RUSR | Mode::WUSR).map_err(failed("set the mode of"))?;
    let address = SocketAddrUnix::new(path).map_err(failed("name"))?;
    bind(&socket, &address).map_err(failed("bind"))?;
    let metadata = fs::symlink_metadata(path).map_err(|error| io_error("look at", path, error))?;
    let bound =
        BoundSocket { path: path.to_owned(), device: metadata.dev(), inode: metadata.ino(), _lock: lock };
    listen(&socket, BACKLOG).map_err(failed("listen at"))?;
    if let Some(group) = group {
        set_socket_group(path, Gid::from_raw(group)).map_err(failed("change the group of"))?;
    }
    chmodat(CWD, path, Mode::from_bits_truncate(mode), AtFlags::empty())
        .map_err(failed("set the mode of"))?;
    let listener = UnixListener::from(socket);
    listener.set_nonblocking(true).map_err(|error| io_error("set up", path, error))?;
    Ok((bound, listener))
}

/// Changes the group of the file. A member of a group may give a file to it. A daemon that may change its groups but
/// not file owners lets a thread join the group for this call.
fn set_socket_group(path: &Path, group: Gid) -> Result<(), Errno> {
    let give = || chownat(CWD, path, None, Some(group), AtFlags::SYMLINK_NOFOLLOW);
    let give_as_member = || set_thread_res_gid(None, Some(group), None).and_then(|()| give());
    match give() {
        Err(Errno::PERM) => {
            std::thread::scope(|scope| scope.spawn(give_as_member).join().unwrap_or(Err(Errno::PERM)))
        }
        done => done,
    }
}

fn lock_socket(path: &Path) -> Result<File, BindError> {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    let name = PathBuf::from(name);
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(&name)
        .map_err(|error| io_error("open", &name, error))?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(Errno::WOULDBLOCK) => Err(BindError::InUse { socket: path.to_owned() }),
        Err(error) => Err(io_error("lock", &name, error.into())),
    }
}

/// Removes the socket file of a killed daemon. A socket that answers, or a file that isn't a socket, stays.
fn remove_stale_socket(path: &Path) -> Result<(), BindError> {
    let metadata = match fs::symlink_metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(io_error("look at", path, error)),
    };
    if !metadata.file_type().is_socket() {
        return Err(BindError::NotASocket { socket: path.to_owned() });
    }
    let probe = || {
        let socket = new_socket()?;
        connect(&socket, &SocketAddrUnix::new(path)?)
    };
    match probe() {
        Err(Errno::CONNREFUSED) => fs::remove_file(path).map_err(|error| io_error("remove", path, error)),
        // A full backlog also means that a daemon listens.
        Ok(()) | Err(Errno::AGAIN | Errno::PROTOTYPE) => Err(BindError::InUse { socket: path.to_owned() }),
        Err(error) => Err(io_error("check for a daemon at", path, error.into())),
    }
}

fn new_socket() -> rustix::io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)
}

fn io_error(step: &'static str, path: &Path, source: io::Error) -> BindError {
    BindError::Io { step, path: path.to_owned(), source }
}

impl Drop for BoundSocket {
    fn drop(&mut self) {
        let is_ours = fs::symlink_metadata(&self.path)
            .is_ok_and(|found| found.dev() == self.device && found.ino() == self.inode);
        if is_ours {
            // If this fails, the next daemon removes the file.
            let _ = fs::remove_file(&self.path);
        }
    }
}
