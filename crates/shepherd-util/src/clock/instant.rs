//! A moment since boot, on the clock that stops in suspend and on the one that does not.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A moment of one boot. It has no relation to civil time and no order: of two moments the one may be later on
/// both clocks, but which clock counts must be said.
///
/// Microseconds in 64 bits last for half a million years; as JSON numbers they stay exact for 285.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct MonotonicInstant {
    total_us: u64,
    awake_us: u64,
}

impl MonotonicInstant {
    /// The start of the machine.
    pub const BOOT: Self = Self { total_us: 0, awake_us: 0 };

    /// A moment from the readings of both clocks: with suspend (`CLOCK_BOOTTIME`) and without (`CLOCK_MONOTONIC`).
    #[must_use]
    pub fn new(total: Duration, awake: Duration) -> Self {
        Self { total_us: saturating_micros(total), awake_us: saturating_micros(awake) }
    }

    /// Time since boot, suspend included.
    #[must_use]
    pub fn total(self) -> Duration {
        Duration::from_micros(self.total_us)
    }

    /// Time since boot that the machine was awake.
    #[must_use]
    pub fn awake(self) -> Duration {
        Duration::from_micros(self.awake_us)
    }

    /// Time from an earlier moment to this one, suspend included; zero if that moment is later.
    #[must_use]
    pub fn total_since(self, earlier: Self) -> Duration {
        Duration::from_micros(self.total_us.saturating_sub(earlier.total_us))
    }

    /// Time from an earlier moment to this one that the machine was awake; zero if that moment is later.
    #[must_use]
    pub fn awake_since(self, earlier: Self) -> Duration {
        Duration::from_micros(self.awake_us.saturating_sub(earlier.awake_us))
    }

    /// Time from an earlier moment to this one that the machine slept. The two clocks are read one after the
    /// other, so a few microseconds mean nothing.
    #[must_use]
    pub fn suspended_since(self, earlier: Self) -> Duration {
        self.total_since(earlier).saturating_sub(self.awake_since(earlier))
    }

    /// The moment so much later, if the machine stays awake.
    #[must_use]
    pub fn after(self, awake: Duration) -> Self {
        let passed = saturating_micros(awake);
        Self {
            total_us: self.total_us.saturating_add(passed),
            awake_us: self.awake_us.saturating_add(passed),
        }
    }

    /// The moment at which the machine wakes after having slept so long.
    #[must_use]
    pub fn after_suspend(self, asleep: Duration) -> Self {
        Self { total_us: self.total_us.saturating_add(saturating_micros(asleep)), awake_us: self.awake_us }
    }
}

/// A duration in microseconds; one that is longer than the clock can count is its end.
pub(crate) fn saturating_micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
