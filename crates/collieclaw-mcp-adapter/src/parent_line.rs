//! The line to `collieclaw`.

use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream as Socket;
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

/// What is said last arrives within this time, or nobody listens.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

/// What `collieclaw` says.
pub(crate) struct ParentLineReader(Lines<BufReader<OwnedReadHalf>>);

impl ParentLineReader {
    /// The next thing that is said; nothing when `collieclaw` has hung up.
    pub(crate) async fn receive<T: DeserializeOwned>(&mut self) -> Option<T> {
        let line = self.0.next_line().await.ok().flatten()?;
        decode_line(line.as_bytes()).ok()
    }
}

/// Says things to `collieclaw`, from wherever.
#[derive(Clone)]
pub(crate) struct ParentLineSender(UnboundedSender<Vec<u8>>);

impl ParentLineSender {
    /// Whether it can be said at all.
    pub(crate) fn send(&self, value: &impl Serialize) -> bool {
        match encode_line(value) {
            Ok(line) if line.len() as u64 <= LONGEST_LINE => {
                // Whoever has hung up hears nothing, and ends us.
                let _ = self.0.send(line);
                true
            }
            _ => false,
        }
    }
}

/// What is said goes out here.
pub(crate) struct ParentWriterTask(JoinHandle<()>);

impl ParentWriterTask {
    /// Returns when all was said.
    pub(crate) async fn close(self) {
        let _ = timeout(FLUSH_TIMEOUT, self.0).await;
    }
}

/// Our standard error is the line.
pub(crate) fn open() -> io::Result<(ParentLineReader, ParentLineSender, ParentWriterTask)> {
    let line = io::stderr().as_fd().try_clone_to_owned()?;
    rustix::net::sockopt::socket_type(&line)?;
    let line = Socket::from(line);
    line.set_nonblocking(true)?;
    let (from, mut to) = UnixStream::from_std(line)?.into_split();
    let (sender, mut lines) = unbounded_channel::<Vec<u8>>();
    let mouth = tokio::spawn(async move {
        while let Some(line) = lines.recv().await {
            if to.write_all(&line).await.is_err() {
                break;
            }
        }
    });
    Ok((ParentLineReader(BufReader::new(from).lines()), ParentLineSender(sender), ParentWriterTask(mouth)))
}
