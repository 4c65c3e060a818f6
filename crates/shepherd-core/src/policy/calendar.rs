//! Days, windows and exceptions. Civil time only: no zone, no instant.

use std::collections::BTreeSet;
use std::fmt;

use jiff::civil::Date;
use serde::{Deserialize, Serialize};
use shepherd_util::EntryId;

use super::ModeName;

/// A calendar day, counted from 1 January 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Day(pub i32);

impl Day {
    #[must_use]
    pub fn from_date(date: Date) -> Self {
        let days = date.duration_since(Date::constant(1970, 1, 1)).as_hours() / 24;
        // Dates span a few million days, so the number always fits.
        Self(i32::try_from(days).unwrap_or(i32::MAX))
    }

    /// Returns the date; the nearest one for a day beyond the calendar.
    #[must_use]
    pub fn date(self) -> Date {
        let span = jiff::SignedDuration::from_hours(i64::from(self.0).saturating_mul(24));
        Date::constant(1970, 1, 1).saturating_add(span)
    }

    /// Returns the weekday; 0 is Monday.
    #[must_use]
    pub fn weekday(self) -> usize {
        // 1 January 1970 was a Thursday.
        usize::try_from((i64::from(self.0) + 3).rem_euclid(7)).unwrap_or(0)
    }

    /// Returns the Monday of the same week.
    #[must_use]
    pub fn week_start(self) -> Self {
        self.plus_days(-i32::try_from(self.weekday()).unwrap_or(0))
    }

    #[must_use]
    pub fn plus_days(self, days: i32) -> Self {
        Self(self.0.saturating_add(days))
    }
}

impl fmt::Display for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.date().fmt(f)
    }
}

/// A time of day in whole minutes, 0 to 1440; 1440 is the midnight at the end of the day.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MinuteOfDay(u16);

impl MinuteOfDay {
    /// The midnight at the end of the day.
    pub const END: Self = Self(1440);

    /// Returns `None` if the number is no time of day.
    #[must_use]
    pub fn new(hour: u16, minute: u16) -> Option<Self> {
        let valid = (hour < 24 && minute < 60) || (hour == 24 && minute == 0);
        valid.then(|| Self(hour * 60 + minute))
    }

    /// Returns the minutes after midnight.
    #[must_use]
    pub fn minutes(self) -> u16 {
        self.0
    }
}

impl fmt::Display for MinuteOfDay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:02}:{:02}", self.0 / 60, self.0 % 60)
    }
}

/// A set of weekdays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Weekdays(u8);

impl Weekdays {
    pub const ALL: Self = Self(0b111_1111);
    pub const WEEKDAYS: Self = Self(0b001_1111);
    pub const WEEKENDS: Self = Self(0b110_0000);

    /// Adds a day; 0 is Monday.
    #[must_use]
    pub fn with(self, weekday: usize) -> Self {
        if weekday < 7 { Self(self.0 | 1 << weekday) } else { self }
    }

    /// Returns whether the set contains a day; 0 is Monday.
    #[must_use]
    pub fn contains(self, weekday: usize) -> bool {
        weekday < 7 && self.0 & 1 << weekday != 0
    }

    #[must_use]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// A time window on some weekdays (S2.3). It belongs to the day on which it starts, and ends on the next day if its end
/// isn't after its start.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TimeWindow {
    pub days: Weekdays,
    /// The opening time, before 24:00.
    pub start: MinuteOfDay,
    pub end: MinuteOfDay,
    /// The household modes in which the window applies; `None` is all.
    pub modes: Option<BTreeSet<ModeName>>,
}

impl TimeWindow {
    /// Returns opening and closing time in minutes after the midnight of its day. More than 1440 is the next day.
    #[must_use]
    pub fn span(&self) -> (u16, u16) {
        let (start, end) = (self.start.minutes(), self.end.minutes());
        if end > start { (start, end) } else { (start, end + 1440) }
    }
}

/// The hours of an entry.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AvailabilityPolicy {
    /// The entry is always open, except for exceptions.
    Always,
    /// The entry is open while one of the windows is.
    Windows(Vec<TimeWindow>),
}

/// Days on which other hours apply: holidays, single closures and openings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DateException {
    pub from: Day,
    pub to: Day,
    pub label: String,
    /// The entries that the exception is for; `None` is all.
    pub entries: Option<BTreeSet<EntryId>>,
    pub rule: DayRule,
}

/// The hours of an exception.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DayRule {
    Closed,
    Open,
    /// Other windows, as opening and closing time. Their weekdays are ignored.
    Windows(Vec<(MinuteOfDay, MinuteOfDay)>),
    /// The windows of another weekday: "on this Thursday as on a Sunday". 0 is Monday.
    AsOn(usize),
}

/// The modes of the household.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HouseholdModes {
    /// All modes that the policy names, besides the empty one that applies if there is none.
    pub names: BTreeSet<ModeName>,
    /// The mode that applies by default.
    pub default: ModeName,
    /// Modes by date: first day, last day, mode. The last of several for a day wins.
    pub by_date: Vec<(Day, Day, ModeName)>,
}

impl HouseholdModes {
    /// Returns the mode of a day by the calendar.
    #[must_use]
    pub fn mode_on(&self, day: Day) -> &str {
        let dated = self.by_date.iter().rev().find(|(from, to, _)| *from <= day && day <= *to);
        dated.map_or(&self.default, |(_, _, mode)| mode)
    }
}
