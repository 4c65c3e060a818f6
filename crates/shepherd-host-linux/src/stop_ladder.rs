//! The way from the first request to the last kill, without a clock.

use std::time::Duration;

use ward_process::{LadderProgress, LadderStep, StopLadder};

/// Which requests have been made of a tree, and when the kill comes. Told how much time has passed since the order,
/// it says what to do. Each request gets half of what is left of the grace, the last one all of it.
#[derive(Debug)]
pub(crate) struct SessionStopLadder {
    requests: usize,
    requests_made: usize,
    /// When the next thing happens.
    next_at: Duration,
    grace: Duration,
    kill_retry: Option<KillRetry>,
}

/// The kill, again and again.
#[derive(Debug)]
struct KillRetry {
    since: Duration,
    climb: LadderProgress,
}

/// What to do now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StopStep {
    /// Make the request of this index.
    Request(usize),
    /// Kill every member.
    Kill,
    /// Nothing until this long after the order.
    WaitUntil(Duration),
    /// What was killed long ago is still there: say so, and go on.
    StillAlive,
}

impl SessionStopLadder {
    pub(crate) fn new(requests: usize, grace: Duration) -> Self {
        Self { requests, requests_made: 0, next_at: Duration::ZERO, grace, kill_retry: None }
    }

    /// What to do, `elapsed` after the order. Call again after doing it, or when the time is there.
    pub(crate) fn next_step(&mut self, elapsed: Duration) -> StopStep {
        let out_of_requests = self.requests_made == self.requests && elapsed >= self.next_at;
        if self.kill_retry.is_none() && (elapsed >= self.grace || out_of_requests) {
            self.kill_retry = Some(KillRetry::new(elapsed));
        }
        if let Some(strikes) = &mut self.kill_retry {
            return strikes.next_step(elapsed);
        }
        if elapsed < self.next_at {
            return StopStep::WaitUntil(self.next_at);
        }
        let request = self.requests_made;
        self.requests_made += 1;
        let left = self.grace.saturating_sub(elapsed);
        let share = if self.requests_made == self.requests { left } else { left / 2 };
        self.next_at = elapsed.saturating_add(share);
        StopStep::Request(request)
    }

    /// A request could not be made: the next one comes now.
    pub(crate) fn skip_request(&mut self, request: usize) {
        if self.requests_made == request + 1 {
            self.next_at = Duration::ZERO;
        }
    }

    /// The grace ends so long after the first order, unless it ends earlier already.
    pub(crate) fn shorten_grace(&mut self, grace: Duration) {
        self.grace = self.grace.min(grace);
        self.next_at = self.next_at.min(self.grace);
    }
}

impl KillRetry {
    fn new(since: Duration) -> Self {
        Self { since, climb: LadderProgress::new(StopLadder::force()) }
    }

    fn next_step(&mut self, elapsed: Duration) -> StopStep {
        match self.climb.next_step(elapsed.saturating_sub(self.since)) {
            LadderStep::Kill | LadderStep::TryRung(_) => StopStep::Kill,
            LadderStep::WaitUntil(until) => StopStep::WaitUntil(self.since.saturating_add(until)),
            LadderStep::GiveUp => {
                *self = Self::new(elapsed);
                StopStep::StillAlive
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(count: u64) -> Duration {
        Duration::from_millis(count)
    }

    #[test]
    fn each_request_gets_half_of_what_is_left_and_the_last_one_all() {
        let mut descent = SessionStopLadder::new(3, ms(800));
        assert_eq!(descent.next_step(ms(0)), StopStep::Request(0));
        assert_eq!(descent.next_step(ms(1)), StopStep::WaitUntil(ms(400)));
        assert_eq!(descent.next_step(ms(400)), StopStep::Request(1));
        assert_eq!(descent.next_step(ms(400)), StopStep::WaitUntil(ms(600)));
        assert_eq!(descent.next_step(ms(600)), StopStep::Request(2));
        assert_eq!(descent.next_step(ms(601)), StopStep::WaitUntil(ms(800)));
        assert_eq!(descent.next_step(ms(800)), StopStep::Kill);
        assert_eq!(descent.next_step(ms(800)), StopStep::WaitUntil(ms(802)));
    }

    #[test]
    fn without_grace_or_without_requests_the_kill_comes_at_once() {
        assert_eq!(SessionStopLadder::new(2, Duration::ZERO).next_step(ms(0)), StopStep::Kill);
        assert_eq!(SessionStopLadder::new(0, ms(100)).next_step(ms(0)), StopStep::Kill);
    }

    #[test]
    fn a_request_that_can_not_be_made_costs_no_time() {
        let mut descent = SessionStopLadder::new(2, ms(800));
        assert_eq!(descent.next_step(ms(0)), StopStep::Request(0));
        descent.skip_request(0);
        assert_eq!(descent.next_step(ms(3)), StopStep::Request(1));
        // Too late: it is not the one that is waited for.
        descent.skip_request(0);
        assert_eq!(descent.next_step(ms(4)), StopStep::WaitUntil(ms(800)));
        descent.skip_request(1);
        assert_eq!(descent.next_step(ms(5)), StopStep::Kill);
    }

    #[test]
    fn a_second_order_can_only_be_stricter() {
        let mut descent = SessionStopLadder::new(1, ms(800));
        assert_eq!(descent.next_step(ms(0)), StopStep::Request(0));
        descent.shorten_grace(ms(2_000));
        assert_eq!(descent.next_step(ms(1)), StopStep::WaitUntil(ms(800)));
        descent.shorten_grace(ms(300));
        assert_eq!(descent.next_step(ms(2)), StopStep::WaitUntil(ms(300)));
        descent.shorten_grace(ms(0));
        assert_eq!(descent.next_step(ms(3)), StopStep::Kill);
    }

    #[test]
    fn a_process_that_survives_its_kill_is_killed_again_and_reported() {
        let mut descent = SessionStopLadder::new(0, Duration::ZERO);
        let (mut strikes, mut reports, mut now) = (0, 0, Duration::ZERO);
        while now < Duration::from_secs(35) {
            match descent.next_step(now) {
                StopStep::Kill => strikes += 1,
                StopStep::StillAlive => reports += 1,
                StopStep::WaitUntil(until) => now = until,
                StopStep::Request(_) => unreachable!("there is no request"),
            }
        }
        assert_eq!(reports, 3);
        assert!(strikes > 300, "{strikes}");
    }

    #[test]
    fn an_unlimited_grace_does_not_overflow() {
        let mut descent = SessionStopLadder::new(1, Duration::MAX);
        assert_eq!(descent.next_step(ms(5)), StopStep::Request(0));
        assert_eq!(descent.next_step(ms(6)), StopStep::WaitUntil(Duration::MAX));
    }
}
