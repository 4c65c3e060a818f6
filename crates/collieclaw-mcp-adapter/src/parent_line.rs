//! The connection to `collieclaw`, the parent process: a socket on standard error.

use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::time::Duration;

use collieclaw_mcp_ipc::{LONGEST_LINE, decode_line, encode_line};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::UnixStream;
use tokio::net::unix::OwnedReadHalf;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// The time for the last messages to be written before the program exits.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

/// Receives messages from `collieclaw`.
pub(crate) struct ParentLineReader(Lines<BufReader<OwnedReadHalf>>);

impl ParentLineReader {
    /// Returns the next message, or `None` if `collieclaw` has closed the connection.
    pub(crate) async fn receive<T: DeserializeOwned>(&mut self) -> Option<T> {
        let line = self.0.next_line().await.ok().flatten()?;
        decode_line(line.as_bytes()).ok()
    }
}

/// Sends messages to `collieclaw` from any task.
#[derive(Clone)]
pub(crate) struct ParentLineSender(UnboundedSender<Vec<u8>>);

impl ParentLineSender {
    /// Queues a message. Returns false if the message is too long.
    pub(crate) fn send(&self, value: &impl Serialize) -> bool {
        match encode_line(value) {
            Ok(line) if line.len() as u64 <= LONGEST_LINE => {
                // If `collieclaw` has closed the connection, the message is lost and the program exits.
                let _ = self.0.send(line);
                true
            }
            _ => false,
        }
    }
}

/// The task that writes queued messages to the socket.
pub(crate) struct ParentWriterTask(JoinHandle<()>);

impl ParentWriterTask {
    /// Waits until all queued messages are written.
    pub(crate) async fn close(self) {
        let _ = timeout(FLUSH_TIMEOUT, self.0).await;
    }
}

/// Opens the connection on standard error.
pub(crate) fn open() -> io::Result<(ParentLineReader, ParentLineSender, ParentWriterTask)> {
    let socket = io::stderr().as_fd().try_clone_to_owned()?;
    rustix::net::sockopt::socket_type(&socket)?;
    let socket = StdUnixStream::from(socket);
    socket.set_nonblocking(true)?;
    let (from, mut to) = UnixStream::from_std(socket)?.into_split();
    let (sender, mut lines) = unbounded_channel::<Vec<u8>>();
    let writer = tokio::spawn(async move {
        while let Some(line) = lines.recv().await {
            if to.write_all(&line).await.is_err() {
                break;
            }
        }
    });
    Ok((ParentLineReader(BufReader::new(from).lines()), ParentLineSender(sender), ParentWriterTask(writer)))
}
