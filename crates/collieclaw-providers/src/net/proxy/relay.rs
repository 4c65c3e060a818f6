//! Copies bytes between a client and a server in both directions.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};

use super::client_hello::{HelloFinding, examine};
use super::target::{JudgedTarget, ListedBy};
use super::{ProxyState, timespec};
use crate::net::deadline::CancellableDeadline;

/// The size of the buffer of each direction.
const BUFFER_BYTES: usize = 32 * 1024;

/// The longest silence of both sides.
const IDLE_TIMEOUT: Duration = Duration::from_secs(120);

/// The rule for the bytes that the client may send.
pub(super) enum ClientRule<'t> {
    /// The first bytes must be a TLS handshake for the target; nothing is passed on before.
    Handshake(&'t JudgedTarget),
    /// Only this many bytes more belong to the request. Further bytes end the connection.
    Body { remaining: u64 },
    /// Everything is passed on.
    Open,
}

/// The bytes that were copied, and the reason if the client broke its rule.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct RelayEnd {
    pub(super) sent: u64,
    pub(super) received: u64,
    pub(super) refusal: Option<String>,
}

/// A relay between two connections that don't block.
pub(super) struct Relay<'r> {
    pub(super) state: &'r ProxyState,
    pub(super) client: &'r TcpStream,
    pub(super) server: &'r TcpStream,
    pub(super) deadline: &'r CancellableDeadline,
    pub(super) rule: ClientRule<'r>,
}

/// One direction: bytes that were read and not yet written.
#[derive(Default)]
struct RelayDirection {
    pending: Vec<u8>,
    has_ended: bool,
    is_shut: bool,
}

impl Relay<'_> {
    /// Copies until both sides have ended, a limit is reached or the client breaks its rule. `early` was read
    /// from the client before.
    pub(super) fn run(mut self, early: Vec<u8>) -> RelayEnd {
        let mut end = RelayEnd::default();
        let mut up = RelayDirection { pending: early, ..RelayDirection::default() };
        let mut down = RelayDirection::default();
        let mut last_progress = Instant::now();
        loop {
            let before = (end.sent, end.received, up.pending.len(), up.has_ended, down.has_ended);
            let passes = match self.apply_rule(&mut up) {
                Ok(passes) => passes,
                Err(refusal) => return RelayEnd { refusal: Some(refusal), ..end },
            };
            let copied = self.copy(&mut up, &mut down, passes, &mut end);
            if copied.is_err() || down.is_shut || self.deadline.remaining().is_err() {
                return end;
            }
            let now = Instant::now();
            if before == (end.sent, end.received, up.pending.len(), up.has_ended, down.has_ended) {
                if now.duration_since(last_progress) >= IDLE_TIMEOUT || self.wait(&up, &down, passes).is_err()
                {
                    return end;
                }
            } else {
                last_progress = now;
            }
        }
    }

    /// Judges the bytes of the client. Returns true if they may be passed on.
    fn apply_rule(&mut self, up: &mut RelayDirection) -> Result<bool, String> {
        match &mut self.rule {
            ClientRule::Open => Ok(true),
            ClientRule::Body { remaining } => {
                let pending = u64::try_from(up.pending.len()).unwrap_or(u64::MAX);
                if pending > *remaining {
                    return Err("the client sent more than its request".to_owned());
                }
                Ok(true)
            }
            ClientRule::Handshake(target) => {
                match judge_handshake(examine(&up.pending), target)? {
                    HandshakeVerdict::Incomplete if up.has_ended => {
                        return Err("the client sent no TLS handshake".to_owned());
                    }
                    HandshakeVerdict::Incomplete if up.pending.len() >= BUFFER_BYTES => {
                        return Err("the TLS handshake is too long".to_owned());
                    }
                    HandshakeVerdict::Incomplete => return Ok(false),
                    HandshakeVerdict::Passes => self.rule = ClientRule::Open,
                }
                Ok(true)
            }
        }
    }

    fn copy(
        &mut self,
        up: &mut RelayDirection,
        down: &mut RelayDirection,
        passes: bool,
        end: &mut RelayEnd,
    ) -> io::Result<()> {
        up.read_from(self.client)?;
        if passes {
            let allowed = match &self.rule {
                ClientRule::Body { remaining } => usize::try_from(*remaining).unwrap_or(usize::MAX),
                ClientRule::Open | ClientRule::Handshake(_) => usize::MAX,
            };
            // Bytes that were read just now are judged in the next round.
            if up.pending.len() <= allowed {
                let sent = up.write_to(self.server)?;
                if let ClientRule::Body { remaining } = &mut self.rule {
                    *remaining = remaining.saturating_sub(sent);
                } else if up.has_ended && up.pending.is_empty() {
                    up.shut(self.server);
                }
                end.sent += sent;
                self.count(sent)?;
            }
        }
        down.read_from(self.server)?;
        let received = down.write_to(self.client)?;
        end.received += received;
        self.count(received)?;
        if down.has_ended && down.pending.is_empty() {
            down.shut(self.client);
        }
        Ok(())
    }

    fn count(&self, bytes: u64) -> io::Result<()> {
        if self.state.count_bytes(bytes) { Ok(()) } else { Err(io::ErrorKind::QuotaExceeded.into()) }
    }

    /// Waits until one of the sides can be read or written.
    fn wait(&self, up: &RelayDirection, down: &RelayDirection, passes: bool) -> io::Result<()> {
        let interest = |reads: &RelayDirection, writes: bool| {
            let mut flags = PollFlags::empty();
            flags.set(PollFlags::IN, !reads.has_ended && reads.pending.len() < BUFFER_BYTES);
            flags.set(PollFlags::OUT, writes);
            flags
        };
        let client = interest(up, !down.pending.is_empty());
        let server = interest(down, passes && !up.pending.is_empty());
        let mut fds = vec![PollFd::new(&self.state.stop, PollFlags::IN)];
        // A closed connection would wake us again and again, so it is left out unless something is expected.
        for (stream, flags) in [(self.client, client), (self.server, server)] {
            if !flags.is_empty() {
                fds.push(PollFd::new(stream, flags));
            }
        }
        let time = self.deadline.remaining().map_err(io::Error::other)?.min(IDLE_TIMEOUT);
        match poll(&mut fds, timespec(time).as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }
}

enum HandshakeVerdict {
    Incomplete,
    Passes,
}

fn judge_handshake(finding: HelloFinding, target: &JudgedTarget) -> Result<HandshakeVerdict, String> {
    match finding {
        HelloFinding::Incomplete => Ok(HandshakeVerdict::Incomplete),
        HelloFinding::NotTls if target.listed_by == ListedBy::HostAndPort => Ok(HandshakeVerdict::Passes),
        HelloFinding::NotTls => Err("a tunnel to a listed domain must be encrypted with TLS".to_owned()),
        HelloFinding::Unacceptable(fault) => Err(fault.to_owned()),
        HelloFinding::Hello { server_name } if server_name.as_deref() == target.server_name() => {
            Ok(HandshakeVerdict::Passes)
        }
        HelloFinding::Hello { server_name } => Err(format!(
            "the TLS handshake is for `{}`, not for `{}`",
            server_name.as_deref().unwrap_or("no name"),
            target.host()
        )),
    }
}

impl RelayDirection {
    fn read_from(&mut self, mut stream: &TcpStream) -> io::Result<()> {
        let space = BUFFER_BYTES.saturating_sub(self.pending.len());
        if self.has_ended || space == 0 {
            return Ok(());
        }
        let mut buffer = [0; BUFFER_BYTES];
        match stream.read(buffer.get_mut(..space).unwrap_or_default()) {
            Ok(0) => self.has_ended = true,
            Ok(length) => self.pending.extend_from_slice(buffer.get(..length).unwrap_or_default()),
            Err(error) if is_temporary(&error) => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    fn write_to(&mut self, mut stream: &TcpStream) -> io::Result<u64> {
        if self.pending.is_empty() {
            return Ok(0);
        }
        match stream.write(&self.pending) {
            Ok(length) => {
                self.pending.drain(..length.min(self.pending.len()));
                Ok(u64::try_from(length).unwrap_or(u64::MAX))
            }
            Err(error) if is_temporary(&error) => Ok(0),
            Err(error) => Err(error),
        }
    }

    /// Tells the receiving side, once, that nothing more follows.
    fn shut(&mut self, stream: &TcpStream) {
        if !self.is_shut {
            self.is_shut = true;
            // Fails if the connection is closed already.
            let _ = stream.shutdown(Shutdown::Write);
        }
    }
}

pub(super) fn is_temporary(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}
