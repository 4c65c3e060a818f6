//! The line to `collieclaw`.

use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream as Socket;
use std::time::Duration;

use collieclaw::mcp::line::{LONGEST_LINE, read, written};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::UnixStream;
use tokio::net::unix::OwnedReadHalf;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// What is said last arrives within this time, or nobody listens.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// What `collieclaw` says.
pub(crate) struct Ear(Lines<BufReader<OwnedReadHalf>>);

impl Ear {
    /// The next thing that is said; nothing when `collieclaw` has hung up.
    pub(crate) async fn hear<T: DeserializeOwned>(&mut self) -> Option<T> {
        let line = self.0.next_line().await.ok().flatten()?;
        read(line.as_bytes()).ok()
    }
}

/// Says things to `collieclaw`, from wherever.
#[derive(Clone)]
pub(crate) struct Voice(UnboundedSender<Vec<u8>>);

impl Voice {
    /// Whether it can be said at all.
    pub(crate) fn say(&self, value: &impl Serialize) -> bool {
        match written(value) {
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
pub(crate) struct Mouth(JoinHandle<()>);

impl Mouth {
    /// Returns when all was said.
    pub(crate) async fn close(self) {
        let _ = timeout(LAST_WORDS, self.0).await;
    }
}

/// Our standard error is the line.
pub(crate) fn open() -> io::Result<(Ear, Voice, Mouth)> {
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
    Ok((Ear(BufReader::new(from).lines()), Voice(sender), Mouth(mouth)))
}
