//! Every catalogue has every sentence.

use std::collections::{BTreeMap, BTreeSet};

use fluent_bundle::{FluentResource, FluentValue};
use shepherd_api::Language;

use super::*;

type SentenceVariables = BTreeMap<String, BTreeSet<String>>;

/// Returns the sentences of a catalogue with the variables that they use.
fn sentences_of(text: &str) -> SentenceVariables {
    let mut sentences = SentenceVariables::new();
    let mut current = String::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        if let Some((key, _)) = line.split_once(" = ").filter(|_| !line.starts_with([' ', '}'])) {
            key.clone_into(&mut current);
            let earlier = sentences.insert(current.clone(), BTreeSet::new());
            assert_eq!(earlier, None, "`{key}` is there twice");
        }
        for part in line.split('$').skip(1) {
            let name = part.split(|letter: char| !letter.is_alphanumeric() && letter != '_').next().unwrap();
            sentences.get_mut(&current).unwrap().insert(name.to_owned());
        }
    }
    sentences
}

fn declared_sentences() -> SentenceVariables {
    let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    SENTENCES.iter().map(|(key, variables)| ((*key).to_owned(), owned(variables))).collect()
}

// S19.3
#[test]
fn every_catalogue_has_the_same_sentences_with_the_same_variables() {
    for language in Language::ALL {
        let text = SentenceCatalogue::text_of(language);
        assert!(FluentResource::try_new(text.to_owned()).is_ok(), "{language:?} has a syntax error");
        assert_eq!(sentences_of(text), declared_sentences(), "{language:?}");
    }
}

#[test]
fn every_sentence_can_be_filled_in() {
    for language in Language::ALL {
        let catalogue = SentenceCatalogue::of(language);
        for (key, variables) in SENTENCES {
            let counts = ["count", "minutes", "month_number", "number"];
            let value = |name: &&'static str| match counts.contains(name) {
                true => (*name, FluentValue::from(2)),
                false => (*name, FluentValue::from(format!("<{name}>"))),
            };
            let sentence = catalogue.format(key, &variables.iter().map(value).collect::<Vec<_>>());
            assert!(!sentence.contains(['{', '}', '$']), "{language:?} {key}: {sentence}");
            for name in variables.iter().filter(|name| !counts.contains(*name)) {
                assert!(sentence.contains(&format!("<{name}>")), "{language:?} {key}: {sentence}");
            }
        }
    }
}

/// A label or a note is text, never a part of the sentence.
#[test]
fn a_value_that_looks_like_a_variable_stays_as_it_is() {
    let catalogue = SentenceCatalogue::of(Language::German);
    let label = "{ $remaining } \u{2068}{\"x\"}";
    assert_eq!(catalogue.ended_title(label), format!("{label} ist zu Ende"));
}
