//! Reading of values. A value knows its place and its name for messages.

mod messages;

use std::ops::RangeInclusive;

use toml::de::DeValue;

use crate::document::DocumentContext;
use crate::escape::escape_and_truncate;
use crate::fault::join_names;
use crate::{ConfigFault, FromValue, InvalidValue, Span, Spanned, TomlTable, closest, code, syntax};

/// A value of the document. Each method that reads the value returns `None` and records a fault if the value
/// doesn't fit.
#[derive(Debug, Clone, Copy)]
pub struct TomlValue<'a> {
    raw: &'a toml::Spanned<DeValue<'a>>,
    name: ValueName<'a>,
    context: &'a DocumentContext<'a>,
}

#[derive(Debug, Clone, Copy)]
enum ValueName<'a> {
    Key(&'a str),
    ElementOf(&'a str),
}

/// The kind of a value, for readers that accept more than one kind.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ValueKind<'a> {
    /// A string, without quotes and escapes.
    Text(&'a str),
    /// A whole number. Numbers beyond the range of `i128` are capped.
    Integer(i128),
    /// A number with a decimal point.
    Float(f64),
    /// Either `true` or `false`.
    Boolean(bool),
    /// A date, a time of day, or both, as written in the source.
    DateTime(&'a str),
    /// A list; see [`TomlValue::elements`].
    Array,
    /// A table; see [`TomlValue::table`].
    Table,
}

impl<'a> TomlValue<'a> {
    pub(crate) fn for_key(
        raw: &'a toml::Spanned<DeValue<'a>>,
        key: &'a str,
        context: &'a DocumentContext<'a>,
    ) -> Self {
        Self { raw, name: ValueName::Key(key), context }
    }

    /// Returns the place of the value in the source.
    #[must_use]
    pub fn span(&self) -> Span {
        self.context.source.clamp(self.raw.span().into())
    }

    /// Returns the kind of the value, with its content where that is simple.
    #[must_use]
    pub fn kind(&self) -> ValueKind<'a> {
        match self.raw.get_ref() {
            DeValue::String(text) => ValueKind::Text(text),
            DeValue::Integer(number) => ValueKind::Integer(parse_integer(number)),
            DeValue::Float(number) => ValueKind::Float(number.as_str().parse().unwrap_or(f64::NAN)),
            DeValue::Boolean(flag) => ValueKind::Boolean(*flag),
            DeValue::Datetime(_) => ValueKind::DateTime(self.context.source.slice(self.span())),
            DeValue::Array(_) => ValueKind::Array,
            DeValue::Table(_) => ValueKind::Table,
        }
    }

    /// Reads the value as a type that implements [`FromValue`].
    #[must_use]
    pub fn read<T: FromValue<'a>>(self) -> Option<T> {
        T::from_value(self)
    }

    /// Reads the value as text.
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

    /// Reads the value as text that is not blank.
    #[must_use]
    pub fn non_empty_text(self) -> Option<&'a str> {
        let text = self.text()?;
        if text.trim().is_empty() {
            return self.reject_empty("write something between the quotes");
        }
        Some(text)
    }

    /// Reads the value as a whole number within limits.
    #[must_use]
    pub fn integer_in(self, limits: RangeInclusive<i128>) -> Option<i128> {
        let ValueKind::Integer(number) = self.kind() else {
            let help = match self.kind() {
                ValueKind::Text(text) if text.parse::<i128>().is_ok() => "remove the quotes".to_owned(),
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

    /// Reads the value as a number within limits. Whole numbers are accepted, and `nan` is rejected.
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

    /// Reads the value as `true` or `false`.
    #[must_use]
    pub fn boolean(self) -> Option<bool> {
        match self.kind() {
            ValueKind::Boolean(flag) => Some(flag),
            ValueKind::Text("true" | "false") => {
                self.reject_type("`true` or `false`", "remove the quotes".to_owned())
            }
            ValueKind::Text(text) => {
                let meant = if syntax::boolean_word(text) == Some(false) { "false" } else { "true" };
                self.reject_type("`true` or `false`", self.example_help(meant))
            }
            _ => self.reject_type("`true` or `false`", self.example_help("true")),
        }
    }

    /// Reads the value as a list of tables. If it is something else, or a list with something else, `help` says
    /// how to write the tables.
    pub(crate) fn table_elements(self, help: &str) -> Vec<TomlTable<'a>> {
        if !matches!(self.kind(), ValueKind::Array) {
            let _: Option<()> = self.reject_type("a list of tables", help.to_owned());
            return Vec::new();
        }
        let elements = self.elements().unwrap_or_default();
        let is_table = |element: &TomlValue<'a>| matches!(element.kind(), ValueKind::Table);
        // The same mistake in all elements is one fault.
        if let Some(other) = elements.iter().find(|element| !is_table(element)) {
            let _: Option<()> = other.reject_type("a table", help.to_owned());
        }
        elements.into_iter().filter(is_table).filter_map(TomlValue::table).collect()
    }

    /// Reads the value as a list, and returns its elements.
    #[must_use]
    pub fn elements(self) -> Option<Vec<TomlValue<'a>>> {
        let DeValue::Array(items) = self.raw.get_ref() else {
            let help = match self.kind() {
                _ if self.is_hidden() => "put it in brackets: `[…]`".to_owned(),
                ValueKind::Table if !self.source_text().starts_with('{') => {
                    self.example_help("[\"one\", \"two\"]")
                }
                _ => format!("put it in brackets: `[{}]`", self.source_text()),
            };
            return self.reject_type("a list", help);
        };
        let name = ValueName::ElementOf(self.name.key());
        Some(items.iter().map(|raw| TomlValue { raw, name, context: self.context }).collect())
    }

    /// Reads the value as a list that is not empty, and returns its elements.
    #[must_use]
    pub fn non_empty_elements(self) -> Option<Vec<TomlValue<'a>>> {
        let elements = self.elements()?;
        if elements.is_empty() {
            return self.reject_empty("add at least one element");
        }
        Some(elements)
    }

    /// Reads the value as a table.
    #[must_use]
    pub fn table(self) -> Option<TomlTable<'a>> {
        match self.raw.get_ref() {
            DeValue::Table(table) => Some(TomlTable::new(table, self.span(), self.name.key(), self.context)),
            _ => {
                let key = escape_and_truncate(self.name.key());
                self.reject_type(
                    "a table",
                    format!("write `[{key}]` on a line of its own, and its keys below"),
                )
            }
        }
    }

    /// Reads the value as a table that is written on the line of its key. `example` is a good value, such as
    /// `{ width = 3 }`.
    #[must_use]
    pub fn inline_table(self, example: &str) -> Option<TomlTable<'a>> {
        match self.kind() {
            ValueKind::Table => self.table(),
            _ => self.reject_type("a table", self.example_help(example)),
        }
    }

    /// Reads the value as one of the allowed words, and returns the item that is paired with the word.
    #[must_use]
    pub fn one_of<T: Clone>(self, allowed: &[(&str, T)]) -> Option<T> {
        let text = self.text()?;
        if let Some((_, item)) = allowed.iter().find(|(word, _)| *word == text) {
            return Some(item.clone());
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

    /// Reads the value as text and parses it. If `parse` fails, its error is reported at the bytes that it
    /// names, or else at the whole value.
    #[must_use]
    pub fn parse<T>(self, parse: impl FnOnce(&str) -> Result<T, InvalidValue>) -> Option<T> {
        let text = self.text()?;
        match parse(text) {
            Ok(value) => Some(value),
            Err(invalid) => {
                self.reject(invalid);
                None
            }
        }
    }

    /// Attaches the place of this value to a result.
    #[must_use]
    pub fn spanned<T>(&self, value: T) -> Spanned<T> {
        Spanned::new(value, self.span())
    }

    /// Reads the value with `serde`, for parts of a file whose structure is defined elsewhere. Only the first
    /// fault is reported.
    #[must_use]
    pub fn deserialize<T: serde::de::DeserializeOwned>(self) -> Option<T> {
        match T::deserialize(toml::de::ValueDeserializer::from(self.raw.clone())) {
            Ok(value) => Some(value),
            Err(error) => {
                let span = error.span().map(Span::from);
                // Errors of `serde` quote the value. Without a span, the quoted value may be a hidden one.
                let hidden = span.map_or(self.context.has_hidden_keys(), |span| self.context.is_hidden(span));
                let message = if hidden { "could not read this value" } else { error.message() };
                let (message, help) = match message.split_once(", expected ") {
                    Some((message, expected)) => {
                        (message, format!("expected {}", escape_and_truncate(expected)))
                    }
                    None if message.starts_with("missing field") => (message, "add it".to_owned()),
                    None => (message, "correct it, or remove it".to_owned()),
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

/// Returns the number clamped to the limits, as text. For `nan`, returns the upper limit.
fn clamp_to_text(number: f64, limits: &RangeInclusive<f64>) -> String {
    number.min(*limits.end()).max(*limits.start()).to_string()
}

fn parse_integer(number: &toml::de::DeInteger<'_>) -> i128 {
    let capped = if number.as_str().starts_with('-') { i128::MIN } else { i128::MAX };
    i128::from_str_radix(number.as_str(), number.radix()).unwrap_or(capped)
}
