//! One value with its place, its name for messages, and the ways to read it.

use std::ops::RangeInclusive;

use toml::de::DeValue;

use crate::fault::listed;
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
            Shape::DateTime(_) | Shape::Integer(_) | Shape::Float(_) if !self.is_hidden() => {
                let written = self.reading.source.slice(self.span());
                self.wrong_type("text", Some(format!("put it in quotes: `\"{written}\"`")))
            }
            _ => self.wrong_type("text", None),
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
                Shape::Text(text) if text.parse::<i128>().is_ok() => Some("take the quotes away".to_owned()),
                _ => None,
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
        self.out_of_range(&wanted)
    }

    /// A number within limits. A whole number is one too; what is not a number is refused.
    #[must_use]
    pub fn number_in(self, limits: RangeInclusive<f64>) -> Option<f64> {
        let number = match self.shape() {
            Shape::Float(number) => number,
            Shape::Integer(number) => number.to_string().parse().unwrap_or(f64::NAN),
            _ => return self.wrong_type("a number", None),
        };
        if limits.contains(&number) {
            return Some(number);
        }
        self.out_of_range(&format!("between {} and {}", limits.start(), limits.end()))
    }

    /// `true` or `false`.
    #[must_use]
    pub fn boolean(self) -> Option<bool> {
        match self.shape() {
            Shape::Boolean(flag) => Some(flag),
            Shape::Text("true" | "false") => {
                self.wrong_type("`true` or `false`", Some("take the quotes away".to_owned()))
            }
            _ => self.wrong_type("`true` or `false`", None),
        }
    }

    /// The elements of a list.
    #[must_use]
    pub fn elements(self) -> Option<Vec<Value<'a>>> {
        let DeValue::Array(items) = self.raw.get_ref() else {
            let help = (!self.is_hidden() && !matches!(self.shape(), Shape::Table))
                .then(|| format!("put it in brackets: `[{}]`", self.written()));
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
                    Some(format!("write `[{key}]` on a line of its own, and its keys below")),
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

    /// Reports a refusal about this value.
    pub fn refuse(&self, invalid: Invalid) {
        let span = invalid.at.clone().and_then(|at| self.inner_span(at)).unwrap_or(self.span());
        let mut fault = Fault::new(invalid.code, span, self.discreet(invalid.message));
        if let Some(help) = invalid.help {
            fault = fault.help(self.discreet(help));
        }
        self.push(fault);
    }

    /// Records a fault at this value.
    pub fn fault(&self, code: &'static str, message: impl Into<String>) {
        self.push(Fault::new(code, self.span(), message));
    }

    /// The value with its place.
    #[must_use]
    pub fn spanned<T>(&self, value: T) -> Spanned<T> {
        Spanned::new(value, self.span())
    }

    /// The name for messages: its key in backticks, or the list that it is an element of.
    #[must_use]
    pub fn name(&self) -> String {
        match self.name {
            Name::Key(key) => format!("`{}`", readable(key)),
            Name::ElementOf(list) => format!("each element of `{}`", readable(list)),
        }
    }

    /// The text in quotes for a message, cut short, or `***` where it must not be shown.
    #[must_use]
    pub fn quoted(&self) -> String {
        if self.is_hidden() {
            return "***".to_owned();
        }
        match self.shape() {
            Shape::Text(text) => format!("\"{}\"", readable(text)),
            _ => self.written(),
        }
    }

    /// Whether its text must not be shown.
    #[must_use]
    pub fn is_hidden(&self) -> bool {
        self.reading.is_hidden(self.span())
    }

    fn written(&self) -> String {
        readable(self.reading.source.slice(self.span()))
    }

    fn empty<T>(self, help: &str) -> Option<T> {
        self.push(
            Fault::new(code::EMPTY, self.span(), format!("{} must not be empty", self.name())).help(help),
        );
        None
    }

    fn out_of_range<T>(self, wanted: &str) -> Option<T> {
        let written = if self.is_hidden() { "***".to_owned() } else { self.written() };
        self.fault(code::OUT_OF_RANGE, format!("{} must be {wanted}, but is {written}", self.name()));
        None
    }

    fn wrong_type<T>(self, wanted: &str, help: Option<String>) -> Option<T> {
        let found = match self.shape() {
            Shape::Text(_) => "text",
            Shape::Integer(_) => "a whole number",
            Shape::Float(_) => "a number with a point",
            Shape::Boolean(_) => "true or false",
            Shape::DateTime(_) => "a date or time",
            Shape::Array => "a list",
            Shape::Table => "a table",
        };
        let mut fault = Fault::new(
            code::WRONG_TYPE,
            self.span(),
            format!("{} must be {wanted}, but this is {found}", self.name()),
        );
        if let Some(help) = help {
            fault = fault.help(help);
        }
        self.push(fault);
        None
    }

    fn push(&self, fault: Fault) {
        self.reading.faults.push(fault);
    }

    /// Bytes of the parsed text as a place in the source. Only where the two are the same text: not with escapes.
    fn inner_span(&self, at: std::ops::Range<usize>) -> Option<Span> {
        let Shape::Text(text) = self.shape() else { return None };
        let span = self.span();
        let inside = self.reading.source.slice(Span { start: span.start + 1, end: span.end.checked_sub(1)? });
        let whole = text.get(at.clone()).is_some() && inside == text;
        whole.then(|| Span { start: span.start + 1 + at.start, end: span.start + 1 + at.end })
    }

    /// A caller's words without the value, should it have to stay hidden.
    fn discreet(&self, words: String) -> String {
        match self.shape() {
            Shape::Text(text) if self.is_hidden() && !text.is_empty() => words.replace(text, "***"),
            _ => words,
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

fn integer(number: &toml::de::DeInteger<'_>) -> i128 {
    let capped = if number.as_str().starts_with('-') { i128::MIN } else { i128::MAX };
    i128::from_str_radix(number.as_str(), number.radix()).unwrap_or(capped)
}

/// Longest text that a message repeats.
const MAX_QUOTED: usize = 60;

/// Text that is safe to print: one line, no control characters, cut short.
pub(crate) fn readable(text: &str) -> String {
    let mut shown: String = text.chars().take(MAX_QUOTED).flat_map(printable).collect();
    if text.chars().nth(MAX_QUOTED).is_some() {
        shown.push('…');
    }
    shown
}

fn printable(character: char) -> impl Iterator<Item = char> {
    // What turns the direction of writing round could make a message say something else.
    let turns =
        matches!(character, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let escape = turns || character.is_control();
    let escaped = escape.then(|| character.escape_default()).into_iter().flatten();
    let plain = (!escape).then_some(character);
    escaped.chain(plain)
}
