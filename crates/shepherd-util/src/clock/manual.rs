//! A clock that is moved by hand, for tests and simulations.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::SignedDuration;

use super::{Clock, ClockReading, MonotonicInstant, WallTime};

/// A clock that stands still until the caller advances it, suspends the machine or sets the wall clock.
#[derive(Debug)]
pub struct ManualClock {
    now: Mutex<ClockReading>,
}

impl ManualClock {
    /// Creates the clock of a machine that was started at `wall`.
    #[must_use]
    pub fn starting_at(wall: WallTime) -> Self {
        Self { now: Mutex::new(ClockReading { wall, mono: MonotonicInstant::BOOT }) }
    }

    /// Lets time pass while the machine is awake.
    pub fn advance(&self, awake: Duration) {
        let mut now = self.lock();
        now.mono = now.mono.after(awake);
        now.wall = shift_wall_time(now.wall, saturating_signed(awake));
    }

    /// Lets time pass while the machine is suspended.
    pub fn suspend(&self, asleep: Duration) {
        let mut now = self.lock();
        now.mono = now.mono.after_suspend(asleep);
        now.wall = shift_wall_time(now.wall, saturating_signed(asleep));
    }

    /// Sets the wall clock, as a user with access to it could.
    pub fn set_wall(&self, wall: WallTime) {
        self.lock().wall = wall;
    }

    /// Moves the wall clock forward or back.
    pub fn move_wall(&self, by: SignedDuration) {
        let mut now = self.lock();
        now.wall = shift_wall_time(now.wall, by);
    }

    fn lock(&self) -> MutexGuard<'_, ClockReading> {
        // Every change replaces whole values, so a panic can't have left an inconsistent reading.
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

/// Moves a wall time, and stops at the first and last time that the calendar can represent.
fn shift_wall_time(wall: WallTime, by: SignedDuration) -> WallTime {
    let end = if by.is_negative() { WallTime::MIN } else { WallTime::MAX };
    wall.checked_add(by).unwrap_or(end)
}
