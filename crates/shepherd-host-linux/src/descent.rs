//! The way from the first request to the last kill, without a clock.

use std::time::Duration;

use ward_process::{Climb, Ladder, Move};

/// Which requests have been made of a tree, and when the kill comes. Told how much time has passed since the order,
/// it says what to do. Each request gets half of what is left of the grace, the last one all of it.
#[derive(Debug)]
pub(crate) struct Descent {
    requests: usize,
    made: usize,
    /// When the next thing happens.
    until: Duration,
    grace: Duration,
    strikes: Option<Strikes>,
}

/// The kill, again and again.
#[derive(Debug)]
struct Strikes {
    since: Duration,
    climb: Climb,
}

/// What to do now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Make the request of this index.
    Ask(usize),
    /// Kill every member.
    Kill,
    /// Nothing until this long after the order.
    WaitUntil(Duration),
    /// What was killed long ago is still there: say so, and go on.
    Survives,
}

impl Descent {
    pub(crate) fn new(requests: usize, grace: Duration) -> Self {
        Self { requests, made: 0, until: Duration::ZERO, grace, strikes: None }
    }

    /// What to do, `elapsed` after the order. Call again after doing it, or when the time is there.
    pub(crate) fn next(&mut self, elapsed: Duration) -> Step {
        let out_of_requests = self.made == self.requests && elapsed >= self.until;
        if self.strikes.is_none() && (elapsed >= self.grace || out_of_requests) {
            self.strikes = Some(Strikes::new(elapsed));
        }
        if let Some(strikes) = &mut self.strikes {
            return strikes.next(elapsed);
        }
        if elapsed < self.until {
            return Step::WaitUntil(self.until);
        }
        let request = self.made;
        self.made += 1;
        let left = self.grace.saturating_sub(elapsed);
        let share = if self.made == self.requests { left } else { left / 2 };
        self.until = elapsed.saturating_add(share);
        Step::Ask(request)
    }

    /// A request could not be made: the next one comes now.
    pub(crate) fn skip(&mut self, request: usize) {
        if self.made == request + 1 {
            self.until = Duration::ZERO;
        }
    }

    /// The grace ends so long after the first order, unless it ends earlier already.
    pub(crate) fn tighten(&mut self, grace: Duration) {
        self.grace = self.grace.min(grace);
        self.until = self.until.min(self.grace);
    }
}

impl Strikes {
    fn new(since: Duration) -> Self {
        Self { since, climb: Climb::new(Ladder::force()) }
    }

    fn next(&mut self, elapsed: Duration) -> Step {
        match self.climb.next(elapsed.saturating_sub(self.since)) {
            Move::Kill | Move::Take(_) => Step::Kill,
            Move::WaitUntil(until) => Step::WaitUntil(self.since.saturating_add(until)),
            Move::GiveUp => {
                *self = Self::new(elapsed);
                Step::Survives
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
        let mut descent = Descent::new(3, ms(800));
        assert_eq!(descent.next(ms(0)), Step::Ask(0));
        assert_eq!(descent.next(ms(1)), Step::WaitUntil(ms(400)));
        assert_eq!(descent.next(ms(400)), Step::Ask(1));
        assert_eq!(descent.next(ms(400)), Step::WaitUntil(ms(600)));
        assert_eq!(descent.next(ms(600)), Step::Ask(2));
        assert_eq!(descent.next(ms(601)), Step::WaitUntil(ms(800)));
        assert_eq!(descent.next(ms(800)), Step::Kill);
        assert_eq!(descent.next(ms(800)), Step::WaitUntil(ms(802)));
    }

    #[test]
    fn without_grace_or_without_requests_the_kill_comes_at_once() {
        assert_eq!(Descent::new(2, Duration::ZERO).next(ms(0)), Step::Kill);
        assert_eq!(Descent::new(0, ms(100)).next(ms(0)), Step::Kill);
    }

    #[test]
    fn a_request_that_can_not_be_made_costs_no_time() {
        let mut descent = Descent::new(2, ms(800));
        assert_eq!(descent.next(ms(0)), Step::Ask(0));
        descent.skip(0);
        assert_eq!(descent.next(ms(3)), Step::Ask(1));
        // Too late: it is not the one that is waited for.
        descent.skip(0);
        assert_eq!(descent.next(ms(4)), Step::WaitUntil(ms(800)));
        descent.skip(1);
        assert_eq!(descent.next(ms(5)), Step::Kill);
    }

    #[test]
    fn a_second_order_can_only_be_stricter() {
        let mut descent = Descent::new(1, ms(800));
        assert_eq!(descent.next(ms(0)), Step::Ask(0));
        descent.tighten(ms(2_000));
        assert_eq!(descent.next(ms(1)), Step::WaitUntil(ms(800)));
        descent.tighten(ms(300));
        assert_eq!(descent.next(ms(2)), Step::WaitUntil(ms(300)));
        descent.tighten(ms(0));
        assert_eq!(descent.next(ms(3)), Step::Kill);
    }

    #[test]
    fn what_outlives_its_kill_is_struck_for_ever_and_reported() {
        let mut descent = Descent::new(0, Duration::ZERO);
        let (mut strikes, mut reports, mut now) = (0, 0, Duration::ZERO);
        while now < Duration::from_secs(35) {
            match descent.next(now) {
                Step::Kill => strikes += 1,
                Step::Survives => reports += 1,
                Step::WaitUntil(until) => now = until,
                Step::Ask(_) => unreachable!("there is no request"),
            }
        }
        assert_eq!(reports, 3);
        assert!(strikes > 300, "{strikes}");
    }

    #[test]
    fn patience_without_end_does_not_overflow() {
        let mut descent = Descent::new(1, Duration::MAX);
        assert_eq!(descent.next(ms(5)), Step::Ask(0));
        assert_eq!(descent.next(ms(6)), Step::WaitUntil(Duration::MAX));
    }
}
