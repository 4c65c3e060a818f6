//! One value with its place, its name for messages, and the ways to read it.

mod messages;

use std::ops::RangeInclusive;

use toml::de::DeValue;

use crate::document::DocumentContext;
use crate::escape::escape_and_truncate;
use crate::fault::join_names;
use crate::{ConfigFault, FromValue, InvalidValue, Span, Spanned, TomlTable, closest, code};

/// A value of the document. Each way of reading it records a fault where it doesn't fit, and gives `None`.
#[derive(Debug, Clone, Copy)]
pub struct TomlValue<'a> {
    raw: &'a toml::Spanned<DeValue<'a>>,
    name: ValueName<'a>,
    reading: &'a DocumentContext<'a>,
}

#[derive(Debug, Clone, Copy)]
enum ValueName<'a> {
    Key(&'a str),
    ElementOf(&'a str),
}

/// What a value is, for those who accept more than one kind.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ValueKind<'a> {
    /// A string.
    Text(&'a str),
    /// A whole number. One beyond 64 bits is capped to what this type holds.
    Integer(i128),
    /// A number with a point.
    Float(f64),
    /// `true` or `false`.
    Boolean(bool),
    /// A date, a time of day, or both, as it is written.
    DateTime(&'a str),
    /// A list.
    Array,
    /// A table.
    Table,
}

impl<'a> TomlValue<'a> {
    pub(crate) fn for_key(
        raw: &'a toml::Spanned<DeValue<'a>>,
        key: &'a str,
        reading: &'a DocumentContext<'a>,
    ) -> Self {
        Self { raw, name: ValueName::Key(key), reading }
    }

    /// Where it stands.
    #[must_use]
    pub fn span(&self) -> Span {
        self.reading.source.clamp(self.raw.span().into())
    }

    /// What it is.
    #[must_use]
    pub fn kind(&self) -> ValueKind<'a> {
        match self.raw.get_ref() {
            DeValue::String(text) => ValueKind::Text(text),
            DeValue::Integer(number) => ValueKind::Integer(parse_integer(number)),
            DeValue::Float(number) => ValueKind::Float(number.as_str().parse().unwrap_or(f64::NAN)),
            DeValue::Boolean(flag) => ValueKind::Boolean(*flag),
            DeValue::Datetime(_) => ValueKind::DateTime(self.reading.source.slice(self.span())),
            DeValue::Array(_) => ValueKind::Array,
            DeValue::Table(_) => ValueKind::Table,
        }
    }

    /// Reads it as a type that knows how.
    #[must_use]
    pub fn read<T: FromValue<'a>>(self) -> Option<T> {
        T::from_value(self)
    }

    /// Text.
    #[must_use]
    pub fn text(self) -> Option<&'a str> {
        match self.kind() {
            ValueKind::Text(text) => Some(text),
            ValueKind::DateTime(_) | ValueKind::Integer(_) | ValueKind::Float(_) | ValueKind::Boolean(_)
                if !self.is_hidden() =>
            {
                self.reject_type("text", format!("put it in quotes: `\"{}\"`", self.source_text()))
            }
            _ => self.reject_type("text", self.example_help("\"some text\"")),
        }
    }

    /// Text that is not empty and not only blanks.
    #[must_use]
    pub fn non_empty_text(self) -> Option<&'a str> {
        let text = self.text()?;
        if text.trim().is_empty() {
            return self.reject_empty("write something between the quotes");
        }
        Some(text)
    }

    /// A whole number within limits.
    #[must_use]
    pub fn integer_in(self, limits: RangeInclusive<i128>) -> Option<i128> {
        let ValueKind::Integer(number) = self.kind() else {
            let help = match self.kind() {
                ValueKind::Text(text) if text.parse::<i128>().is_ok() => "take the quotes away".to_owned(),
                _ => self.example_help(&10.min(*limits.end()).max(*limits.start()).to_string()),
            };
            return self.reject_type("a whole number", help);
        };
        if limits.contains(&number) {
            return Some(number);
        }
        let (least, most) = (limits.start(), limits.end());
        let wanted = if *most >= i128::from(i64::MAX) {
            format!("{least} or more")
        } else {
            format!("between {least} and {most}")
        };
        self.reject_out_of_range(&wanted, if number < *least { least } else { most }.to_string().as_str())
    }

    /// A number within limits. A whole number is one too; what is not a number is refused.
    #[must_use]
    pub fn number_in(self, limits: RangeInclusive<f64>) -> Option<f64> {
        let number = match self.kind() {
            ValueKind::Float(number) => number,
            ValueKind::Integer(number) => number.to_string().parse().unwrap_or(f64::NAN),
            _ => return self.reject_type("a number", self.example_help(&clamp_to_text(0.5, &limits))),
        };
        if limits.contains(&number) {
            return Some(number);
        }
        let wanted = format!("between {} and {}", limits.start(), limits.end());
        self.reject_out_of_range(&wanted, &clamp_to_text(number, &limits))
    }

    /// `true` or `false`.
    #[must_use]
    pub fn boolean(self) -> Option<bool> {
        match self.kind() {
            ValueKind::Boolean(flag) => Some(flag),
            ValueKind::Text("true" | "false") => {
                self.reject_type("`true` or `false`", "take the quotes away".to_owned())
            }
            _ => self.reject_type("`true` or `false`", self.example_help("true")),
        }
    }

    /// The elements of a list.
    #[must_use]
    pub fn elements(self) -> Option<Vec<TomlValue<'a>>> {
        let DeValue::Array(items) = self.raw.get_ref() else {
            let help = match self.kind() {
                ValueKind::Table => self.example_help("[\"one\", \"two\"]"),
                _ if self.is_hidden() => "put it in brackets: `[…]`".to_owned(),
                _ => format!("put it in brackets: `[{}]`", self.source_text()),
            };
            return self.reject_type("a list", help);
        };
        let name = ValueName::ElementOf(self.name.key());
        Some(items.iter().map(|raw| TomlValue { raw, name, reading: self.reading }).collect())
    }

    /// The elements of a list that has at least one.
    #[must_use]
    pub fn non_empty_elements(self) -> Option<Vec<TomlValue<'a>>> {
        let elements = self.elements()?;
        if elements.is_empty() {
            return self.reject_empty("put at least one element in it");
        }
        Some(elements)
    }

    /// A table.
    #[must_use]
    pub fn table(self) -> Option<TomlTable<'a>> {
        match self.raw.get_ref() {
            DeValue::Table(table) => Some(TomlTable::new(table, self.span(), self.name.key(), self.reading)),
            _ => {
                let key = escape_and_truncate(self.name.key());
                self.reject_type(
                    "a table",
                    format!("write `[{key}]` on a line of its own, and its keys below"),
                )
            }
        }
    }

    /// One of several words, each with what it stands for.
    #[must_use]
    pub fn one_of<T: Clone>(self, allowed: &[(&str, T)]) -> Option<T> {
        let text = self.text()?;
        if let Some((_, meant)) = allowed.iter().find(|(word, _)| *word == text) {
            return Some(meant.clone());
        }
        let words: Vec<&str> = allowed.iter().map(|(word, _)| *word).collect();
        let help = match closest(text, words.iter().copied()) {
            Some(near) => format!("did you mean `{near}`? It can be {}", join_names(&words, "or")),
            None => format!("it can be {}", join_names(&words, "or")),
        };
        let message = format!("{} can't be {}", self.name(), self.quoted());
        self.push_fault(ConfigFault::new(code::NOT_ALLOWED, self.span(), message).help(help));
        None
    }

    /// Text that a function of the caller understands. What it refuses is reported at the exact place if it
    /// named one.
    #[must_use]
    pub fn parse<T>(self, with: impl FnOnce(&str) -> Result<T, InvalidValue>) -> Option<T> {
        let text = self.text()?;
        match with(text) {
            Ok(value) => Some(value),
            Err(invalid) => {
                self.reject(invalid);
                None
            }
        }
    }

    /// The value with its place.
    #[must_use]
    pub fn spanned<T>(&self, value: T) -> Spanned<T> {
        Spanned::new(value, self.span())
    }

    /// Whatever a type with a derived `Deserialize` takes: for parts whose form is somebody else's business.
    /// Only the first thing that doesn't fit is reported.
    #[must_use]
    pub fn deserialize<T: serde::de::DeserializeOwned>(self) -> Option<T> {
        match T::deserialize(toml::de::ValueDeserializer::from(self.raw.clone())) {
            Ok(value) => Some(value),
            Err(error) => {
                let span = error.span().map(Span::from);
                // Such an error quotes what it refuses. Where it doesn't say what that was, it may be a secret.
                let hidden = span.map_or(self.reading.has_hidden_keys(), |span| self.reading.is_hidden(span));
                let message = if hidden { "this can't be read" } else { error.message() };
                let (message, help) = match message.split_once(", expected ") {
                    Some((message, expected)) => {
                        (message, format!("expected here: {}", escape_and_truncate(expected)))
                    }
                    None if message.starts_with("missing field") => (message, "add it".to_owned()),
                    None => (message, "correct it, or take it out".to_owned()),
                };
                let span = span.unwrap_or(self.span());
                self.push_fault(
                    ConfigFault::new(code::INVALID, span, escape_and_truncate(message)).help(help),
                );
                None
            }
        }
    }
}

impl<'a> ValueName<'a> {
    fn key(self) -> &'a str {
        match self {
            ValueName::Key(key) | ValueName::ElementOf(key) => key,
        }
    }
}

/// The number within limits that is closest; their end for what is not a number.
fn clamp_to_text(number: f64, limits: &RangeInclusive<f64>) -> String {
    number.min(*limits.end()).max(*limits.start()).to_string()
}

fn parse_integer(number: &toml::de::DeInteger<'_>) -> i128 {
    let capped = if number.as_str().starts_with('-') { i128::MIN } else { i128::MAX };
    i128::from_str_radix(number.as_str(), number.radix()).unwrap_or(capped)
}
