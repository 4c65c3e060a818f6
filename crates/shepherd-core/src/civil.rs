//! Conversion between instants and the wall clock.
//!
//! A window is open while the wall clock shows a time inside it. Between two jumps of the offset, civil time runs as
//! fast as real time; at each jump the state is evaluated again. A window inside the hour that is skipped in spring
//! doesn't open that day; one inside the hour that comes twice in autumn opens twice.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::policy::Day;

/// Seconds of civil time since midnight of 1 January 1970: the reading of a wall clock, as a number.
pub(crate) type CivilSecond = i64;

pub(crate) const SECONDS_PER_DAY: i64 = 24 * 60 * 60;

/// A moment as the wall clock shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LocalTime {
    pub(crate) second: i64,
    /// The wall clock's reading minus the instant.
    pub(crate) offset: i64,
}

impl LocalTime {
    pub(crate) fn at(zone: &TimeZone, at: Timestamp) -> Self {
        Self { second: at.as_second(), offset: i64::from(zone.to_offset(at).seconds()) }
    }

    pub(crate) fn civil(self) -> CivilSecond {
        self.second + self.offset
    }

    pub(crate) fn day(self) -> Day {
        day_of(self.civil())
    }
}

pub(crate) fn day_of(civil: CivilSecond) -> Day {
    // Timestamps span a few million days, so the number always fits.
    Day(i32::try_from(civil.div_euclid(SECONDS_PER_DAY)).unwrap_or(i32::MAX))
}

/// Returns the midnight at which a day begins, on the wall clock.
pub(crate) fn start_of_day(day: Day) -> CivilSecond {
    i64::from(day.0) * SECONDS_PER_DAY
}

/// The wall clock of a time zone. It caches the period from one moment to the next jump, where nearly all questions about
/// that moment lie.
#[derive(Clone, Copy)]
pub(crate) struct ZoneClock<'a> {
    pub(crate) zone: &'a TimeZone,
    from: LocalTime,
    next_transition: Option<i64>,
}

impl<'a> ZoneClock<'a> {
    pub(crate) fn cached_from(zone: &'a TimeZone, at: Timestamp) -> Self {
        let from = LocalTime::at(zone, at);
        Self { zone, from, next_transition: find_transition_after(zone, from.second) }
    }

    fn is_cached(&self, second: i64) -> bool {
        self.from.second <= second && self.next_transition.is_none_or(|jump| second < jump)
    }

    /// Returns the reading at an instant.
    pub(crate) fn local(&self, at: Timestamp) -> LocalTime {
        let second = at.as_second();
        if self.is_cached(second) {
            LocalTime { second, offset: self.from.offset }
        } else {
            LocalTime::at(self.zone, at)
        }
    }

    /// Returns the instant of the next jump.
    pub(crate) fn next_transition_after(&self, after: i64) -> Option<i64> {
        if self.is_cached(after) { self.next_transition } else { find_transition_after(self.zone, after) }
    }

    /// Returns the first instant at or after `at` at which the clock shows this or a later time.
    pub(crate) fn first_instant_showing(&self, at: Timestamp, civil: CivilSecond) -> Option<Timestamp> {
        let mut local = self.local(at);
        // Without a jump this takes one round, with a jump two; no zone has many jumps within days.
        for _ in 0..8 {
            if local.civil() >= civil {
                return timestamp(local.second);
            }
            let then = local.second + (civil - local.civil());
            match self.next_transition_after(local.second).filter(|jump| *jump <= then) {
                None => return timestamp(then),
                Some(jump) => local = self.local(timestamp(jump)?),
            }
        }
        None
    }

    /// Returns the first instant at or after `at` at which the clock shows a later day than `day`.
    pub(crate) fn end_of_day(&self, at: Timestamp, day: Day) -> Option<Timestamp> {
        self.first_instant_showing(at, start_of_day(day.plus_days(1)))
    }
}

fn find_transition_after(zone: &TimeZone, after: i64) -> Option<i64> {
    let after = Timestamp::from_second(after).ok()?;
    zone.following(after).next().map(|transition| transition.timestamp().as_second())
}

/// Returns whole seconds as a timestamp; `None` beyond the calendar.
pub(crate) fn timestamp(second: i64) -> Option<Timestamp> {
    Timestamp::from_second(second).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(zone: &str, at: &str, end: &str) {
        let zone = TimeZone::get(zone).unwrap();
        let at: Timestamp = at.parse().unwrap();
        let day = LocalTime::at(&zone, at).day();
        assert_eq!(ZoneClock::cached_from(&zone, at).end_of_day(at, day).unwrap().to_string(), end);
    }

    #[test]
    fn a_day_ends_at_midnight_also_when_it_is_short_long_or_missing() {
        // S4.3.
        check("Europe/Berlin", "2026-03-28T12:00:00Z", "2026-03-28T23:00:00Z");
        check("Europe/Berlin", "2026-03-28T23:30:00Z", "2026-03-29T22:00:00Z");
        check("Europe/Berlin", "2026-10-24T22:30:00Z", "2026-10-25T23:00:00Z");
        // Midnight itself was skipped: the day begins at one.
        check("America/Sao_Paulo", "2017-10-14T12:00:00Z", "2017-10-15T03:00:00Z");
        // At midnight the clocks went back to 23:00: the day ends at the second midnight.
        check("America/Sao_Paulo", "2018-02-17T12:00:00Z", "2018-02-18T03:00:00Z");
        // 30 December 2011 was skipped.
        check("Pacific/Apia", "2011-12-29T12:00:00Z", "2011-12-30T10:00:00Z");
        check("Asia/Kathmandu", "2026-11-15T12:00:00Z", "2026-11-15T18:15:00Z");
    }

    #[test]
    fn the_clock_is_right_on_both_sides_of_the_cached_period() {
        // S4.3: the clocks of Berlin go forward on 29 March and back on 25 October 2026, both at 01:00 UTC.
        let zone = TimeZone::get("Europe/Berlin").unwrap();
        let clock = ZoneClock::cached_from(&zone, "2026-06-01T12:00:00Z".parse().unwrap());
        for (at, offset_hours) in [
            ("2026-03-29T00:59:59Z", 1),
            ("2026-03-29T01:00:00Z", 2),
            ("2026-06-01T12:00:00Z", 2),
            ("2026-10-25T00:59:59Z", 2),
            ("2026-10-25T01:00:00Z", 1),
        ] {
            assert_eq!(clock.local(at.parse().unwrap()).offset, offset_hours * 3600, "{at}");
        }
    }
}
