//! How long something stays open, looked at minute by minute as time goes on, by the clock that nobody can set.

use std::time::Duration;

use jiff::Timestamp;
use shepherd_util::{MonotonicInstant, Now};

use super::book::Terms;

#[derive(Clone)]
pub(super) struct Span {
    pub(super) terms: Terms,
    /// The time that counted when it was begun, on both clocks.
    pub(super) time: Timestamp,
    made: MonotonicInstant,
    /// Open for certain, or looked at, up to here …
    seen_to: Timestamp,
    /// … and found closed from here on.
    closed_from: Option<Timestamp>,
}

impl Span {
    /// Open until then whatever the terms say.
    pub(super) fn open_until(until: Timestamp, terms: &Terms, time: Timestamp, now: Now) -> Self {
        Self { terms: terms.clone(), time, made: now.mono, seen_to: until, closed_from: None }
    }

    /// Looks on up to now. Windows open and close on whole minutes.
    pub(super) fn look(&mut self, now: Now, is_open: impl Fn(&Terms, Timestamp) -> bool) {
        let time = self.time + now.mono.total_since(self.made);
        while self.closed_from.is_none() && self.seen_to <= time {
            if is_open(&self.terms, self.seen_to) {
                self.seen_to = Timestamp::from_second((self.seen_to.as_second() / 60 + 1) * 60).unwrap();
            } else {
                self.closed_from = Some(self.seen_to);
            }
        }
    }

    /// How long the machine had been up when it closed, if it has.
    pub(super) fn closed(&self) -> Option<Duration> {
        let open = self.closed_from?.duration_since(self.time);
        Some(self.made.total() + Duration::try_from(open).unwrap())
    }
}
