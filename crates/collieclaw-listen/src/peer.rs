//! The client side of an accepted connection: an async stream that also reports when the client disconnects.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use rustix::net::Shutdown;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;

use super::connections::{ActivityGuard, ConnectionSlot};

/// A shared connection: one owner reads and writes, others wait for the client to disconnect.
#[derive(Clone)]
pub struct TcpPeer {
    inner: Arc<TcpPeerInner>,
}

struct TcpPeerInner {
    stream: TcpStream,
    slot: ConnectionSlot,
}

/// The longest time that a client may leave sent data unacknowledged.
const UNREAD_TIMEOUT: Duration = Duration::from_secs(30);

impl TcpPeer {
    pub(super) fn new(stream: TcpStream, slot: ConnectionSlot) -> Self {
        let timeout_ms = u32::try_from(UNREAD_TIMEOUT.as_millis()).unwrap_or(u32::MAX);
        // Both options only make the connection better, so a failure is ignored.
        let _ = rustix::net::sockopt::set_tcp_user_timeout(&stream, timeout_ms);
        let _ = stream.set_nodelay(true);
        Self { inner: Arc::new(TcpPeerInner { stream, slot }) }
    }

    /// Waits until the client has closed the connection or its sending side, even if unread bytes are left.
    pub async fn wait_for_disconnect(&self) {
        // Unlike `READABLE`, `PRIORITY` is not satisfied by unread bytes, which would hide that the client
        // has left.
        while let Ok(ready) = self.inner.stream.ready(Interest::PRIORITY).await {
            if ready.is_read_closed() {
                return;
            }
        }
    }

    /// Marks the client as active until the guard is dropped, so that its connection is not evicted.
    pub fn mark_active(&self) -> ActivityGuard {
        self.inner.slot.mark_active()
    }

    /// Returns a handle that doesn't keep the connection open.
    pub fn downgrade(&self) -> WeakTcpPeer {
        WeakTcpPeer { inner: Arc::downgrade(&self.inner) }
    }
}

/// A handle to a client that doesn't keep the connection open.
#[derive(Clone)]
pub struct WeakTcpPeer {
    inner: Weak<TcpPeerInner>,
}

impl WeakTcpPeer {
    /// Waits until the client has disconnected.
    pub async fn wait_for_disconnect(&self) {
        if let Some(inner) = self.inner.upgrade() {
            TcpPeer { inner }.wait_for_disconnect().await;
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
