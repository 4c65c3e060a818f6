//! Finds the first definition of a key that is set twice.

use toml::de::{DeTable, DeValue};

use crate::{SourceText, Span};

/// Returns the span of the first definition of a key. `repaired` is the source without the second definition.
/// Keys inside inline tables are not found, because the whole line was removed; there the two definitions are
/// side by side anyway.
pub(super) fn first_definition(source: &SourceText, repaired: &str, second: Span) -> Option<Span> {
    let (root, _) = DeTable::parse_recoverable(repaired);
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

/// Returns the keys of a text that holds a single statement: `a` and `b` for `a.b = 1`.
fn path_of(statement: &DeTable<'_>) -> Vec<String> {
    let mut path = Vec::new();
    let mut table = Some(statement);
    while let Some((key, value)) = table.and_then(|table| table.iter().next()) {
        path.push(key.get_ref().to_string());
        table = match value.get_ref() {
            // Only dotted keys and headers lead on; an inline table is a value, and ends the path.
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

/// Returns the table whose header is the last one before `place`.
fn last_table_before<'t>(root: &'t DeTable<'t>, place: usize) -> Option<&'t DeTable<'t>> {
    let mut best = None;
    search_tables(root, place, &mut best);
    best.map(|(_, table)| table)
}

fn search_tables<'t>(table: &'t DeTable<'t>, place: usize, best: &mut Option<(usize, &'t DeTable<'t>)>) {
    for (key, value) in table {
        // The span of a header surrounds its key; the span of an inline or dotted table doesn't.
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
