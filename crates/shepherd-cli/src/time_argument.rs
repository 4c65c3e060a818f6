//! Moments as people write them: `18:30`, `sat 10:00`, `tomorrow 9:00`, or in full.

use std::str::FromStr;

use jiff::civil::{DateTime, Time, Weekday};
use jiff::{Timestamp, ToSpan, Zoned};

use crate::context::DisplaySettings;

/// A moment as it was written; when that is depends on now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimeArgument {
    Now,
    /// The next time that clocks show this.
    Clock(Time),
    /// The same on such a day.
    Weekday(Weekday, Time),
    /// So many days from today.
    DaysFromToday(i8, Time),
    Civil(DateTime),
    Exact(Timestamp),
}

/// Why a text is no moment.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no time; write it like `18:30`, `sat 10:00`, `tomorrow 9:00` or `2026-12-24 10:00`")]
pub(crate) struct TimeArgumentError(String);

impl FromStr for TimeArgument {
    type Err = TimeArgumentError;

    fn from_str(text: &str) -> Result<Self, TimeArgumentError> {
        parse(text.trim()).ok_or_else(|| TimeArgumentError(text.to_owned()))
    }
}

fn parse(text: &str) -> Option<TimeArgument> {
    if text.eq_ignore_ascii_case("now") {
        return Some(TimeArgument::Now);
    }
    if let Some(time) = time_of_day(text) {
        return Some(TimeArgument::Clock(time));
    }
    if let Ok(timestamp) = text.parse::<Timestamp>() {
        return Some(TimeArgument::Exact(timestamp));
    }
    let (day, time) = text.split_once([' ', 'T'])?;
    let time = time_of_day(time.trim())?;
    match day.to_ascii_lowercase().as_str() {
        "today" => Some(TimeArgument::DaysFromToday(0, time)),
        "tomorrow" => Some(TimeArgument::DaysFromToday(1, time)),
        "yesterday" => Some(TimeArgument::DaysFromToday(-1, time)),
        day => match weekday(day) {
            Some(weekday) => Some(TimeArgument::Weekday(weekday, time)),
            None => Some(TimeArgument::Civil(day.parse::<jiff::civil::Date>().ok()?.to_datetime(time))),
        },
    }
}

fn time_of_day(text: &str) -> Option<Time> {
    let (hour, minute) = text.split_once(':')?;
    let digits = |part: &str, most: usize| {
        (1..=most).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit())
    };
    if !digits(hour, 2) || !digits(minute, 2) || minute.len() != 2 {
        return None;
    }
    Time::new(hour.parse().ok()?, minute.parse().ok()?, 0, 0).ok()
}

fn weekday(name: &str) -> Option<Weekday> {
    const NAMES: [(&str, Weekday); 7] = [
        ("monday", Weekday::Monday),
        ("tuesday", Weekday::Tuesday),
        ("wednesday", Weekday::Wednesday),
        ("thursday", Weekday::Thursday),
        ("friday", Weekday::Friday),
        ("saturday", Weekday::Saturday),
        ("sunday", Weekday::Sunday),
    ];
    let found = NAMES.iter().find(|(full, _)| *full == name || full.get(..3) == Some(name));
    found.map(|(_, weekday)| *weekday)
}

impl TimeArgument {
    /// When that is. `None` only at the ends of the calendar.
    pub(crate) fn resolve(self, look: &DisplaySettings) -> Option<Timestamp> {
        let now = look.now.to_zoned(look.zone.clone());
        let at = |days: i64, time: Time| -> Option<Zoned> {
            let date = now.date().checked_add(days.days()).ok()?;
            date.to_datetime(time).to_zoned(look.zone.clone()).ok()
        };
        let zoned = match self {
            Self::Now => return Some(look.now),
            Self::Exact(timestamp) => return Some(timestamp),
            Self::Civil(civil) => civil.to_zoned(look.zone.clone()).ok(),
            Self::DaysFromToday(days, time) => at(i64::from(days), time),
            Self::Clock(time) => (0..=1).filter_map(|days| at(days, time)).find(|then| *then >= now),
            Self::Weekday(weekday, time) => {
                let mut days = (0..=7).filter_map(|days| at(days, time));
                days.find(|then| then.weekday() == weekday && *then >= now)
            }
        };
        zoned.map(|zoned| zoned.timestamp())
    }
}

#[cfg(test)]
mod tests {
    use jiff::tz::TimeZone;

    use super::*;

    /// A Monday, 12:00 in Berlin.
    fn look() -> DisplaySettings {
        let zone = TimeZone::get("Europe/Berlin").unwrap();
        DisplaySettings { now: "2026-11-16T11:00:00Z".parse().unwrap(), zone, width: 80 }
    }

    fn check(text: &str, expected: &str) {
        let moment: TimeArgument = text.parse().unwrap();
        assert_eq!(moment.resolve(&look()).unwrap().to_string(), expected, "{text}");
    }

    #[test]
    fn times_are_the_next_of_their_kind() {
        check("now", "2026-11-16T11:00:00Z");
        check("18:30", "2026-11-16T17:30:00Z");
        check("12:00", "2026-11-16T11:00:00Z");
        check("9:00", "2026-11-17T08:00:00Z");
        check("sat 10:00", "2026-11-21T09:00:00Z");
        check("Mon 13:00", "2026-11-16T12:00:00Z");
        check("monday 11:00", "2026-11-23T10:00:00Z");
    }

    #[test]
    fn days_and_dates_are_what_they_say() {
        check("today 9:00", "2026-11-16T08:00:00Z");
        check("tomorrow 9:00", "2026-11-17T08:00:00Z");
        check("yesterday 09:00", "2026-11-15T08:00:00Z");
        check("2026-07-01 10:00", "2026-07-01T08:00:00Z");
        check("2026-07-01T10:00", "2026-07-01T08:00:00Z");
        check("2026-12-24T10:00:00+01:00", "2026-12-24T09:00:00Z");
    }

    #[test]
    fn what_is_no_time_is_refused_with_what_would_be_one() {
        for text in ["", "25:00", "10:5", "10", "sat", "someday 10:00", "2026-13-01 10:00", "1o:00", "+1:00"]
        {
            let error = text.parse::<TimeArgument>().unwrap_err();
            assert!(error.to_string().contains("write it like `18:30`"), "{text}: {error}");
        }
    }
}
