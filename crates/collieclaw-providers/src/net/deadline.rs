//! How long somebody waits: until a moment, or until somebody says stop.

use std::fmt;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::cancel::CancelFlag;

/// The time for a whole piece of work, however many steps it has.
#[derive(Clone)]
pub struct CancellableDeadline {
    cancel: CancelFlag,
    until: Instant,
    /// In milliseconds, the same for all who wait for this piece of work; 0 as long as silence is no trouble.
    stall_timeout_ms: Arc<AtomicU64>,
}

/// Why the waiting is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WaitError {
    /// Somebody said stop.
    #[error("cancelled")]
    Cancelled,
    /// The time is over.
    #[error("took too long")]
    TimedOut,
}

impl CancellableDeadline {
    /// From now on, for so long.
    #[must_use]
    pub fn new(cancel: &CancelFlag, time: Duration) -> Self {
        let now = Instant::now();
        // More than a clock can count is for ever: a day will do.
        let until = now.checked_add(time).unwrap_or(now + Duration::from_secs(86_400));
        Self { cancel: cancel.clone(), until, stall_timeout_ms: Arc::default() }
    }

    /// What is left of it.
    ///
    /// # Errors
    /// When the deadline has passed, or its flag was raised.
    pub fn remaining(&self) -> Result<Duration, WaitError> {
        if self.cancel.reason().is_some() {
            return Err(WaitError::Cancelled);
        }
        match self.until.saturating_duration_since(Instant::now()) {
            Duration::ZERO => Err(WaitError::TimedOut),
            left => Ok(left),
        }
    }

    /// From now on the other side may not be silent for longer than this.
    pub(crate) fn set_stall_timeout(&self, silence: Duration) {
        let milliseconds = u64::try_from(silence.as_millis()).unwrap_or(u64::MAX).max(1);
        self.stall_timeout_ms.store(milliseconds, Ordering::SeqCst);
    }

    /// Waits for more from the other side. Says whether it comes before the silence is too long.
    pub(crate) fn wait_for_input(&self, fd: impl AsFd) -> Result<bool, WaitError> {
        match self.stall_timeout_ms.load(Ordering::SeqCst) {
            0 => self.wait_until_ready(fd, PollFlags::IN).map(|()| true),
            silence => self.wait_ready_within(fd, PollFlags::IN, Duration::from_millis(silence)),
        }
    }

    /// Waits for a descriptor until the end.
    pub(crate) fn wait_until_ready(&self, fd: impl AsFd, flags: PollFlags) -> Result<(), WaitError> {
        while !self.wait_ready_within(&fd, flags, self.remaining()?)? {}
        Ok(())
    }

    /// Waits for a descriptor, but not longer than a part of the time. Says whether it is ready.
    pub(crate) fn wait_ready_within(
        &self,
        fd: impl AsFd,
        flags: PollFlags,
        part: Duration,
    ) -> Result<bool, WaitError> {
        self.poll(Some((fd.as_fd(), flags)), part)
    }

    /// Lets time pass.
    pub(crate) fn sleep(&self, time: Duration) -> Result<(), WaitError> {
        self.poll(None, time).map(drop)
    }

    fn poll(&self, what: Option<(BorrowedFd<'_>, PollFlags)>, part: Duration) -> Result<bool, WaitError> {
        let end = Instant::now() + part.min(self.remaining()?);
        loop {
            self.remaining()?;
            let left = end.saturating_duration_since(Instant::now());
            let timeout = Timespec::try_from(left).unwrap_or_default();
            let mut fds = vec![PollFd::new(&self.cancel, PollFlags::IN)];
            fds.extend(what.map(|(fd, flags)| PollFd::from_borrowed_fd(fd, flags)));
            match poll(&mut fds, Some(&timeout)) {
                Err(Errno::INTR) => continue,
                // A descriptor that can't be waited for tells what is wrong when it is used.
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
        f.debug_struct("Patience").field("until", &self.until).finish_non_exhaustive()
    }
}
