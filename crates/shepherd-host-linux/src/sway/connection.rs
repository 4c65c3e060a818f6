//! A connection to Sway: its framing, which nothing waits for.
//!
//! Requests and events share one connection. Whatever does not fit into it at once, or is not understood, ends it:
//! a compositor that hangs must not hang us.

use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

use super::display;
use super::layout::{self, SwayWindow};

const MAGIC: &[u8; 6] = b"i3-ipc";
const HEADER: usize = 14;

const RUN_COMMAND: u32 = 0;
const SUBSCRIBE: u32 = 2;
const GET_TREE: u32 = 4;
const WINDOW_EVENT: u32 = 0x8000_0003;

/// A tree of thousands of windows.
const MAX_FRAME: usize = 16 << 20;

/// Pieces that are read before others have their turn; the rest is still there the next time.
const MAX_READS: usize = 64;

/// What Sway says that concerns us.
pub(super) enum SwayEvent {
    /// Windows came, went or changed places.
    WindowsChanged,
    /// All windows that there are.
    WindowList(Vec<SwayWindow>),
}

/// A connection.
pub(super) struct SwayConnection {
    stream: UnixStream,
    unread: Vec<u8>,
    /// Who listens.
    peer_pid: i32,
    display: Option<PathBuf>,
}

impl SwayConnection {
    /// Connects if somebody listens, and asks to be told of windows.
    pub(super) fn open(socket: &Path) -> io::Result<Self> {
        let stream = connect(socket)?;
        let peer = listener_pid(&stream)?;
        let display = display::wayland_display(peer, socket);
        let mut link = Self { stream, unread: Vec::new(), peer_pid: peer, display };
        link.send(SUBSCRIBE, r#"["window"]"#)?;
        Ok(link)
    }

    pub(super) fn peer_pid(&self) -> i32 {
        self.peer_pid
    }

    /// Where its clients connect to.
    pub(super) fn display(&self) -> Option<&Path> {
        self.display.as_deref()
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
            _ => Err(io::Error::new(ErrorKind::WouldBlock, "it does not read what it is told")),
        }
    }

    /// What has been said since the last time.
    pub(super) fn read_events(&mut self) -> io::Result<Vec<SwayEvent>> {
        let mut said = Vec::new();
        let mut piece = [0; 16 * 1024];
        for _ in 0..MAX_READS {
            match self.stream.read(&mut piece) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(length) => self.unread.extend(piece.get(..length).unwrap_or_default()),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(said),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
            while let Some((kind, payload)) = self.next_frame()? {
                match kind {
                    GET_TREE => said.push(SwayEvent::WindowList(layout::parse_windows(&payload)?)),
                    WINDOW_EVENT if layout::affects_layout(&payload)? => said.push(SwayEvent::WindowsChanged),
                    _ => {}
                }
            }
        }
        Ok(said)
    }

    fn next_frame(&mut self) -> io::Result<Option<(u32, Vec<u8>)>> {
        let Some(header) = self.unread.first_chunk::<HEADER>() else { return Ok(None) };
        let [m0, m1, m2, m3, m4, m5, l0, l1, l2, l3, k0, k1, k2, k3] = *header;
        let length = u32::from_ne_bytes([l0, l1, l2, l3]) as usize;
        if [m0, m1, m2, m3, m4, m5] != *MAGIC || length > MAX_FRAME {
            return Err(io::Error::new(ErrorKind::InvalidData, "whoever listens does not speak like Sway"));
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

/// Connects without waiting for whoever listens.
pub(super) fn connect(socket: &Path) -> io::Result<UnixStream> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let stream = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    rustix::net::connect(&stream, &SocketAddrUnix::new(socket)?)?;
    Ok(stream.into())
}

/// The number of the process that listens at the other end.
pub(super) fn listener_pid(stream: &UnixStream) -> io::Result<i32> {
    Ok(rustix::net::sockopt::socket_peercred(stream)?.pid.as_raw_nonzero().get())
}
