//! An asynchronous client, for programs with a tokio runtime.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use shepherd_api::{ClientState, Command, CommandReply, DaemonStateSnapshot, ServerWelcome};
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;
use tokio::time::{sleep_until, timeout};

use crate::client::protocol::ClientProtocol;
use crate::client::watch_state::{WatchConnection, WatchState};
use crate::client::{CallError, ClientOptions, ConnectError, ServerPush, WatchError, WatchUpdate};

/// The number of bytes per read.
const CHUNK: usize = 16 * 1024;

/// A connection to the daemon that carries one command at a time.
#[derive(Debug)]
pub struct AsyncClient {
    stream: UnixStream,
    protocol: ClientProtocol,
    welcome: ServerWelcome,
    call_timeout: Duration,
}

impl AsyncClient {
    /// Connects and performs the handshake.
    ///
    /// # Errors
    /// Nothing listens on the socket, or the daemon refuses this client.
    pub async fn connect(options: &ClientOptions) -> Result<Self, ConnectError> {
        let socket = &options.socket;
        let connecting = async {
            let mut stream =
                UnixStream::connect(socket).await.map_err(|error| ConnectError::from_io(socket, error))?;
            let mut conversation = ClientProtocol::new();
            let welcome = handshake(&mut stream, &mut conversation, &options.name)
                .await
                .map_err(|error| ConnectError::from_call(socket, error))?;
            Ok(Self { stream, protocol: conversation, welcome, call_timeout: options.call_timeout })
        };
        match timeout(options.connect_timeout, connecting).await {
            Ok(connected) => connected,
            Err(_) => Err(ConnectError::TimedOut { socket: socket.clone() }),
        }
    }

    /// Returns the daemon's greeting, with its version and the role of this client.
    #[must_use]
    pub fn welcome(&self) -> &ServerWelcome {
        &self.welcome
    }

    /// Sends a command and waits for the reply. After a cancellation the connection is unusable, because half a line
    /// may have been sent.
    ///
    /// # Errors
    /// The daemon refuses, is gone or does not answer in time.
    pub async fn call(&mut self, command: Command) -> Result<CommandReply, CallError> {
        let (id, line) = self.protocol.encode_request(command)?;
        let (stream, conversation) = (&mut self.stream, &mut self.protocol);
        let calling = async {
            send_line(stream, conversation, &line).await?;
            loop {
                if let Some(reply) = conversation.take_reply(id)? {
                    return Ok(reply);
                }
                receive(stream, conversation).await?;
            }
        };
        with_timeout(self.call_timeout, calling).await
    }

    /// Subscribes to events. They follow the snapshot without a gap; [`AsyncClient::next_push`] returns them.
    ///
    /// # Errors
    /// The same as for [`AsyncClient::call`].
    pub async fn subscribe(&mut self) -> Result<DaemonStateSnapshot, CallError> {
        match self.call(Command::SubscribeEvents {}).await? {
            CommandReply::Subscribed { snapshot } => Ok(snapshot),
            _ => Err(CallError::InvalidReply),
        }
    }

    /// Waits for the next message to a subscriber. A cancellation loses no message.
    ///
    /// # Errors
    /// The connection is unusable.
    pub async fn next_push(&mut self) -> Result<ServerPush, CallError> {
        loop {
            if let Some(pushed) = self.protocol.take_push()? {
                return Ok(pushed);
            }
            receive(&self.stream, &mut self.protocol).await?;
        }
    }
}

async fn handshake(
    stream: &mut UnixStream,
    conversation: &mut ClientProtocol,
    name: &str,
) -> Result<ServerWelcome, CallError> {
    send_line(stream, conversation, &ClientProtocol::encode_hello(name)?).await?;
    loop {
        if let Some(welcome) = conversation.take_welcome()? {
            return Ok(welcome);
        }
        receive(stream, conversation).await?;
    }
}

/// Sends a line. If the daemon no longer listens, the error contains its last message, if there was one.
async fn send_line(
    stream: &mut UnixStream,
    conversation: &mut ClientProtocol,
    line: &[u8],
) -> Result<(), CallError> {
    let Err(error) = stream.write_all(line).await else { return Ok(()) };
    while receive(stream, conversation).await.is_ok() {}
    match conversation.take_closing_error() {
        Some(farewell) => Err(CallError::Closed(farewell)),
        None => Err(CallError::Disconnected(error)),
    }
}

async fn receive(stream: &UnixStream, conversation: &mut ClientProtocol) -> Result<(), CallError> {
    loop {
        stream.readable().await.map_err(CallError::from_io)?;
        let mut chunk = [0; CHUNK];
        match stream.try_read(&mut chunk) {
            Ok(length) => return conversation.feed(chunk.get(..length).unwrap_or_default()),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(CallError::from_io(error)),
        }
    }
}

async fn with_timeout<T>(
    patience: Duration,
    work: impl Future<Output = Result<T, CallError>>,
) -> Result<T, CallError> {
    timeout(patience, work).await.unwrap_or(Err(CallError::TimedOut))
}

/// A connection that is being made. It is kept across cancellations, because the daemon may already have sent a message
/// that it sends only once.
type ConnectionAttempt =
    Pin<Box<dyn Future<Output = Result<(AsyncClient, DaemonStateSnapshot), WatchError>> + Send + Sync>>;

/// Follows the daemon's state over its own connection, and reconnects after a loss.
pub struct AsyncDaemonWatcher {
    options: ClientOptions,
    watch_state: WatchState<AsyncClient>,
    attempt: Option<ConnectionAttempt>,
}

impl fmt::Debug for AsyncDaemonWatcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AsyncDaemonWatcher")
            .field("options", &self.options)
            .field("watch_state", &self.watch_state)
            .field("is_connecting", &self.attempt.is_some())
            .finish()
    }
}

impl AsyncDaemonWatcher {
    /// Creates a watcher that isn't connected yet.
    #[must_use]
    pub fn new(options: ClientOptions) -> Self {
        Self { options, watch_state: WatchState::new(), attempt: None }
    }

    /// Returns the latest known state; `None` before the first connection.
    #[must_use]
    pub fn state(&self) -> Option<&ClientState> {
        self.watch_state.state.as_ref()
    }

    /// Returns whether the state is kept up to date.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.watch_state.is_connected()
    }

    /// Waits for the next update. A cancellation loses no update.
    pub async fn next(&mut self) -> WatchUpdate {
        match &mut self.watch_state.connection {
            WatchConnection::Up(client) => match client.next_push().await {
                Ok(pushed) => self.watch_state.apply_push(pushed),
                Err(error) => self.watch_state.set_disconnected(error.into()),
            },
            WatchConnection::Down { retry_at, .. } => {
                let attempt = match &mut self.attempt {
                    Some(attempt) => attempt,
                    none => {
                        sleep_until((*retry_at).into()).await;
                        none.insert(Box::pin(connect_and_subscribe(self.options.clone())))
                    }
                };
                let outcome = attempt.await;
                self.attempt = None;
                match outcome {
                    Ok((client, snapshot)) => self.watch_state.set_connected(client, snapshot),
                    Err(error) => self.watch_state.set_disconnected(error),
                }
            }
        }
    }
}

async fn connect_and_subscribe(
    options: ClientOptions,
) -> Result<(AsyncClient, DaemonStateSnapshot), WatchError> {
    let mut client = AsyncClient::connect(&options).await?;
    let snapshot = client.subscribe().await?;
    Ok((client, snapshot))
}
