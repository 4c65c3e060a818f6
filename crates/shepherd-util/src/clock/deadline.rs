//! Deadlines on either of the two monotonic clocks.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::MonotonicInstant;
use super::instant::saturating_micros;

/// The clock that a deadline is measured on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeadlineClock {
    /// Counts only while the machine is awake. Used for run time and quotas.
    Awake,
    /// Also counts while the machine is suspended. Used for the end of a window.
    Total,
    /// Doesn't advance, so the deadline keeps its distance. Used for run time while a session doesn't count.
    Stopped,
}

/// A deadline that doesn't move when the wall clock is set. A session has up to two deadlines, one on each
/// running clock. The [earlier](Self::earlier) deadline ends the session, and each suspend can change which of the
/// two that is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Deadline {
    counting: DeadlineClock,
    at_us: u64,
}

impl Deadline {
    /// Returns the deadline at `length` after `now`. If the clock can't count that far, the deadline is never
    /// reached.
    #[must_use]
    pub fn after(now: MonotonicInstant, length: Duration, counting: DeadlineClock) -> Self {
        Self { counting, at_us: clock_micros(now, counting).saturating_add(saturating_micros(length)) }
    }

    #[must_use]
    pub fn clock(self) -> DeadlineClock {
        self.counting
    }

    /// Returns true once the deadline has been reached.
    #[must_use]
    pub fn is_due(self, now: MonotonicInstant) -> bool {
        self.at_us <= clock_micros(now, self.counting)
    }

    /// Returns the time left on the deadline's clock, or zero once it is due.
    #[must_use]
    pub fn remaining(self, now: MonotonicInstant) -> Duration {
        Duration::from_micros(self.at_us.saturating_sub(clock_micros(now, self.counting)))
    }

    /// Returns the instant at which the deadline will be due if the machine stays awake. Call again after a
    /// suspend: a deadline on awake time is then due later than expected, never sooner.
    #[must_use]
    pub fn expected_at(self, now: MonotonicInstant) -> MonotonicInstant {
        now.after(self.remaining(now))
    }

    /// Returns the deadline that is due first if the machine stays awake. If both are due at the same time,
    /// returns the deadline on [`DeadlineClock::Total`].
    #[must_use]
    pub fn earlier(self, other: Self, now: MonotonicInstant) -> Self {
        let key = |deadline: Self| (deadline.remaining(now), deadline.counting == DeadlineClock::Awake);
        if key(other) < key(self) { other } else { self }
    }

    /// Returns the deadline moved to `by` later.
    #[must_use]
    pub fn extended(self, by: Duration) -> Self {
        Self { at_us: self.at_us.saturating_add(saturating_micros(by)), ..self }
    }

    /// Returns the deadline moved to `by` earlier, for example the time of a warning. The result is never
    /// before the boot.
    #[must_use]
    pub fn before(self, by: Duration) -> Self {
        Self { at_us: self.at_us.saturating_sub(saturating_micros(by)), ..self }
    }
}

fn clock_micros(now: MonotonicInstant, counting: DeadlineClock) -> u64 {
    match counting {
        DeadlineClock::Awake => saturating_micros(now.awake()),
        DeadlineClock::Total => saturating_micros(now.total()),
        DeadlineClock::Stopped => 0,
    }
}
