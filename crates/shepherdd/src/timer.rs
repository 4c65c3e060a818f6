//! The timers of the loop, which sleeps in between (S4.7): one on the clock that suspend doesn't stop, and one that
//! fires when the wall clock is set.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::io::Errno;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use shepherd_util::MonotonicInstant;
use tokio::io::unix::AsyncFd;

use crate::sys;

const ZERO: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

/// A timer that fires at a time since boot, including suspended time.
pub(crate) struct DueTimer {
    timer: AsyncFd<OwnedFd>,
    armed: Option<Duration>,
}

impl DueTimer {
    pub(crate) fn new() -> io::Result<Self> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = sys::register_readable(timerfd_create(TimerfdClockId::Boottime, flags)?)?;
        Ok(Self { timer, armed: None })
    }

    /// Sets the time at which the timer fires; `None` is never. A time in the past fires immediately.
    pub(crate) fn arm(&mut self, due: Option<MonotonicInstant>) -> io::Result<()> {
        let due = due.map(MonotonicInstant::total);
        if due != self.armed {
            // All zeros would disarm the timer.
            let at = due.map_or(ZERO, |due| timespec(due.max(Duration::from_nanos(1))));
            let once = Itimerspec { it_interval: ZERO, it_value: at };
            timerfd_settime(self.timer.get_ref(), TimerfdTimerFlags::ABSTIME, &once)?;
            self.armed = due;
        }
        Ok(())
    }

    /// Waits until the timer fires.
    pub(crate) async fn wait_until_due(&mut self) -> io::Result<()> {
        read_timer(&self.timer).await?;
        self.armed = None;
        Ok(())
    }
}

/// Notices when the wall clock is set.
pub(crate) struct ClockSetWatcher {
    timer: AsyncFd<OwnedFd>,
}

impl ClockSetWatcher {
    pub(crate) fn new() -> io::Result<Self> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = sys::register_readable(timerfd_create(TimerfdClockId::Realtime, flags)?)?;
        let watch = Self { timer };
        watch.arm()?;
        Ok(watch)
    }

    fn arm(&self) -> io::Result<()> {
        // Far in the future but without an overflow in the kernel: the timer itself must never fire.
        let never =
            Itimerspec { it_interval: ZERO, it_value: Timespec { tv_sec: i64::MAX >> 8, tv_nsec: 0 } };
        let flags = TimerfdTimerFlags::ABSTIME | TimerfdTimerFlags::CANCEL_ON_SET;
        loop {
            match timerfd_settime(self.timer.get_ref(), flags, &never) {
                // The clock was set again meanwhile. The caller reads the clock only after this, so one wake-up is
                // enough.
                Err(Errno::CANCELED) => {}
                other => return Ok(other.map(drop)?),
            }
        }
    }

    /// Waits until the clock is set.
    pub(crate) async fn wait_until_set(&self) -> io::Result<()> {
        match read_timer(&self.timer).await {
            Err(error) if Errno::from_io_error(&error) == Some(Errno::CANCELED) => self.arm(),
            other => other,
        }
    }
}

async fn read_timer(timer: &AsyncFd<OwnedFd>) -> io::Result<()> {
    loop {
        let mut guard = timer.readable().await?;
        let mut expirations = [0; 8];
        match guard.try_io(|timer| Ok(rustix::io::read(timer.get_ref(), &mut expirations)?)) {
            Ok(result) => return result.map(drop),
            Err(_would_block) => {}
        }
    }
}

fn timespec(at: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(at.as_secs()).unwrap_or(i64::MAX >> 8),
        tv_nsec: i64::from(at.subsec_nanos()),
    }
}
