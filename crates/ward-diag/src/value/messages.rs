//! What is said about a value that doesn't fit.

use crate::escape::escape_and_truncate;
use crate::value::{TomlValue, ValueKind, ValueName};
use crate::{ConfigFault, InvalidValue, Span, code};

impl TomlValue<'_> {
    /// Reports a refusal about this value.
    pub fn reject(&self, invalid: InvalidValue) {
        let span = invalid.at.clone().and_then(|at| self.inner_span(at)).unwrap_or(self.span());
        let mut fault = ConfigFault::new(invalid.code, span, self.redact_value(invalid.message));
        if let Some(help) = invalid.help {
            fault = fault.help(self.redact_value(help));
        }
        self.push_fault(fault);
    }

    /// Records a fault at this value.
    pub fn report_fault(&self, code: &'static str, message: impl Into<String>) {
        self.push_fault(ConfigFault::new(code, self.span(), message));
    }

    /// The name for messages: its key in backticks, or the list that it is an element of.
    #[must_use]
    pub fn name(&self) -> String {
        match self.name {
            ValueName::Key(key) => format!("`{}`", escape_and_truncate(key)),
            ValueName::ElementOf(list) => format!("each element of `{}`", escape_and_truncate(list)),
        }
    }

    /// The text in quotes for a message, cut short, or `***` where it must not be shown.
    #[must_use]
    pub fn quoted(&self) -> String {
        if self.is_hidden() {
            return "***".to_owned();
        }
        match self.kind() {
            ValueKind::Text(text) => format!("\"{}\"", escape_and_truncate(text)),
            _ => self.source_text(),
        }
    }

    /// Whether its text must not be shown.
    #[must_use]
    pub fn is_hidden(&self) -> bool {
        self.reading.is_hidden(self.span())
    }

    pub(super) fn source_text(&self) -> String {
        escape_and_truncate(self.reading.source.slice(self.span()))
    }

    pub(super) fn reject_empty<T>(self, help: &str) -> Option<T> {
        self.push_fault(
            ConfigFault::new(code::EMPTY, self.span(), format!("{} must not be empty", self.name()))
                .help(help),
        );
        None
    }

    pub(super) fn reject_out_of_range<T>(self, wanted: &str, nearest: &str) -> Option<T> {
        let written = if self.is_hidden() { "***".to_owned() } else { self.source_text() };
        let message = format!("{} must be {wanted}, but is {written}", self.name());
        self.push_fault(
            ConfigFault::new(code::OUT_OF_RANGE, self.span(), message).help(self.example_help(nearest)),
        );
        None
    }

    /// The cure for a value that is nothing like what is wanted.
    pub(super) fn example_help(&self, example: &str) -> String {
        match self.name {
            ValueName::Key(key) => format!("write it like `{} = {example}`", escape_and_truncate(key)),
            ValueName::ElementOf(_) => format!("write it like `{example}`"),
        }
    }

    pub(super) fn reject_type<T>(self, wanted: &str, help: String) -> Option<T> {
        let found = match self.kind() {
            ValueKind::Text(_) => "text",
            ValueKind::Integer(_) => "a whole number",
            ValueKind::Float(_) => "a number with a point",
            ValueKind::Boolean(_) => "true or false",
            ValueKind::DateTime(_) => "a date or time",
            ValueKind::Array => "a list",
            ValueKind::Table => "a table",
        };
        let message = format!("{} must be {wanted}, but this is {found}", self.name());
        self.push_fault(ConfigFault::new(code::WRONG_TYPE, self.span(), message).help(help));
        None
    }

    pub(super) fn push_fault(&self, fault: ConfigFault) {
        self.reading.faults.push(fault);
    }

    /// Bytes of the parsed text as a place in the source. Only where the two are the same text: not with escapes.
    fn inner_span(&self, at: std::ops::Range<usize>) -> Option<Span> {
        let ValueKind::Text(text) = self.kind() else { return None };
        let span = self.span();
        let inside = self.reading.source.slice(Span { start: span.start + 1, end: span.end.checked_sub(1)? });
        let whole = text.get(at.clone()).is_some() && inside == text;
        whole.then(|| Span { start: span.start + 1 + at.start, end: span.start + 1 + at.end })
    }

    /// A caller's words without the value, should it have to stay hidden.
    fn redact_value(&self, words: String) -> String {
        match self.kind() {
            ValueKind::Text(text) if self.is_hidden() && !text.is_empty() => words.replace(text, "***"),
            _ => words,
        }
    }
}
