//! Messages of warnings.

use std::time::Duration;

use shepherd_text::{Language, SentenceCatalogue, WarningWords};

fn warning(language: Language, template: Option<&str>, label: &str) -> String {
    let words = WarningWords { template, label, profile: "Anna", remaining: Duration::from_mins(5) };
    SentenceCatalogue::of(language).warning(&words)
}

// S2.5, S19.3
#[test]
fn a_warning_is_in_the_language_of_the_policy() {
    assert_eq!(warning(Language::English, None, "Trains"), "Trains ends in 5 minutes.");
    assert_eq!(warning(Language::German, None, "Trains"), "Noch 5 Minuten Trains.");
}

// S2.5
#[test]
fn the_parents_own_message_gets_its_placeholders_filled_in() {
    let template = Some("{profile}, {label}: {remaining} ({remaining}) left.");
    assert_eq!(warning(Language::English, template, "Trains"), "Anna, Trains: 5 minutes (5 minutes) left.");
    let german = Some("{profile}, noch {remaining}!");
    assert_eq!(warning(Language::German, german, "Trains"), "Anna, noch 5 Minuten!");
}

#[test]
fn a_label_that_looks_like_a_placeholder_stays_as_it_is() {
    assert_eq!(warning(Language::English, Some("{label}{"), "{profile}"), "{profile}{");
    assert_eq!(warning(Language::English, Some("{täglich} {label}"), "ä"), "{täglich} ä");
}
