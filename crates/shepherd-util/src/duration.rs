//! Parsing and formatting of durations as people write them: `"45m"`, `"1h30m"`, `"90s"`.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;
use std::time::Duration;

use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize, Serializer};

mod other_notation;

/// The longest duration that the parser accepts: ten years. Anything longer is probably a typo, and the bound
/// keeps sums of durations far from overflow.
pub const MAX_DURATION: Duration = Duration::from_secs(3650 * 24 * 60 * 60);

/// The units with their length in milliseconds, longest first.
const UNITS: [(&str, u64); 5] = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

/// The error for a text that is not a duration. Its message completes a sentence such as "`max_run` must be a
/// duration: ".
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DurationError {
    pub problem: DurationProblem,
    /// The bytes of the text that the problem is about.
    pub at: Range<usize>,
    /// The unit to name in the message, shortened and escaped.
    unknown_unit: Option<String>,
    /// The advice for this text, if it says more than that of its problem.
    advice: Option<String>,
}

impl DurationError {
    /// Returns advice on how to correct the text, for a `help:` line.
    #[must_use]
    pub fn help(&self) -> &str {
        self.advice.as_deref().unwrap_or_else(|| self.problem.help())
    }

    /// Adds the duration that was probably meant.
    fn with_advice(self, text: &str) -> Self {
        /// Digits of a number that is repeated in the advice.
        const MAX_DIGITS: usize = 4;
        let number = text.trim();
        let is_number = (1..=MAX_DIGITS).contains(&number.len())
            && number.bytes().all(|byte| byte.is_ascii_digit())
            && !matches!(number.trim_start_matches('0'), "" | "1");
        let advice = if is_number {
            Some(format!("add `s`, `m`, `h` or `d`: \"{number}m\" is {number} minutes"))
        } else {
            other_notation::suggest_duration(text).map(|meant| format!("write \"{meant}\""))
        };
        Self { advice, ..self }
    }
}

impl fmt::Display for DurationError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.unknown_unit {
            Some(unit) => write!(formatter, "{} `{unit}`", self.problem),
            None => self.problem.fmt(formatter),
        }
    }
}

impl std::error::Error for DurationError {}

/// The kinds of mistake that [`parse_duration`] reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DurationProblem {
    #[error("the text is empty")]
    Empty,
    /// A minus sign, as in `-5m`.
    #[error("negative durations are not allowed")]
    Negative,
    /// A decimal number, as in `1.5h`.
    #[error("fractions are not allowed")]
    Fraction,
    /// A unit without a number, as in `h` or `m30`.
    #[error("expected a number")]
    NumberMissing,
    /// A number without a unit, as in `45`.
    #[error("the number has no unit")]
    UnitMissing,
    /// A word that is not a unit, as in `3 fortnights`.
    #[error("unknown unit")]
    UnknownUnit,
    /// A unit that occurs twice, as in `1h2h`.
    #[error("the same unit is used twice")]
    RepeatedUnit,
    /// A longer unit after a shorter unit, as in `30m1h`.
    #[error("longer units must come first")]
    UnorderedUnits,
    /// A duration beyond [`MAX_DURATION`], as in `4000d`.
    #[error("longer than the maximum of 3650 days")]
    TooLong,
}

impl DurationProblem {
    fn help(self) -> &'static str {
        match self {
            Self::Empty | Self::NumberMissing => "write it like \"45m\", \"1h30m\" or \"90s\"",
            Self::Negative => "remove the minus sign",
            Self::Fraction => "use a smaller unit: \"1h30m\" for one and a half hours",
            Self::UnitMissing => "add `s`, `m`, `h` or `d`: \"45m\" is 45 minutes",
            Self::UnknownUnit => "use `d`, `h`, `m`, `s` or `ms`",
            Self::RepeatedUnit => "add the two numbers together",
            Self::UnorderedUnits => "write days first, then hours, minutes and seconds",
            Self::TooLong => "write a shorter duration, or leave the limit out",
        }
    }
}

/// Parses a duration such as `1h30m`. Spaces between the parts are allowed (`1h 30m`). Each unit may occur
/// once, and longer units come before shorter ones.
///
/// # Errors
/// Returns the problem and the bytes that it is about.
pub fn parse_duration(text: &str) -> Result<Duration, DurationError> {
    parse_units(text).map_err(|error| error.with_advice(text))
}

fn parse_units(text: &str) -> Result<Duration, DurationError> {
    let mut total: u64 = 0;
    // Only units from this index on may follow.
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
                unknown_unit_error(text, unit.start..unit.start + character.len_utf8())
            }
            _ => duration_error(DurationProblem::UnitMissing, number),
        });
    }
    UNITS.iter().position(|(name, _)| *name == written).ok_or_else(|| unknown_unit_error(text, unit))
}

/// Returns the error for a unit that follows a shorter one: either a repetition or a unit in the wrong order.
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

fn skip_while(text: &str, from: usize, matches: impl Fn(char) -> bool) -> usize {
    let rest = text.get(from..).unwrap_or_default();
    from + rest.find(|character| !matches(character)).unwrap_or(rest.len())
}

fn duration_error(problem: DurationProblem, at: Range<usize>) -> DurationError {
    DurationError { problem, at, unknown_unit: None, advice: None }
}

fn unknown_unit_error(text: &str, at: Range<usize>) -> DurationError {
    const MAX_SHOWN_CHARS: usize = 20;
    let unit = text.get(at.clone()).unwrap_or_default();
    let shown = unit.chars().take(MAX_SHOWN_CHARS).flat_map(char::escape_debug).collect();
    DurationError { problem: DurationProblem::UnknownUnit, at, unknown_unit: Some(shown), advice: None }
}

/// Formats a duration in its canonical form, such as `1h30m`: longer units first, no units that are zero, no
/// spaces. Fractions of a millisecond are dropped.
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

/// A duration that is serialised as text such as `1h30m`. It is deserialised from such text or from whole
/// seconds.
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
        text.parse().map_err(|error: DurationError| E::custom(format!("{error}; {}", error.help())))
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
