//! A non-blocking connection to Sway's IPC socket.
//!
//! Requests and events share the connection. A request that doesn't fit into the socket buffer, or a reply that can't be
//! parsed, ends the connection: a compositor that hangs must not block this thread.

use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

use super::display;
use super::display_access::CompositorDisplays;
use super::layout::{self, SwayWindow};
use super::sway_folders::SwayFolders;

const MAGIC: &[u8; 6] = b"i3-ipc";
const HEADER: usize = 14;

const RUN_COMMAND: u32 = 0;
const SUBSCRIBE: u32 = 2;
const GET_TREE: u32 = 4;
const WINDOW_EVENT: u32 = 0x8000_0003;

/// The largest message: enough for a tree of thousands of windows.
const MAX_FRAME: usize = 16 << 20;

/// The number of reads before the thread does other work. The rest is read the next time.
const MAX_READS: usize = 64;

/// The messages of Sway that the watcher needs.
pub(super) enum SwayEvent {
    /// Sway has answered for the first time, so it has started completely.
    Ready,
    /// Windows were opened, closed or moved.
    WindowsChanged,
    WindowList(Vec<SwayWindow>),
}

/// The process that listens at a socket, and its user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SwayProcess {
    pub(super) pid: i32,
    pub(super) uid: u32,
}

pub(super) struct SwayConnection {
    stream: UnixStream,
    unread: Vec<u8>,
    sway: SwayProcess,
    display: Option<PathBuf>,
}

impl SwayConnection {
    /// Connects and subscribes to window events. `runtime_folder` is Sway's, if it is known.
    pub(super) fn open(socket: &Path, runtime_folder: Option<&Path>) -> io::Result<Self> {
        let stream = connect(socket)?;
        let sway = listener(&stream)?;
        let display = display::wayland_display(sway, runtime_folder, socket);
        let mut connection = Self { stream, unread: Vec::new(), sway, display };
        connection.send(SUBSCRIBE, r#"["window"]"#)?;
        Ok(connection)
    }

    pub(super) fn sway(&self) -> SwayProcess {
        self.sway
    }

    /// Returns the displays of a Sway that has answered. It has these folders if it runs as a user of its own.
    pub(super) fn displays(&self, folders: Option<&SwayFolders>) -> CompositorDisplays {
        CompositorDisplays {
            sway: self.sway,
            wayland: self.display.clone(),
            x11: display::x11_display(self.sway),
            folders: folders.cloned(),
        }
    }

    pub(super) fn request_windows(&mut self) -> io::Result<()> {
        self.send(GET_TREE, "")
    }

    pub(super) fn run_command(&mut self, command: &str) -> io::Result<()> {
        self.send(RUN_COMMAND, command)
    }

    fn send(&mut self, kind: u32, payload: &str) -> io::Result<()> {
        let length = u32::try_from(payload.len()).map_err(io::Error::other)?;
        let mut frame = MAGIC.to_vec();
        frame.extend(length.to_ne_bytes());
        frame.extend(kind.to_ne_bytes());
        frame.extend(payload.as_bytes());
        match self.stream.write(&frame)? {
            written if written == frame.len() => Ok(()),
            _ => Err(io::Error::new(ErrorKind::WouldBlock, "Sway does not read its requests")),
        }
    }

    /// Reads the events that have arrived since the last call.
    pub(super) fn read_events(&mut self) -> io::Result<Vec<SwayEvent>> {
        let mut events = Vec::new();
        let mut buffer = [0; 16 * 1024];
        for _ in 0..MAX_READS {
            match self.stream.read(&mut buffer) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(length) => self.unread.extend(buffer.get(..length).unwrap_or_default()),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(events),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
            while let Some((kind, payload)) = self.next_frame()? {
                match kind {
                    SUBSCRIBE => events.push(SwayEvent::Ready),
                    GET_TREE => events.push(SwayEvent::WindowList(layout::parse_windows(&payload)?)),
                    WINDOW_EVENT if layout::affects_layout(&payload)? => {
                        events.push(SwayEvent::WindowsChanged);
                    }
                    _ => {}
                }
            }
        }
        Ok(events)
    }

    fn next_frame(&mut self) -> io::Result<Option<(u32, Vec<u8>)>> {
        let Some(header) = self.unread.first_chunk::<HEADER>() else { return Ok(None) };
        let [m0, m1, m2, m3, m4, m5, l0, l1, l2, l3, k0, k1, k2, k3] = *header;
        let length = u32::from_ne_bytes([l0, l1, l2, l3]) as usize;
        if [m0, m1, m2, m3, m4, m5] != *MAGIC || length > MAX_FRAME {
            return Err(io::Error::new(ErrorKind::InvalidData, "the reply is not a Sway IPC message"));
        }
        if self.unread.len() < HEADER + length {
            return Ok(None);
        }
        let payload = self.unread.drain(..HEADER + length).skip(HEADER).collect();
        Ok(Some((u32::from_ne_bytes([k0, k1, k2, k3]), payload)))
    }
}

impl AsFd for SwayConnection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

/// Connects without waiting for the listener.
pub(super) fn connect(socket: &Path) -> io::Result<UnixStream> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let stream = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    rustix::net::connect(&stream, &SocketAddrUnix::new(socket)?)?;
    Ok(stream.into())
}

/// Returns the process that listens at the other end.
pub(super) fn listener(stream: &UnixStream) -> io::Result<SwayProcess> {
    let peer = rustix::net::sockopt::socket_peercred(stream)?;
    Ok(SwayProcess { pid: peer.pid.as_raw_nonzero().get(), uid: peer.uid.as_raw() })
}
