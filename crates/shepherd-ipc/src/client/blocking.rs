//! A client that waits, without a runtime.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use shepherd_api::{Command, DaemonStateSnapshot, Reply, Welcome};

use crate::client::conversation::Conversation;
use crate::client::{CallError, ClientOptions, ConnectError, Pushed};

/// Bytes that are read at once.
const CHUNK: usize = 16 * 1024;

/// A connection to the daemon. One command at a time.
#[derive(Debug)]
pub struct Client {
    stream: UnixStream,
    conversation: Conversation,
    welcome: Welcome,
    patience: Duration,
}

impl Client {
    /// Connects, and says who it is.
    ///
    /// # Errors
    /// Nothing listens, or it does not want this client.
    pub fn connect(options: &ClientOptions) -> Result<Self, ConnectError> {
        let deadline = Instant::now() + options.connect_patience;
        let mut stream = open(&options.socket, options.connect_patience)
            .map_err(|error| ConnectError::from_io(&options.socket, error.into()))?;
        let mut conversation = Conversation::new();
        let welcome = greet(&mut stream, &mut conversation, &options.name, deadline)
            .map_err(|error| ConnectError::from_call(&options.socket, error))?;
        Ok(Self { stream, conversation, welcome, patience: options.call_patience })
    }

    /// What the daemon said of itself and of what this client may do.
    #[must_use]
    pub fn welcome(&self) -> &Welcome {
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
    pub fn call(&mut self, command: Command) -> Result<Reply, CallError> {
        let deadline = Instant::now() + self.patience;
        let (id, line) = self.conversation.request(command)?;
        send(&mut self.stream, &mut self.conversation, &line, deadline)?;
        loop {
            if let Some(reply) = self.conversation.answer(id)? {
                return Ok(reply);
            }
            receive(&mut self.stream, &mut self.conversation, Some(deadline))?;
        }
    }

    /// Asks for events. They follow the snapshot without a gap; [`Client::pushed`] hands them out.
    ///
    /// # Errors
    /// As [`Client::call`].
    pub fn subscribe(&mut self) -> Result<DaemonStateSnapshot, CallError> {
        match self.call(Command::SubscribeEvents {})? {
            Reply::Subscribed { snapshot } => Ok(snapshot),
            _ => Err(CallError::Unreadable),
        }
    }

    /// The next thing that a subscriber is told; waits as long as is said, or for ever.
    ///
    /// # Errors
    /// [`CallError::TimedOut`] if nothing happened in that time; others if the connection is of no use any more.
    pub fn pushed(&mut self, within: Option<Duration>) -> Result<Pushed, CallError> {
        let deadline = within.map(|within| Instant::now() + within);
        loop {
            if let Some(pushed) = self.conversation.pushed()? {
                return Ok(pushed);
            }
            receive(&mut self.stream, &mut self.conversation, deadline)?;
        }
    }
}

/// The standard library can't connect with a time-out: a daemon that hangs with a full backlog would hold us up.
fn open(path: &Path, patience: Duration) -> rustix::io::Result<UnixStream> {
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    set_socket_timeout(&socket, Timeout::Send, Some(patience))?;
    connect(&socket, &SocketAddrUnix::new(path)?)?;
    Ok(UnixStream::from(socket))
}

fn greet(
    stream: &mut UnixStream,
    conversation: &mut Conversation,
    name: &str,
    deadline: Instant,
) -> Result<Welcome, CallError> {
    let hello = Conversation::hello(name)?;
    send(stream, conversation, &hello, deadline)?;
    loop {
        if let Some(welcome) = conversation.welcome()? {
            return Ok(welcome);
        }
        receive(stream, conversation, Some(deadline))?;
    }
}

/// Sends a line. If the daemon does not listen any more, the error is what it said last, if it said anything.
fn send(
    stream: &mut UnixStream,
    conversation: &mut Conversation,
    line: &[u8],
    deadline: Instant,
) -> Result<(), CallError> {
    stream.set_write_timeout(Some(left(deadline)?)).map_err(CallError::from_io)?;
    let Err(error) = stream.write_all(line) else { return Ok(()) };
    // Half a line may be on its way, so that even after a time-out the connection is of no use.
    if matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset) {
        while receive(stream, conversation, Some(deadline)).is_ok() {}
        if let Some(farewell) = conversation.farewell() {
            return Err(CallError::Closed(farewell));
        }
    }
    Err(CallError::Disconnected(error))
}

fn receive(
    stream: &mut UnixStream,
    conversation: &mut Conversation,
    deadline: Option<Instant>,
) -> Result<(), CallError> {
    let timeout = deadline.map(left).transpose()?;
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

fn left(deadline: Instant) -> Result<Duration, CallError> {
    match deadline.saturating_duration_since(Instant::now()) {
        Duration::ZERO => Err(CallError::TimedOut),
        left => Ok(left),
    }
}
