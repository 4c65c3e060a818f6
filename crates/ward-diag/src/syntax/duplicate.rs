//! Where a key that is set twice was set first.

use toml::de::{DeTable, DeValue};

use crate::{SourceText, Span};

/// Looks the key up in the text from which its second setting was taken out. Not found inside inline tables,
/// which vanish with their line; the two are side by side there anyway.
pub(super) fn first_definition(source: &SourceText, mended: &str, second: Span) -> Option<Span> {
    let (root, _) = DeTable::parse_recoverable(mended);
    let line = source.slice(source.line_span(source.line_of(second.start)));
    let (statement, _) = DeTable::parse_recoverable(line);
    let path = path_of(statement.get_ref());
    let names: Vec<&str> = path.iter().map(String::as_str).collect();
    let table = if line.trim_start().starts_with('[') {
        root.get_ref()
    } else {
        last_table_before(root.get_ref(), second.start).unwrap_or(root.get_ref())
    };
    find_key(table, &names, second.start)
}

/// The keys of a text that holds one statement: `a.b = 1` gives `a`, `b`.
fn path_of(statement: &DeTable<'_>) -> Vec<String> {
    let mut path = Vec::new();
    let mut table = Some(statement);
    while let Some((key, value)) = table.and_then(|table| table.iter().next()) {
        path.push(key.get_ref().to_string());
        table = match value.get_ref() {
            // An inline table is a value; the key ends before it.
            DeValue::Table(inner)
                if value.span().end <= key.span().end || value.span().start < key.span().start =>
            {
                Some(inner)
            }
            _ => None,
        };
    }
    path
}

fn find_key(table: &DeTable<'_>, path: &[&str], before: usize) -> Option<Span> {
    let (name, rest) = path.split_first()?;
    let (key, value) = table.get_key_value(*name)?;
    if rest.is_empty() {
        return (key.span().end <= before).then(|| key.span().into());
    }
    match value.get_ref() {
        DeValue::Table(inner) => find_key(inner, rest, before),
        DeValue::Array(items) => {
            let last = items.iter().rfind(|item| item.span().start < before)?;
            find_key(last.get_ref().as_table()?, rest, before)
        }
        _ => None,
    }
}

/// The table whose header stands closest above a place.
fn last_table_before<'t>(root: &'t DeTable<'t>, place: usize) -> Option<&'t DeTable<'t>> {
    let mut best = None;
    search_tables(root, place, &mut best);
    best.map(|(_, table)| table)
}

fn search_tables<'t>(table: &'t DeTable<'t>, place: usize, best: &mut Option<(usize, &'t DeTable<'t>)>) {
    for (key, value) in table {
        // A header's span surrounds its key; an inline or dotted table's does not.
        let has_header = value.span().start < key.span().start;
        let tables = match value.get_ref() {
            DeValue::Table(inner) => vec![(value.span().start, inner)],
            DeValue::Array(items) if has_header => items
                .iter()
                .filter_map(|item| Some((item.span().start, item.get_ref().as_table()?)))
                .collect(),
            _ => Vec::new(),
        };
        for (start, inner) in tables {
            if has_header && start < place && best.is_none_or(|(least, _)| start > least) {
                *best = Some((start, inner));
            }
            search_tables(inner, place, best);
        }
    }
}
