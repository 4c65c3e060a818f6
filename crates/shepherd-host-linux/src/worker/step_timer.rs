//! The timer of the next step of a stop.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};

const ZERO: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

/// A timer whose descriptor becomes readable when it fires, and stays so until it is set again.
pub(super) struct StepTimer {
    timer: OwnedFd,
    armed: Option<Instant>,
}

impl StepTimer {
    pub(super) fn new() -> io::Result<Self> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        Ok(Self { timer: timerfd_create(TimerfdClockId::Monotonic, flags)?, armed: None })
    }

    /// Sets the time at which the timer fires; `None` is never. A time in the past fires immediately.
    pub(super) fn arm(&mut self, due: Option<Instant>) {
        if due == self.armed {
            return;
        }
        // All zeros would disarm the timer.
        let left = due.map(|due| due.saturating_duration_since(Instant::now()).max(Duration::from_nanos(1)));
        let it_value = left.map_or(Some(ZERO), |left| Timespec::try_from(left).ok()).unwrap_or(ZERO);
        let once = Itimerspec { it_interval: ZERO, it_value };
        let is_set = timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &once).is_ok();
        self.armed = due.filter(|_| is_set);
    }

    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.timer.as_fd()
    }
}
