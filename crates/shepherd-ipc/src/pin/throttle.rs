//! Waiting times after wrong PINs. Pure: the time is an argument.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use shepherd_util::MonotonicInstant;

/// The number of failures of one user without a waiting time, for typing errors.
const FREE_FAILURES_PER_USER: u32 = 3;

/// The number of failures of all users together without a waiting time. The number is larger than for one user, so that
/// a user who keeps failing is slowed down long before the others.
const FREE_FAILURES_TOTAL: u32 = 30;

/// The number of failures of one user that count towards the total. That user already has to wait, and without this
/// limit one user could lock out all others.
const MAX_COUNTED_PER_USER: u32 = 5;

/// The first waiting time; each further failure doubles it.
const MIN_WAIT: Duration = Duration::from_secs(2);

/// The longest waiting time. Trying all PINs of four digits takes five weeks at this pace, and a parent at a machine
/// on which a child has been guessing waits no longer than this.
const MAX_WAIT: Duration = Duration::from_secs(5 * 60);

/// The number of users that are counted separately. Further users, which only an account manager can create, share one
/// count.
const MAX_TRACKED_USERS: usize = 256;

/// The counts that survive a restart.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PinFailures {
    pub(super) all: u32,
    pub(super) by_uid: BTreeMap<u32, u32>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct PinThrottle {
    all: FailureCount,
    by_uid: BTreeMap<u32, FailureCount>,
}

#[derive(Clone, Copy, Debug, Default)]
struct FailureCount {
    failures: u32,
    /// The time since boot, including suspend: no user can set that clock.
    blocked_until: Duration,
}

impl FailureCount {
    fn add_failure(&mut self, free: u32, now: MonotonicInstant) {
        *self = Self::with_failures(self.failures.saturating_add(1), free, now);
    }

    fn with_failures(failures: u32, free: u32, now: MonotonicInstant) -> Self {
        let closed_until = now.total().saturating_add(wait_after(failures, free));
        Self { failures, blocked_until: closed_until }
    }
}

/// Returns the waiting time after this many failures.
fn wait_after(failures: u32, free: u32) -> Duration {
    match failures.checked_sub(free) {
        None => Duration::ZERO,
        Some(beyond) => MIN_WAIT.saturating_mul(1 << beyond.min(16)).min(MAX_WAIT),
    }
}

impl PinThrottle {
    /// Restores the counts after a restart, with every waiting time in full.
    pub(super) fn restore(failures: &PinFailures, now: MonotonicInstant) -> Self {
        let one = |(uid, failures): (&u32, &u32)| {
            (*uid, FailureCount::with_failures(*failures, FREE_FAILURES_PER_USER, now))
        };
        Self {
            all: FailureCount::with_failures(failures.all, FREE_FAILURES_TOTAL, now),
            by_uid: failures.by_uid.iter().take(MAX_TRACKED_USERS).map(one).collect(),
        }
    }

    pub(super) fn failures(&self) -> PinFailures {
        PinFailures {
            all: self.all.failures,
            by_uid: self.by_uid.iter().map(|(uid, tally)| (*uid, tally.failures)).collect(),
        }
    }

    /// Checks whether this user may try now.
    ///
    /// # Errors
    /// The time that the user has to wait.
    pub(super) fn check(&self, uid: u32, now: MonotonicInstant) -> Result<(), Duration> {
        let own = self.by_uid.get(&uid).map_or(Duration::ZERO, |tally| tally.blocked_until);
        match own.max(self.all.blocked_until).saturating_sub(now.total()) {
            Duration::ZERO => Ok(()),
            wait => Err(wait),
        }
    }

    pub(super) fn record_failure(&mut self, uid: u32, now: MonotonicInstant) {
        if self.by_uid.len() >= MAX_TRACKED_USERS && !self.by_uid.contains_key(&uid) {
            self.all.add_failure(FREE_FAILURES_PER_USER, now);
            return;
        }
        let own = self.by_uid.entry(uid).or_default();
        own.add_failure(FREE_FAILURES_PER_USER, now);
        if own.failures <= MAX_COUNTED_PER_USER {
            self.all.add_failure(FREE_FAILURES_TOTAL, now);
        }
    }

    /// Records a correct PIN, which resets this user's failures, also in the total.
    pub(super) fn record_success(&mut self, uid: u32) {
        let own = self.by_uid.remove(&uid).unwrap_or_default();
        self.all = FailureCount {
            failures: self.all.failures.saturating_sub(own.failures.clamp(1, MAX_COUNTED_PER_USER)),
            blocked_until: Duration::ZERO,
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
        let waits: Vec<u64> =
            (0..14).map(|failures| wait_after(failures, FREE_FAILURES_PER_USER).as_secs()).collect();
        assert_eq!(waits, [0, 0, 0, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300]);
        assert_eq!(wait_after(u32::MAX, FREE_FAILURES_PER_USER), MAX_WAIT);
    }

    #[test]
    fn a_user_who_fails_waits_and_the_others_do_not() {
        let mut throttle = PinThrottle::default();
        for _ in 0..FREE_FAILURES_PER_USER {
            assert_eq!(throttle.check(1000, at(10)), Ok(()));
            throttle.record_failure(1000, at(10));
        }
        assert_eq!(throttle.check(1000, at(10)), Err(MIN_WAIT));
        assert_eq!(throttle.check(1000, at(12)), Ok(()));
        assert_eq!(throttle.check(1001, at(10)), Ok(()));
    }

    #[test]
    fn many_users_together_wait_too() {
        let mut throttle = PinThrottle::default();
        for uid in 0..FREE_FAILURES_TOTAL {
            throttle.record_failure(uid, at(10));
        }
        assert_eq!(throttle.check(9999, at(10)), Err(MIN_WAIT));
    }

    // S11.3b: what a child does on its login is no way to keep a parent with another one out.
    #[test]
    fn a_user_who_keeps_failing_does_not_block_other_users() {
        let mut throttle = PinThrottle::default();
        for attempt in 0..10_000 {
            throttle.record_failure(1000, at(attempt * 300));
        }
        let now = at(10_000 * 300 - 300);
        assert_eq!(throttle.check(1000, now), Err(MAX_WAIT));
        assert_eq!(throttle.check(1001, now), Ok(()));
        throttle.record_success(1001);
        throttle.record_success(1000);
        assert_eq!(throttle.failures(), PinFailures::default());
    }

    #[test]
    fn a_restart_begins_the_wait_again() {
        let mut throttle = PinThrottle::default();
        for _ in 0..8 {
            throttle.record_failure(1000, at(10));
        }
        // After a reboot the clock starts again, too.
        let restored = PinThrottle::restore(&throttle.failures(), at(1));
        assert_eq!(restored.check(1000, at(1)), Err(Duration::from_secs(64)));
        assert_eq!(restored.failures(), throttle.failures());
    }

    #[test]
    fn the_right_pin_forgives_its_user_and_not_the_others() {
        let mut throttle = PinThrottle::default();
        for uid in [1000, 1000, 1001] {
            throttle.record_failure(uid, at(10));
        }
        throttle.record_success(1000);
        assert_eq!(throttle.failures(), PinFailures { all: 1, by_uid: [(1001, 1)].into() });
    }

    #[test]
    fn tracked_users_are_bounded_and_further_users_share_a_wait() {
        let mut throttle = PinThrottle::default();
        for uid in 0..10_000 {
            throttle.record_failure(uid, at(10));
        }
        assert_eq!(throttle.failures().by_uid.len(), MAX_TRACKED_USERS);
        assert_eq!(throttle.check(1_000_000, at(10)), Err(MAX_WAIT));
    }
}
