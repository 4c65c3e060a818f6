//! A client that waits, without a runtime.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use shepherd_api::{Command, CommandReply, DaemonStateSnapshot, ServerWelcome};

use crate::client::protocol::ClientProtocol;
use crate::client::{CallError, ClientOptions, ConnectError, ServerPush};

/// Bytes that are read at once.
const CHUNK: usize = 16 * 1024;

/// A connection to the daemon. One command at a time.
#[derive(Debug)]
pub struct BlockingClient {
    stream: UnixStream,
    protocol: ClientProtocol,
    welcome: ServerWelcome,
    call_timeout: Duration,
}

impl BlockingClient {
    /// Connects, and says who it is.
    ///
    /// # Errors
    /// Nothing listens, or it does not want this client.
    pub fn connect(options: &ClientOptions) -> Result<Self, ConnectError> {
        let deadline = Instant::now() + options.connect_timeout;
        let mut stream = connect_with_timeout(&options.socket, options.connect_timeout)
            .map_err(|error| ConnectError::from_io(&options.socket, error.into()))?;
        let mut conversation = ClientProtocol::new();
        let welcome = handshake(&mut stream, &mut conversation, &options.name, deadline)
            .map_err(|error| ConnectError::from_call(&options.socket, error))?;
        Ok(Self { stream, protocol: conversation, welcome, call_timeout: options.call_timeout })
    }

    /// What the daemon said of itself and of what this client may do.
    #[must_use]
    pub fn welcome(&self) -> &ServerWelcome {
        &self.welcome
    }

    /// Who listens there, by the kernel's word: the user that made the socket. For whoever is about to tell a secret.
    ///
    /// # Errors
    /// When the kernel does not say.
    pub fn daemon_user(&self) -> std::io::Result<u32> {
        Ok(rustix::net::sockopt::socket_peercred(&self.stream)?.uid.as_raw())
    }

    /// Gives a command and waits for the answer.
    ///
    /// # Errors
    /// The daemon refuses, is gone, or does not answer in time.
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

    /// Asks for events. They follow the snapshot without a gap; [`BlockingClient::next_push`] hands them out.
    ///
    /// # Errors
    /// As [`BlockingClient::call`].
    pub fn subscribe(&mut self) -> Result<DaemonStateSnapshot, CallError> {
        match self.call(Command::SubscribeEvents {})? {
            CommandReply::Subscribed { snapshot } => Ok(snapshot),
            _ => Err(CallError::InvalidReply),
        }
    }

    /// The next thing that a subscriber is told; waits as long as is said, or for ever.
    ///
    /// # Errors
    /// [`CallError::TimedOut`] if nothing happened in that time; others if the connection is of no use any more.
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

/// The standard library can't connect with a time-out: a daemon that hangs with a full backlog would hold us up.
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

/// Sends a line. If the daemon does not listen any more, the error is what it said last, if it said anything.
fn send_line(
    stream: &mut UnixStream,
    conversation: &mut ClientProtocol,
    line: &[u8],
    deadline: Instant,
) -> Result<(), CallError> {
    stream.set_write_timeout(Some(time_left(deadline)?)).map_err(CallError::from_io)?;
    let Err(error) = stream.write_all(line) else { return Ok(()) };
    // Half a line may be on its way, so that even after a time-out the connection is of no use.
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
