//! A TCP connection for `ureq` that obeys a cancellable deadline.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};

use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::sockopt::socket_error;
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, socket_with};
use ureq::unversioned::resolver::{ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{
    Buffers, ConnectionDetails, Connector, LazyBuffers, NextTimeout, Transport,
};

use super::deadline::{CancellableDeadline, WaitError};
use super::resolver::MAX_ADDRESSES;

/// A resolver that always returns the addresses that were checked before.
#[derive(Debug)]
pub(super) struct ResolvedAddresses(pub(super) Vec<SocketAddr>);

impl Resolver for ResolvedAddresses {
    fn resolve(
        &self,
        _: &ureq::http::Uri,
        _: &ureq::config::Config,
        _: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, ureq::Error> {
        let mut addresses = self.empty();
        for address in self.0.iter().take(MAX_ADDRESSES) {
            addresses.push(*address);
        }
        Ok(addresses)
    }
}

/// Opens connections until the deadline passes. The library's own timeouts are not used: one deadline covers
/// everything.
#[derive(Debug)]
pub(super) struct DeadlineConnector(pub(super) CancellableDeadline);

impl Connector for DeadlineConnector {
    type Out = DeadlineTransport;

    fn connect(
        &self,
        details: &ConnectionDetails<'_>,
        _: Option<()>,
    ) -> Result<Option<DeadlineTransport>, ureq::Error> {
        let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
        let addresses: Vec<SocketAddr> = details.addrs.iter().copied().collect();
        for (tried, address) in addresses.iter().enumerate() {
            // The remaining time is shared, so an address that doesn't answer leaves time for the next.
            let waiting = u32::try_from(addresses.len() - tried).unwrap_or(u32::MAX);
            match connect_within(*address, &self.0, waiting) {
                Ok(stream) => {
                    let (input, output) =
                        (details.config.input_buffer_size(), details.config.output_buffer_size());
                    let buffers = LazyBuffers::new(input, output);
                    return Ok(Some(DeadlineTransport { stream, deadline: self.0.clone(), buffers }));
                }
                Err(error) => last = error,
            }
            self.0.remaining().map_err(wait_io_error)?;
        }
        Err(last.into())
    }
}

pub(super) fn connect_within(
    address: SocketAddr,
    deadline: &CancellableDeadline,
    waiting: u32,
) -> io::Result<TcpStream> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(family, SocketType::STREAM, flags, None)?;
    match connect(&socket, &address) {
        Ok(()) => {}
        Err(Errno::INPROGRESS) => {
            let part = deadline.remaining().map_err(wait_io_error)? / waiting;
            if !deadline.wait_ready_within(&socket, PollFlags::OUT, part).map_err(wait_io_error)? {
                return Err(io::ErrorKind::TimedOut.into());
            }
            socket_error(&socket)??;
        }
        Err(error) => return Err(error.into()),
    }
    let stream = TcpStream::from(socket);
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// The peer sent nothing for longer than the stall timeout.
#[derive(Debug, thiserror::Error)]
#[error("the server stopped sending")]
pub(super) struct StalledError;

pub(super) struct DeadlineTransport {
    stream: TcpStream,
    deadline: CancellableDeadline,
    buffers: LazyBuffers,
}

impl Transport for DeadlineTransport {
    fn buffers(&mut self) -> &mut dyn Buffers {
        &mut self.buffers
    }

    fn transmit_output(&mut self, amount: usize, _: NextTimeout) -> Result<(), ureq::Error> {
        let mut output = self.buffers.output().get(..amount).unwrap_or_default();
        while !output.is_empty() {
            self.deadline.remaining().map_err(wait_io_error)?;
            match (&self.stream).write(output) {
                Ok(written) => output = output.get(written..).unwrap_or_default(),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.deadline.wait_until_ready(&self.stream, PollFlags::OUT).map_err(wait_io_error)?;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn await_input(&mut self, _: NextTimeout) -> Result<bool, ureq::Error> {
        loop {
            // Checked before every read: a server that never stops sending must not outrun the deadline.
            self.deadline.remaining().map_err(wait_io_error)?;
            let input = self.buffers.input_append_buf();
            match (&self.stream).read(input) {
                Ok(amount) => {
                    self.buffers.input_appended(amount);
                    return Ok(amount > 0);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if !self.deadline.wait_for_input(&self.stream).map_err(wait_io_error)? {
                        return Err(io::Error::other(StalledError).into());
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn is_open(&mut self) -> bool {
        // No connection is reused.
        false
    }
}

fn wait_io_error(stopped: WaitError) -> io::Error {
    io::Error::other(stopped)
}

impl fmt::Debug for DeadlineTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeadlineTransport")
            .field("peer", &self.stream.peer_addr().ok())
            .finish_non_exhaustive()
    }
}
