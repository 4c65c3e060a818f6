//! The catalogue of a language.

use std::fmt;
use std::sync::LazyLock;
use std::time::Duration;

use fluent_bundle::concurrent::FluentBundle;
use fluent_bundle::{FluentArgs, FluentResource, FluentValue};
use shepherd_api::Language;
use shepherd_util::{DurationUnit, HumanDuration, MeasuredDuration};
use unic_langid::LanguageIdentifier;

/// The sentences of one language.
pub struct SentenceCatalogue {
    language: Language,
    bundle: FluentBundle<FluentResource>,
}

/// Each catalogue is read when it is first used.
static ENGLISH: LazyLock<SentenceCatalogue> = LazyLock::new(|| SentenceCatalogue::read(Language::English));
static GERMAN: LazyLock<SentenceCatalogue> = LazyLock::new(|| SentenceCatalogue::read(Language::German));

impl SentenceCatalogue {
    /// Returns the catalogue of a language.
    #[must_use]
    pub fn of(language: Language) -> &'static Self {
        match language {
            Language::English => &ENGLISH,
            Language::German => &GERMAN,
        }
    }

    /// Reads a catalogue. A sentence that can't be read is left out; the tests show that there is none.
    fn read(language: Language) -> Self {
        let locale: LanguageIdentifier = language.code().parse().unwrap_or_default();
        let text = Self::text_of(language).to_owned();
        let resource = FluentResource::try_new(text).unwrap_or_else(|(readable, _)| readable);
        let mut bundle = FluentBundle::new_concurrent(vec![locale]);
        // The marks around variables are for text in both directions. Terminals and old notification services show them
        // as boxes.
        bundle.set_use_isolating(false);
        bundle.add_resource_overriding(resource);
        Self { language, bundle }
    }

    pub(crate) fn text_of(language: Language) -> &'static str {
        match language {
            Language::English => include_str!("en.ftl"),
            Language::German => include_str!("de.ftl"),
        }
    }

    /// Returns the language of the sentences.
    #[must_use]
    pub fn language(&self) -> Language {
        self.language
    }

    /// Describes a length of time, such as `1 hour 30 minutes`, rounded as [`HumanDuration`] does.
    #[must_use]
    pub fn duration(&self, duration: Duration) -> String {
        let units = match HumanDuration(duration).measure() {
            MeasuredDuration::Nothing => return self.no_time(),
            MeasuredDuration::LessThanSecond => return self.less_than_a_second(),
            MeasuredDuration::Units(units) => units,
        };
        let words = units.into_iter().map(|(count, unit)| match unit {
            DurationUnit::Day => self.days(count),
            DurationUnit::Hour => self.hours(count),
            DurationUnit::Minute => self.minutes(count),
            // A measured duration has no milliseconds.
            DurationUnit::Second | DurationUnit::Millisecond => self.seconds(count),
        });
        words.collect::<Vec<_>>().join(" ")
    }

    /// Returns a sentence with its variables filled in.
    pub(crate) fn format(&self, key: &'static str, variables: &[(&'static str, FluentValue<'_>)]) -> String {
        let mut arguments = FluentArgs::with_capacity(variables.len());
        for (name, value) in variables {
            arguments.set(*name, value.clone());
        }
        let sentence = self.bundle.get_message(key).and_then(|message| message.value());
        let mut errors = Vec::new();
        sentence.map_or_else(
            || key.to_owned(),
            |sentence| self.bundle.format_pattern(sentence, Some(&arguments), &mut errors).into_owned(),
        )
    }
}

impl fmt::Debug for SentenceCatalogue {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("SentenceCatalogue").field(&self.language).finish()
    }
}
