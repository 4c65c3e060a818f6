//! Parsing and formatting of durations, and the errors for malformed ones.

use std::time::Duration;

use proptest::prelude::*;
use shepherd_util::{
    DurationProblem, DurationText, ExactDuration, HumanDuration, MAX_DURATION, format_duration,
    parse_duration,
};

#[test]
fn durations_are_parsed_and_formatted_canonically() {
    for (text, seconds, canonical) in [
        ("45m", 2_700, "45m"),
        ("1h30m", 5_400, "1h30m"),
        ("1h 30m", 5_400, "1h30m"),
        ("  1h   30m ", 5_400, "1h30m"),
        ("90s", 90, "1m30s"),
        ("90 m", 5_400, "1h30m"),
        ("1d", 86_400, "1d"),
        ("24h", 86_400, "1d"),
        ("0s", 0, "0s"),
        ("0h0m", 0, "0s"),
        ("007m", 420, "7m"),
        ("3650d", 315_360_000, "3650d"),
    ] {
        let duration = parse_duration(text).unwrap();
        assert_eq!(duration, Duration::from_secs(seconds), "{text}");
        assert_eq!(format_duration(duration), canonical, "{text}");
    }
    assert_eq!(parse_duration("1s500ms").unwrap(), Duration::from_millis(1_500));
    assert_eq!(format_duration(Duration::from_micros(1_500)), "1ms");
}

#[test]
fn an_error_names_the_problem_and_its_bytes() {
    use DurationProblem::{
        Empty, Fraction, Negative, NumberMissing, RepeatedUnit, TooLong, UnitMissing, UnknownUnit,
        UnorderedUnits,
    };
    for (text, problem, blamed) in [
        ("", Empty, ""),
        ("   ", Empty, "   "),
        ("-5m", Negative, "-"),
        ("\u{2212}5m", Negative, "\u{2212}"),
        ("1h-5m", Negative, "-"),
        ("1.5h", Fraction, "1."),
        ("1,5h", Fraction, "1,"),
        ("h", NumberMissing, "h"),
        ("1hm", UnknownUnit, "hm"),
        ("m30", NumberMissing, "m"),
        ("45", UnitMissing, "45"),
        ("1h30", UnitMissing, "30"),
        ("1h 30 20m", UnitMissing, "30"),
        ("3 weeks", UnknownUnit, "weeks"),
        ("45M", UnknownUnit, "M"),
        ("5é", UnknownUnit, "é"),
        ("5%", UnknownUnit, "%"),
        ("1h2h", RepeatedUnit, "h"),
        ("1h2m3h", RepeatedUnit, "h"),
        ("30m1h", UnorderedUnits, "h"),
        ("1s1d", UnorderedUnits, "d"),
        ("3651d", TooLong, "3651d"),
        ("3650d1s", TooLong, "1s"),
        ("99999999999999999999d", TooLong, "99999999999999999999d"),
        ("18446744073709551615s", TooLong, "18446744073709551615s"),
        ("🦀", NumberMissing, "🦀"),
    ] {
        let error = parse_duration(text).unwrap_err();
        assert_eq!((error.problem, &text[error.at.clone()]), (problem, blamed), "{text}");
        assert!(!error.to_string().is_empty() && !error.help().is_empty());
    }
}

#[test]
fn text_and_whole_seconds_are_deserialised() {
    let read = |json: &str| serde_json::from_str::<DurationText>(json).map_err(|error| error.to_string());
    assert_eq!(read("\"1h30m\""), Ok(DurationText(Duration::from_secs(5_400))));
    assert_eq!(read("5400"), Ok(DurationText(Duration::from_secs(5_400))));
    assert!(read("-1").unwrap_err().starts_with("negative durations are not allowed"));
    assert!(read("18446744073709551615").unwrap_err().starts_with("longer than the maximum of 3650 days"));
    assert!(
        read("\"5 fortnights\"")
            .unwrap_err()
            .contains("unknown unit `fortnights`; use `d`, `h`, `m`, `s` or `ms`")
    );
    assert!(read("true").unwrap_err().contains("a duration such as \"1h30m\", or whole seconds"));
    assert_eq!(serde_json::to_string(&DurationText(Duration::from_secs(90))).unwrap(), "\"1m30s\"");
}

#[test]
fn measured_durations_have_seconds_only_below_ten_minutes() {
    for (seconds, words) in [
        (0, "no time"),
        (1, "1 second"),
        (59, "59 seconds"),
        (60, "1 minute"),
        (75, "1 minute 15 seconds"),
        (119, "1 minute 59 seconds"),
        (300, "5 minutes"),
        (599, "9 minutes 59 seconds"),
        (601, "10 minutes"),
        (3_600, "1 hour"),
        (3_660, "1 hour 1 minute"),
        (5_400, "1 hour 30 minutes"),
        (86_399, "23 hours 59 minutes"),
        (86_400, "1 day"),
        (86_460, "1 day"),
        (180_000, "2 days 2 hours"),
    ] {
        assert_eq!(HumanDuration(Duration::from_secs(seconds)).to_string(), words);
    }
    assert_eq!(HumanDuration(Duration::from_millis(1)).to_string(), "less than a second");
    for (millis, words) in [
        (999, "less than a second"),
        (1_001, "2 seconds"),
        (74_980, "1 minute 15 seconds"),
        (1_799_001, "30 minutes"),
    ] {
        assert_eq!(HumanDuration(Duration::from_millis(millis)).to_string(), words);
    }
    assert!(HumanDuration(Duration::MAX).to_string().ends_with("hours"));
}

#[test]
fn exact_durations_have_all_their_units() {
    for (millis, words) in [
        (0, "no time"),
        (500, "500 milliseconds"),
        (60_000, "1 minute"),
        (630_000, "10 minutes 30 seconds"),
        (5_415_000, "1 hour 30 minutes 15 seconds"),
        (93_661_001, "1 day 2 hours 1 minute 1 second 1 millisecond"),
    ] {
        assert_eq!(ExactDuration(Duration::from_millis(millis)).to_string(), words);
    }
    assert!(!ExactDuration(Duration::MAX).to_string().is_empty());
}

proptest! {
    #[test]
    fn a_formatted_duration_parses_to_itself(millis in 0..=MAX_DURATION.as_secs() * 1000) {
        let duration = Duration::from_millis(millis);
        let text = format_duration(duration);
        prop_assert_eq!(parse_duration(&text), Ok(duration));
        prop_assert_eq!(DurationText(duration).to_string().parse::<DurationText>(), Ok(DurationText(duration)));
    }

    #[test]
    fn the_canonical_form_is_stable_and_has_no_spaces(text in "([0-9]{1,3}d)? ?([0-9]{1,3}h)? ?([0-9]{1,3}m)? ?([0-9]{1,3}s)?") {
        if let Ok(duration) = parse_duration(&text) {
            let canonical = format_duration(duration);
            prop_assert_eq!(format_duration(parse_duration(&canonical).unwrap()), canonical.clone());
            prop_assert!(!canonical.contains(' '));
        }
    }

    #[test]
    fn any_text_is_parsed_without_panic_and_errors_lie_inside_it(text in prop_oneof!["\\PC{0,12}", "[0-9dhms .,-]{0,12}"]) {
        if let Err(error) = parse_duration(&text) {
            prop_assert!(text.get(error.at.clone()).is_some(), "{:?} {:?}", text, error);
        }
    }

    #[test]
    fn any_duration_can_be_printed(seconds in any::<u64>(), nanos in 0..1_000_000_000_u32) {
        let duration = Duration::new(seconds, nanos);
        prop_assert!(!format_duration(duration).is_empty() && !HumanDuration(duration).to_string().is_empty());
    }
}
