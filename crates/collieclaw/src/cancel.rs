//! One thing that everything which waits also waits for: somebody said stop.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::event::{EventfdFlags, eventfd};

/// Why work is to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// The emergency stop (C11).
    Estop,
    /// The operator cancelled the turn.
    Operator,
}

/// A flag that many may look at, with a descriptor to wait on and things to be done at once when it is raised.
#[derive(Clone)]
pub struct Cancel {
    shared: Arc<Shared>,
}

struct Shared {
    why: AtomicU8,
    raised: OwnedFd,
    at_once: Mutex<Vec<Task>>,
}

/// What is to be done at once, by its number.
struct Task {
    number: u64,
    act: Box<dyn FnOnce() + Send>,
}

/// What was to be done at once is forgotten when this is dropped.
#[must_use = "dropped, it forgets what was to be done"]
pub struct AtOnce {
    shared: Arc<Shared>,
    number: u64,
}

const NOT_RAISED: u8 = 0;

impl Cancel {
    /// A flag that is not raised.
    ///
    /// # Errors
    /// When the kernel gives no descriptor.
    pub fn new() -> io::Result<Self> {
        let raised = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let shared = Shared { why: AtomicU8::new(NOT_RAISED), raised, at_once: Mutex::default() };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Raises it. The first reason stays.
    pub fn raise(&self, why: Why) {
        let code = match why {
            Why::Estop => 1,
            Why::Operator => 2,
        };
        let first = self.shared.why.compare_exchange(NOT_RAISED, code, Ordering::SeqCst, Ordering::SeqCst);
        if first.is_err() {
            return;
        }
        // Only a counter that is full refuses, and then it is readable already.
        let _ = rustix::io::write(&self.shared.raised, &1_u64.to_ne_bytes());
        let at_once = std::mem::take(&mut *self.shared.list());
        for task in at_once {
            (task.act)();
        }
    }

    /// Why it was raised, if it was.
    #[must_use]
    pub fn why(&self) -> Option<Why> {
        match self.shared.why.load(Ordering::SeqCst) {
            NOT_RAISED => None,
            1 => Some(Why::Estop),
            _ => Some(Why::Operator),
        }
    }

    /// Does something at the moment it is raised, on the thread that raises it; now, if that was before.
    pub fn at_once(&self, act: impl FnOnce() + Send + 'static) -> AtOnce {
        let mut list = self.shared.list();
        let number = list.last().map_or(0, |task| task.number + 1);
        if self.why().is_some() {
            drop(list);
            act();
        } else {
            list.push(Task { number, act: Box::new(act) });
        }
        AtOnce { shared: Arc::clone(&self.shared), number }
    }
}

impl AsFd for Cancel {
    /// Readable from the moment it is raised, for ever.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.shared.raised.as_fd()
    }
}

impl Shared {
    fn list(&self) -> std::sync::MutexGuard<'_, Vec<Task>> {
        self.at_once.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for AtOnce {
    fn drop(&mut self) {
        self.shared.list().retain(|task| task.number != self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    #[test]
    fn the_first_reason_stays_and_what_was_to_be_done_is_done_once() {
        let cancel = Cancel::new().unwrap();
        let done = Arc::new(AtomicUsize::new(0));
        let adds = |number: usize| {
            let done = Arc::clone(&done);
            move || {
                done.fetch_add(number, Ordering::SeqCst);
            }
        };
        let _kept = cancel.at_once(adds(1));
        drop(cancel.at_once(adds(100)));

        assert_eq!(cancel.why(), None);
        cancel.raise(Why::Estop);
        cancel.raise(Why::Operator);
        assert_eq!((cancel.why(), done.load(Ordering::SeqCst)), (Some(Why::Estop), 1));

        let _late = cancel.at_once(adds(10));
        assert_eq!(done.load(Ordering::SeqCst), 11);
    }
}
