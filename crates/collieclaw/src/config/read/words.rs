//! What several sections are read with.

use ward_diag::{Fault, Span, Spanned, Table, Value, closest, code};

pub(super) fn put<T>(into: &mut T, read: Option<T>) {
    if let Some(read) = read {
        *into = read;
    }
}

pub(super) fn filled(value: Value<'_>) -> Option<Spanned<String>> {
    let span = value.span();
    value.filled_text().map(|text| Spanned::new(text.to_owned(), span))
}

pub(super) fn text_or(table: &mut Table<'_>, key: &str, default: &str) -> String {
    table.optional_with(key, filled).map_or_else(|| default.to_owned(), |text| text.value)
}

/// Every element is read before the first bad one ends it, so that all are reported.
pub(super) fn all<'v, T>(value: Value<'v>, read: impl Fn(Value<'v>) -> Option<T>) -> Option<Vec<T>> {
    let read: Vec<Option<T>> = value.elements()?.into_iter().map(read).collect();
    read.into_iter().collect()
}

pub(super) fn all_filled(value: Value<'_>) -> Option<Vec<String>> {
    let read: Vec<Option<String>> =
        value.filled_elements()?.into_iter().map(|name| name.filled_text().map(str::to_owned)).collect();
    read.into_iter().collect()
}

pub(super) fn unknown<'c>(
    what: &str,
    name: &Spanned<String>,
    known: impl Iterator<Item = &'c str> + Clone,
    otherwise: &str,
) -> Fault {
    let listed = known.clone().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    let help = match closest(&name.value, known) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("there are {listed}; {otherwise}"),
    };
    let span: Span = name.span;
    Fault::new(code::UNKNOWN_NAME, span, format!("there is no {what} `{}`", name.value)).help(help)
}
