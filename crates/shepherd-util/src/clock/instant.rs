//! Instants on the two monotonic clocks: `CLOCK_MONOTONIC`, which stops in suspend, and `CLOCK_BOOTTIME`,
//! which doesn't.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// An instant within a boot, on both monotonic clocks. It has no relation to civil time. It isn't ordered
/// either: every comparison has to say which clock counts.
///
/// Microseconds in 64 bits last for half a million years. JSON readers that use floating point keep them
/// exact for 285 years.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct MonotonicInstant {
    total_us: u64,
    awake_us: u64,
}

impl MonotonicInstant {
    /// The instant at which the machine was started.
    pub const BOOT: Self = Self { total_us: 0, awake_us: 0 };

    /// Creates an instant from readings of `CLOCK_BOOTTIME` (`total`) and `CLOCK_MONOTONIC` (`awake`).
    #[must_use]
    pub fn new(total: Duration, awake: Duration) -> Self {
        Self { total_us: saturating_micros(total), awake_us: saturating_micros(awake) }
    }

    /// Returns the time since boot, including suspend.
    #[must_use]
    pub fn total(self) -> Duration {
        Duration::from_micros(self.total_us)
    }

    /// Returns the time since boot, without suspend.
    #[must_use]
    pub fn awake(self) -> Duration {
        Duration::from_micros(self.awake_us)
    }

    /// Returns the time from `earlier` to this instant, including suspend, or zero if `earlier` is later.
    #[must_use]
    pub fn total_since(self, earlier: Self) -> Duration {
        Duration::from_micros(self.total_us.saturating_sub(earlier.total_us))
    }

    /// Returns the time from `earlier` to this instant, without suspend, or zero if `earlier` is later.
    #[must_use]
    pub fn awake_since(self, earlier: Self) -> Duration {
        Duration::from_micros(self.awake_us.saturating_sub(earlier.awake_us))
    }

    /// Returns the time from `earlier` to this instant that the machine was suspended. The two clocks are
    /// read one after the other, so a result of a few microseconds means no suspend.
    #[must_use]
    pub fn suspended_since(self, earlier: Self) -> Duration {
        self.total_since(earlier).saturating_sub(self.awake_since(earlier))
    }

    /// Returns the instant `awake` later, if the machine stays awake until then.
    #[must_use]
    pub fn after(self, awake: Duration) -> Self {
        let passed = saturating_micros(awake);
        Self {
            total_us: self.total_us.saturating_add(passed),
            awake_us: self.awake_us.saturating_add(passed),
        }
    }

    /// Returns the instant at which the machine wakes up after a suspend of length `asleep`.
    #[must_use]
    pub fn after_suspend(self, asleep: Duration) -> Self {
        Self { total_us: self.total_us.saturating_add(saturating_micros(asleep)), awake_us: self.awake_us }
    }
}

/// Returns a duration in microseconds, capped at the largest value that a clock can hold.
pub(crate) fn saturating_micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
