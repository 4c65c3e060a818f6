//! Which parts of a text must never be shown.
//!
//! The text is searched, because a secret must stay hidden in a file that doesn't parse; where in doubt too much
//! is hidden. The parsed tree is searched as well, because a key can be written with escapes or be a table.

use toml::de::{DeTable, DeValue};

use crate::{Source, Span};

/// The values of the source's hidden keys, in order and apart from each other.
pub(crate) fn hidden_spans(source: &Source) -> Vec<Span> {
    let text = source.text();
    let mut spans = Vec::new();
    for key in source.hidden_keys().iter().filter(|key| !key.is_empty()) {
        let mut covered = 0;
        for (at, _) in text.match_indices(key.as_str()) {
            let after = at + key.len();
            // Inside a hidden value no other begins; looking would cost the square of a text made of such keys.
            if at >= covered
                && is_whole_word(text, at, after)
                && let Some(span) = value_after(text, after)
            {
                covered = span.end;
                spans.push(span);
            }
        }
    }
    merged(spans)
}

/// The values of the source's hidden keys as the parser understood them.
pub(crate) fn hidden_in_tree(source: &Source, root: &DeTable<'_>) -> Vec<Span> {
    let mut spans = Vec::new();
    if !source.hidden_keys().is_empty() {
        search(root, source.hidden_keys(), Under::Shown, &mut spans);
    }
    spans
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Under {
    Shown,
    Hidden,
}

fn search(table: &DeTable<'_>, keys: &[String], under: Under, spans: &mut Vec<Span>) {
    for (key, value) in table {
        let named = keys.iter().any(|hidden| hidden.as_str() == key.get_ref());
        let under = if named { Under::Hidden } else { under };
        search_value(value, keys, under, spans);
    }
}

fn search_value(value: &toml::Spanned<DeValue<'_>>, keys: &[String], under: Under, spans: &mut Vec<Span>) {
    match value.get_ref() {
        DeValue::Table(inner) => search(inner, keys, under, spans),
        DeValue::Array(items) => items.iter().for_each(|item| search_value(item, keys, under, spans)),
        _ if under == Under::Hidden => spans.push(value.span().into()),
        _ => {}
    }
}

/// The same places in order, those that overlap or touch as one.
pub(crate) fn merged(mut spans: Vec<Span>) -> Vec<Span> {
    spans.sort_unstable();
    let mut result: Vec<Span> = Vec::new();
    for span in spans {
        match result.last_mut() {
            Some(last) if span.start <= last.end => last.end = last.end.max(span.end),
            _ => result.push(span),
        }
    }
    result
}

fn is_whole_word(text: &str, start: usize, end: usize) -> bool {
    let before = text.get(..start).and_then(|head| head.chars().next_back());
    let after = text.get(end..).and_then(|tail| tail.chars().next());
    !before.is_some_and(is_bare) && !after.is_some_and(is_bare)
}

fn is_bare(character: char) -> bool {
    character.is_ascii_alphanumeric() || character == '_' || character == '-'
}

/// What follows a hidden key: its value if there is a `=`, otherwise the rest of the line.
fn value_after(text: &str, key_end: usize) -> Option<Span> {
    let rest = text.get(key_end..)?;
    let line = rest.lines().next().unwrap_or_default();
    let closes_header = line.trim_start_matches(['"', '\'', ' ', '\t']).starts_with(']');
    if closes_header {
        return None;
    }
    let value = match line.find('=') {
        Some(equals) => {
            let gap = line.get(equals + 1..)?;
            equals + 1 + (gap.len() - gap.trim_start().len())
        }
        None => line.len() - line.trim_start().len(),
    };
    let length = value_length(rest.get(value..)?);
    (length > 0).then_some(Span { start: key_end + value, end: key_end + value + length })
}

/// Length of the value at the start of a text; to the end of the text if it is never closed.
fn value_length(text: &str) -> usize {
    for fence in ["\"\"\"", "'''"] {
        if let Some(body) = text.strip_prefix(fence) {
            return body.find(fence).map_or(text.len(), |end| end + 2 * fence.len());
        }
    }
    if text.starts_with(['[', '{']) {
        return bracketed_length(text);
    }
    let line = text.lines().next().unwrap_or_default().trim_end();
    quoted_length(line).unwrap_or(line.len())
}

/// Length of a text in quotes, if it ends on this line and nothing is stuck to it that may belong to the secret.
fn quoted_length(line: &str) -> Option<usize> {
    let quote = line.chars().next().filter(|first| matches!(first, '"' | '\''))?;
    let body = line.get(1..)?;
    let mut escaped = false;
    let end = body.find(|character| {
        let closes = character == quote && !escaped;
        escaped = character == '\\' && quote == '"' && !escaped;
        closes
    })?;
    let rest = line.get(end + 2..)?.trim_start();
    (rest.is_empty() || rest.starts_with([',', '}', ']', '#'])).then_some(end + 2)
}

/// Length of the brackets at the start of a text, with all that is in them; of all the text if they never close.
pub(crate) fn bracketed_length(text: &str) -> usize {
    let mut depth = 0_usize;
    let mut quote = None;
    let mut escaped = false;
    let mut comment = false;
    for (at, character) in text.char_indices() {
        if comment {
            comment = character != '\n';
            continue;
        }
        match (quote, character) {
            (None, '#') => comment = true,
            (Some('"'), '\\') if !escaped => {
                escaped = true;
                continue;
            }
            (Some(open), _) if character == open && !escaped => quote = None,
            (None, '"' | '\'') => quote = Some(character),
            (None, '[' | '{') => depth += 1,
            (None, ']' | '}') => depth = depth.saturating_sub(1),
            _ => {}
        }
        escaped = false;
        if depth == 0 {
            return at + character.len_utf8();
        }
    }
    text.len()
}
