//! A table that remembers which keys were asked for, so that it can name those nobody knows.

use std::collections::BTreeSet;

use toml::de::{DeTable, DeValue};

use crate::document::DocumentContext;
use crate::escape::escape_and_truncate;
use crate::fault::join_names;
use crate::{
    ConfigFault, FaultCollector, FromValue, InvalidValue, Span, Spanned, TomlValue, closest, code, secret,
};

/// A table of the document. Read every key first, then [`finish`](Self::finish), and only then use `?` on what
/// was read: so nothing in the table goes unreported.
#[derive(Debug)]
pub struct TomlTable<'a> {
    table: &'a DeTable<'a>,
    span: Span,
    name: &'a str,
    reading: &'a DocumentContext<'a>,
    known: Vec<String>,
    missing: Vec<MissingKey>,
}

#[derive(Debug)]
struct MissingKey {
    key: String,
    help: Option<String>,
}

impl<'a> TomlTable<'a> {
    pub(crate) fn root(table: &'a DeTable<'a>, reading: &'a DocumentContext<'a>) -> Self {
        Self::new(table, Span::FILE, "", reading)
    }

    pub(crate) fn new(
        table: &'a DeTable<'a>,
        span: Span,
        name: &'a str,
        reading: &'a DocumentContext<'a>,
    ) -> Self {
        Self { table, span, name, reading, known: Vec::new(), missing: Vec::new() }
    }

    /// A key that must be there.
    pub fn required<T: FromValue<'a>>(&mut self, key: &str) -> Option<T> {
        self.required_value(key).and_then(T::from_value)
    }

    /// A key that may be absent. `None` also when it was there and bad; then a fault is on record.
    pub fn optional<T: FromValue<'a>>(&mut self, key: &str) -> Option<T> {
        self.value(key).and_then(T::from_value)
    }

    /// A key that must be there, read by a function that gets the text.
    pub fn required_parsed<T>(
        &mut self,
        key: &str,
        with: impl FnOnce(&str) -> Result<T, InvalidValue>,
    ) -> Option<T> {
        self.required_value(key)?.parse(with)
    }

    /// A key that may be absent, read by a function that gets the text.
    pub fn optional_parsed<T>(
        &mut self,
        key: &str,
        with: impl FnOnce(&str) -> Result<T, InvalidValue>,
    ) -> Option<T> {
        self.value(key)?.parse(with)
    }

    /// A key that must be there, read by a function that gets the value.
    pub fn required_with<T>(
        &mut self,
        key: &str,
        with: impl FnOnce(TomlValue<'a>) -> Option<T>,
    ) -> Option<T> {
        self.required_value(key).and_then(with)
    }

    /// A key that may be absent, read by a function that gets the value.
    pub fn optional_with<T>(
        &mut self,
        key: &str,
        with: impl FnOnce(TomlValue<'a>) -> Option<T>,
    ) -> Option<T> {
        self.value(key).and_then(with)
    }

    /// A table in this one; `None` where there is none.
    pub fn table(&mut self, key: &str) -> Option<TomlTable<'a>> {
        self.optional(key)
    }

    /// The tables under `[[key]]`, none if it never occurs. A single `[key]` is told to double its brackets.
    pub fn tables(&mut self, key: &str) -> Vec<TomlTable<'a>> {
        let Some(value) = self.value(key) else { return Vec::new() };
        if let Some(single) = self.table.get(key)
            && matches!(single.get_ref(), DeValue::Table(_))
        {
            self.reading.faults.push(
                ConfigFault::new(
                    code::WRONG_TYPE,
                    value.span(),
                    format!("there can be several `{key}`, each in double brackets"),
                )
                .help(self.double_brackets_help(key, value.span())),
            );
            return value.table().into_iter().collect();
        }
        value.elements().unwrap_or_default().into_iter().filter_map(TomlValue::table).collect()
    }

    /// A value as it is; the key counts as known from now on.
    pub fn value(&mut self, key: &str) -> Option<TomlValue<'a>> {
        self.known.push(key.to_owned());
        let (key, raw) = self.table.get_key_value(key)?;
        Some(TomlValue::for_key(raw, key.get_ref(), self.reading))
    }

    /// A value that has two names, an old and a new one. Both at once contradict each other.
    pub fn value_or_alias(&mut self, key: &str, alias: &str) -> Option<TomlValue<'a>> {
        let by_alias = self.value(alias);
        let by_key = self.value(key);
        if let (Some(first), Some(_), Some(second)) = (self.key_span(key), by_alias, self.key_span(alias)) {
            self.reading.faults.push(
                ConfigFault::new(
                    code::DUPLICATE_KEY,
                    second,
                    format!("`{alias}` is another name for `{key}`"),
                )
                .related(first, "set here as well")
                .help("keep one of the two"),
            );
        }
        by_key.or(by_alias)
    }

    /// All keys in source order, for tables whose keys are names that the file invents.
    pub fn entries(&mut self) -> Vec<(Spanned<&'a str>, TomlValue<'a>)> {
        let mut entries: Vec<_> = self
            .table
            .iter()
            .map(|(key, raw)| {
                let name: &'a str = key.get_ref();
                let span = self.reading.source.clamp(key.span().into());
                (Spanned::new(name, span), TomlValue::for_key(raw, name, self.reading))
            })
            .collect();
        entries.sort_by_key(|(key, _)| key.span);
        self.known.extend(entries.iter().map(|(key, _)| key.value.to_owned()));
        entries
    }

    /// Says what to add when a required key turns out to be missing, such as `add config_version = 1`.
    pub fn help_if_missing(&mut self, key: &str, help: impl Into<String>) {
        if let Some(missing) = self.missing.iter_mut().find(|missing| missing.key == key) {
            missing.help = Some(help.into());
        }
    }

    /// Where its header stands, or the whole of an inline table.
    #[must_use]
    pub fn span(&self) -> Span {
        self.span
    }

    /// Where a key stands.
    #[must_use]
    pub fn key_span(&self, key: &str) -> Option<Span> {
        self.table.get_key_value(key).map(|(key, _)| self.reading.source.clamp(key.span().into()))
    }

    /// The faults of the document, to add those that only the caller can find.
    #[must_use]
    pub fn faults(&self) -> &'a FaultCollector {
        self.reading.faults
    }

    /// Whether parts of the file could not be parsed. What seems to be undefined may then stand there: keep
    /// such faults back.
    #[must_use]
    pub fn is_incomplete(&self) -> bool {
        self.reading.incomplete
    }

    /// Reports the keys that nobody asked for, and the required ones that are not there. A misspelt key is
    /// reported once, not as unknown and missing.
    pub fn finish(mut self) {
        let known: BTreeSet<&str> = self.known.iter().map(String::as_str).collect();
        let unknown: Vec<_> =
            self.table.iter().filter(|(key, _)| !known.contains(key.get_ref().as_ref())).collect();
        for (key, value) in unknown {
            let (key, span) = (key.get_ref(), Span::from(key.span()));
            let absent =
                self.known.iter().map(String::as_str).filter(|known| !self.table.contains_key(*known));
            // What is there already may have been meant all the same.
            let meant =
                closest(key, absent).or_else(|| closest(key, known.iter().copied())).map(str::to_owned);
            self.report_unknown_key(key, span, meant.as_deref());
            self.missing.retain(|missing| meant.as_ref() != Some(&missing.key));
            if self.reading.has_hidden_keys() {
                // The span of a table with a header is its header, which says no more than the key.
                let hidden = secret::hidden_in_value(value).into_iter();
                hidden
                    .filter(|hidden| hidden.start >= span.end)
                    .for_each(|span| self.reading.faults.hide(span));
            }
        }
    }

    fn required_value(&mut self, key: &str) -> Option<TomlValue<'a>> {
        let value = self.value(key);
        if value.is_none() && !self.reading.incomplete {
            self.missing.push(MissingKey { key: key.to_owned(), help: None });
        }
        value
    }

    fn double_brackets_help(&self, key: &str, header: Span) -> String {
        match self.reading.source.slice(header) {
            written if written.starts_with('[') => format!("write `[{}]`", escape_and_truncate(written)),
            _ => format!("write `[[{key}]]`"),
        }
    }

    fn report_unknown_key(&self, key: &str, span: Span, meant: Option<&str>) {
        let place = if self.name.is_empty() {
            String::new()
        } else {
            format!(" in `{}`", escape_and_truncate(self.name))
        };
        let message = format!("unknown key `{}`{place}", escape_and_truncate(key));
        let fault = ConfigFault::new(code::UNKNOWN_KEY, self.reading.source.clamp(span), message);
        let known: Vec<&str> = self.known.iter().map(String::as_str).collect();
        let help = match meant {
            Some(meant) => format!("did you mean `{meant}`?"),
            None if known.is_empty() => "take it out".to_owned(),
            None => format!("take it out; known here: {}", join_names(&known, "and")),
        };
        self.reading.faults.push(fault.help(help));
    }
}

/// Missing keys are reported at the end, when it is known which of them were only misspelt; also if the caller
/// gave up half-way.
impl Drop for TomlTable<'_> {
    fn drop(&mut self) {
        for MissingKey { key, help } in self.missing.drain(..) {
            let place = if self.name.is_empty() {
                String::new()
            } else {
                format!(" in `{}`", escape_and_truncate(self.name))
            };
            let help = help.unwrap_or_else(|| format!("add a line `{key} = …`"));
            self.reading.faults.push(
                ConfigFault::new(code::MISSING_KEY, self.span, format!("`{key}` is missing{place}"))
                    .help(help),
            );
        }
    }
}
