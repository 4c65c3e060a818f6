//! The same client for whoever has a runtime.

use std::future::Future;
use std::time::Duration;

use shepherd_api::{ClientState, Command, DaemonStateSnapshot, Reply, Welcome};
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;
use tokio::time::{sleep_until, timeout};

use crate::client::conversation::Conversation;
use crate::client::picture::{Link, Picture};
use crate::client::{CallError, ClientOptions, ConnectError, Pushed, Update, WatchError};

/// Bytes that are read at once.
const CHUNK: usize = 16 * 1024;

/// A connection to the daemon. One command at a time.
#[derive(Debug)]
pub struct AsyncClient {
    stream: UnixStream,
    conversation: Conversation,
    welcome: Welcome,
    patience: Duration,
}

impl AsyncClient {
    /// Connects, and says who it is.
    ///
    /// # Errors
    /// Nothing listens, or it does not want this client.
    pub async fn connect(options: &ClientOptions) -> Result<Self, ConnectError> {
        let socket = &options.socket;
        let connecting = async {
            let mut stream =
                UnixStream::connect(socket).await.map_err(|error| ConnectError::from_io(socket, error))?;
            let mut conversation = Conversation::new();
            let welcome = greet(&mut stream, &mut conversation, &options.name)
                .await
                .map_err(|error| ConnectError::from_call(socket, error))?;
            Ok(Self { stream, conversation, welcome, patience: options.call_patience })
        };
        match timeout(options.connect_patience, connecting).await {
            Ok(connected) => connected,
            Err(_) => Err(ConnectError::TimedOut { socket: socket.clone() }),
        }
    }

    /// What the daemon said of itself and of what this client may do.
    #[must_use]
    pub fn welcome(&self) -> &Welcome {
        &self.welcome
    }

    /// Gives a command and waits for the answer. If this is cancelled the connection is of no use any more: half a
    /// line may have been sent.
    ///
    /// # Errors
    /// The daemon refuses, is gone, or does not answer in time.
    pub async fn call(&mut self, command: Command) -> Result<Reply, CallError> {
        let (id, line) = self.conversation.request(command)?;
        let (stream, conversation) = (&mut self.stream, &mut self.conversation);
        let calling = async {
            send(stream, conversation, &line).await?;
            loop {
                if let Some(reply) = conversation.answer(id)? {
                    return Ok(reply);
                }
                receive(stream, conversation).await?;
            }
        };
        within(self.patience, calling).await
    }

    /// Asks for events. They follow the snapshot without a gap; [`AsyncClient::pushed`] hands them out.
    ///
    /// # Errors
    /// As [`AsyncClient::call`].
    pub async fn subscribe(&mut self) -> Result<DaemonStateSnapshot, CallError> {
        match self.call(Command::SubscribeEvents {}).await? {
            Reply::Subscribed { snapshot } => Ok(snapshot),
            _ => Err(CallError::Unreadable),
        }
    }

    /// The next thing that a subscriber is told. May be cancelled without losing any.
    ///
    /// # Errors
    /// The connection is of no use any more.
    pub async fn pushed(&mut self) -> Result<Pushed, CallError> {
        loop {
            if let Some(pushed) = self.conversation.pushed()? {
                return Ok(pushed);
            }
            receive(&self.stream, &mut self.conversation).await?;
        }
    }
}

async fn greet(
    stream: &mut UnixStream,
    conversation: &mut Conversation,
    name: &str,
) -> Result<Welcome, CallError> {
    send(stream, conversation, &Conversation::hello(name)?).await?;
    loop {
        if let Some(welcome) = conversation.welcome()? {
            return Ok(welcome);
        }
        receive(stream, conversation).await?;
    }
}

/// Sends a line. If the daemon does not listen any more, the error is what it said last, if it said anything.
async fn send(
    stream: &mut UnixStream,
    conversation: &mut Conversation,
    line: &[u8],
) -> Result<(), CallError> {
    let Err(error) = stream.write_all(line).await else { return Ok(()) };
    while receive(stream, conversation).await.is_ok() {}
    match conversation.farewell() {
        Some(farewell) => Err(CallError::Closed(farewell)),
        None => Err(CallError::Disconnected(error)),
    }
}

async fn receive(stream: &UnixStream, conversation: &mut Conversation) -> Result<(), CallError> {
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

async fn within<T>(
    patience: Duration,
    work: impl Future<Output = Result<T, CallError>>,
) -> Result<T, CallError> {
    timeout(patience, work).await.unwrap_or(Err(CallError::TimedOut))
}

/// Watches the daemon, over a connection of its own, and connects again when it was lost.
#[derive(Debug)]
pub struct AsyncWatch {
    options: ClientOptions,
    picture: Picture<AsyncClient>,
}

impl AsyncWatch {
    /// A watcher that has not connected yet.
    #[must_use]
    pub fn new(options: ClientOptions) -> Self {
        Self { options, picture: Picture::new() }
    }

    /// How it stands, as far as is known; `None` before the first connection.
    #[must_use]
    pub fn state(&self) -> Option<&ClientState> {
        self.picture.state.as_ref()
    }

    /// Whether the state is kept up to date.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        matches!(self.picture.link, Link::Up(_))
    }

    /// The next thing to learn. May be cancelled without losing any.
    pub async fn next(&mut self) -> Update {
        match &mut self.picture.link {
            Link::Up(client) => match client.pushed().await {
                Ok(pushed) => self.picture.learn(pushed),
                Err(error) => self.picture.lost(error.into()),
            },
            Link::Down { retry_at, .. } => {
                sleep_until((*retry_at).into()).await;
                match connected(&self.options).await {
                    Ok((client, snapshot)) => self.picture.connected(client, snapshot),
                    Err(error) => self.picture.lost(error),
                }
            }
        }
    }
}

async fn connected(options: &ClientOptions) -> Result<(AsyncClient, DaemonStateSnapshot), WatchError> {
    let mut client = AsyncClient::connect(options).await?;
    let snapshot = client.subscribe().await?;
    Ok((client, snapshot))
}
