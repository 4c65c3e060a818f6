//! Slow work, on a thread of its own.

use std::panic::AssertUnwindSafe;
use std::thread::Builder;

use crate::mailbox::MailboxSender;
use crate::worker::WorkerMessage;

/// Does something slow, and sends what came of it. `cannot` is sent if it was not done.
pub(crate) fn spawn_thread(
    line: &MailboxSender<WorkerMessage>,
    work: impl FnOnce() -> WorkerMessage + Send + 'static,
    cannot: impl Fn(&str) -> WorkerMessage + Clone + Send + 'static,
) {
    let (line_of_thread, cannot_there) = (line.clone(), cannot.clone());
    let started = Builder::new().name("host-start".into()).spawn(move || {
        // Nobody may wait for ever because of a fault of ours.
        let outcome = std::panic::catch_unwind(AssertUnwindSafe(work));
        line_of_thread.send(outcome.unwrap_or_else(|_| cannot_there("the thread that was at it panicked")));
    });
    if let Err(error) = started {
        line.send(cannot(&format!("there is no thread for it ({error})")));
    }
}
