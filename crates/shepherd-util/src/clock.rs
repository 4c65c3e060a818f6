//! Clocks, instants and deadlines. Code that decides never reads a clock: the caller passes in a
//! [`ClockReading`].

mod boot;
mod deadline;
mod instant;
mod manual;
mod system;

use serde::{Deserialize, Serialize};

pub use boot::{BootId, BootIdError, BootInstant};
pub use deadline::{Deadline, DeadlineClock};
pub use instant::MonotonicInstant;
pub(crate) use instant::saturating_micros;
pub use manual::ManualClock;
pub use system::SystemClock;

/// A time on the wall clock. Anybody may set that clock, so Shepherd uses it to find windows and calendar
/// days, and never to measure a duration.
pub type WallTime = jiff::Timestamp;

/// A reading of the wall clock and the monotonic clocks. Every decision is based on a single reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ClockReading {
    pub wall: WallTime,
    /// The time since boot, with and without suspend.
    pub mono: MonotonicInstant,
}

/// A source of the current time.
pub trait Clock {
    fn now(&self) -> ClockReading;
}

impl<C: Clock + ?Sized> Clock for &C {
    fn now(&self) -> ClockReading {
        (**self).now()
    }
}

impl<C: Clock + ?Sized> Clock for std::sync::Arc<C> {
    fn now(&self) -> ClockReading {
        (**self).now()
    }
}
