//! Durations as people write them elsewhere: `30 min`, `1.5h`, `0:30`, `1 Std 30 Min`.

use std::time::Duration;

use super::{MAX_DURATION, UNITS, format_duration};

/// Words for the units, in English and German.
const UNIT_WORDS: [(&[&str], &str); 4] = [
    (&["d", "day", "days", "tag", "tage"], "d"),
    (&["h", "hr", "hrs", "hour", "hours", "std", "stunde", "stunden"], "h"),
    (&["m", "min", "mins", "minute", "minutes", "minuten"], "m"),
    (&["s", "sec", "secs", "second", "seconds", "sek", "sekunde", "sekunden"], "s"),
];

/// Longest text of this kind. A longer one is something else.
const MAX_LENGTH: usize = 40;

/// Returns the duration, in the notation of [`parse_duration`](super::parse_duration), that a text in another notation
/// means.
pub(super) fn suggest_duration(text: &str) -> Option<String> {
    let text = text.trim().to_lowercase();
    if text.len() > MAX_LENGTH {
        return None;
    }
    let millis = if text.contains(':') { clock_millis(&text) } else { words_millis(&text) }?;
    let duration = Duration::from_millis(millis);
    (!duration.is_zero() && duration <= MAX_DURATION).then(|| format_duration(duration))
}

fn unit_millis(name: &str) -> Option<u64> {
    UNITS.iter().find(|(unit, _)| *unit == name).map(|(_, millis)| *millis)
}

/// Reads `0:30` as hours and minutes, and `0:30:00` with seconds.
fn clock_millis(text: &str) -> Option<u64> {
    let mut parts = text.split(':');
    let mut total = 0_u64;
    for (unit, most) in [("h", 99), ("m", 59), ("s", 59)] {
        let Some(part) = parts.next() else { continue };
        let number = part.parse::<u64>().ok().filter(|number| *number <= most && part.len() <= 2)?;
        total = total.checked_add(number.checked_mul(unit_millis(unit)?)?)?;
    }
    parts.next().is_none().then_some(total)
}

/// Reads pairs of a number and a word, such as `1.5 hours` or `1 hour and 30 min`.
fn words_millis(text: &str) -> Option<u64> {
    let mut rest = text;
    let mut total = 0_u64;
    while !rest.is_empty() {
        let is_number = |character: char| character.is_ascii_digit() || matches!(character, '.' | ',');
        let number_end = rest.find(|character| !is_number(character))?;
        let (number, after) = rest.split_at_checked(number_end)?;
        let after = after.trim_start();
        let word_end = after.find(|character: char| !character.is_alphabetic()).unwrap_or(after.len());
        let (word, after) = after.split_at_checked(word_end)?;
        let (_, unit) = UNIT_WORDS.iter().find(|(words, _)| words.contains(&word))?;
        total = total.checked_add(fraction_millis(number, unit_millis(unit)?)?)?;
        let after = after.trim_start_matches(['.', ',', ' ']);
        rest = ["and ", "und "].iter().find_map(|word| after.strip_prefix(word)).unwrap_or(after);
    }
    Some(total)
}

/// Returns the milliseconds of a number such as `1.5` or `1,5` of a unit.
fn fraction_millis(number: &str, unit: u64) -> Option<u64> {
    let (whole, fraction) = number.split_once(['.', ',']).unwrap_or((number, ""));
    let whole = whole.parse::<u64>().ok()?.checked_mul(unit)?;
    if fraction.is_empty() {
        return Some(whole);
    }
    let scale = 10_u64.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    let part = fraction.parse::<u64>().ok()?.checked_mul(unit)?.checked_div(scale)?;
    whole.checked_add(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_in_other_notations_are_recognised() {
        for (written, meant) in [
            ("30 min", "30m"),
            ("30min.", "30m"),
            ("30M", "30m"),
            ("30 Minuten", "30m"),
            ("1 Std", "1h"),
            ("1 hour and 30 minutes", "1h30m"),
            ("1 Std. 30 Min.", "1h30m"),
            ("1.5h", "1h30m"),
            ("0,5 Stunden", "30m"),
            ("90 seconds", "1m30s"),
            ("0:30", "30m"),
            ("1:05", "1h5m"),
            ("00:30:00", "30m"),
            ("2 days", "2d"),
        ] {
            assert_eq!(suggest_duration(written).as_deref(), Some(meant), "{written}");
        }
        for unknown in
            ["", "30", "min", "m30", "-5m", "3 fortnights", "0:75", "1:2:3:4", "0 min", "1..5h", "9999 days"]
        {
            assert_eq!(suggest_duration(unknown), None, "{unknown}");
        }
    }
}
