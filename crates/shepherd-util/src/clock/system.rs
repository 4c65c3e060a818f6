//! The clock that production code uses.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, Timespec, clock_gettime};

use super::{Clock, ClockReading, MonotonicInstant, WallTime};

/// A clock that reads the kernel's clocks.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> ClockReading {
        let awake = clock_gettime(ClockId::Monotonic);
        let total = clock_gettime(ClockId::Boottime);
        ClockReading { wall: wall_time(), mono: MonotonicInstant::new(since_boot(total), since_boot(awake)) }
    }
}

/// Returns the time since boot. A time namespace can offset a clock to below zero, which counts as zero
/// (`man 7 time_namespaces`).
fn since_boot(reading: Timespec) -> Duration {
    let seconds = u64::try_from(reading.tv_sec).unwrap_or(0);
    let nanoseconds = u32::try_from(reading.tv_nsec).unwrap_or(0);
    Duration::new(seconds, nanoseconds)
}

/// Returns the wall time. A clock set beyond the years that `WallTime` can represent is capped.
fn wall_time() -> WallTime {
    let shown = SystemTime::now();
    let end = if shown < UNIX_EPOCH { WallTime::MIN } else { WallTime::MAX };
    WallTime::try_from(shown).unwrap_or(end)
}
