//! Time as the rest of Shepherd sees it: what a decision is told, never what it asks.

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

/// Civil time's ground: a moment on the wall clock, which anybody may set. Windows and calendar days are found
/// from it; nothing is ever measured with it.
pub type WallTime = jiff::Timestamp;

/// The moment at which something is decided, on both kinds of clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ClockReading {
    /// What the wall clock shows.
    pub wall: WallTime,
    /// How long the machine has been up, with and without sleep.
    pub mono: MonotonicInstant,
}

/// Whoever knows what time it is.
pub trait Clock {
    /// The present moment.
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
