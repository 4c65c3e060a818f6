//! Recognises notations that are common elsewhere but aren't TOML: `yes` and `True`, typographic quotes, dates such
//! as `24.12.2026`, and `key: value`.

use super::lines::SourceLines;
use super::stray_marks;
use crate::escape::escape_and_truncate;
use crate::{ConfigFault, Span, code, date_in_other_notation};

const DOUBLE_QUOTES: [char; 7] = ['“', '”', '„', '«', '»', '`', '´'];
const SINGLE_QUOTES: [char; 4] = ['‘', '’', '‚', '‛'];

/// Returns the boolean that a word stands for in other notations.
pub(crate) fn boolean_word(word: &str) -> Option<bool> {
    match word.to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" | "y" | "enabled" => Some(true),
        "false" | "no" | "off" | "n" | "disabled" => Some(false),
        _ => None,
    }
}

/// Explains a syntax error in a line that uses another notation.
pub(super) fn explain_other_notation(lines: &SourceLines<'_>, place: Span) -> Option<ConfigFault> {
    let whole = lines.affected_lines(place);
    let line = lines.text.get(whole.start..whole.end)?;
    if line.contains('\n') {
        return None;
    }
    typographic_quote_fault(line, whole.start)
        .or_else(|| stray_marks::explain_stray_mark(line, whole.start))
        .or_else(|| date_fault(lines, line, whole.start))
        .or_else(|| colon_fault(lines, line, whole.start))
        .or_else(|| boolean_word_fault(lines, line, whole.start, place))
}

/// Explains the first typographic quote in these lines.
pub(super) fn explain_quotes(lines: &SourceLines<'_>, span: Span) -> Option<ConfigFault> {
    lines_with_offsets(lines, span).find_map(|(start, line)| typographic_quote_fault(line, start))
}

/// Returns the offset of the first quote in these lines that isn't closed in its line.
pub(super) fn find_open_quote(lines: &SourceLines<'_>, span: Span) -> Option<usize> {
    lines_with_offsets(lines, span).find_map(|(start, line)| {
        let (at, _) = *LineParts::of(line).unclosed.first()?;
        Some(start + at - 1)
    })
}

/// Returns the offset of a `{` in these lines that a `]` follows before its `}`.
pub(super) fn find_open_brace(lines: &SourceLines<'_>, span: Span) -> Option<usize> {
    let mut open: Vec<(usize, char)> = Vec::new();
    for (start, line) in lines_with_offsets(lines, span) {
        for (at, character) in LineParts::of(line).outside {
            match (character, open.last()) {
                ('[' | '{', _) => open.push((start + at, character)),
                (']', Some((brace, '{'))) => return Some(*brace),
                (']' | '}', _) => drop(open.pop()),
                _ => {}
            }
        }
    }
    None
}

fn lines_with_offsets<'l>(lines: &'l SourceLines<'_>, span: Span) -> impl Iterator<Item = (usize, &'l str)> {
    let text = lines.text.get(span.start..span.end).unwrap_or_default();
    text.split_inclusive('\n').scan(span.start, |start, line| {
        let at = *start;
        *start += line.len();
        Some((at, line.trim_end()))
    })
}

fn typographic_quote_fault(line: &str, line_start: usize) -> Option<ConfigFault> {
    let is_typographic =
        |character: char| DOUBLE_QUOTES.contains(&character) || SINGLE_QUOTES.contains(&character);
    let parts = LineParts::of(line);
    let begins_text = |at: usize| {
        let before = line.get(..at).unwrap_or_default().trim_end();
        before.is_empty() || before.ends_with(['=', '[', '{', ','])
    };
    let opening = parts.outside.iter().find(|(at, character)| is_typographic(*character) && begins_text(*at));
    // A text that begins with a straight quote and ends with a typographic one is never closed.
    let closing = || {
        let last = parts.unclosed.iter().rev().find(|(_, character)| !" \t,]}".contains(*character));
        last.filter(|(_, character)| is_typographic(*character))
    };
    let (at, quote) = *opening.or_else(closing)?;
    let straight = if DOUBLE_QUOTES.contains(&quote) { "\"" } else { "'" };
    let start = line_start + at;
    let place = Span { start, end: start + quote.len_utf8() };
    let message = match quote {
        '`' | '´' => format!("the accent {quote} is not a quote"),
        _ => format!("`{quote}` is a typographic quote, not a straight one"),
    };
    Some(
        ConfigFault::new(code::SYNTAX, place, message)
            .help(format!("use straight quotes in this line: `{straight}` before and after the text")),
    )
}

/// Explains `key: value`, also inside an inline table.
fn colon_fault(lines: &SourceLines<'_>, line: &str, line_start: usize) -> Option<ConfigFault> {
    let outside = LineParts::of(line).outside;
    for (index, (colon, _)) in outside.iter().enumerate().filter(|(_, (_, character))| *character == ':') {
        let after = line.get(colon + 1..)?;
        if !after.is_empty() && !after.starts_with([' ', '\t', '"', '\'', '[', '{']) {
            continue;
        }
        let before = outside.get(..index)?;
        let is_key = |character: char| character.is_ascii_alphanumeric() || matches!(character, '_' | '-');
        let blanks = before.iter().rev().take_while(|(_, character)| character.is_whitespace()).count();
        let word = before.get(..before.len() - blanks)?;
        let length = word.iter().rev().take_while(|(_, character)| is_key(*character)).count();
        let (start, first) = *word.get(word.len() - length)?;
        let lead = line.get(..start)?.trim();
        // An element of a YAML list begins with `-`.
        let starts_key = lead.is_empty() || lead == "-" || lead.ends_with(['{', ',']);
        if !first.is_ascii_alphabetic() || !starts_key {
            continue;
        }
        let key = line.get(start..start + length)?;
        let place = Span { start: line_start + start, end: line_start + colon + 1 };
        // A misspelt key may hold a secret, so the value is quoted only if the file has none.
        let (message, help) = if lines.source.hidden_keys().is_empty() {
            let key = escape_and_truncate(key);
            (format!("there must be a `=` after `{key}`, not a `:`"), equals_help(&key, after))
        } else {
            ("there must be a `=` after a key, not a `:`".to_owned(), "write `key = value`".to_owned())
        };
        return Some(ConfigFault::new(code::SYNTAX, place, message).help(help));
    }
    None
}

/// Returns the statement with `=`, if its value is simple.
fn equals_help(key: &str, after: &str) -> String {
    let value = after.trim();
    let is_quoted = |quote: char| {
        value.len() > 1
            && value.starts_with(quote)
            && value.ends_with(quote)
            && value.matches(quote).count() == 2
    };
    if value.is_empty() {
        return format!("write `[{key}]` for a table, `[[{key}]]` for one of several, or `{key} = value`");
    }
    let is_list = value.starts_with('[') && value.ends_with(']');
    if is_quoted('"') || is_quoted('\'') || is_list || value.parse::<f64>().is_ok() {
        return format!("write `{key} = {}`", escape_and_truncate(value));
    }
    if let Some(meant) = boolean_word(value) {
        return format!("write `{key} = {meant}`");
    }
    if value.chars().all(|character| character.is_alphanumeric() || " _-./".contains(character)) {
        return format!("write `{key} = \"{}\"`", escape_and_truncate(value));
    }
    format!("write `{key} = …`")
}

/// Explains a date without quotes in another notation.
fn date_fault(lines: &SourceLines<'_>, line: &str, line_start: usize) -> Option<ConfigFault> {
    let (key, value) = line.split_once('=')?;
    let end = value.find('#').unwrap_or(value.len());
    let written = value.get(..end)?.trim();
    let date = date_in_other_notation(written)?;
    let start = line_start + key.len() + 1 + value.len() - value.trim_start().len();
    let place = Span { start, end: start + written.len() };
    let help = match lines.key_before(place).filter(|_| lines.boundary.may_show(place)) {
        Some(key) => format!("write `{key} = {date}`"),
        None => "write year, month and day, such as 2026-12-24".to_owned(),
    };
    Some(ConfigFault::new(code::SYNTAX, place, "a date begins with the year").help(help))
}

fn boolean_word_fault(
    lines: &SourceLines<'_>,
    line: &str,
    line_start: usize,
    place: Span,
) -> Option<ConfigFault> {
    let at = place.start.checked_sub(line_start)?;
    let (before, rest) = (line.get(..at)?, line.get(at..)?);
    let length = rest.find(|character: char| !character.is_ascii_alphabetic()).unwrap_or(rest.len());
    let word = rest.get(..length)?;
    let meant = boolean_word(word)?;
    let place = Span { start: place.start, end: place.start + length };
    let ends_value = rest.get(length..)?.trim_start().chars().next().is_none_or(|next| ",]}#".contains(next));
    if !before.trim_end().ends_with(['=', '[', ',']) || !ends_value || !lines.boundary.may_show(place) {
        return None;
    }
    let help = match lines.key_before(place) {
        Some(key) if before.trim_end().ends_with('=') => format!("write `{key} = {meant}`"),
        _ => format!("write `{meant}`"),
    };
    let message = format!("`{word}` is written as `{meant}`");
    Some(
        ConfigFault::new(code::SYNTAX, place, message)
            .help(format!("{help}; if it is a text, put it in quotes: `\"{word}\"`")),
    )
}

/// The characters of a line with their offsets, apart from texts in straight quotes and the comment.
pub(super) struct LineParts {
    pub(super) outside: Vec<(usize, char)>,
    /// The characters of a text whose closing quote is missing.
    pub(super) unclosed: Vec<(usize, char)>,
}

impl LineParts {
    pub(super) fn of(line: &str) -> Self {
        let (mut outside, mut text) = (Vec::new(), Vec::new());
        let mut quote = None;
        let mut escaped = false;
        for (at, character) in line.char_indices() {
            match quote {
                None if character == '#' => break,
                None if matches!(character, '"' | '\'') => quote = Some(character),
                None => outside.push((at, character)),
                Some(open) if character == open && !escaped => {
                    quote = None;
                    text.clear();
                }
                Some(open) => {
                    escaped = open == '"' && character == '\\' && !escaped;
                    text.push((at, character));
                }
            }
        }
        Self { outside, unclosed: text }
    }
}
