//! Times in words.

use jiff::Zoned;
use shepherd_text::{Language, SentenceCatalogue};

// S19.3
#[test]
fn a_time_is_in_the_readers_zone_and_as_short_as_possible() {
    let now: Zoned = "2026-11-16T12:00[Europe/Berlin]".parse().unwrap();
    let check = |at: &str, english: &str, german: &str| {
        for (language, expected) in [(Language::English, english), (Language::German, german)] {
            let shown = SentenceCatalogue::of(language).time(at.parse().unwrap(), &now);
            assert_eq!(shown, expected);
        }
    };
    check("2026-11-16T14:00:00Z", "15:00", "15:00 Uhr");
    check("2026-11-17T14:00:00Z", "tomorrow 15:00", "morgen, 15:00 Uhr");
    check("2026-11-15T14:00:00Z", "yesterday 15:00", "gestern, 15:00 Uhr");
    check("2026-11-21T14:00:00Z", "Sat 15:00", "Samstag, 15:00 Uhr");
    check("2026-11-22T14:00:00Z", "Sun 15:00", "Sonntag, 15:00 Uhr");
    check("2026-12-01T06:05:00Z", "2026-12-01 07:05", "01.12.2026, 07:05 Uhr");
    // It is tomorrow in Berlin already.
    check("2026-11-16T23:30:00Z", "tomorrow 00:30", "morgen, 00:30 Uhr");
}

#[test]
fn a_day_of_the_clock_change_has_the_time_that_clocks_show() {
    // Summer time ends on 25 October 2026 in Berlin.
    let now: Zoned = "2026-10-24T12:00[Europe/Berlin]".parse().unwrap();
    let shown = |at: &str| SentenceCatalogue::of(Language::German).time(at.parse().unwrap(), &now);
    assert_eq!(shown("2026-10-24T22:30:00Z"), "morgen, 00:30 Uhr");
    assert_eq!(shown("2026-10-25T14:00:00Z"), "morgen, 15:00 Uhr");
}
