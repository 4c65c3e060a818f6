//! The clocks of the machine.

use std::time::Duration;

use rustix::time::{ClockId, Timespec, clock_gettime};

use super::{Clock, MonotonicInstant, Now, WallTime};

/// Reads the kernel's clocks.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Now {
        let awake = clock_gettime(ClockId::Monotonic);
        let total = clock_gettime(ClockId::Boottime);
        let wall = clock_gettime(ClockId::Realtime);
        Now { wall: wall_time(wall), mono: MonotonicInstant::new(since_boot(total), since_boot(awake)) }
    }
}

/// A time namespace can set a clock before its own start; that is the start.
fn since_boot(reading: Timespec) -> Duration {
    let seconds = u64::try_from(reading.tv_sec).unwrap_or(0);
    let nanoseconds = u32::try_from(reading.tv_nsec).unwrap_or(0);
    Duration::new(seconds, nanoseconds)
}

/// A wall clock set beyond the year 9999 shows its end.
fn wall_time(reading: Timespec) -> WallTime {
    let nanoseconds = i32::try_from(reading.tv_nsec).unwrap_or(0);
    let end = if reading.tv_sec < 0 { WallTime::MIN } else { WallTime::MAX };
    WallTime::new(reading.tv_sec, nanoseconds).unwrap_or(end)
}
