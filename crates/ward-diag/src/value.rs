//! One value with its place, its name for messages, and the ways to read it.

mod words;

use std::ops::RangeInclusive;

use toml::de::DeValue;

use crate::fault::listed;
use crate::printable::readable;
use crate::reading::Reading;
use crate::{Fault, FromValue, Invalid, Span, Spanned, Table, closest, code};

/// A value of the document. Each way of reading it records a fault where it doesn't fit, and gives `None`.
#[derive(Debug, Clone, Copy)]
pub struct Value<'a> {
    raw: &'a toml::Spanned<DeValue<'a>>,
    name: Name<'a>,
    reading: &'a Reading<'a>,
}

#[derive(Debug, Clone, Copy)]
enum Name<'a> {
    Key(&'a str),
    ElementOf(&'a str),
}

/// What a value is, for those who accept more than one kind.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Shape<'a> {
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

impl<'a> Value<'a> {
    pub(crate) fn of_key(
        raw: &'a toml::Spanned<DeValue<'a>>,
        key: &'a str,
        reading: &'a Reading<'a>,
    ) -> Self {
        Self { raw, name: Name::Key(key), reading }
    }

    /// Where it stands.
    #[must_use]
    pub fn span(&self) -> Span {
        self.reading.source.clamp(self.raw.span().into())
    }

    /// What it is.
    #[must_use]
    pub fn shape(&self) -> Shape<'a> {
        match self.raw.get_ref() {
            DeValue::String(text) => Shape::Text(text),
            DeValue::Integer(number) => Shape::Integer(integer(number)),
            DeValue::Float(number) => Shape::Float(number.as_str().parse().unwrap_or(f64::NAN)),
            DeValue::Boolean(flag) => Shape::Boolean(*flag),
            DeValue::Datetime(_) => Shape::DateTime(self.reading.source.slice(self.span())),
            DeValue::Array(_) => Shape::Array,
            DeValue::Table(_) => Shape::Table,
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
        match self.shape() {
            Shape::Text(text) => Some(text),
            Shape::DateTime(_) | Shape::Integer(_) | Shape::Float(_) | Shape::Boolean(_)
                if !self.is_hidden() =>
            {
                self.wrong_type("text", format!("put it in quotes: `\"{}\"`", self.written()))
            }
            _ => self.wrong_type("text", self.like("\"some text\"")),
        }
    }

    /// Text that is not empty and not only blanks.
    #[must_use]
    pub fn filled_text(self) -> Option<&'a str> {
        let text = self.text()?;
        if text.trim().is_empty() {
            return self.empty("write something between the quotes");
        }
        Some(text)
    }

    /// A whole number within limits.
    #[must_use]
    pub fn integer_in(self, limits: RangeInclusive<i128>) -> Option<i128> {
        let Shape::Integer(number) = self.shape() else {
            let help = match self.shape() {
                Shape::Text(text) if text.parse::<i128>().is_ok() => "take the quotes away".to_owned(),
                _ => self.like(&10.min(*limits.end()).max(*limits.start()).to_string()),
            };
            return self.wrong_type("a whole number", help);
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
        self.out_of_range(&wanted, if number < *least { least } else { most }.to_string().as_str())
    }

    /// A number within limits. A whole number is one too; what is not a number is refused.
    #[must_use]
    pub fn number_in(self, limits: RangeInclusive<f64>) -> Option<f64> {
        let number = match self.shape() {
            Shape::Float(number) => number,
            Shape::Integer(number) => number.to_string().parse().unwrap_or(f64::NAN),
            _ => return self.wrong_type("a number", self.like(&nearest(0.5, &limits))),
        };
        if limits.contains(&number) {
            return Some(number);
        }
        let wanted = format!("between {} and {}", limits.start(), limits.end());
        self.out_of_range(&wanted, &nearest(number, &limits))
    }

    /// `true` or `false`.
    #[must_use]
    pub fn boolean(self) -> Option<bool> {
        match self.shape() {
            Shape::Boolean(flag) => Some(flag),
            Shape::Text("true" | "false") => {
                self.wrong_type("`true` or `false`", "take the quotes away".to_owned())
            }
            _ => self.wrong_type("`true` or `false`", self.like("true")),
        }
    }

    /// The elements of a list.
    #[must_use]
    pub fn elements(self) -> Option<Vec<Value<'a>>> {
        let DeValue::Array(items) = self.raw.get_ref() else {
            let help = match self.shape() {
                Shape::Table => self.like("[\"one\", \"two\"]"),
                _ if self.is_hidden() => "put it in brackets: `[…]`".to_owned(),
                _ => format!("put it in brackets: `[{}]`", self.written()),
            };
            return self.wrong_type("a list", help);
        };
        let name = Name::ElementOf(self.name.key());
        Some(items.iter().map(|raw| Value { raw, name, reading: self.reading }).collect())
    }

    /// The elements of a list that has at least one.
    #[must_use]
    pub fn filled_elements(self) -> Option<Vec<Value<'a>>> {
        let elements = self.elements()?;
        if elements.is_empty() {
            return self.empty("put at least one element in it");
        }
        Some(elements)
    }

    /// A table.
    #[must_use]
    pub fn table(self) -> Option<Table<'a>> {
        match self.raw.get_ref() {
            DeValue::Table(table) => Some(Table::new(table, self.span(), self.name.key(), self.reading)),
            _ => {
                let key = readable(self.name.key());
                self.wrong_type(
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
            Some(near) => format!("did you mean `{near}`? It can be {}", listed(&words, "or")),
            None => format!("it can be {}", listed(&words, "or")),
        };
        let message = format!("{} can't be {}", self.name(), self.quoted());
        self.push(Fault::new(code::NOT_ALLOWED, self.span(), message).help(help));
        None
    }

    /// Text that a function of the caller understands. What it refuses is reported at the exact place if it
    /// named one.
    #[must_use]
    pub fn parse<T>(self, with: impl FnOnce(&str) -> Result<T, Invalid>) -> Option<T> {
        let text = self.text()?;
        match with(text) {
            Ok(value) => Some(value),
            Err(invalid) => {
                self.refuse(invalid);
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
                let hidden = span.map_or(self.reading.hides_anything(), |span| self.reading.is_hidden(span));
                let message = if hidden { "this can't be read" } else { error.message() };
                let (message, help) = match message.split_once(", expected ") {
                    Some((message, expected)) => (message, format!("expected here: {}", readable(expected))),
                    None if message.starts_with("missing field") => (message, "add it".to_owned()),
                    None => (message, "correct it, or take it out".to_owned()),
                };
                let span = span.unwrap_or(self.span());
                self.push(Fault::new(code::INVALID, span, readable(message)).help(help));
                None
            }
        }
    }
}

impl<'a> Name<'a> {
    fn key(self) -> &'a str {
        match self {
            Name::Key(key) | Name::ElementOf(key) => key,
        }
    }
}

/// The number within limits that is closest; their end for what is not a number.
fn nearest(number: f64, limits: &RangeInclusive<f64>) -> String {
    number.min(*limits.end()).max(*limits.start()).to_string()
}

fn integer(number: &toml::de::DeInteger<'_>) -> i128 {
    let capped = if number.as_str().starts_with('-') { i128::MIN } else { i128::MAX };
    i128::from_str_radix(number.as_str(), number.radix()).unwrap_or(capped)
}
