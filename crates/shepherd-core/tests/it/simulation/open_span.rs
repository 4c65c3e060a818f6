//! How long something stays open, looked at minute by minute as time goes on, by the clock that nobody can set.

use std::time::Duration;

use jiff::Timestamp;
use shepherd_util::{ClockReading, MonotonicInstant};

use super::usage_model::PolicyTerms;

#[derive(Clone)]
pub(super) struct OpenSpan {
    pub(super) terms: PolicyTerms,
    /// The time that counted when it was begun, on both clocks.
    pub(super) time: Timestamp,
    started: MonotonicInstant,
    /// Open for certain, or looked at, up to here …
    seen_to: Timestamp,
    /// … and found closed from here on.
    closed_from: Option<Timestamp>,
}

impl OpenSpan {
    /// Open until then whatever the terms say.
    pub(super) fn open_until(
        until: Timestamp,
        terms: &PolicyTerms,
        time: Timestamp,
        now: ClockReading,
    ) -> Self {
        Self { terms: terms.clone(), time, started: now.mono, seen_to: until, closed_from: None }
    }

    /// Looks on up to now. Windows open and close on whole minutes.
    pub(super) fn advance_to(
        &mut self,
        now: ClockReading,
        is_open: impl Fn(&PolicyTerms, Timestamp) -> bool,
    ) {
        let time = self.time + now.mono.total_since(self.started);
        while self.closed_from.is_none() && self.seen_to <= time {
            if is_open(&self.terms, self.seen_to) {
                self.seen_to = Timestamp::from_second((self.seen_to.as_second() / 60 + 1) * 60).unwrap();
            } else {
                self.closed_from = Some(self.seen_to);
            }
        }
    }

    /// How long the machine had been up when it closed, if it has.
    pub(super) fn closed_at(&self) -> Option<Duration> {
        let open = self.closed_from?.duration_since(self.time);
        Some(self.started.total() + Duration::try_from(open).unwrap())
    }
}
