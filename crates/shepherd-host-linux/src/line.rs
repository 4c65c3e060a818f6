//! How the host's threads are told things: a queue, and a bell that wakes whoever sleeps in a poll.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use rustix::event::EventfdFlags;

/// The end that speaks.
pub(crate) struct Line<T> {
    messages: Sender<T>,
    bell: Arc<OwnedFd>,
}

/// The end that hears.
pub(crate) struct Inbox<T> {
    messages: Receiver<T>,
    bell: Arc<OwnedFd>,
}

/// Both ends.
pub(crate) fn line<T>() -> io::Result<(Line<T>, Inbox<T>)> {
    let (sender, receiver) = channel();
    let bell = Arc::new(rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
    let inbox = Inbox { messages: receiver, bell: Arc::clone(&bell) };
    Ok((Line { messages: sender, bell }, inbox))
}

impl<T> Line<T> {
    pub(crate) fn send(&self, message: T) {
        // A thread that has left needs to hear nothing.
        if self.messages.send(message).is_ok() {
            let _ = rustix::io::write(&self.bell, &1_u64.to_ne_bytes());
        }
    }
}

impl<T> Clone for Line<T> {
    fn clone(&self) -> Self {
        Self { messages: self.messages.clone(), bell: Arc::clone(&self.bell) }
    }
}

impl<T> Inbox<T> {
    /// Readable when there is something to hear.
    pub(crate) fn bell(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }

    /// To be called before the messages are taken, so that none is missed.
    pub(crate) fn silence(&self) {
        let _ = rustix::io::read(&self.bell, &mut [0_u8; 8]);
    }

    pub(crate) fn next(&self) -> Option<T> {
        self.messages.try_recv().ok()
    }
}
