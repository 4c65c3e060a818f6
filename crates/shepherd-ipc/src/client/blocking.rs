//! A blocking client, which needs no runtime.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use shepherd_api::{Command, CommandReply, DaemonStateSnapshot, ServerWelcome};

use crate::client::protocol::ClientProtocol;
use crate::client::{CallError, ClientOptions, ConnectError, ServerPush};

/// The number of bytes per read.
const CHUNK: usize = 16 * 1024;

/// A connection to the daemon that carries one command at a time.
#[derive(Debug)]
pub struct BlockingClient {
    stream: UnixStream,
    protocol: ClientProtocol,
    welcome: ServerWelcome,
    call_timeout: Duration,
}

impl BlockingClient {
    /// Connects and performs the handshake.
    ///
    /// # Errors
    /// Nothing listens on the socket, or the daemon refuses this client.
    pub fn connect(options: &ClientOptions) -> Result<Self, ConnectError> {
        let deadline = Instant::now() + options.connect_timeout;
        let mut stream = connect_with_timeout(&options.socket, options.connect_timeout)
            .map_err(|error| ConnectError::from_io(&options.socket, error.into()))?;
        let mut conversation = ClientProtocol::new();
        let welcome = handshake(&mut stream, &mut conversation, &options.name, deadline)
            .map_err(|error| ConnectError::from_call(&options.socket, error))?;
        Ok(Self { stream, protocol: conversation, welcome, call_timeout: options.call_timeout })
    }

    /// Returns the daemon's greeting, with its version and the role of this client.
    #[must_use]
    pub fn welcome(&self) -> &ServerWelcome {
        &self.welcome
    }

    /// Returns the user who created the socket, as the kernel reports it. Check it before you send a secret.
    ///
    /// # Errors
    /// The kernel doesn't report the peer.
    pub fn daemon_user(&self) -> std::io::Result<u32> {
        Ok(rustix::net::sockopt::socket_peercred(&self.stream)?.uid.as_raw())
    }

    /// Sends a command and waits for the reply.
    ///
    /// # Errors
    /// The daemon refuses, is gone or does not answer in time.
    pub fn call(&mut self, command: Command) -> Result<CommandReply, CallError> {
        let deadline = Instant::now() + self.call_timeout;
        let (id, line) = self.protocol.encode_request(command)?;
        send_line(&mut self.stream, &mut self.protocol, &line, deadline)?;
        loop {
            if let Some(reply) = self.protocol.take_reply(id)? {
                return Ok(reply);
            }
            receive(&mut self.stream, &mut self.protocol, Some(deadline))?;
        }
    }

    /// Subscribes to events. They follow the snapshot without a gap; [`BlockingClient::next_push`] returns them.
    ///
    /// # Errors
    /// The same as for [`BlockingClient::call`].
    pub fn subscribe(&mut self) -> Result<DaemonStateSnapshot, CallError> {
        match self.call(Command::SubscribeEvents {})? {
            CommandReply::Subscribed { snapshot } => Ok(snapshot),
            _ => Err(CallError::InvalidReply),
        }
    }

    /// Waits for the next message to a subscriber, up to the given time or for ever.
    ///
    /// # Errors
    /// [`CallError::TimedOut`] if nothing arrived in that time; other errors if the connection is unusable.
    pub fn next_push(&mut self, within: Option<Duration>) -> Result<ServerPush, CallError> {
        let deadline = within.map(|within| Instant::now() + within);
        loop {
            if let Some(pushed) = self.protocol.take_push()? {
                return Ok(pushed);
            }
            receive(&mut self.stream, &mut self.protocol, deadline)?;
        }
    }
}

/// Connects with a timeout, which the standard library can't: a hung daemon with a full backlog would block us.
fn connect_with_timeout(path: &Path, patience: Duration) -> rustix::io::Result<UnixStream> {
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    set_socket_timeout(&socket, Timeout::Send, Some(patience))?;
    connect(&socket, &SocketAddrUnix::new(path)?)?;
    Ok(UnixStream::from(socket))
}

fn handshake(
    stream: &mut UnixStream,
    conversation: &mut ClientProtocol,
    name: &str,
    deadline: Instant,
) -> Result<ServerWelcome, CallError> {
    let hello = ClientProtocol::encode_hello(name)?;
    send_line(stream, conversation, &hello, deadline)?;
    loop {
        if let Some(welcome) = conversation.take_welcome()? {
            return Ok(welcome);
        }
        receive(stream, conversation, Some(deadline))?;
    }
}

/// Sends a line. If the daemon no longer listens, the error contains its last message, if there was one.
fn send_line(
    stream: &mut UnixStream,
    conversation: &mut ClientProtocol,
    line: &[u8],
    deadline: Instant,
) -> Result<(), CallError> {
    stream.set_write_timeout(Some(time_left(deadline)?)).map_err(CallError::from_io)?;
    let Err(error) = stream.write_all(line) else { return Ok(()) };
    // Half a line may be on its way, so the connection is unusable even after a timeout.
    if matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset) {
        while receive(stream, conversation, Some(deadline)).is_ok() {}
        if let Some(farewell) = conversation.take_closing_error() {
            return Err(CallError::Closed(farewell));
        }
    }
    Err(CallError::Disconnected(error))
}

fn receive(
    stream: &mut UnixStream,
    conversation: &mut ClientProtocol,
    deadline: Option<Instant>,
) -> Result<(), CallError> {
    let timeout = deadline.map(time_left).transpose()?;
    stream.set_read_timeout(timeout).map_err(CallError::from_io)?;
    let mut chunk = [0; CHUNK];
    loop {
        match stream.read(&mut chunk) {
            Ok(length) => return conversation.feed(chunk.get(..length).unwrap_or_default()),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(CallError::from_io(error)),
        }
    }
}

fn time_left(deadline: Instant) -> Result<Duration, CallError> {
    match deadline.saturating_duration_since(Instant::now()) {
        Duration::ZERO => Err(CallError::TimedOut),
        left => Ok(left),
    }
}
