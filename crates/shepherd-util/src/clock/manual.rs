//! A clock that goes only when it is told to.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::SignedDuration;

use super::{Clock, MonotonicInstant, Now, WallTime};

/// For tests and simulations: advances, sleeps, and has its wall clock set, all by hand.
#[derive(Debug)]
pub struct ManualClock {
    now: Mutex<Now>,
}

impl ManualClock {
    /// A machine that just started, at a time of the wall clock.
    #[must_use]
    pub fn starting_at(wall: WallTime) -> Self {
        Self { now: Mutex::new(Now { wall, mono: MonotonicInstant::BOOT }) }
    }

    /// Time passes while the machine is awake.
    pub fn advance(&self, awake: Duration) {
        let mut now = self.lock();
        now.mono = now.mono.after(awake);
        now.wall = shifted(now.wall, saturated(awake));
    }

    /// The machine sleeps and wakes.
    pub fn suspend(&self, asleep: Duration) {
        let mut now = self.lock();
        now.mono = now.mono.after_suspend(asleep);
        now.wall = shifted(now.wall, saturated(asleep));
    }

    /// Somebody sets the wall clock.
    pub fn set_wall(&self, wall: WallTime) {
        self.lock().wall = wall;
    }

    /// Somebody moves the wall clock, forward or back.
    pub fn move_wall(&self, by: SignedDuration) {
        let mut now = self.lock();
        now.wall = shifted(now.wall, by);
    }

    fn lock(&self) -> MutexGuard<'_, Now> {
        // Each change is whole or not at all, so a panic elsewhere left nothing half done.
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Now {
        *self.lock()
    }
}

fn saturated(duration: Duration) -> SignedDuration {
    SignedDuration::try_from(duration).unwrap_or(SignedDuration::MAX)
}

/// The wall clock stops at the ends of the calendar.
fn shifted(wall: WallTime, by: SignedDuration) -> WallTime {
    let end = if by.is_negative() { WallTime::MIN } else { WallTime::MAX };
    wall.checked_add(by).unwrap_or(end)
}
