//! Recognises marks that don't belong where they are: a comma at the end of a line, `//` before a comment, a blank that
//! isn't an ordinary space, two different quotes around a text, and an umlaut in a key.

use super::other_notations::LineParts;
use crate::{ConfigFault, Span, code};

/// Explains the first such mark in a line with a syntax error.
pub(super) fn explain_stray_mark(line: &str, line_start: usize) -> Option<ConfigFault> {
    let parts = LineParts::of(line);
    unusual_blank_fault(&parts, line_start)
        .or_else(|| different_quotes_fault(line, &parts, line_start))
        .or_else(|| comment_fault(line, &parts, line_start))
        .or_else(|| line_end_fault(&parts, line_start))
        .or_else(|| letter_in_key_fault(line, &parts, line_start))
}

fn fault(line_start: usize, at: usize, mark: char, message: String) -> ConfigFault {
    let start = line_start + at;
    ConfigFault::new(code::SYNTAX, Span { start, end: start + mark.len_utf8() }, message)
}

/// Explains a blank from a web page or a word processor, which looks like a space.
fn unusual_blank_fault(parts: &LineParts, line_start: usize) -> Option<ConfigFault> {
    let is_unusual = |character: char| {
        character.is_whitespace() && !character.is_ascii()
            || matches!(character, '\u{200b}' | '\u{2060}' | '\u{feff}' | '\u{ad}')
    };
    let (at, blank) = *parts.outside.iter().find(|(_, character)| is_unusual(*character))?;
    let message = format!("this blank (U+{:04X}) is not an ordinary space", u32::from(blank));
    Some(fault(line_start, at, blank, message).help("delete it, and type a space"))
}

/// Explains a text such as `'30m"`.
fn different_quotes_fault(line: &str, parts: &LineParts, line_start: usize) -> Option<ConfigFault> {
    let (first, _) = *parts.unclosed.first()?;
    let opening = line.get(..first)?.chars().next_back()?;
    let last = parts.unclosed.iter().rev().find(|(_, character)| !" \t\r,]}".contains(*character));
    let (at, closing) = *last.filter(|(_, character)| matches!(character, '"' | '\''))?;
    (closing != opening).then(|| {
        let message = format!("this text begins with `{opening}` and ends with `{closing}`");
        fault(line_start, at, closing, message).help("put the same quote, `\"`, before and after the text")
    })
}

/// Explains a comment as in other languages: `// text`, or `; text` on a line of its own.
fn comment_fault(line: &str, parts: &LineParts, line_start: usize) -> Option<ConfigFault> {
    let is_comment = |at: usize, mark: &str| {
        let before = line.get(..at).unwrap_or_default();
        let begins_word = before.trim().is_empty() || before.ends_with([' ', '\t']);
        let is_value = before.trim_end().ends_with(['=', '[', '{', ',']);
        begins_word && !is_value && line.get(at..).is_some_and(|rest| rest.starts_with(mark))
    };
    let is_first = |at: usize| line.get(..at).is_some_and(|before| before.trim().is_empty());
    let (at, mark) = parts.outside.iter().find_map(|(at, character)| match character {
        '/' if is_comment(*at, "//") => Some((*at, "//")),
        ';' if is_first(*at) => Some((*at, ";")),
        _ => None,
    })?;
    let start = line_start + at;
    let place = Span { start, end: start + mark.len() };
    let message = format!("a comment begins with `#`, not with `{mark}`");
    Some(ConfigFault::new(code::SYNTAX, place, message).help("write `#` in its place"))
}

/// Explains a `,` or `;` after a whole statement.
fn line_end_fault(parts: &LineParts, line_start: usize) -> Option<ConfigFault> {
    if !parts.unclosed.is_empty() {
        return None;
    }
    let last = parts.outside.iter().rev().find(|(_, character)| !character.is_whitespace());
    let (at, mark) = *last.filter(|(_, character)| matches!(character, ',' | ';'))?;
    let mut depth = 0_i32;
    let mut has_equals = false;
    for (_, character) in &parts.outside {
        match character {
            '[' | '{' => depth += 1,
            ']' | '}' => depth -= 1,
            '=' if depth == 0 => has_equals = true,
            _ => {}
        }
    }
    (has_equals && depth == 0).then(|| {
        fault(line_start, at, mark, format!("there is a `{mark}` at the end of this line")).help("remove it")
    })
}

/// Explains a letter such as `ü` in a key or a header.
fn letter_in_key_fault(line: &str, parts: &LineParts, line_start: usize) -> Option<ConfigFault> {
    let is_header = line.trim_start().starts_with('[');
    let key = parts.outside.iter().take_while(|(_, character)| is_header || *character != '=');
    let (at, letter) =
        *key.into_iter().find(|(_, character)| character.is_alphabetic() && !character.is_ascii())?;
    let plain = match letter {
        'ä' | 'Ä' => "ae",
        'ö' | 'Ö' => "oe",
        'ü' | 'Ü' => "ue",
        'ß' => "ss",
        _ => "a letter from `a` to `z`",
    };
    let plain = if plain.len() == 2 { format!("`{plain}`") } else { plain.to_owned() };
    let message = format!("a key can't contain `{letter}`");
    let help = format!("write {plain} in its place; a `label` can have every letter");
    Some(fault(line_start, at, letter, message).help(help))
}
