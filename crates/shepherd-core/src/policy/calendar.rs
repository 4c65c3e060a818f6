//! Days, windows and the days on which the week does not apply. Civil time only: no zone, no instant.

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
    /// From a date.
    #[must_use]
    pub fn from_date(date: Date) -> Self {
        // The range of dates is a few million days.
        let days = date.duration_since(Date::constant(1970, 1, 1)).as_hours() / 24;
        Self(i32::try_from(days).unwrap_or(if days < 0 { i32::MIN } else { i32::MAX }))
    }

    /// The date; the nearest there is for one beyond the calendar.
    #[must_use]
    pub fn date(self) -> Date {
        let span = jiff::SignedDuration::from_hours(i64::from(self.0).saturating_mul(24));
        Date::constant(1970, 1, 1).saturating_add(span)
    }

    /// 0 is Monday.
    #[must_use]
    pub fn weekday(self) -> usize {
        // 1 January 1970 was a Thursday.
        usize::try_from((i64::from(self.0) + 3).rem_euclid(7)).unwrap_or(0)
    }

    /// The Monday of its week.
    #[must_use]
    pub fn week_start(self) -> Self {
        self.plus_days(-i32::try_from(self.weekday()).unwrap_or(0))
    }

    /// So many days later.
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

    /// `NotRequested` if it is no time of day.
    #[must_use]
    pub fn new(hour: u16, minute: u16) -> Option<Self> {
        let valid = (hour < 24 && minute < 60) || (hour == 24 && minute == 0);
        valid.then(|| Self(hour * 60 + minute))
    }

    /// Minutes after midnight.
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Weekdays(u8);

impl Weekdays {
    /// Monday to Sunday.
    pub const ALL: Self = Self(0b111_1111);
    /// Monday to Friday.
    pub const WEEKDAYS: Self = Self(0b001_1111);
    /// Saturday and Sunday.
    pub const WEEKENDS: Self = Self(0b110_0000);

    /// With this day, too; 0 is Monday.
    #[must_use]
    pub fn with(self, weekday: usize) -> Self {
        if weekday < 7 { Self(self.0 | 1 << weekday) } else { self }
    }

    /// Whether this day is in it; 0 is Monday.
    #[must_use]
    pub fn contains(self, weekday: usize) -> bool {
        weekday < 7 && self.0 & 1 << weekday != 0
    }

    /// Whether no day is in it.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// A time of day on some weekdays (S2.3). It belongs to the day it starts on, and ends on the next one if its end
/// is not after its start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimeWindow {
    /// On which days it starts.
    pub days: Weekdays,
    /// When it opens, before 24:00.
    pub start: MinuteOfDay,
    /// When it closes.
    pub end: MinuteOfDay,
    /// In which modes of the household; `NotRequested` is in all.
    pub modes: Option<BTreeSet<ModeName>>,
}

impl TimeWindow {
    /// Minutes after the midnight at which its day begins: open from, closed from. More than 1440 is the next day.
    #[must_use]
    pub fn span(&self) -> (u16, u16) {
        let (start, end) = (self.start.minutes(), self.end.minutes());
        if end > start { (start, end) } else { (start, end + 1440) }
    }
}

/// When an entry may run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AvailabilityPolicy {
    /// At any time; exceptions still apply.
    Always,
    /// While one of them is open.
    Windows(Vec<TimeWindow>),
}

/// Days on which the week does not apply: holidays, one-off closures and openings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DateException {
    /// The first day.
    pub from: Day,
    /// The last day.
    pub to: Day,
    /// For people.
    pub label: String,
    /// For which entries; `NotRequested` is all.
    pub entries: Option<BTreeSet<EntryId>>,
    /// What applies instead.
    pub rule: DayRule,
}

/// What applies on a day.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DayRule {
    /// Nothing is open.
    Closed,
    /// Open all day.
    Open,
    /// These windows instead: open from, closed from. Their weekdays do not matter.
    Windows(Vec<(MinuteOfDay, MinuteOfDay)>),
    /// The windows of another day of the week: "on this Thursday as on a Sunday". 0 is Monday.
    AsOn(usize),
}

/// The modes of the household.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HouseholdModes {
    /// All that the policy names, besides the empty one that applies when there is none.
    pub names: BTreeSet<ModeName>,
    /// The one that applies when nothing else does.
    pub default: ModeName,
    /// By date: first day, last day, mode. Of several for a day the last one wins.
    pub by_date: Vec<(Day, Day, ModeName)>,
}

impl HouseholdModes {
    /// The mode that the calendar gives a day.
    #[must_use]
    pub fn mode_on(&self, day: Day) -> &str {
        let dated = self.by_date.iter().rev().find(|(from, to, _)| *from <= day && day <= *to);
        dated.map_or(&self.default, |(_, _, mode)| mode)
    }
}
