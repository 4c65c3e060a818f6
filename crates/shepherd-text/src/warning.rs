//! The message of a warning.

use std::time::Duration;

use crate::catalogue::SentenceCatalogue;

/// The words of a warning.
#[derive(Clone, Copy, Debug)]
pub struct WarningWords<'a> {
    /// The parents' own message with placeholders, if they wrote one.
    pub template: Option<&'a str>,
    /// The label of the entry.
    pub label: &'a str,
    /// The label of the profile.
    pub profile: &'a str,
    /// The time that is left.
    pub remaining: Duration,
}

impl SentenceCatalogue {
    /// Returns the message of a warning.
    #[must_use]
    pub fn warning(&self, words: &WarningWords<'_>) -> String {
        let remaining = self.duration(words.remaining);
        match words.template {
            None => self.ends_in(words.label, &remaining),
            Some(template) => fill_placeholders(
                template,
                &[("{remaining}", &remaining), ("{label}", words.label), ("{profile}", words.profile)],
            ),
        }
    }
}

/// Fills in placeholders in one pass, so that a label that looks like a placeholder stays as it is.
fn fill_placeholders(template: &str, values: &[(&str, &str)]) -> String {
    let (mut filled, mut rest) = (String::with_capacity(template.len()), template);
    while let Some(start) = rest.find('{') {
        let (before, from_brace) = rest.split_at(start);
        filled.push_str(before);
        let known = values.iter().find_map(|(name, value)| Some((value, from_brace.strip_prefix(name)?)));
        let (text, after) = match known {
            Some((value, after)) => (*value, after),
            None => from_brace.split_at(1),
        };
        filled.push_str(text);
        rest = after;
    }
    filled.push_str(rest);
    filled
}
