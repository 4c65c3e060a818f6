//! One thing that everything which waits also waits for: somebody said stop.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::event::{EventfdFlags, eventfd};

/// Why work is to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CancelReason {
    /// The emergency stop (C11).
    Estop,
    /// The operator cancelled the turn.
    Operator,
}

/// A flag that many may look at, with a descriptor to wait on and things to be done at once when it is raised.
#[derive(Clone)]
pub struct CancelFlag {
    shared: Arc<CancelState>,
}

struct CancelState {
    reason: AtomicU8,
    raised: OwnedFd,
    hooks: Mutex<Vec<CancelHook>>,
}

/// What is to be done at once, by its number.
struct CancelHook {
    number: u64,
    act: Box<dyn FnOnce() + Send>,
}

/// What was to be done at once is forgotten when this is dropped.
#[must_use = "dropped, it forgets what was to be done"]
pub struct CancelHookGuard {
    shared: Arc<CancelState>,
    number: u64,
}

const NOT_RAISED: u8 = 0;

impl CancelFlag {
    /// A flag that is not raised.
    ///
    /// # Errors
    /// When the kernel gives no descriptor.
    pub fn new() -> io::Result<Self> {
        let raised = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let shared = CancelState { reason: AtomicU8::new(NOT_RAISED), raised, hooks: Mutex::default() };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Raises it. The first reason stays.
    pub fn raise(&self, why: CancelReason) {
        let code = match why {
            CancelReason::Estop => 1,
            CancelReason::Operator => 2,
        };
        let first = self.shared.reason.compare_exchange(NOT_RAISED, code, Ordering::SeqCst, Ordering::SeqCst);
        if first.is_err() {
            return;
        }
        // Only a counter that is full refuses, and then it is readable already.
        let _ = rustix::io::write(&self.shared.raised, &1_u64.to_ne_bytes());
        let at_once = std::mem::take(&mut *self.shared.lock_hooks());
        for task in at_once {
            (task.act)();
        }
    }

    /// Why it was raised, if it was.
    #[must_use]
    pub fn reason(&self) -> Option<CancelReason> {
        match self.shared.reason.load(Ordering::SeqCst) {
            NOT_RAISED => None,
            1 => Some(CancelReason::Estop),
            _ => Some(CancelReason::Operator),
        }
    }

    /// Does something at the moment it is raised, on the thread that raises it; now, if that was before.
    pub fn on_cancel(&self, act: impl FnOnce() + Send + 'static) -> CancelHookGuard {
        let mut list = self.shared.lock_hooks();
        let number = list.last().map_or(0, |task| task.number + 1);
        if self.reason().is_some() {
            drop(list);
            act();
        } else {
            list.push(CancelHook { number, act: Box::new(act) });
        }
        CancelHookGuard { shared: Arc::clone(&self.shared), number }
    }
}

impl AsFd for CancelFlag {
    /// Readable from the moment it is raised, for ever.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.shared.raised.as_fd()
    }
}

impl CancelState {
    fn lock_hooks(&self) -> std::sync::MutexGuard<'_, Vec<CancelHook>> {
        self.hooks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for CancelHookGuard {
    fn drop(&mut self) {
        self.shared.lock_hooks().retain(|task| task.number != self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    #[test]
    fn the_first_reason_stays_and_what_was_to_be_done_is_done_once() {
        let cancel = CancelFlag::new().unwrap();
        let done = Arc::new(AtomicUsize::new(0));
        let adds = |number: usize| {
            let done = Arc::clone(&done);
            move || {
                done.fetch_add(number, Ordering::SeqCst);
            }
        };
        let _kept = cancel.on_cancel(adds(1));
        drop(cancel.on_cancel(adds(100)));

        assert_eq!(cancel.reason(), None);
        cancel.raise(CancelReason::Estop);
        cancel.raise(CancelReason::Operator);
        assert_eq!((cancel.reason(), done.load(Ordering::SeqCst)), (Some(CancelReason::Estop), 1));

        let _late = cancel.on_cancel(adds(10));
        assert_eq!(done.load(Ordering::SeqCst), 11);
    }
}
