//! Lengths of time in words.

use std::time::Duration;

use proptest::prelude::*;
use shepherd_text::{Language, SentenceCatalogue};
use shepherd_util::HumanDuration;

fn german(seconds: u64) -> String {
    SentenceCatalogue::of(Language::German).duration(Duration::from_secs(seconds))
}

// S19.3
#[test]
fn german_lengths_have_the_right_plural() {
    let shown = [0, 1, 2, 60, 120, 75, 3_600, 7_260, 86_400, 180_000].map(german);
    let expected = [
        "keine Zeit",
        "1 Sekunde",
        "2 Sekunden",
        "1 Minute",
        "2 Minuten",
        "1 Minute 15 Sekunden",
        "1 Stunde",
        "2 Stunden 1 Minute",
        "1 Tag",
        "2 Tage 2 Stunden",
    ];
    assert_eq!(shown, expected);
    let short = SentenceCatalogue::of(Language::German).duration(Duration::from_millis(1));
    assert_eq!(short, "weniger als eine Sekunde");
}

#[test]
fn a_number_in_a_button_has_the_right_plural() {
    let button = |language, minutes| SentenceCatalogue::of(language).ask_button(minutes);
    assert_eq!(button(Language::English, 1), "Ask for 1 more minute");
    assert_eq!(button(Language::English, 10), "Ask for 10 more minutes");
    assert_eq!(button(Language::German, 1), "Um 1 Minute mehr bitten");
    assert_eq!(button(Language::German, 10), "Um 10 Minuten mehr bitten");
}

proptest! {
    /// The command line uses `HumanDuration` where it speaks English only.
    #[test]
    fn english_lengths_are_those_of_the_command_line(millis in prop_oneof![0..200_000_u64, any::<u64>()]) {
        let length = Duration::from_millis(millis);
        let shown = SentenceCatalogue::of(Language::English).duration(length);
        prop_assert_eq!(shown, HumanDuration(length).to_string());
    }
}
