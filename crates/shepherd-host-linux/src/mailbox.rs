//! How the host's threads are told things: a queue, and a bell that wakes whoever sleeps in a poll.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use rustix::event::EventfdFlags;

/// The end that speaks.
pub(crate) struct MailboxSender<T> {
    messages: Sender<T>,
    wake_fd: Arc<OwnedFd>,
}

/// The end that hears.
pub(crate) struct MailboxReceiver<T> {
    messages: Receiver<T>,
    wake_fd: Arc<OwnedFd>,
}

/// Both ends.
pub(crate) fn mailbox<T>() -> io::Result<(MailboxSender<T>, MailboxReceiver<T>)> {
    let (sender, receiver) = channel();
    let bell = Arc::new(rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
    let inbox = MailboxReceiver { messages: receiver, wake_fd: Arc::clone(&bell) };
    Ok((MailboxSender { messages: sender, wake_fd: bell }, inbox))
}

impl<T> MailboxSender<T> {
    pub(crate) fn send(&self, message: T) {
        // A thread that has left needs to hear nothing.
        if self.messages.send(message).is_ok() {
            let _ = rustix::io::write(&self.wake_fd, &1_u64.to_ne_bytes());
        }
    }
}

impl<T> Clone for MailboxSender<T> {
    fn clone(&self) -> Self {
        Self { messages: self.messages.clone(), wake_fd: Arc::clone(&self.wake_fd) }
    }
}

impl<T> MailboxReceiver<T> {
    /// Readable when there is something to hear.
    pub(crate) fn wake_fd(&self) -> BorrowedFd<'_> {
        self.wake_fd.as_fd()
    }

    /// To be called before the messages are taken, so that none is missed.
    pub(crate) fn clear_wake(&self) {
        let _ = rustix::io::read(&self.wake_fd, &mut [0_u8; 8]);
    }

    pub(crate) fn try_next(&self) -> Option<T> {
        self.messages.try_recv().ok()
    }
}
