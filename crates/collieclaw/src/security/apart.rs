//! Looking at files from a thread of its own: the kernel may wait for a file server that is gone, for ever, and whoever
//! judges a call must not.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// So many threads may be left behind, each waiting for something that doesn't answer.
const MOST_LEFT: usize = 64;

type Job = Box<dyn FnOnce() + Send>;

/// Who looks for us, until it is left behind. One that is asked again and again costs less than a new one each time.
static LOOKER: Mutex<Option<Sender<Job>>> = Mutex::new(None);

static LOOKERS: AtomicUsize = AtomicUsize::new(0);

/// What some work came to; `None` if it took longer than this, or nobody could be found to do it.
pub(crate) fn apart<T: Send + 'static>(
    longest: Duration,
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let (sender, receiver) = channel();
    // Whoever listens no more has gone on already.
    let job: Job = Box::new(move || drop(sender.send(work())));
    let looker = looker()?;
    let found = looker.send(job).ok().and_then(|()| receiver.recv_timeout(longest).ok());
    if found.is_none() {
        // It ends when it finds that nobody asks any more.
        LOOKER.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
    found
}

fn looker() -> Option<Sender<Job>> {
    let mut known = LOOKER.lock().unwrap_or_else(PoisonError::into_inner);
    if known.is_none() {
        *known = new_looker();
    }
    known.clone()
}

fn new_looker() -> Option<Sender<Job>> {
    if LOOKERS.fetch_add(1, Ordering::SeqCst) >= MOST_LEFT {
        LOOKERS.fetch_sub(1, Ordering::SeqCst);
        return None;
    }
    let (sender, receiver) = channel::<Job>();
    let counted = Counted;
    let look = move || {
        let _counted = counted;
        receiver.iter().for_each(|job| job());
    };
    thread::Builder::new().name("look".to_owned()).spawn(look).ok().map(|_| sender)
}

struct Counted;

impl Drop for Counted {
    fn drop(&mut self) {
        LOOKERS.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_answer_is_left_behind_and_others_are_found() {
        let long = Duration::from_secs(60);
        assert_eq!(apart(long, || 1), Some(1));
        let (hold, held) = channel::<()>();
        assert_eq!(apart(Duration::from_millis(50), move || held.recv().is_ok()), None);
        assert_eq!(apart(long, || 2), Some(2));
        drop(hold);
        assert_eq!(apart(long, || 3), Some(3));
    }
}
