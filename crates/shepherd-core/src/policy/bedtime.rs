//! Bedtime: the hours of each night in which everything of a profile is closed.

use std::collections::BTreeMap;

use super::{Day, MinuteOfDay, ModeName};

/// The bedtime of a profile. It closes every entry of the profile, whatever the hours of the entry are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BedtimePolicy {
    /// The nights in modes that have no nights of their own.
    pub nights: BedtimeNights,
    pub by_mode: BTreeMap<ModeName, BedtimeNights>,
}

/// The bedtimes of a week. The day *after* a night says which kind of night it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BedtimeNights {
    /// The nights before Monday to Friday; `None` is no bedtime.
    pub school_nights: Option<NightHours>,
    /// The nights before Saturday and Sunday.
    pub weekends: Option<NightHours>,
}

/// The hours of one night, in minutes after the midnight before its evening.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NightHours {
    start: u16,
    end: u16,
}

/// The reason why two times of day are no bedtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NightHoursError {
    #[error("it begins and ends at the same time")]
    Empty,
    #[error("it begins in the morning")]
    BeginsInTheMorning,
    #[error("it is longer than 16 hours")]
    TooLong,
}

const NOON: u16 = 12 * 60;
const MIDNIGHT: u16 = 24 * 60;

impl NightHours {
    /// The latest beginning after midnight.
    const LATEST_START: u16 = 6 * 60;

    /// The longest night in minutes. A longer one is a mistake, and every night ends before the next evening is over.
    const LONGEST: u16 = 16 * 60;

    /// Returns the night that begins and ends at these times of day. A start before 06:00 is after midnight, so that
    /// "00:30-07:00" on Friday begins on Saturday.
    ///
    /// # Errors
    /// Fails if the times are equal, the night begins between 06:00 and noon, or it is longer than 16 hours.
    pub fn new(start: MinuteOfDay, end: MinuteOfDay) -> Result<Self, NightHoursError> {
        let (start, end) = (start.minutes(), end.minutes() % MIDNIGHT);
        let start = match start {
            start if start >= NOON => start,
            start if start < Self::LATEST_START => start + MIDNIGHT,
            _ => return Err(NightHoursError::BeginsInTheMorning),
        };
        let length = (end + 2 * MIDNIGHT - start) % MIDNIGHT;
        match length {
            0 => Err(NightHoursError::Empty),
            length if length > Self::LONGEST => Err(NightHoursError::TooLong),
            length => Ok(Self { start, end: start + length }),
        }
    }

    /// Returns the times of day at which the night begins and ends.
    #[must_use]
    pub fn times_of_day(self) -> (MinuteOfDay, MinuteOfDay) {
        let time = |minutes: u16| {
            let minutes = minutes % MIDNIGHT;
            MinuteOfDay::new(minutes / 60, minutes % 60).unwrap_or(MinuteOfDay::END)
        };
        (time(self.start), time(self.end))
    }

    /// Returns beginning and end in minutes after the midnight before the evening: noon is 720, midnight 1440.
    pub(crate) fn span(self) -> (i64, i64) {
        (i64::from(self.start), i64::from(self.end))
    }
}

impl BedtimePolicy {
    /// Returns the hours of the night before a day of this kind, in a mode.
    pub(crate) fn night_before(&self, weekday: usize, mode: &str) -> Option<NightHours> {
        const SATURDAY: usize = 5;
        let nights = self.by_mode.get(mode).unwrap_or(&self.nights);
        if weekday < SATURDAY { nights.school_nights } else { nights.weekends }
    }

    /// Returns whether no night has a bedtime.
    pub(crate) fn is_never(&self) -> bool {
        let never = |nights: &BedtimeNights| nights.school_nights.is_none() && nights.weekends.is_none();
        never(&self.nights) && self.by_mode.values().all(never)
    }
}

impl super::Policy {
    /// Returns the weekday whose rules apply to a day for all entries: its own, or that of an exception such as "as on a
    /// Sunday".
    pub(crate) fn effective_weekday(&self, day: Day) -> usize {
        let on_day = |exception: &&super::DateException| {
            exception.from <= day && day <= exception.to && exception.entries.is_none()
        };
        let as_on = |exception: &super::DateException| match exception.rule {
            super::DayRule::AsOn(weekday) => Some(weekday),
            super::DayRule::Closed | super::DayRule::Open | super::DayRule::Windows(_) => None,
        };
        let exceptions = self.rules.exceptions.iter().rev().filter(on_day);
        exceptions.filter_map(as_on).next().unwrap_or_else(|| day.weekday())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(start: &str, end: &str, expected: Result<(i64, i64), NightHoursError>) {
        let time = |text: &str| {
            let (hour, minute) = text.split_once(':').unwrap();
            MinuteOfDay::new(hour.parse().unwrap(), minute.parse().unwrap()).unwrap()
        };
        assert_eq!(NightHours::new(time(start), time(end)).map(NightHours::span), expected, "{start}-{end}");
    }

    #[test]
    fn a_night_begins_in_the_evening_or_after_midnight_and_ends_within_sixteen_hours() {
        // S19.4.
        check("20:00", "07:00", Ok((1200, 1860)));
        check("21:30", "24:00", Ok((1290, 1440)));
        check("20:00", "22:00", Ok((1200, 1320)));
        check("24:00", "07:00", Ok((1440, 1860)));
        check("00:30", "09:00", Ok((1470, 1980)));
        check("05:59", "21:59", Ok((1799, 2759)));
        check("12:00", "04:00", Ok((720, 1680)));
        check("12:00", "04:01", Err(NightHoursError::TooLong));
        check("20:00", "19:00", Err(NightHoursError::TooLong));
        check("07:00", "20:00", Err(NightHoursError::BeginsInTheMorning));
        check("06:00", "07:00", Err(NightHoursError::BeginsInTheMorning));
        check("20:00", "20:00", Err(NightHoursError::Empty));
        check("24:00", "00:00", Err(NightHoursError::Empty));
    }
}
