//! A moment by which something must end, on the clock that it counts on.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::MonotonicInstant;
use super::instant::saturating_micros;

/// Which of the two clocks a length of time is measured on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeadlineClock {
    /// Only while the machine is awake: run time and quotas.
    Awake,
    /// Also while it sleeps: the end of a window.
    Total,
}

/// An end that no change of the wall clock can move. A session has up to two, one on each clock; the
/// [earlier](Self::earlier) wins, and which that is can change with every suspend.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Deadline {
    counting: DeadlineClock,
    at_us: u64,
}

impl Deadline {
    /// The end of a length of time that begins now. Longer than the clock can count is never.
    #[must_use]
    pub fn after(now: MonotonicInstant, length: Duration, counting: DeadlineClock) -> Self {
        Self { counting, at_us: clock_micros(now, counting).saturating_add(saturating_micros(length)) }
    }

    /// The clock it counts on.
    #[must_use]
    pub fn clock(self) -> DeadlineClock {
        self.counting
    }

    /// Whether it has come.
    #[must_use]
    pub fn is_due(self, now: MonotonicInstant) -> bool {
        self.at_us <= clock_micros(now, self.counting)
    }

    /// What is left on its clock; zero once it is due.
    #[must_use]
    pub fn remaining(self, now: MonotonicInstant) -> Duration {
        Duration::from_micros(self.at_us.saturating_sub(clock_micros(now, self.counting)))
    }

    /// When it comes if the machine stays awake until then. After a suspend it must be asked again: one that
    /// counts awake time has moved away, never nearer.
    #[must_use]
    pub fn expected_at(self, now: MonotonicInstant) -> MonotonicInstant {
        now.after(self.remaining(now))
    }

    /// The one that comes first if the machine stays awake. Of two that come together it is the one on the clock
    /// that never stops.
    #[must_use]
    pub fn earlier(self, other: Self, now: MonotonicInstant) -> Self {
        let key = |deadline: Self| (deadline.remaining(now), deadline.counting == DeadlineClock::Awake);
        if key(other) < key(self) { other } else { self }
    }

    /// The same deadline, later.
    #[must_use]
    pub fn extended(self, by: Duration) -> Self {
        Self { at_us: self.at_us.saturating_add(saturating_micros(by)), ..self }
    }

    /// The same deadline, earlier: a warning so long before an end. Before the boot is at the boot.
    #[must_use]
    pub fn before(self, by: Duration) -> Self {
        Self { at_us: self.at_us.saturating_sub(saturating_micros(by)), ..self }
    }
}

fn clock_micros(now: MonotonicInstant, counting: DeadlineClock) -> u64 {
    match counting {
        DeadlineClock::Awake => saturating_micros(now.awake()),
        DeadlineClock::Total => saturating_micros(now.total()),
    }
}
