//! The client at the other end of a connection: what it sends and is sent, and whether it is still there.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use rustix::net::Shutdown;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;

use super::connections::{ActivityGuard, ConnectionSlot};

/// A connection that several hold: one reads and writes, others wait for the client to leave.
#[derive(Clone)]
pub struct TcpPeer {
    inner: Arc<TcpPeerInner>,
}

struct TcpPeerInner {
    stream: TcpStream,
    slot: ConnectionSlot,
}

/// How long a client may leave what it was sent unread.
const UNREAD_TIMEOUT: Duration = Duration::from_secs(30);

impl TcpPeer {
    pub(super) fn new(stream: TcpStream, place: ConnectionSlot) -> Self {
        let patience = u32::try_from(UNREAD_TIMEOUT.as_millis()).unwrap_or(u32::MAX);
        // Without them it is slower, or waits longer; it is served all the same.
        let _ = rustix::net::sockopt::set_tcp_user_timeout(&stream, patience);
        let _ = stream.set_nodelay(true);
        Self { inner: Arc::new(TcpPeerInner { stream, slot: place }) }
    }

    /// Returns when the client has closed the connection, or its own side of it, whatever it has sent before.
    pub async fn wait_for_disconnect(&self) {
        // Unlike an interest in reading, this one is not met by bytes that nobody has taken yet: those must not hide
        // that their sender has left.
        while let Ok(ready) = self.inner.stream.ready(Interest::PRIORITY).await {
            if ready.is_read_closed() {
                return;
            }
        }
    }

    /// While the value lives, something is done for this client, and it keeps its place.
    pub fn mark_active(&self) -> ActivityGuard {
        self.inner.slot.mark_active()
    }

    /// For whoever may keep it longer than the connection lives.
    pub fn downgrade(&self) -> WeakTcpPeer {
        WeakTcpPeer { inner: Arc::downgrade(&self.inner) }
    }
}

/// A way to a client that does not keep its connection open.
#[derive(Clone)]
pub struct WeakTcpPeer {
    inner: Weak<TcpPeerInner>,
}

impl WeakTcpPeer {
    /// Returns when the client is gone.
    pub async fn wait_for_disconnect(&self) {
        if let Some(line) = self.inner.upgrade() {
            TcpPeer { inner: line }.wait_for_disconnect().await;
        }
    }
}

impl AsyncRead for TcpPeer {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            ready!(self.inner.stream.poll_read_ready(context))?;
            match self.inner.stream.try_read_buf(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                read => return Poll::Ready(read.map(drop)),
            }
        }
    }
}

impl AsyncWrite for TcpPeer {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(context, &[io::IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.inner.stream.poll_write_ready(context))?;
            match self.inner.stream.try_write_vectored(parts) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                written => {
                    self.inner.slot.record_progress();
                    return Poll::Ready(written);
                }
            }
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(rustix::net::shutdown(&self.inner.stream, Shutdown::Write).map_err(io::Error::from))
    }
}
