//! Parses examples such as `sat 10:00 in holiday anna/tuxmath: allow 30m`.

use std::ops::Range;

use shepherd_util::parse_duration;
use ward_diag::{InvalidValue, Span, Spanned, closest};

use super::{ExampleDay, ExpectedOutcome, PolicyExample};
use crate::raw::SpannedName;
use crate::read::{parse_date, parse_time_of_day, parse_weekday};

/// Reasons that a fresh engine can give. Other reasons, such as pauses and running sessions, need a history.
const REASONS: [&str; 6] =
    ["outside-hours", "bedtime", "disabled", "not-unlocked", "quota-exhausted", "not-for-profile"];

const EXAMPLE_HELP: &str =
    "write it like \"sat 10:00 tuxmath: allow 30m\" or \"2026-12-24 10:00 anna/tuxmath: deny\"";

/// A word and its range in the text.
type ExampleWord<'t> = (&'t str, Range<usize>);

/// Parses an example. The names in it get the span of the whole example.
pub(super) fn parse_example(text: &str, span: Span) -> Result<PolicyExample, InvalidValue> {
    let mut words = words(text);
    let day = parse_day(words.next(), text)?;
    let (time, at) = next_word(&mut words, text, "the time of day is missing")?;
    let time = parse_time_of_day(time)
        .ok()
        .filter(|time| time.minutes() < 1440)
        .ok_or_else(|| invalid_example("this is not a time of day between 00:00 and 23:59", at))?;
    let mut target = next_word(&mut words, text, "the id of an entry is missing")?;
    let mut mode = None;
    if target.0 == "in" {
        mode = Some(next_word(&mut words, text, "the name of a mode is missing after `in`")?.0);
        target = next_word(&mut words, text, "the id of an entry is missing")?;
    }
    let (target, at) = target;
    let target = target
        .strip_suffix(':')
        .ok_or_else(|| invalid_example("a colon is missing after the entry", at.clone()))?;
    let (profile, entry) = match target.split_once('/') {
        Some((profile, entry)) => (Some(profile), entry),
        None => (None, target),
    };
    if entry.is_empty() || profile.is_some_and(str::is_empty) {
        return Err(invalid_example("the id of an entry is missing", at));
    }
    let outcome = parse_outcome(&mut words, text)?;
    let name = |text: &str| -> SpannedName { Spanned::new(text.to_owned(), span) };
    Ok(PolicyExample {
        day,
        time,
        mode: mode.map(name),
        profile: profile.map(name),
        entry: name(entry),
        outcome,
    })
}

fn parse_day(word: Option<ExampleWord<'_>>, text: &str) -> Result<ExampleDay, InvalidValue> {
    let (day, at) = word.ok_or_else(|| invalid_example("this example is empty", 0..text.len()))?;
    let weekday = parse_weekday(day).map(ExampleDay::Weekday);
    weekday
        .or_else(|| parse_date(day).map(ExampleDay::Date))
        .ok_or_else(|| invalid_example("this is neither a day (`mon` to `sun`) nor a date", at))
}

fn parse_outcome<'t>(
    words: &mut impl Iterator<Item = ExampleWord<'t>>,
    text: &str,
) -> Result<ExpectedOutcome, InvalidValue> {
    let (verdict, at) = next_word(words, text, "the expected result is missing after the colon")?;
    let rest: Vec<ExampleWord<'t>> = words.collect();
    let end = |outcome| match rest.first() {
        None => Ok(outcome),
        Some((_, at)) => Err(invalid_example("nothing can follow the expected result", at.start..text.len())),
    };
    match verdict {
        "allow" => match rest.first() {
            None => Ok(ExpectedOutcome::Allow),
            Some(("unlimited", _)) if rest.len() == 1 => Ok(ExpectedOutcome::AllowFor(None)),
            Some((_, at)) => {
                let written = text.get(at.start..).unwrap_or_default();
                parse_duration(written).map(|length| ExpectedOutcome::AllowFor(Some(length))).map_err(
                    |error| {
                        let place = at.start + error.at.start..at.start + error.at.end;
                        InvalidValue::new(format!("this is not a duration: {error}"))
                            .at(place)
                            .help(error.help())
                    },
                )
            }
        },
        "deny" => end(ExpectedOutcome::Deny),
        _ => match REASONS.into_iter().find(|reason| *reason == verdict) {
            Some(reason) => end(ExpectedOutcome::DenyFor(reason)),
            None => {
                let known = "the result can be `allow`, `allow 30m`, `allow unlimited`, `deny`, `outside-hours`, \
                             `bedtime`, `disabled`, `not-unlocked`, `quota-exhausted` or `not-for-profile`";
                let near = closest(verdict, REASONS.into_iter().chain(["allow", "deny"]));
                let help = near.map_or(known.to_owned(), |near| format!("did you mean `{near}`?"));
                Err(InvalidValue::new("this is not a result").at(at).help(help))
            }
        },
    }
}

fn words(text: &str) -> impl Iterator<Item = ExampleWord<'_>> {
    text.split_whitespace().map(|word| {
        // The word is a slice of the text, so the distance of the pointers is its position.
        let start = word.as_ptr().addr() - text.as_ptr().addr();
        (word, start..start + word.len())
    })
}

fn next_word<'t>(
    words: &mut impl Iterator<Item = ExampleWord<'t>>,
    text: &str,
    missing: &str,
) -> Result<ExampleWord<'t>, InvalidValue> {
    words.next().ok_or_else(|| invalid_example(missing, 0..text.len()))
}

fn invalid_example(message: &str, at: Range<usize>) -> InvalidValue {
    InvalidValue::new(message).at(at).help(EXAMPLE_HELP)
}
