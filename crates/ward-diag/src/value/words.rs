//! What is said about a value that doesn't fit.

use crate::printable::readable;
use crate::value::{Name, Shape, Value};
use crate::{Fault, Invalid, Span, code};

impl Value<'_> {
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

    pub(super) fn written(&self) -> String {
        readable(self.reading.source.slice(self.span()))
    }

    pub(super) fn empty<T>(self, help: &str) -> Option<T> {
        self.push(
            Fault::new(code::EMPTY, self.span(), format!("{} must not be empty", self.name())).help(help),
        );
        None
    }

    pub(super) fn out_of_range<T>(self, wanted: &str, nearest: &str) -> Option<T> {
        let written = if self.is_hidden() { "***".to_owned() } else { self.written() };
        let message = format!("{} must be {wanted}, but is {written}", self.name());
        self.push(Fault::new(code::OUT_OF_RANGE, self.span(), message).help(self.like(nearest)));
        None
    }

    /// The cure for a value that is nothing like what is wanted.
    pub(super) fn like(&self, example: &str) -> String {
        match self.name {
            Name::Key(key) => format!("write it like `{} = {example}`", readable(key)),
            Name::ElementOf(_) => format!("write it like `{example}`"),
        }
    }

    pub(super) fn wrong_type<T>(self, wanted: &str, help: String) -> Option<T> {
        let found = match self.shape() {
            Shape::Text(_) => "text",
            Shape::Integer(_) => "a whole number",
            Shape::Float(_) => "a number with a point",
            Shape::Boolean(_) => "true or false",
            Shape::DateTime(_) => "a date or time",
            Shape::Array => "a list",
            Shape::Table => "a table",
        };
        let message = format!("{} must be {wanted}, but this is {found}", self.name());
        self.push(Fault::new(code::WRONG_TYPE, self.span(), message).help(help));
        None
    }

    pub(super) fn push(&self, fault: Fault) {
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
