//! Limits for the number, the length and the total size of the messages that a server sends in reply to one
//! request.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, ReadBuf};

/// The longest message. A megabyte of text fits, however it is escaped.
const LONGEST_MESSAGE: u64 = 8 << 20;

/// The most messages in reply to one request, such as progress and logs.
const MOST_MESSAGES: u64 = 10_000;

/// The most bytes of all messages in reply to one request.
const MOST_BYTES: u64 = 32 << 20;

/// The amount that was received since the last request.
#[derive(Debug, Default)]
pub(crate) struct ReceiveBudget {
    bytes: AtomicU64,
    messages: AtomicU64,
    exceeded: AtomicBool,
}

impl ReceiveBudget {
    /// Starts over for a new request.
    pub(crate) fn reset(&self) {
        self.bytes.store(0, Ordering::Relaxed);
        self.messages.store(0, Ordering::Relaxed);
    }

    pub(crate) fn is_exceeded(&self) -> bool {
        self.exceeded.load(Ordering::Relaxed)
    }

    /// Counts received bytes. Returns false if a limit is exceeded. `line` holds the length of the unfinished
    /// message.
    pub(crate) fn consume(&self, bytes: &[u8], line: &mut u64) -> bool {
        for &byte in bytes {
            *line = if byte == b'\n' { 0 } else { *line + 1 };
            if *line > LONGEST_MESSAGE {
                self.exceeded.store(true, Ordering::Relaxed);
            }
        }
        let finished = bytes.iter().filter(|&&byte| byte == b'\n').count() as u64;
        let total = self.bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed) + bytes.len() as u64;
        let messages = self.messages.fetch_add(finished, Ordering::Relaxed) + finished;
        if total > MOST_BYTES || messages > MOST_MESSAGES {
            self.exceeded.store(true, Ordering::Relaxed);
        }
        !self.is_exceeded()
    }
}

/// A reader that fails when the budget is exceeded.
pub(crate) struct BoundedReader<R> {
    inner: R,
    budget: Arc<ReceiveBudget>,
    line: u64,
}

impl<R> BoundedReader<R> {
    pub(crate) fn new(inner: R, budget: Arc<ReceiveBudget>) -> Self {
        Self { inner, budget, line: 0 }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for BoundedReader<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.inner).poll_read(context, buffer);
        let Self { budget, line, .. } = &mut *self;
        if !budget.consume(buffer.filled().get(before..).unwrap_or_default(), line) {
            return Poll::Ready(Err(io::Error::other("the server sent too much")));
        }
        read
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_messages_many_messages_and_many_bytes_each_exceed_the_budget() {
        let long = ReceiveBudget::default();
        let mut line = 0;
        assert!(long.consume(&vec![b'x'; 8 << 20], &mut line));
        assert!(!long.consume(b"x", &mut line));

        let many = ReceiveBudget::default();
        let mut line = 0;
        assert!(many.consume("{}\n".repeat(10_000).as_bytes(), &mut line));
        many.reset();
        assert!(many.consume("{}\n".repeat(10_000).as_bytes(), &mut line));
        assert!(!many.consume(b"{}\n", &mut line));

        let heavy = ReceiveBudget::default();
        let mut line = 0;
        let megabyte = [vec![b'x'; (1 << 20) - 1], vec![b'\n']].concat();
        assert!((0..32).all(|_| heavy.consume(&megabyte, &mut line)));
        assert!(!heavy.consume(b"\n", &mut line));
    }
}
