//! Helpers that several sections use to read values.

use ward_diag::{ConfigFault, Span, Spanned, TomlTable, TomlValue, closest, code};

pub(super) fn set_if_some<T>(into: &mut T, read: Option<T>) {
    if let Some(read) = read {
        *into = read;
    }
}

pub(super) fn nonempty_text(value: TomlValue<'_>) -> Option<Spanned<String>> {
    let span = value.span();
    value.non_empty_text().map(|text| Spanned::new(text.to_owned(), span))
}

pub(super) fn text_or(table: &mut TomlTable<'_>, key: &str, default: &str) -> String {
    table.optional_with(key, nonempty_text).map_or_else(|| default.to_owned(), |text| text.value)
}

/// Reads all elements before it gives up, so that every bad element is reported.
pub(super) fn read_all<'v, T>(
    value: TomlValue<'v>,
    read: impl Fn(TomlValue<'v>) -> Option<T>,
) -> Option<Vec<T>> {
    let read: Vec<Option<T>> = value.elements()?.into_iter().map(read).collect();
    read.into_iter().collect()
}

pub(super) fn nonempty_texts(value: TomlValue<'_>) -> Option<Vec<String>> {
    let read: Vec<Option<String>> = value
        .non_empty_elements()?
        .into_iter()
        .map(|name| name.non_empty_text().map(str::to_owned))
        .collect();
    read.into_iter().collect()
}

pub(super) fn unknown_name<'c>(
    what: &str,
    name: &Spanned<String>,
    known: impl Iterator<Item = &'c str> + Clone,
    alternative: &str,
) -> ConfigFault {
    let listed = known.clone().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    let help = match closest(&name.value, known) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("known names: {listed}; {alternative}"),
    };
    let span: Span = name.span;
    ConfigFault::new(code::UNKNOWN_NAME, span, format!("no such {what} `{}`", name.value)).help(help)
}
