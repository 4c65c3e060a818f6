//! One connection of a client: reads the request, judges it, connects and relays.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use rustix::event::PollFlags;

use super::records::ConnectionEnd;
use super::relay::{ClientRule, Relay, RelayEnd, is_temporary};
use super::request::{BadRequest, ForwardedRequest, ProxyRequest};
use super::target::{JudgedTarget, ResolveFailure};
use super::{ProxyState, lock};
use crate::net::deadline::CancellableDeadline;
use crate::net::transport::connect_within;

/// The maximum size of a request's head.
const MAX_HEAD_BYTES: usize = 32 * 1024;

/// The time for the head of a request, so that a slow client can't occupy a place for long.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);

/// The time for resolving a name and for connecting.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);

/// The host in the record of a request that can't be read.
const INVALID_HOST: &str = "invalid";

const END_OF_HEAD: &[u8] = b"\r\n\r\n";

/// Serves a connection until its end, and records it.
pub(super) fn serve_connection(state: &ProxyState, client: TcpStream) {
    let connection = ClientConnection { state, client };
    if let Some(end) = connection.serve() {
        lock(&state.log).add(end);
    }
}

struct ClientConnection<'s> {
    state: &'s ProxyState,
    client: TcpStream,
}

/// The head of a request, and bytes after it that were read with it.
struct ReadHead {
    head: Vec<u8>,
    early: Vec<u8>,
}

/// The reason why a request is not served, with the status of the reply.
struct Rejection {
    status: &'static str,
    reason: String,
}

impl ClientConnection<'_> {
    /// Returns `None` for a connection without a request.
    fn serve(&self) -> Option<ConnectionEnd> {
        self.client.set_nonblocking(true).ok()?;
        // Small messages of a handshake should not wait for each other.
        let _ = self.client.set_nodelay(true);
        let ReadHead { head, early } = match self.read_head() {
            Ok(Some(read)) => read,
            Ok(None) => return None,
            Err(rejection) => return Some(self.reject((INVALID_HOST.to_owned(), 0), rejection)),
        };
        match ProxyRequest::parse(&head) {
            Err(BadRequest { status, fault }) => {
                let rejection = Rejection { status, reason: fault.to_owned() };
                Some(self.reject((INVALID_HOST.to_owned(), 0), rejection))
            }
            Ok(ProxyRequest::Tunnel { authority }) => Some(self.open_tunnel(&authority, early)),
            Ok(ProxyRequest::Forward(request)) => Some(self.forward(request, early)),
        }
    }

    /// Reads up to the empty line that ends a head. Returns `None` if the client closes the connection before.
    fn read_head(&self) -> Result<Option<ReadHead>, Rejection> {
        let deadline = CancellableDeadline::new(&self.state.stop, HEAD_TIMEOUT);
        let mut bytes = Vec::new();
        loop {
            if let Some(place) = bytes.windows(END_OF_HEAD.len()).position(|part| part == END_OF_HEAD) {
                let early = bytes.split_off(place + END_OF_HEAD.len());
                bytes.truncate(place);
                return Ok(Some(ReadHead { head: bytes, early }));
            }
            if bytes.len() > MAX_HEAD_BYTES {
                let reason = "the head of the request is too long".to_owned();
                return Err(Rejection { status: "431 Request Header Fields Too Large", reason });
            }
            let mut buffer = [0; 4096];
            match (&self.client).read(&mut buffer) {
                Ok(0) => return Ok(None),
                Ok(length) => bytes.extend_from_slice(buffer.get(..length).unwrap_or_default()),
                Err(error) if is_temporary(&error) => {
                    if deadline.wait_until_ready(&self.client, PollFlags::IN).is_err() {
                        let reason = "the request took too long".to_owned();
                        return Err(Rejection { status: "408 Request Timeout", reason });
                    }
                }
                Err(_) => return Ok(None),
            }
        }
    }

    fn open_tunnel(&self, authority: &str, early: Vec<u8>) -> ConnectionEnd {
        let target = match JudgedTarget::of_tunnel(authority, &self.state.settings.policy) {
            Ok(target) => target,
            Err(reason) => {
                let (host, port) = authority.rsplit_once(':').unwrap_or((authority, ""));
                return self.reject((host.to_owned(), port.parse().unwrap_or(0)), forbidden(&reason));
            }
        };
        let place = (target.host(), target.port());
        let server = match self.connect(&target) {
            Ok(server) => server,
            Err(rejection) => return self.reject(place, rejection),
        };
        self.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n");
        self.relay(place, &server, ClientRule::Handshake(&target), early)
    }

    fn forward(&self, request: ForwardedRequest, early: Vec<u8>) -> ConnectionEnd {
        let ForwardedRequest { url, head, body_length } = request;
        let place = (url.address.host.to_string(), url.address.port);
        let target = match JudgedTarget::judge(url, &self.state.settings.policy) {
            Ok(target) => target,
            Err(reason) => return self.reject(place, forbidden(&reason)),
        };
        let server = match self.connect(&target) {
            Ok(server) => server,
            Err(rejection) => return self.reject(place, rejection),
        };
        let head_length = u64::try_from(head.len()).unwrap_or(u64::MAX);
        let rule = ClientRule::Body { remaining: head_length.saturating_add(body_length) };
        self.relay(place, &server, rule, [head, early].concat())
    }

    fn connect(&self, target: &JudgedTarget) -> Result<TcpStream, Rejection> {
        let deadline = CancellableDeadline::new(&self.state.stop, CONNECT_TIMEOUT);
        let unreachable = |reason: String| Rejection { status: "502 Bad Gateway", reason };
        let addresses: Vec<SocketAddr> =
            target.resolve(&*self.state.settings.resolver, &deadline).map_err(|failure| match failure {
                ResolveFailure::Refused(reason) => forbidden(&reason),
                ResolveFailure::Unreachable(reason) => unreachable(reason),
            })?;
        let mut last = format!("`{}` has no address", target.host());
        for (tried, address) in addresses.iter().enumerate() {
            let waiting = u32::try_from(addresses.len() - tried).unwrap_or(u32::MAX);
            match connect_within(*address, &deadline, waiting) {
                Ok(stream) => return Ok(stream),
                Err(error) => last = format!("could not connect to `{}`: {error}", target.host()),
            }
            if let Err(stopped) = deadline.remaining() {
                return Err(unreachable(stopped.to_string()));
            }
        }
        Err(unreachable(last))
    }

    fn relay(
        &self,
        (host, port): (String, u16),
        server: &TcpStream,
        rule: ClientRule<'_>,
        early: Vec<u8>,
    ) -> ConnectionEnd {
        let deadline = CancellableDeadline::new(&self.state.stop, self.state.settings.lifetime);
        let relay = Relay { state: self.state, client: &self.client, server, deadline: &deadline, rule };
        let RelayEnd { sent, received, refusal } = relay.run(early);
        ConnectionEnd { host, port, refusal, sent, received }
    }

    /// Answers with an error that says why.
    fn reject(&self, (host, port): (String, u16), rejection: Rejection) -> ConnectionEnd {
        let Rejection { status, reason } = rejection;
        let body = format!("collieclaw: {reason}\n");
        let length = body.len();
        self.write_all(
            format!(
                "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {length}\r\n\
                 Connection: close\r\n\r\n{body}"
            )
            .as_bytes(),
        );
        ConnectionEnd { host, port, refusal: Some(reason), sent: 0, received: 0 }
    }

    /// Writes a short reply. A client that doesn't read it only harms itself.
    fn write_all(&self, bytes: &[u8]) {
        let deadline = CancellableDeadline::new(&self.state.stop, HEAD_TIMEOUT);
        let mut rest = bytes;
        while !rest.is_empty() {
            match (&self.client).write(rest) {
                Ok(length) => rest = rest.get(length..).unwrap_or_default(),
                Err(error) if is_temporary(&error) => {
                    if deadline.wait_until_ready(&self.client, PollFlags::OUT).is_err() {
                        return;
                    }
                }
                Err(_) => return,
            }
        }
    }
}

fn forbidden(reason: &str) -> Rejection {
    let cure = "the operator can list a domain in `allowed_domains`";
    Rejection { status: "403 Forbidden", reason: format!("{reason}; {cure}") }
}
