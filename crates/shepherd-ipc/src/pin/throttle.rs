//! How long whoever failed has to wait. Pure; time is passed in.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use shepherd_util::MonotonicInstant;

/// Failures of one user that cost nothing: fingers slip.
const FREE_FOR_ONE: u32 = 3;

/// Failures of all users together that cost nothing. More than for one, so that a user who keeps failing holds up
/// itself long before the others.
const FREE_FOR_ALL: u32 = 30;

/// Failures of one user that count among those of all. By then it has to wait on its own, and if more counted, one
/// who goes on failing would close the door to everybody else for good.
const COUNTED_FOR_ALL: u32 = 5;

/// The first wait; each further failure doubles it.
const FIRST_WAIT: Duration = Duration::from_secs(2);

/// The longest wait. All PINs of four digits take five weeks at this pace, and a parent who sits down at a machine
/// on which a child has been guessing waits for no longer.
const LONGEST_WAIT: Duration = Duration::from_secs(5 * 60);

/// Users who are counted one by one. Beyond, which takes a user with numbers to give away, they share a count.
const MOST_USERS: usize = 256;

/// What of it outlives the daemon.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Failures {
    pub(super) all: u32,
    pub(super) by_uid: BTreeMap<u32, u32>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Throttle {
    all: Tally,
    by_uid: BTreeMap<u32, Tally>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    failures: u32,
    /// Time since boot, suspend included: nobody can set that clock.
    closed_until: Duration,
}

impl Tally {
    fn failed(&mut self, free: u32, now: MonotonicInstant) {
        *self = Self::after(self.failures.saturating_add(1), free, now);
    }

    fn after(failures: u32, free: u32, now: MonotonicInstant) -> Self {
        let closed_until = now.total().saturating_add(wait(failures, free));
        Self { failures, closed_until }
    }
}

/// How long to wait after so many failures.
fn wait(failures: u32, free: u32) -> Duration {
    match failures.checked_sub(free) {
        None => Duration::ZERO,
        Some(beyond) => FIRST_WAIT.saturating_mul(1 << beyond.min(16)).min(LONGEST_WAIT),
    }
}

impl Throttle {
    /// After a restart, at this moment: what was counted, and every wait in full.
    pub(super) fn restored(failures: &Failures, now: MonotonicInstant) -> Self {
        let one = |(uid, failures): (&u32, &u32)| (*uid, Tally::after(*failures, FREE_FOR_ONE, now));
        Self {
            all: Tally::after(failures.all, FREE_FOR_ALL, now),
            by_uid: failures.by_uid.iter().take(MOST_USERS).map(one).collect(),
        }
    }

    pub(super) fn failures(&self) -> Failures {
        Failures {
            all: self.all.failures,
            by_uid: self.by_uid.iter().map(|(uid, tally)| (*uid, tally.failures)).collect(),
        }
    }

    /// Whether this user may try now.
    ///
    /// # Errors
    /// How long it has to wait.
    pub(super) fn check(&self, uid: u32, now: MonotonicInstant) -> Result<(), Duration> {
        let own = self.by_uid.get(&uid).map_or(Duration::ZERO, |tally| tally.closed_until);
        match own.max(self.all.closed_until).saturating_sub(now.total()) {
            Duration::ZERO => Ok(()),
            wait => Err(wait),
        }
    }

    pub(super) fn failed(&mut self, uid: u32, now: MonotonicInstant) {
        if self.by_uid.len() >= MOST_USERS && !self.by_uid.contains_key(&uid) {
            self.all.failed(FREE_FOR_ONE, now);
            return;
        }
        let own = self.by_uid.entry(uid).or_default();
        own.failed(FREE_FOR_ONE, now);
        if own.failures <= COUNTED_FOR_ALL {
            self.all.failed(FREE_FOR_ALL, now);
        }
    }

    /// The right PIN: what this user did wrong before is forgiven, also in the common count.
    pub(super) fn succeeded(&mut self, uid: u32) {
        let own = self.by_uid.remove(&uid).unwrap_or_default();
        self.all = Tally {
            failures: self.all.failures.saturating_sub(own.failures.clamp(1, COUNTED_FOR_ALL)),
            closed_until: Duration::ZERO,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> MonotonicInstant {
        MonotonicInstant::BOOT.after(Duration::from_secs(seconds))
    }

    #[test]
    fn the_wait_doubles_up_to_minutes() {
        let waits: Vec<u64> = (0..14).map(|failures| wait(failures, FREE_FOR_ONE).as_secs()).collect();
        assert_eq!(waits, [0, 0, 0, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300]);
        assert_eq!(wait(u32::MAX, FREE_FOR_ONE), LONGEST_WAIT);
    }

    #[test]
    fn a_user_who_fails_waits_and_the_others_do_not() {
        let mut throttle = Throttle::default();
        for _ in 0..FREE_FOR_ONE {
            assert_eq!(throttle.check(1000, at(10)), Ok(()));
            throttle.failed(1000, at(10));
        }
        assert_eq!(throttle.check(1000, at(10)), Err(FIRST_WAIT));
        assert_eq!(throttle.check(1000, at(12)), Ok(()));
        assert_eq!(throttle.check(1001, at(10)), Ok(()));
    }

    #[test]
    fn many_users_together_wait_too() {
        let mut throttle = Throttle::default();
        for uid in 0..FREE_FOR_ALL {
            throttle.failed(uid, at(10));
        }
        assert_eq!(throttle.check(9999, at(10)), Err(FIRST_WAIT));
    }

    // S11.3b: what a child does on its login is no way to keep a parent with another one out.
    #[test]
    fn one_who_fails_for_ever_holds_up_nobody_else() {
        let mut throttle = Throttle::default();
        for attempt in 0..10_000 {
            throttle.failed(1000, at(attempt * 300));
        }
        let now = at(10_000 * 300 - 300);
        assert_eq!(throttle.check(1000, now), Err(LONGEST_WAIT));
        assert_eq!(throttle.check(1001, now), Ok(()));
        throttle.succeeded(1001);
        throttle.succeeded(1000);
        assert_eq!(throttle.failures(), Failures::default());
    }

    #[test]
    fn a_restart_begins_the_wait_again() {
        let mut throttle = Throttle::default();
        for _ in 0..8 {
            throttle.failed(1000, at(10));
        }
        // After a reboot the clock starts again, too.
        let restored = Throttle::restored(&throttle.failures(), at(1));
        assert_eq!(restored.check(1000, at(1)), Err(Duration::from_secs(64)));
        assert_eq!(restored.failures(), throttle.failures());
    }

    #[test]
    fn the_right_pin_forgives_its_user_and_not_the_others() {
        let mut throttle = Throttle::default();
        for uid in [1000, 1000, 1001] {
            throttle.failed(uid, at(10));
        }
        throttle.succeeded(1000);
        assert_eq!(throttle.failures(), Failures { all: 1, by_uid: [(1001, 1)].into() });
    }

    #[test]
    fn users_without_number_take_no_memory_and_are_slowed_down() {
        let mut throttle = Throttle::default();
        for uid in 0..10_000 {
            throttle.failed(uid, at(10));
        }
        assert_eq!(throttle.failures().by_uid.len(), MOST_USERS);
        assert_eq!(throttle.check(1_000_000, at(10)), Err(LONGEST_WAIT));
    }
}
