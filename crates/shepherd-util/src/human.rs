//! Durations as words, for sentences that people read.

use std::fmt;
use std::time::Duration;

/// A duration that is displayed in words: `1 hour 30 minutes`, `5 minutes`, `20 seconds`. Seconds are shown
/// only below a minute, and at most two units. The value is rounded down, so that a sentence never promises
/// too much time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HumanDuration(pub Duration);

/// The units and their lengths in minutes.
const UNITS: [(&str, u64); 3] = [("day", 1440), ("hour", 60), ("minute", 1)];

impl fmt::Display for HumanDuration {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_zero() {
            return formatter.write_str("no time");
        }
        let minutes = self.0.as_secs() / 60;
        let Some(largest) = UNITS.iter().position(|(_, length)| minutes >= *length) else {
            return match self.0.as_secs() {
                0 => formatter.write_str("less than a second"),
                1 => formatter.write_str("1 second"),
                seconds => write!(formatter, "{seconds} seconds"),
            };
        };
        let mut rest = minutes;
        let mut separator = "";
        for (name, length) in UNITS.iter().skip(largest).take(2) {
            let count = rest / length;
            rest %= length;
            if count > 0 {
                let plural = if count == 1 { "" } else { "s" };
                write!(formatter, "{separator}{count} {name}{plural}")?;
                separator = " ";
            }
        }
        Ok(())
    }
}
