//! The messages about values that don't fit.

use crate::escape::escape_and_truncate;
use crate::value::{TomlValue, ValueKind, ValueName};
use crate::{ConfigFault, InvalidValue, Span, code};

impl TomlValue<'_> {
    /// Reports that a parser rejected this value.
    pub fn reject(&self, invalid: InvalidValue) {
        self.push_fault(self.fault_from(invalid));
    }

    /// Records a warning about this value, which is valid but probably not meant.
    pub fn warn(&self, warning: InvalidValue) {
        self.context.faults.warn(self.fault_from(warning));
    }

    fn fault_from(&self, invalid: InvalidValue) -> ConfigFault {
        let span = invalid.at.clone().and_then(|at| self.inner_span(at)).unwrap_or(self.span());
        let fault = ConfigFault::new(invalid.code, span, self.redact_value(invalid.message));
        match invalid.help {
            Some(help) => fault.help(self.redact_value(help)),
            None => fault,
        }
    }

    /// Records a fault at this value.
    pub fn report_fault(&self, code: &'static str, message: impl Into<String>) {
        self.push_fault(ConfigFault::new(code, self.span(), message));
    }

    /// Returns the name of the value for messages: its key in backticks, or the list that it is an element
    /// of.
    #[must_use]
    pub fn name(&self) -> String {
        match self.name {
            ValueName::Key(key) => format!("`{}`", escape_and_truncate(key)),
            ValueName::ElementOf(list) => format!("each element of `{}`", escape_and_truncate(list)),
        }
    }

    /// Returns the value for use in a message: shortened, text in quotes, and `***` if the value is hidden.
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

    /// Returns true if the value must not be shown.
    #[must_use]
    pub fn is_hidden(&self) -> bool {
        self.context.is_hidden(self.span())
    }

    pub(super) fn source_text(&self) -> String {
        escape_and_truncate(self.context.source.slice(self.span()))
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

    /// Returns a help text with an example of a good value.
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
            ValueKind::Float(_) => "a decimal number",
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
        self.context.faults.push(fault);
    }

    /// Converts a range in the parsed text into a span of the source. Returns `None` if the two texts differ,
    /// as they do when the source has escapes.
    fn inner_span(&self, at: std::ops::Range<usize>) -> Option<Span> {
        let ValueKind::Text(text) = self.kind() else { return None };
        let span = self.span();
        let inside = self.context.source.slice(Span { start: span.start + 1, end: span.end.checked_sub(1)? });
        let same_text = text.get(at.clone()).is_some() && inside == text;
        same_text.then(|| Span { start: span.start + 1 + at.start, end: span.start + 1 + at.end })
    }

    /// Masks the value in a message of the caller, if the value is hidden.
    fn redact_value(&self, message: String) -> String {
        match self.kind() {
            ValueKind::Text(text) if self.is_hidden() && !text.is_empty() => message.replace(text, "***"),
            _ => message,
        }
    }
}
