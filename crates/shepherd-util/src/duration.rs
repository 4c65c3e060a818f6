//! Lengths of time as a person writes them: `"45m"`, `"1h30m"`, `"90s"`.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;
use std::time::Duration;

use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize, Serializer};

/// The longest length of time that is read: ten years. A longer one is a slip of the finger, and far below this
/// bound no sum of lengths can overflow.
pub const MAX_DURATION: Duration = Duration::from_secs(3650 * 24 * 60 * 60);

/// Units from the longest to the shortest, in milliseconds.
const UNITS: [(&str, u64); 5] = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

/// Why a text is no length of time, and which bytes of it are to blame.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{problem}")]
pub struct DurationError {
    /// What is wrong.
    pub problem: DurationProblem,
    /// Where in the text.
    pub at: Range<usize>,
}

/// What can be wrong with a length of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DurationProblem {
    /// Nothing there.
    #[error("a duration can't be empty")]
    Empty,
    /// A minus sign.
    #[error("a duration can't be negative")]
    Negative,
    /// `1.5h`.
    #[error("a duration has whole numbers only")]
    Fraction,
    /// `h`, `m30`.
    #[error("a number is missing here")]
    NumberMissing,
    /// `45`.
    #[error("the unit is missing after this number")]
    UnitMissing,
    /// `3 fortnights`.
    #[error("this is not a unit of time")]
    UnknownUnit,
    /// `1h2h`.
    #[error("this unit is there twice")]
    RepeatedUnit,
    /// `30m1h`.
    #[error("the longer unit must come first")]
    UnorderedUnits,
    /// More than [`MAX_DURATION`].
    #[error("a duration can't be longer than 3650 days")]
    TooLong,
}

impl DurationProblem {
    /// What would be right.
    #[must_use]
    pub fn help(self) -> &'static str {
        match self {
            Self::Empty | Self::NumberMissing => "write it like \"45m\", \"1h30m\" or \"90s\"",
            Self::Negative => "take the minus sign away",
            Self::Fraction => "use a smaller unit: \"1h30m\" for one and a half hours",
            Self::UnitMissing => "add `s`, `m`, `h` or `d`: \"45m\" is 45 minutes",
            Self::UnknownUnit => "use `d`, `h`, `m`, `s` or `ms`",
            Self::RepeatedUnit => "add the two numbers up",
            Self::UnorderedUnits => "write days, hours, minutes and seconds in this order",
            Self::TooLong => "write a shorter one, or leave the limit out",
        }
    }
}

/// Reads a length of time. The parts may stand apart (`1h 30m`); each unit comes once, the longest first.
///
/// # Errors
/// What is wrong, at which bytes.
pub fn parse_duration(text: &str) -> Result<Duration, DurationError> {
    let mut total: u64 = 0;
    // Units from this index on may still come.
    let mut next_unit = 0;
    let mut at = skip_blanks(text, 0);
    if at == text.len() {
        return Err(duration_error(DurationProblem::Empty, 0..text.len()));
    }
    while at < text.len() {
        let number_end = skip_while(text, at, |character| character.is_ascii_digit());
        check_number(text, at, number_end)?;
        let unit_start = skip_blanks(text, number_end);
        let unit_end = skip_while(text, unit_start, char::is_alphabetic);
        let unit = find_unit(text, at..number_end, unit_start..unit_end)?;
        match unit.cmp(&next_unit) {
            std::cmp::Ordering::Less if unit + 1 == next_unit => {
                return Err(duration_error(DurationProblem::RepeatedUnit, unit_start..unit_end));
            }
            std::cmp::Ordering::Less => return Err(misplaced_unit_error(text, at, unit_start..unit_end)),
            _ => next_unit = unit + 1,
        }
        let number = text.get(at..number_end).and_then(|digits| digits.parse::<u64>().ok());
        let length = UNITS.get(unit).map_or(0, |(_, length)| *length);
        let sum =
            number.and_then(|number| number.checked_mul(length)).and_then(|part| total.checked_add(part));
        total = sum
            .filter(|sum| Duration::from_millis(*sum) <= MAX_DURATION)
            .ok_or_else(|| duration_error(DurationProblem::TooLong, at..unit_end))?;
        at = skip_blanks(text, unit_end);
    }
    Ok(Duration::from_millis(total))
}

fn check_number(text: &str, start: usize, end: usize) -> Result<(), DurationError> {
    let following = text.get(end..).and_then(|rest| rest.chars().next());
    match following {
        Some('-' | '\u{2212}') if start == end => {
            Err(duration_error(DurationProblem::Negative, end..end + following.map_or(1, char::len_utf8)))
        }
        Some('.' | ',') => Err(duration_error(DurationProblem::Fraction, start..end + 1)),
        _ if start == end => {
            let wrong = text.get(end..).map_or(0, |rest| rest.chars().next().map_or(0, char::len_utf8));
            Err(duration_error(DurationProblem::NumberMissing, end..end + wrong))
        }
        _ => Ok(()),
    }
}

fn find_unit(text: &str, number: Range<usize>, unit: Range<usize>) -> Result<usize, DurationError> {
    let written = text.get(unit.clone()).unwrap_or_default();
    if written.is_empty() {
        let other = text.get(unit.start..).and_then(|rest| rest.chars().next());
        return Err(match other {
            Some(character) if !character.is_ascii_digit() => {
                duration_error(DurationProblem::UnknownUnit, unit.start..unit.start + character.len_utf8())
            }
            _ => duration_error(DurationProblem::UnitMissing, number),
        });
    }
    UNITS
        .iter()
        .position(|(name, _)| *name == written)
        .ok_or_else(|| duration_error(DurationProblem::UnknownUnit, unit))
}

/// A unit after a shorter one: there before, or only in the wrong place.
fn misplaced_unit_error(text: &str, part: usize, unit: Range<usize>) -> DurationError {
    let written = text.get(unit.clone()).unwrap_or_default();
    let before = text.get(..part).unwrap_or_default();
    let repeated =
        before.split(|character: char| !character.is_alphabetic()).any(|earlier| earlier == written);
    let problem = if repeated { DurationProblem::RepeatedUnit } else { DurationProblem::UnorderedUnits };
    duration_error(problem, unit)
}

fn skip_blanks(text: &str, from: usize) -> usize {
    skip_while(text, from, |character| character == ' ')
}

fn skip_while(text: &str, from: usize, wanted: impl Fn(char) -> bool) -> usize {
    let rest = text.get(from..).unwrap_or_default();
    from + rest.find(|character| !wanted(character)).unwrap_or(rest.len())
}

fn duration_error(problem: DurationProblem, at: Range<usize>) -> DurationError {
    DurationError { problem, at }
}

/// Writes a length of time in the one way that is canonical: the longest units first, none that is zero, without
/// blanks. What is less than a millisecond is cut off.
#[must_use]
pub fn format_duration(duration: Duration) -> String {
    let mut rest = duration.as_millis();
    let mut text = String::new();
    for (unit, length) in UNITS {
        let count = rest / u128::from(length);
        rest %= u128::from(length);
        if count > 0 {
            text.push_str(&format!("{count}{unit}"));
        }
    }
    if text.is_empty() { "0s".to_owned() } else { text }
}

/// A length of time that reads and writes itself as text. From data it also takes whole seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct DurationText(pub Duration);

impl FromStr for DurationText {
    type Err = DurationError;

    fn from_str(text: &str) -> Result<Self, DurationError> {
        parse_duration(text).map(Self)
    }
}

impl fmt::Display for DurationText {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&format_duration(self.0))
    }
}

impl Serialize for DurationText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for DurationText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(DurationVisitor)
    }
}

struct DurationVisitor;

impl Visitor<'_> for DurationVisitor {
    type Value = DurationText;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a duration such as \"1h30m\", or whole seconds")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<DurationText, E> {
        text.parse().map_err(|error: DurationError| E::custom(format!("{error}; {}", error.problem.help())))
    }

    fn visit_u64<E: de::Error>(self, seconds: u64) -> Result<DurationText, E> {
        let duration = Duration::from_secs(seconds);
        if duration > MAX_DURATION {
            return Err(E::custom(DurationProblem::TooLong));
        }
        Ok(DurationText(duration))
    }

    fn visit_i64<E: de::Error>(self, seconds: i64) -> Result<DurationText, E> {
        let seconds = u64::try_from(seconds).map_err(|_| E::custom(DurationProblem::Negative))?;
        self.visit_u64(seconds)
    }
}
