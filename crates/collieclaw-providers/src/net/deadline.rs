//! Waiting for a file descriptor until a deadline passes or a cancel flag is raised.

use std::fmt;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::cancel::CancelFlag;

/// A deadline for a whole task, however many steps it has, that ends early when the task is cancelled.
#[derive(Clone)]
pub struct CancellableDeadline {
    cancel: CancelFlag,
    until: Instant,
    /// The longest silence of the peer, shared by all clones; 0 means no limit.
    stall_timeout_ms: Arc<AtomicU64>,
}

/// The reason why waiting ended early.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WaitError {
    #[error("cancelled")]
    Cancelled,
    #[error("timed out")]
    TimedOut,
}

impl CancellableDeadline {
    /// Creates a deadline that passes `time` from now.
    #[must_use]
    pub fn new(cancel: &CancelFlag, time: Duration) -> Self {
        let now = Instant::now();
        // A clock overflow means "no limit"; a day is long enough.
        let until = now.checked_add(time).unwrap_or(now + Duration::from_secs(86_400));
        Self { cancel: cancel.clone(), until, stall_timeout_ms: Arc::default() }
    }

    /// Returns the time until the deadline.
    ///
    /// # Errors
    /// Fails if the deadline has passed or the flag is raised.
    pub fn remaining(&self) -> Result<Duration, WaitError> {
        if self.cancel.reason().is_some() {
            return Err(WaitError::Cancelled);
        }
        match self.until.saturating_duration_since(Instant::now()) {
            Duration::ZERO => Err(WaitError::TimedOut),
            left => Ok(left),
        }
    }

    /// Limits the peer's silence from now on, for all clones of this deadline.
    pub(crate) fn set_stall_timeout(&self, silence: Duration) {
        let milliseconds = u64::try_from(silence.as_millis()).unwrap_or(u64::MAX).max(1);
        self.stall_timeout_ms.store(milliseconds, Ordering::SeqCst);
    }

    /// Waits for input. Returns false if the peer was silent for longer than the stall timeout.
    pub(crate) fn wait_for_input(&self, fd: impl AsFd) -> Result<bool, WaitError> {
        match self.stall_timeout_ms.load(Ordering::SeqCst) {
            0 => self.wait_until_ready(fd, PollFlags::IN).map(|()| true),
            silence => self.wait_ready_within(fd, PollFlags::IN, Duration::from_millis(silence)),
        }
    }

    /// Waits until the descriptor is ready or the deadline passes.
    pub(crate) fn wait_until_ready(&self, fd: impl AsFd, flags: PollFlags) -> Result<(), WaitError> {
        while !self.wait_ready_within(&fd, flags, self.remaining()?)? {}
        Ok(())
    }

    /// Waits until the descriptor is ready, at most for `part` of the time. Returns true if the descriptor is
    /// ready.
    pub(crate) fn wait_ready_within(
        &self,
        fd: impl AsFd,
        flags: PollFlags,
        part: Duration,
    ) -> Result<bool, WaitError> {
        self.poll(Some((fd.as_fd(), flags)), part)
    }

    pub(crate) fn sleep(&self, time: Duration) -> Result<(), WaitError> {
        self.poll(None, time).map(drop)
    }

    fn poll(&self, target: Option<(BorrowedFd<'_>, PollFlags)>, part: Duration) -> Result<bool, WaitError> {
        let end = Instant::now() + part.min(self.remaining()?);
        loop {
            self.remaining()?;
            let left = end.saturating_duration_since(Instant::now());
            let timeout = Timespec::try_from(left).unwrap_or_default();
            let mut fds = vec![PollFd::new(&self.cancel, PollFlags::IN)];
            fds.extend(target.map(|(fd, flags)| PollFd::from_borrowed_fd(fd, flags)));
            match poll(&mut fds, Some(&timeout)) {
                Err(Errno::INTR) => continue,
                // A descriptor that can't be polled reports its error when it is used.
                Err(_) => return Ok(true),
                Ok(_) => {}
            }
            self.remaining()?;
            if fds.get(1).is_some_and(|fd| !fd.revents().is_empty()) {
                return Ok(true);
            }
            if Instant::now() >= end {
                return Ok(false);
            }
        }
    }
}

impl fmt::Debug for CancellableDeadline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CancellableDeadline").field("until", &self.until).finish_non_exhaustive()
    }
}
