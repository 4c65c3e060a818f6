//! Times and durations on the command line, such as `18:30`, `sat 10:00`, `tomorrow 9:00` or a full date.

use std::str::FromStr;

use jiff::civil::{DateTime, Time, Weekday};
use jiff::{Timestamp, ToSpan, Zoned};
use shepherd_util::DurationText;

use crate::context::DisplaySettings;

/// A parsed time argument. Most forms depend on the current time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimeArgument {
    Now,
    /// The next time that the clock shows this time of day.
    Clock(Time),
    /// The next such time of day on this weekday.
    Weekday(Weekday, Time),
    /// A time of day, this number of days from today.
    DaysFromToday(i8, Time),
    Civil(DateTime),
    Exact(Timestamp),
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a time; write it like `18:30`, `sat 10:00`, `tomorrow 9:00` or `2026-12-24 10:00`")]
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
    /// Returns the timestamp, or `None` beyond the range of the calendar.
    pub(crate) fn resolve(self, display: &DisplaySettings) -> Option<Timestamp> {
        let now = display.now.to_zoned(display.zone.clone());
        let at = |days: i64, time: Time| -> Option<Zoned> {
            let date = now.date().checked_add(days.days()).ok()?;
            date.to_datetime(time).to_zoned(display.zone.clone()).ok()
        };
        let zoned = match self {
            Self::Now => return Some(display.now),
            Self::Exact(timestamp) => return Some(timestamp),
            Self::Civil(civil) => civil.to_zoned(display.zone.clone()).ok(),
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

/// Parses a duration that is longer than zero. An error says how to write it.
pub(crate) fn duration_argument(text: &str) -> Result<DurationText, String> {
    let parsed: Result<DurationText, shepherd_util::DurationError> = text.parse();
    match parsed {
        Ok(DurationText(duration)) if duration.is_zero() => {
            Err("the time must be longer than zero, such as 15m or 1h".to_owned())
        }
        parsed => parsed.map_err(|error| format!("{error}; {}", error.help())),
    }
}

#[cfg(test)]
mod tests {
    use jiff::tz::TimeZone;

    use super::*;

    /// Returns the display settings of a reader in Berlin, on a Monday at 12:00.
    fn display() -> DisplaySettings {
        let zone = TimeZone::get("Europe/Berlin").unwrap();
        DisplaySettings::new("2026-11-16T11:00:00Z".parse().unwrap(), zone, 80)
    }

    fn check(text: &str, expected: &str) {
        let argument: TimeArgument = text.parse().unwrap();
        assert_eq!(argument.resolve(&display()).unwrap().to_string(), expected, "{text}");
    }

    #[test]
    fn times_of_day_and_weekdays_resolve_to_the_next_one() {
        check("now", "2026-11-16T11:00:00Z");
        check("18:30", "2026-11-16T17:30:00Z");
        check("12:00", "2026-11-16T11:00:00Z");
        check("9:00", "2026-11-17T08:00:00Z");
        check("sat 10:00", "2026-11-21T09:00:00Z");
        check("Mon 13:00", "2026-11-16T12:00:00Z");
        check("monday 11:00", "2026-11-23T10:00:00Z");
    }

    #[test]
    fn days_and_dates_resolve_in_the_readers_zone() {
        check("today 9:00", "2026-11-16T08:00:00Z");
        check("tomorrow 9:00", "2026-11-17T08:00:00Z");
        check("yesterday 09:00", "2026-11-15T08:00:00Z");
        check("2026-07-01 10:00", "2026-07-01T08:00:00Z");
        check("2026-07-01T10:00", "2026-07-01T08:00:00Z");
        check("2026-12-24T10:00:00+01:00", "2026-12-24T09:00:00Z");
    }

    #[test]
    fn an_invalid_time_is_refused_with_valid_examples() {
        for text in ["", "25:00", "10:5", "10", "sat", "someday 10:00", "2026-13-01 10:00", "1o:00", "+1:00"]
        {
            let error = text.parse::<TimeArgument>().unwrap_err();
            assert!(error.to_string().contains("write it like `18:30`"), "{text}: {error}");
        }
    }

    #[test]
    fn a_duration_of_zero_is_refused() {
        assert_eq!(duration_argument("15m"), Ok(DurationText(std::time::Duration::from_mins(15))));
        let refused = Err("the time must be longer than zero, such as 15m or 1h".to_owned());
        assert_eq!(duration_argument("0m"), refused);
        assert_eq!(duration_argument("0s"), refused);
    }
}
