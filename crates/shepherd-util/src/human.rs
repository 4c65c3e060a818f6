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

/// The units and their lengths in milliseconds.
const UNITS: [(&str, u128); 5] =
    [("day", 86_400_000), ("hour", 3_600_000), ("minute", 60_000), ("second", 1_000), ("millisecond", 1)];

/// Seconds are shown below this duration.
const SHORT: Duration = Duration::from_mins(10);

/// The number of units that a measured duration has at most.
const MEASURED_UNITS: usize = 2;

impl fmt::Display for HumanDuration {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.0.is_zero() && self.0 < Duration::from_secs(1) {
            return formatter.write_str("less than a second");
        }
        let whole =
            Duration::from_secs(self.0.as_secs().saturating_add(u64::from(self.0.subsec_nanos() > 0)));
        let smallest = if whole < SHORT { "second" } else { "minute" };
        write_units(formatter, whole, smallest, MEASURED_UNITS)
    }
}

impl fmt::Display for ExactDuration {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_units(formatter, self.0, "millisecond", UNITS.len())
    }
}

/// Writes a duration from its largest unit down to the unit `smallest`, with at most `most` units. Units that are zero are
/// left out.
fn write_units(
    formatter: &mut fmt::Formatter<'_>,
    duration: Duration,
    smallest: &str,
    most: usize,
) -> fmt::Result {
    let mut rest = duration.as_millis();
    let largest = UNITS.iter().position(|(_, length)| rest >= *length);
    let Some(largest) = largest else { return formatter.write_str("no time") };
    let mut separator = "";
    for (name, length) in UNITS.iter().skip(largest).take(most) {
        let count = rest / length;
        rest %= length;
        if count > 0 {
            let plural = if count == 1 { "" } else { "s" };
            write!(formatter, "{separator}{count} {name}{plural}")?;
            separator = " ";
        }
        if *name == smallest {
            break;
        }
    }
    Ok(())
}
