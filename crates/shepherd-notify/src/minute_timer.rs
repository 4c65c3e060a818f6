//! The timer of the tray.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::sys;

const ZERO: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

/// A timer that wakes the process once, when it fires. The timers of the runtime also wake it on the way, to sort the ones
/// that come later.
pub(crate) struct MinuteTimer {
    timer: AsyncFd<OwnedFd>,
}

impl MinuteTimer {
    pub(crate) fn new() -> io::Result<Self> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        Ok(Self { timer: sys::register(timer, Interest::READABLE)? })
    }

    /// Sets the time after which the timer fires; `None` is never.
    pub(crate) fn arm(&self, after: Option<Duration>) -> io::Result<()> {
        let value = after.map_or(ZERO, |after| Timespec {
            tv_sec: i64::try_from(after.as_secs()).unwrap_or(i64::MAX >> 8),
            // All zeros would disarm the timer.
            tv_nsec: i64::from(after.subsec_nanos().max(1)),
        });
        let once = Itimerspec { it_interval: ZERO, it_value: value };
        timerfd_settime(self.timer.get_ref(), TimerfdTimerFlags::empty(), &once)?;
        Ok(())
    }

    /// Waits until the timer fires.
    pub(crate) async fn wait(&self) -> io::Result<()> {
        loop {
            let mut guard = self.timer.readable().await?;
            let mut expirations = [0; 8];
            match guard.try_io(|timer| Ok(rustix::io::read(timer.get_ref(), &mut expirations)?)) {
                Ok(read) => return read.map(drop),
                Err(_would_block) => {}
            }
        }
    }
}
