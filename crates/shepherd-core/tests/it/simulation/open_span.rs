//! How long an entry stays open, checked minute by minute on the monotonic clock.

use std::time::Duration;

use jiff::Timestamp;
use shepherd_util::{ClockReading, MonotonicInstant};

use super::usage_model::PolicyTerms;

#[derive(Clone)]
pub(super) struct OpenSpan {
    pub(super) terms: PolicyTerms,
    /// The trusted time at the start, and the monotonic time.
    pub(super) time: Timestamp,
    started: MonotonicInstant,
    /// The time up to which the entry is known to be open.
    seen_to: Timestamp,
    /// The time at which the entry was found closed.
    closed_from: Option<Timestamp>,
}

impl OpenSpan {
    /// Creates a span that is open until a time, whatever the terms say.
    pub(super) fn open_until(
        until: Timestamp,
        terms: &PolicyTerms,
        time: Timestamp,
        now: ClockReading,
    ) -> Self {
        Self { terms: terms.clone(), time, started: now.mono, seen_to: until, closed_from: None }
    }

    /// Checks the minutes up to now. Windows open and close on whole minutes.
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

    /// Returns the uptime at which the entry closed, if it has.
    pub(super) fn closed_at(&self) -> Option<Duration> {
        let open = self.closed_from?.duration_since(self.time);
        Some(self.started.total() + Duration::try_from(open).unwrap())
    }
}
