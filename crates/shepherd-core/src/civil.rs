//! Between instants and the clock on the wall.
//!
//! A window is open while the clock on the wall shows a time inside it. So within a stretch of constant offset civil
//! time runs as fast as real time, and at the jumps in between one looks again. A window inside the hour that is
//! skipped in spring does not open that day; one inside the hour that comes twice in autumn opens twice.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::policy::Day;

/// Seconds of civil time since midnight of 1 January 1970: what a clock on the wall shows, as a number.
pub(crate) type CivilSecond = i64;

pub(crate) const DAY: i64 = 24 * 60 * 60;

/// A moment as the clock on the wall shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Local {
    /// Whole seconds of the instant.
    pub(crate) second: i64,
    /// What the wall shows minus the instant.
    pub(crate) offset: i64,
}

impl Local {
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
    Day(i32::try_from(civil.div_euclid(DAY)).unwrap_or(if civil < 0 { i32::MIN } else { i32::MAX }))
}

/// The midnight at which a day begins, on the wall.
pub(crate) fn start_of(day: Day) -> CivilSecond {
    i64::from(day.0) * DAY
}

/// The instant at which the offset changes next.
pub(crate) fn next_jump(zone: &TimeZone, after: i64) -> Option<i64> {
    let after = Timestamp::from_second(after).ok()?;
    zone.following(after).next().map(|transition| transition.timestamp().as_second())
}

/// Whole seconds as a timestamp; beyond the calendar there is none.
pub(crate) fn timestamp(second: i64) -> Option<Timestamp> {
    Timestamp::from_second(second).ok()
}

/// The first instant at or after `at` when the wall shows a day later than `day`.
pub(crate) fn end_of_day(zone: &TimeZone, at: Timestamp, day: Day) -> Option<Timestamp> {
    let mut local = Local::at(zone, at);
    // A day without a jump needs one round, one with a jump two; the calendar has no day with many.
    for _ in 0..8 {
        if local.day() > day {
            return timestamp(local.second);
        }
        let midnight = local.second + (start_of(day.plus(1)) - local.civil());
        match next_jump(zone, local.second).filter(|jump| *jump <= midnight) {
            None => return timestamp(midnight),
            Some(jump) => local = Local::at(zone, timestamp(jump)?),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(zone: &str, at: &str, end: &str) {
        let zone = TimeZone::get(zone).unwrap();
        let at: Timestamp = at.parse().unwrap();
        let day = Local::at(&zone, at).day();
        assert_eq!(end_of_day(&zone, at, day).unwrap().to_string(), end);
    }

    #[test]
    fn a_day_ends_at_midnight_also_when_it_is_short_long_or_missing() {
        check("Europe/Berlin", "2026-03-28T12:00:00Z", "2026-03-28T23:00:00Z");
        check("Europe/Berlin", "2026-03-28T23:30:00Z", "2026-03-29T22:00:00Z");
        check("Europe/Berlin", "2026-10-24T22:30:00Z", "2026-10-25T23:00:00Z");
        // Midnight itself was skipped: the day begins at one.
        check("America/Sao_Paulo", "2017-10-14T12:00:00Z", "2017-10-15T03:00:00Z");
        // 30 December 2011 did not take place.
        check("Pacific/Apia", "2011-12-29T12:00:00Z", "2011-12-30T10:00:00Z");
        check("Asia/Kathmandu", "2026-11-15T12:00:00Z", "2026-11-15T18:15:00Z");
    }
}
