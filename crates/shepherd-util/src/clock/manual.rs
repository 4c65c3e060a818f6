//! A clock that goes only when it is told to.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::SignedDuration;

use super::{Clock, ClockReading, MonotonicInstant, WallTime};

/// For tests and simulations: advances, sleeps, and has its wall clock set, all by hand.
#[derive(Debug)]
pub struct ManualClock {
    now: Mutex<ClockReading>,
}

impl ManualClock {
    /// A machine that just started, at a time of the wall clock.
    #[must_use]
    pub fn starting_at(wall: WallTime) -> Self {
        Self { now: Mutex::new(ClockReading { wall, mono: MonotonicInstant::BOOT }) }
    }

    /// Time passes while the machine is awake.
    pub fn advance(&self, awake: Duration) {
        let mut now = self.lock();
        now.mono = now.mono.after(awake);
        now.wall = shift_wall_time(now.wall, saturating_signed(awake));
    }

    /// The machine sleeps and wakes.
    pub fn suspend(&self, asleep: Duration) {
        let mut now = self.lock();
        now.mono = now.mono.after_suspend(asleep);
        now.wall = shift_wall_time(now.wall, saturating_signed(asleep));
    }

    /// Somebody sets the wall clock.
    pub fn set_wall(&self, wall: WallTime) {
        self.lock().wall = wall;
    }

    /// Somebody moves the wall clock, forward or back.
    pub fn move_wall(&self, by: SignedDuration) {
        let mut now = self.lock();
        now.wall = shift_wall_time(now.wall, by);
    }

    fn lock(&self) -> MutexGuard<'_, ClockReading> {
        // Each change is whole or not at all, so a panic elsewhere left nothing half done.
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Clock for ManualClock {
    fn now(&self) -> ClockReading {
        *self.lock()
    }
}

fn saturating_signed(duration: Duration) -> SignedDuration {
    SignedDuration::try_from(duration).unwrap_or(SignedDuration::MAX)
}

/// The wall clock stops at the ends of the calendar.
fn shift_wall_time(wall: WallTime, by: SignedDuration) -> WallTime {
    let end = if by.is_negative() { WallTime::MIN } else { WallTime::MAX };
    wall.checked_add(by).unwrap_or(end)
}
