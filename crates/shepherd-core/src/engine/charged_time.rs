//! Time that is to be charged, and the part of it that a counter gets. A counter gets each second of a profile at most
//! once, whatever runs at the same time (S19.1).

use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use shepherd_util::SessionId;

use crate::civil::ZoneClock;
use crate::policy::Day;

/// The source of charged time: observed by the daemon or not. Time without a daemon, or while the machine was
/// suspended, is charged as usual but earns and unlocks nothing, because nobody can have played.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum PlayObserved {
    Yes,
    No,
}

/// The time of a session since it was last charged.
pub(super) struct UnchargedTime {
    pub(super) session_id: SessionId,
    pub(super) end: Timestamp,
    /// The time while the machine was suspended. It came first.
    pub(super) asleep: Duration,
    pub(super) awake: Duration,
    pub(super) observed: PlayObserved,
}

impl UnchargedTime {
    pub(super) fn length(&self) -> Duration {
        self.asleep.saturating_add(self.awake)
    }

    /// Returns the spans of this time, for a session that was last charged on a day.
    pub(super) fn spans(&self, first_day: Day) -> impl Iterator<Item = ChargedSpan> {
        let woke = self.end.saturating_sub(self.awake).unwrap_or(Timestamp::MIN);
        let span = |end, length, observed| ChargedSpan { end, length, first_day, observed };
        let spans = [span(woke, self.asleep, PlayObserved::No), span(self.end, self.awake, self.observed)];
        spans.into_iter().filter(|span| !span.length.is_zero())
    }
}

/// A span of time that a counter gets.
#[derive(Clone, Copy)]
pub(super) struct ChargedSpan {
    pub(super) end: Timestamp,
    pub(super) length: Duration,
    /// The first day that it can be charged to.
    pub(super) first_day: Day,
    pub(super) observed: PlayObserved,
}

impl ChargedSpan {
    fn start(&self) -> Timestamp {
        self.end.saturating_sub(self.length).unwrap_or(Timestamp::MIN)
    }

    /// Splits the span at every midnight, over the days up to `last`.
    pub(super) fn split_by_day(&self, zone: &TimeZone, last: Day) -> Vec<(Day, Duration)> {
        let first = self.first_day.min(last);
        let mut cursor = self.start();
        let wall = ZoneClock::cached_from(zone, cursor);
        let (mut left, mut parts) = (self.length, Vec::new());
        while !left.is_zero() {
            let day = wall.local(cursor).day().clamp(first, last);
            // The rest goes to the last day, even if the wall clock was set back.
            let midnight = wall.end_of_day(cursor, day).filter(|_| day < last);
            let part = midnight.map_or(left, |midnight| duration_between(midnight, cursor).min(left));
            parts.push((day, part));
            left -= part;
            cursor = midnight.unwrap_or(self.end);
        }
        parts
    }
}

/// Removes time that is in several spans from all but one of them.
pub(super) fn merge_spans(spans: &mut Vec<ChargedSpan>) {
    if spans.len() < 2 {
        return;
    }
    spans.sort_by_key(ChargedSpan::start);
    let mut covered_to = Timestamp::MIN;
    for span in spans.iter_mut() {
        let start = span.start().max(covered_to);
        span.length = duration_between(span.end, start);
        covered_to = covered_to.max(span.end);
    }
    spans.retain(|span| !span.length.is_zero());
}

/// Returns the time between two moments; zero if they are in the other order.
fn duration_between(later: Timestamp, earlier: Timestamp) -> Duration {
    Duration::try_from(later.duration_since(earlier)).unwrap_or_default()
}
