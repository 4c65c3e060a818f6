//! A cancel flag that every blocking operation waits on besides its own event.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::event::{EventfdFlags, eventfd};

/// The reason for cancelling work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CancelReason {
    /// The emergency stop (C11).
    Estop,
    /// The operator cancelled the turn.
    Operator,
}

/// A shared flag with a file descriptor to wait on and hooks that run as soon as the flag is raised.
#[derive(Clone)]
pub struct CancelFlag {
    shared: Arc<CancelState>,
}

struct CancelState {
    reason: AtomicU8,
    raised: OwnedFd,
    hooks: Mutex<Vec<CancelHook>>,
}

/// A function to run when the flag is raised.
struct CancelHook {
    number: u64,
    run: Box<dyn FnOnce() + Send>,
}

/// A guard that removes its hook when dropped.
#[must_use = "dropping the guard removes the hook"]
pub struct CancelHookGuard {
    shared: Arc<CancelState>,
    number: u64,
}

const NOT_RAISED: u8 = 0;

impl CancelFlag {
    /// Creates a flag that is not raised.
    ///
    /// # Errors
    /// Fails if the kernel provides no file descriptor.
    pub fn new() -> io::Result<Self> {
        let raised = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let shared = CancelState { reason: AtomicU8::new(NOT_RAISED), raised, hooks: Mutex::default() };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Raises the flag and runs its hooks. Later calls don't change the reason.
    pub fn raise(&self, reason: CancelReason) {
        let code = match reason {
            CancelReason::Estop => 1,
            CancelReason::Operator => 2,
        };
        let first = self.shared.reason.compare_exchange(NOT_RAISED, code, Ordering::SeqCst, Ordering::SeqCst);
        if first.is_err() {
            return;
        }
        // The write fails only if the counter is full, and a full counter is readable already.
        let _ = rustix::io::write(&self.shared.raised, &1_u64.to_ne_bytes());
        let hooks = std::mem::take(&mut *self.shared.lock_hooks());
        for hook in hooks {
            (hook.run)();
        }
    }

    /// Returns the reason if the flag is raised.
    #[must_use]
    pub fn reason(&self) -> Option<CancelReason> {
        match self.shared.reason.load(Ordering::SeqCst) {
            NOT_RAISED => None,
            1 => Some(CancelReason::Estop),
            _ => Some(CancelReason::Operator),
        }
    }

    /// Registers a hook that runs on the thread that raises the flag. If the flag is raised already, the hook
    /// runs now.
    pub fn on_cancel(&self, run: impl FnOnce() + Send + 'static) -> CancelHookGuard {
        let mut hooks = self.shared.lock_hooks();
        let number = hooks.last().map_or(0, |hook| hook.number + 1);
        if self.reason().is_some() {
            drop(hooks);
            run();
        } else {
            hooks.push(CancelHook { number, run: Box::new(run) });
        }
        CancelHookGuard { shared: Arc::clone(&self.shared), number }
    }
}

impl AsFd for CancelFlag {
    /// Returns a descriptor that stays readable once the flag is raised.
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
        self.shared.lock_hooks().retain(|hook| hook.number != self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    #[test]
    fn the_first_reason_stays_and_hooks_run_once() {
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
