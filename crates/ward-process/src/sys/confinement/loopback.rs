//! The loopback interface of a sandbox with a network namespace of its own, and a socket on it that the
//! supervisor serves.
//!
//! A new network namespace has an interface `lo` that is down, and no other. The child brings it up while it
//! still has privileges over the namespace. A socket belongs to the namespace in which it was made, so the
//! child also makes the supervisor's listening socket and hands it over.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
};

use crate::output;
use crate::sys::last_error;

/// Connections that may wait until the supervisor accepts them.
const BACKLOG: i32 = 128;

/// A plan to bring up the loopback interface, and to hand a listening socket over to the supervisor.
#[derive(Debug)]
pub(crate) struct LoopbackSetup {
    listener: Option<ListenerHandover>,
}

/// The way of a listening socket from the child to the supervisor.
#[derive(Debug)]
struct ListenerHandover {
    port: u16,
    child_end: OwnedFd,
    supervisor_end: OwnedFd,
}

impl LoopbackSetup {
    /// Plans the interface alone.
    pub(crate) fn interface_only() -> Self {
        Self { listener: None }
    }

    /// Plans the interface and a listening socket on this port of 127.0.0.1.
    pub(crate) fn with_listener(port: u16) -> std::io::Result<Self> {
        let kind = SocketType::SEQPACKET;
        let (child_end, supervisor_end) =
            rustix::net::socketpair(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None)?;
        let [child_end, supervisor_end] = [child_end, supervisor_end].map(output::move_above_stdio);
        let listener = ListenerHandover { port, child_end: child_end?, supervisor_end: supervisor_end? };
        Ok(Self { listener: Some(listener) })
    }

    /// Carries out the plan in the child. Async-signal-safe.
    pub(crate) fn enter(&self) -> Result<(), Errno> {
        bring_up_loopback()?;
        self.listener.as_ref().map_or(Ok(()), ListenerHandover::send)
    }

    /// Returns the listening socket once the child has executed the program; `None` if none was planned.
    pub(crate) fn receive_listener(&self) -> Result<Option<OwnedFd>, Errno> {
        self.listener.as_ref().map(ListenerHandover::receive).transpose()
    }
}

impl ListenerHandover {
    fn send(&self) -> Result<(), Errno> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = rustix::net::socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)?;
        rustix::net::bind(&socket, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, self.port))?;
        rustix::net::listen(&socket, BACKLOG)?;
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let descriptors = [socket.as_fd()];
        if !control.push(SendAncillaryMessage::ScmRights(&descriptors)) {
            return Err(Errno::NOBUFS);
        }
        let content = [IoSlice::new(b"1")];
        rustix::net::sendmsg(&self.child_end, &content, &mut control, SendFlags::NOSIGNAL).map(drop)
    }

    fn receive(&self) -> Result<OwnedFd, Errno> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut byte = [0_u8];
        let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
        rustix::net::recvmsg(&self.supervisor_end, &mut [IoSliceMut::new(&mut byte)], &mut control, flags)?;
        let mut received = control.drain().filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
            _ => None,
        });
        received.next().ok_or(Errno::BADF)
    }
}

/// Brings up the loopback interface of this network namespace. See `netdevice(7)`.
pub(crate) fn bring_up_loopback() -> Result<(), Errno> {
    let socket =
        rustix::net::socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    // SAFETY: all zeros is a valid value of this structure.
    let mut request: libc::ifreq = unsafe { MaybeUninit::zeroed().assume_init() };
    for (place, byte) in request.ifr_name.iter_mut().zip(*b"lo") {
        *place = byte.cast_signed();
    }
    request.ifr_ifru.ifru_flags = libc::c_short::try_from(libc::IFF_UP).unwrap_or(1);
    // SAFETY: the request is live memory of the type that the kernel expects.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw const request) };
    if result == 0 { Ok(()) } else { Err(last_error()) }
}
