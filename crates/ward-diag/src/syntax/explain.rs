//! Translates the parser's errors into messages for people who have never heard of TOML.

use super::lines::SourceLines;
use super::other_notations::{explain_other_notation, explain_quotes, find_open_brace, find_open_quote};
use crate::escape::escape_and_truncate;
use crate::{ConfigFault, Span, code};

/// A syntax fault, and the part of the text that must be blanked to parse the rest.
pub(super) struct SyntaxRepair {
    pub(super) fault: ConfigFault,
    pub(super) blank: Span,
}

pub(super) fn explain_error(lines: &SourceLines<'_>, parser_message: &str, place: Span) -> SyntaxRepair {
    if parser_message.contains("recursion") {
        let fault = ConfigFault::new(code::TOO_DEEP, place, "this is nested too deeply")
            .help("use fewer brackets and dots");
        return SyntaxRepair { fault, blank: lines.affected_lines(place) };
    }
    if let Some(list) = lines.list_around(place) {
        return explain_in_list(lines, parser_message, place, list);
    }
    let header = lines.is_header(place.start);
    let blank = if header { lines.section(place) } else { lines.affected_lines(place) };
    SyntaxRepair { fault: explain_parser_message(lines, parser_message, place), blank }
}

/// Explains an error inside a list. If a later line of the list looks like a key or a header, the list was
/// never closed and has swallowed the lines that follow it.
fn explain_in_list(lines: &SourceLines<'_>, parser_message: &str, place: Span, list: Span) -> SyntaxRepair {
    let whole = lines.whole_lines(list);
    if let Some(swallowed) = lines.first_statement_in(list) {
        let blank = Span { start: whole.start, end: swallowed };
        return SyntaxRepair { fault: explain_unclosed_list(lines, blank, list.start), blank };
    }
    let fault = if let Some(fault) = explain_other_notation(lines, place) {
        fault
    } else if parser_message.starts_with("missing comma") {
        syntax_fault(place, "a comma is missing before this element").help("separate the elements with `,`")
    } else {
        explain_parser_message(lines, parser_message, place)
    };
    SyntaxRepair { fault, blank: whole }
}

/// Explains why a list in these lines has no end: a wrong or missing quote or an open `{` may hide its `]`.
fn explain_unclosed_list(lines: &SourceLines<'_>, list_lines: Span, list_start: usize) -> ConfigFault {
    if let Some(fault) = explain_quotes(lines, list_lines) {
        return fault;
    }
    if let Some(quote) = find_open_quote(lines, list_lines) {
        let place = Span { start: quote, end: quote + 1 };
        return missing_quote_fault(place);
    }
    if let Some(brace) = find_open_brace(lines, list_lines) {
        let place = Span { start: brace, end: brace + 1 };
        return syntax_fault(place, "this `{` is never closed").help("put a `}` before the `]`");
    }
    let opening = Span { start: list_start, end: list_start + 1 };
    syntax_fault(opening, "this list is never closed").help("put a `]` after its last element")
}

fn explain_parser_message(lines: &SourceLines<'_>, parser_message: &str, place: Span) -> ConfigFault {
    let starts_with = |prefix: &str| parser_message.starts_with(prefix);
    let header = lines.is_header(place.start);
    if parser_message == "duplicate key" {
        return duplicate_key_fault(lines, place, header);
    }
    if lines.source.text().get(place.start..).is_some_and(|rest| rest.starts_with(is_stray_control)) {
        return syntax_fault(place, "this is an invisible control character").help("remove it");
    }
    if let Some(fault) = explain_other_notation(lines, place) {
        return fault;
    }
    // The parser takes a word for `true`, `false`, `inf` or `nan` if it begins with the same letter.
    let is_word = lines.source.slice(place).starts_with(char::is_alphabetic);
    if starts_with("string values must be quoted")
        || starts_with("invalid literal string") && place.start == place.end
        || is_word && (starts_with("invalid boolean") || starts_with("invalid float"))
    {
        return unquoted_text_fault(lines, place);
    }
    if starts_with("key with no value") {
        return syntax_fault(lines.trimmed_line(place), "this line has no `=`")
            .help("write `key = value`, put a table's name in `[…]`, or start a comment with `#`");
    }
    if starts_with("invalid basic string") || starts_with("invalid literal string") {
        return missing_quote_fault(place);
    }
    if starts_with("unquoted keys cannot be empty") {
        return syntax_fault(place, "there is no key before the `=`").help("write `key = value`");
    }
    if parser_message.contains("escape") {
        return syntax_fault(place, "this backslash doesn't start a valid escape sequence")
            .help("write `\\\\` for a backslash, or put the text in single quotes");
    }
    if header && starts_with("unclosed") {
        return syntax_fault(place, "this table's name has no closing bracket")
            .help("write `[name]`, or `[[name]]` for one of several");
    }
    parser_message_fault(parser_message, place)
}

fn missing_quote_fault(place: Span) -> ConfigFault {
    syntax_fault(place, "this text has no closing quote")
        .help("end it with the quote it began with, on the same line")
}

fn is_stray_control(character: char) -> bool {
    character.is_control() && !matches!(character, '\n' | '\r' | '\t')
}

fn duplicate_key_fault(lines: &SourceLines<'_>, place: Span, header: bool) -> ConfigFault {
    let key = lines.boundary.may_show(place).then(|| escape_and_truncate(lines.source.slice(place)));
    let message = match (header, key) {
        (true, Some(key)) => format!("the table `{key}` is defined twice"),
        (true, None) => "this table is defined twice".to_owned(),
        (false, Some(key)) => format!("`{key}` is set twice"),
        (false, None) => "this key is set twice".to_owned(),
    };
    let help = match lines.repeated_header_of(place) {
        _ if header => "merge the two tables".to_owned(),
        Some(repeated) => {
            format!("keep one of the two, or write `{repeated}` above it if another one begins here")
        }
        None => "keep one of the two".to_owned(),
    };
    ConfigFault::new(code::DUPLICATE_KEY, place, message).help(help)
}

fn unquoted_text_fault(lines: &SourceLines<'_>, place: Span) -> ConfigFault {
    let key = lines.key_before(place);
    if lines.source.slice(place).is_empty() {
        let name = key.map_or("this key".to_owned(), |key| format!("`{key}`"));
        return syntax_fault(place, format!("{name} has no value"))
            .help("write a value after `=`, or remove the line");
    }
    let message = match key {
        Some(key) => format!("the text after `{key} =` must be in quotes"),
        None => "this text must be in quotes".to_owned(),
    };
    syntax_fault(place, message).help("put `\"` before and after it")
}

/// Uses the parser's own message, with the part about what it expected as the help text.
fn parser_message_fault(parser_message: &str, place: Span) -> ConfigFault {
    let (message, help) = match parser_message.split_once(", expected ") {
        Some((message, expected)) => (message, format!("expected {expected}")),
        None if parser_message.starts_with("cannot extend") => {
            (parser_message, "give one of the two keys another name, or make the first a table".to_owned())
        }
        None => (parser_message, "correct it, or remove the line".to_owned()),
    };
    syntax_fault(place, message).help(help)
}

fn syntax_fault(place: Span, message: impl Into<String>) -> ConfigFault {
    ConfigFault::new(code::SYNTAX, place, message)
}
