//! Durations as words, for sentences that people read.

use std::fmt;
use std::time::Duration;

/// A measured duration in words, such as `1 hour 30 minutes`, `12 minutes`, `1 minute 15 seconds` or `20 seconds`: at
/// most two units, and no seconds from ten minutes on. The value is rounded down to the unit that is shown last, so that
/// a sentence never promises too much time. Only a fraction of a second is rounded up, because some time always passes
/// before a duration is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HumanDuration(pub Duration);

/// A duration in words with all its units, such as `1 hour 30 minutes 15 seconds`, for settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExactDuration(pub Duration);

/// A unit of a duration in words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DurationUnit {
    /// A day of 24 hours.
    Day,
    Hour,
    Minute,
    Second,
    Millisecond,
}

/// A measured duration, before it is put into words in some language.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MeasuredDuration {
    /// No time at all.
    Nothing,
    /// Some time, but less than a second.
    LessThanSecond,
    /// Amounts of units, from the largest unit down. None is zero.
    Units(Vec<(u64, DurationUnit)>),
}

/// The units and their lengths in milliseconds.
const UNITS: [(DurationUnit, u128); 5] = [
    (DurationUnit::Day, 86_400_000),
    (DurationUnit::Hour, 3_600_000),
    (DurationUnit::Minute, 60_000),
    (DurationUnit::Second, 1_000),
    (DurationUnit::Millisecond, 1),
];

/// Seconds are shown below this duration.
const SHORT: Duration = Duration::from_mins(10);

/// The number of units that a measured duration has at most.
const MEASURED_UNITS: usize = 2;

impl HumanDuration {
    /// Returns the amounts to show.
    #[must_use]
    pub fn measure(self) -> MeasuredDuration {
        if !self.0.is_zero() && self.0 < Duration::from_secs(1) {
            return MeasuredDuration::LessThanSecond;
        }
        let whole =
            Duration::from_secs(self.0.as_secs().saturating_add(u64::from(self.0.subsec_nanos() > 0)));
        let smallest = if whole < SHORT { DurationUnit::Second } else { DurationUnit::Minute };
        let units = split_units(whole, smallest, MEASURED_UNITS);
        if units.is_empty() { MeasuredDuration::Nothing } else { MeasuredDuration::Units(units) }
    }
}

impl fmt::Display for HumanDuration {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.measure() {
            MeasuredDuration::Nothing => write_units(formatter, &[]),
            MeasuredDuration::LessThanSecond => formatter.write_str("less than a second"),
            MeasuredDuration::Units(units) => write_units(formatter, &units),
        }
    }
}

impl fmt::Display for ExactDuration {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_units(formatter, &split_units(self.0, DurationUnit::Millisecond, UNITS.len()))
    }
}

impl DurationUnit {
    fn name(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Hour => "hour",
            Self::Minute => "minute",
            Self::Second => "second",
            Self::Millisecond => "millisecond",
        }
    }
}

/// Splits a duration into units, from its largest unit down to the unit `smallest`, with at most `most` units. Units that
/// are zero are left out.
fn split_units(duration: Duration, smallest: DurationUnit, most: usize) -> Vec<(u64, DurationUnit)> {
    let mut rest = duration.as_millis();
    let mut units = Vec::new();
    let Some(largest) = UNITS.iter().position(|(_, length)| rest >= *length) else { return units };
    for (unit, length) in UNITS.iter().skip(largest).take(most) {
        let count = u64::try_from(rest / length).unwrap_or(u64::MAX);
        rest %= length;
        if count > 0 {
            units.push((count, *unit));
        }
        if *unit == smallest {
            break;
        }
    }
    units
}

fn write_units(formatter: &mut fmt::Formatter<'_>, units: &[(u64, DurationUnit)]) -> fmt::Result {
    if units.is_empty() {
        return formatter.write_str("no time");
    }
    for (position, (count, unit)) in units.iter().enumerate() {
        let (separator, plural) = (if position == 0 { "" } else { " " }, if *count == 1 { "" } else { "s" });
        write!(formatter, "{separator}{count} {}{plural}", unit.name())?;
    }
    Ok(())
}
