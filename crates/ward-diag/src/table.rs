//! Reading of tables. A table records which keys were asked for, so that it can report unknown and missing
//! keys.

use std::collections::BTreeSet;

use toml::de::{DeTable, DeValue};

use crate::document::DocumentContext;
use crate::escape::escape_and_truncate;
use crate::fault::join_names;
use crate::{
    ConfigFault, FaultCollector, FromValue, InvalidValue, Span, Spanned, TomlValue, closest, code, secret,
};

/// A table of the document. Read every key first, then call [`finish`](Self::finish), and only then use `?`
/// on the results: otherwise faults in later keys go unreported.
#[derive(Debug)]
pub struct TomlTable<'a> {
    table: &'a DeTable<'a>,
    span: Span,
    name: &'a str,
    context: &'a DocumentContext<'a>,
    known: Vec<String>,
    missing: Vec<MissingKey>,
    /// Unknown keys that are reported already.
    advised: BTreeSet<&'a str>,
}

/// Advice about a key that no reader asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownKeyAdvice {
    /// The help text of the fault.
    pub help: String,
    /// The key of the same table that was meant. It isn't reported as missing.
    pub meant: Option<String>,
}

#[derive(Debug)]
struct MissingKey {
    key: String,
    help: Option<String>,
}

impl<'a> TomlTable<'a> {
    pub(crate) fn root(table: &'a DeTable<'a>, context: &'a DocumentContext<'a>) -> Self {
        Self::new(table, Span::FILE, "", context)
    }

    pub(crate) fn new(
        table: &'a DeTable<'a>,
        span: Span,
        name: &'a str,
        context: &'a DocumentContext<'a>,
    ) -> Self {
        Self { table, span, name, context, known: Vec::new(), missing: Vec::new(), advised: BTreeSet::new() }
    }

    /// Reads a required key.
    pub fn required<T: FromValue<'a>>(&mut self, key: &str) -> Option<T> {
        self.required_value(key).and_then(T::from_value)
    }

    /// Reads an optional key. Returns `None` if the key is absent, and also if its value is bad, with a fault
    /// on record.
    pub fn optional<T: FromValue<'a>>(&mut self, key: &str) -> Option<T> {
        self.value(key).and_then(T::from_value)
    }

    /// Reads a required key by parsing its text.
    pub fn required_parsed<T>(
        &mut self,
        key: &str,
        parse: impl FnOnce(&str) -> Result<T, InvalidValue>,
    ) -> Option<T> {
        self.required_value(key)?.parse(parse)
    }

    /// Reads an optional key by parsing its text.
    pub fn optional_parsed<T>(
        &mut self,
        key: &str,
        parse: impl FnOnce(&str) -> Result<T, InvalidValue>,
    ) -> Option<T> {
        self.value(key)?.parse(parse)
    }

    /// Reads a required key with a function that takes the value.
    pub fn required_with<T>(
        &mut self,
        key: &str,
        read: impl FnOnce(TomlValue<'a>) -> Option<T>,
    ) -> Option<T> {
        self.required_value(key).and_then(read)
    }

    /// Reads an optional key with a function that takes the value.
    pub fn optional_with<T>(
        &mut self,
        key: &str,
        read: impl FnOnce(TomlValue<'a>) -> Option<T>,
    ) -> Option<T> {
        self.value(key).and_then(read)
    }

    /// Reads an optional table within this table.
    pub fn table(&mut self, key: &str) -> Option<TomlTable<'a>> {
        self.optional(key)
    }

    /// Reads the tables under `[[key]]`, if any. A table under `[key]` is read too, but reported as a fault,
    /// with the advice to double its brackets.
    pub fn tables(&mut self, key: &str) -> Vec<TomlTable<'a>> {
        self.tables_or_help(key, &format!("write `[[{key}]]` on a line of its own, and its keys below"))
    }

    /// Reads the tables under `[[key]]`, as [`tables`](Self::tables) does. Where something else is written,
    /// `help` shows how to write such a table.
    pub fn tables_or_help(&mut self, key: &str, help: &str) -> Vec<TomlTable<'a>> {
        let Some(value) = self.value(key) else { return Vec::new() };
        if let Some(single) = self.table.get(key)
            && let DeValue::Table(inner) = single.get_ref()
        {
            if !inner.is_empty() && inner.values().all(|value| matches!(value.get_ref(), DeValue::Table(_))) {
                // The names of `[key.one]` and `[key.two]` would only be reported as unknown keys.
                let message = format!("each `{key}` table needs double brackets, and no name in its header");
                self.context
                    .faults
                    .push(ConfigFault::new(code::WRONG_TYPE, value.span(), message).help(help));
                return Vec::new();
            }
            self.context.faults.push(
                ConfigFault::new(
                    code::WRONG_TYPE,
                    value.span(),
                    format!("each `{key}` table needs double brackets"),
                )
                .help(self.double_brackets_help(key, value.span())),
            );
            return value.table().into_iter().collect();
        }
        value.table_elements(help)
    }

    /// Returns the value of a key, if present. The key counts as known from then on.
    pub fn value(&mut self, key: &str) -> Option<TomlValue<'a>> {
        self.known.push(key.to_owned());
        let (key, raw) = self.table.get_key_value(key)?;
        Some(TomlValue::for_key(raw, key.get_ref(), self.context))
    }

    /// Returns the value of a key that has a second name. If the table has both keys, records a fault.
    pub fn value_or_alias(&mut self, key: &str, alias: &str) -> Option<TomlValue<'a>> {
        let by_alias = self.value(alias);
        let by_key = self.value(key);
        if let (Some(first), Some(_), Some(second)) = (self.key_span(key), by_alias, self.key_span(alias)) {
            self.context.faults.push(
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

    /// Returns all keys and values in source order, for tables whose keys are names that the file defines.
    pub fn entries(&mut self) -> Vec<(Spanned<&'a str>, TomlValue<'a>)> {
        let mut entries: Vec<_> = self
            .table
            .iter()
            .map(|(key, raw)| {
                let name: &'a str = key.get_ref();
                let span = self.context.source.clamp(key.span().into());
                (Spanned::new(name, span), TomlValue::for_key(raw, name, self.context))
            })
            .collect();
        entries.sort_by_key(|(key, _)| key.span);
        self.known.extend(entries.iter().map(|(key, _)| key.value.to_owned()));
        entries
    }

    /// Sets the help text for a required key that turns out to be missing, such as `add config_version = 1`.
    /// Call it after the key was read.
    pub fn help_if_missing(&mut self, key: &str, help: impl Into<String>) {
        if let Some(missing) = self.missing.iter_mut().find(|missing| missing.key == key) {
            missing.help = Some(help.into());
        }
    }

    /// Returns the span of the table's header, or of the whole table if it is inline.
    #[must_use]
    pub fn span(&self) -> Span {
        self.span
    }

    /// Returns the span of a key, without its value.
    #[must_use]
    pub fn key_span(&self, key: &str) -> Option<Span> {
        self.table.get_key_value(key).map(|(key, _)| self.context.source.clamp(key.span().into()))
    }

    /// Returns the fault collector of the document, for faults that only the caller can find.
    #[must_use]
    pub fn faults(&self) -> &'a FaultCollector {
        self.context.faults
    }

    /// Returns true if parts of the file could not be parsed. Those parts may define names that seem to be
    /// missing, so callers should then not report undefined names.
    #[must_use]
    pub fn is_incomplete(&self) -> bool {
        self.context.incomplete
    }

    /// Reports those unknown keys for which `advise` knows more than a similar name. Call it after all known
    /// keys were read; [`finish`](Self::finish) reports the other unknown keys.
    pub fn advise_unknown_keys(&mut self, advise: impl Fn(&str, TomlValue<'a>) -> Option<UnknownKeyAdvice>) {
        for (key, span, value) in self.unknown_keys() {
            let Some(advice) = advise(key, TomlValue::for_key(value, key, self.context)) else { continue };
            self.advised.insert(key);
            self.report_unknown_key(key, span, value, advice.help);
            self.missing.retain(|missing| advice.meant.as_ref() != Some(&missing.key));
        }
    }

    /// Reports unknown keys and missing required keys. A misspelt required key is reported only as unknown,
    /// not also as missing.
    pub fn finish(mut self) {
        for (key, span, value) in self.unknown_keys() {
            let absent =
                self.known.iter().map(String::as_str).filter(|known| !self.table.contains_key(*known));
            // Prefer keys that are absent, but a key that is already set may have been meant too.
            let suggestion = closest(key, absent)
                .or_else(|| closest(key, self.known.iter().map(String::as_str)))
                .map(str::to_owned);
            self.report_unknown_key(key, span, value, self.unknown_key_help(suggestion.as_deref()));
            self.missing.retain(|missing| suggestion.as_ref() != Some(&missing.key));
        }
    }

    /// Returns the keys that no reader asked for, with their places and values.
    fn unknown_keys(&self) -> Vec<(&'a str, Span, &'a toml::Spanned<DeValue<'a>>)> {
        let known: BTreeSet<&str> = self.known.iter().map(String::as_str).collect();
        let keys = self.table.iter().map(|(key, value)| {
            let name: &'a str = key.get_ref();
            (name, Span::from(key.span()), value)
        });
        keys.filter(|(key, ..)| !known.contains(key) && !self.advised.contains(key)).collect()
    }

    fn required_value(&mut self, key: &str) -> Option<TomlValue<'a>> {
        let value = self.value(key);
        if value.is_none() && !self.context.incomplete {
            self.missing.push(MissingKey { key: key.to_owned(), help: None });
        }
        value
    }

    fn double_brackets_help(&self, key: &str, header: Span) -> String {
        match self.context.source.slice(header) {
            written if written.starts_with('[') => format!("write `[{}]`", escape_and_truncate(written)),
            _ => format!("write `[[{key}]]`"),
        }
    }

    fn report_unknown_key(
        &self,
        key: &str,
        span: Span,
        value: &toml::Spanned<DeValue<'_>>,
        help: impl Into<String>,
    ) {
        let place = if self.name.is_empty() {
            String::new()
        } else {
            format!(" in `{}`", escape_and_truncate(self.name))
        };
        let message = format!("unknown key `{}`{place}", escape_and_truncate(key));
        let fault = ConfigFault::new(code::UNKNOWN_KEY, self.context.source.clamp(span), message);
        self.context.faults.push(fault.help(help));
        if self.context.has_hidden_keys() {
            // The span of a table with a header is the header itself, which reveals no more than the key.
            let hidden = secret::hidden_in_value(value).into_iter();
            hidden.filter(|hidden| hidden.start >= span.end).for_each(|span| self.context.faults.hide(span));
        }
    }

    fn unknown_key_help(&self, suggestion: Option<&str>) -> String {
        let known: Vec<&str> = self.known.iter().map(String::as_str).collect();
        match suggestion {
            Some(suggestion) => format!("did you mean `{suggestion}`?"),
            None if known.is_empty() => "remove it".to_owned(),
            None => format!("remove it; known keys: {}", join_names(&known, "and")),
        }
    }
}

/// Reports missing keys on drop, because `finish` has to run first to find out which of them were only
/// misspelt. On drop they are also reported if the caller returned early.
impl Drop for TomlTable<'_> {
    fn drop(&mut self) {
        for MissingKey { key, help } in self.missing.drain(..) {
            let place = if self.name.is_empty() {
                String::new()
            } else {
                format!(" in `{}`", escape_and_truncate(self.name))
            };
            let help = help.unwrap_or_else(|| format!("add a line `{key} = …`"));
            self.context.faults.push(
                ConfigFault::new(code::MISSING_KEY, self.span, format!("`{key}` is missing{place}"))
                    .help(help),
            );
        }
    }
}
