//! A message queue with an eventfd, so that a thread that sleeps in `poll` or `epoll` wakes up for messages.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use rustix::event::EventfdFlags;

pub(crate) struct MailboxSender<T> {
    messages: Sender<T>,
    wake_fd: Arc<OwnedFd>,
}

pub(crate) struct MailboxReceiver<T> {
    messages: Receiver<T>,
    wake_fd: Arc<OwnedFd>,
}

pub(crate) fn mailbox<T>() -> io::Result<(MailboxSender<T>, MailboxReceiver<T>)> {
    let (sender, messages) = channel();
    let wake_fd = Arc::new(rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
    let receiver = MailboxReceiver { messages, wake_fd: Arc::clone(&wake_fd) };
    Ok((MailboxSender { messages: sender, wake_fd }, receiver))
}

impl<T> MailboxSender<T> {
    pub(crate) fn send(&self, message: T) {
        // Messages to a thread that has ended are dropped.
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
    /// Returns the descriptor that is readable while messages are waiting.
    pub(crate) fn wake_fd(&self) -> BorrowedFd<'_> {
        self.wake_fd.as_fd()
    }

    /// Makes the descriptor unreadable. Call it before taking the messages, so that no message is missed.
    pub(crate) fn clear_wake(&self) {
        let _ = rustix::io::read(&self.wake_fd, &mut [0_u8; 8]);
    }

    pub(crate) fn try_next(&self) -> Option<T> {
        self.messages.try_recv().ok()
    }
}
