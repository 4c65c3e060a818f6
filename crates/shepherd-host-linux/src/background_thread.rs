//! Runs slow work on its own thread.

use std::panic::AssertUnwindSafe;
use std::thread::Builder;

use crate::mailbox::MailboxSender;
use crate::worker::WorkerMessage;

/// Runs `work` on a new thread and sends its message to the worker. If the thread can't be started or panics, sends
/// the message that `failed` makes of the reason.
pub(crate) fn spawn_thread(
    mailbox: &MailboxSender<WorkerMessage>,
    work: impl FnOnce() -> WorkerMessage + Send + 'static,
    failed: impl Fn(&str) -> WorkerMessage + Clone + Send + 'static,
) {
    let (thread_mailbox, panicked) = (mailbox.clone(), failed.clone());
    let started = Builder::new().name("host-start".into()).spawn(move || {
        // The session must not stay in its starting state for ever because of a bug here.
        let outcome = std::panic::catch_unwind(AssertUnwindSafe(work));
        thread_mailbox.send(outcome.unwrap_or_else(|_| panicked("the thread panicked")));
    });
    if let Err(error) = started {
        mailbox.send(failed(&format!("could not start a thread: {error}")));
    }
}
