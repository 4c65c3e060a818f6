//! The parser's complaints in words that help somebody who has never heard of TOML.

use super::lines::SourceLines;
use crate::escape::escape_and_truncate;
use crate::{ConfigFault, Span, code};

/// A syntax fault and the part of the text that must be taken out to read on.
pub(super) struct SyntaxRepair {
    pub(super) fault: ConfigFault,
    pub(super) blank: Span,
}

pub(super) fn explain_error(lines: &SourceLines<'_>, complaint: &str, place: Span) -> SyntaxRepair {
    if complaint.contains("recursion") {
        let fault = ConfigFault::new(code::TOO_DEEP, place, "this is nested too deeply")
            .help("use fewer brackets and dots");
        return SyntaxRepair { fault, blank: lines.affected_lines(place) };
    }
    if let Some(list) = lines.list_around(place) {
        return explain_in_list(lines, complaint, place, list);
    }
    let header = lines.is_header(place.start);
    let blank = if header { lines.section(place) } else { lines.affected_lines(place) };
    SyntaxRepair { fault: explain_complaint(lines, complaint, place), blank }
}

/// A list that was never closed swallows the lines after it: one of them looks like a key or a header.
fn explain_in_list(lines: &SourceLines<'_>, complaint: &str, place: Span, list: Span) -> SyntaxRepair {
    let whole = lines.whole_lines(list);
    if let Some(swallowed) = lines.first_statement_in(list) {
        let opening = Span { start: list.start, end: list.start + 1 };
        let fault =
            syntax_fault(opening, "this list is never closed").help("put a `]` after its last element");
        return SyntaxRepair { fault, blank: Span { start: whole.start, end: swallowed } };
    }
    let fault = if complaint.starts_with("missing comma") {
        syntax_fault(place, "a comma is missing before this element").help("separate the elements with `,`")
    } else {
        explain_complaint(lines, complaint, place)
    };
    SyntaxRepair { fault, blank: whole }
}

fn explain_complaint(lines: &SourceLines<'_>, complaint: &str, place: Span) -> ConfigFault {
    let says = |beginning: &str| complaint.starts_with(beginning);
    let header = lines.is_header(place.start);
    if complaint == "duplicate key" {
        return duplicate_key_fault(lines, place, header);
    }
    if lines.source.text().get(place.start..).is_some_and(|rest| rest.starts_with(is_stray_control)) {
        return syntax_fault(place, "an invisible control character stands here").help("take it out");
    }
    if says("string values must be quoted") || says("invalid literal string") && place.start == place.end {
        return unquoted_text_fault(lines, place);
    }
    if says("key with no value") {
        return syntax_fault(lines.trimmed_line(place), "this line has no `=`")
            .help("write `key = value`, put a table's name in `[…]`, or start a comment with `#`");
    }
    if says("invalid basic string") || says("invalid literal string") {
        return syntax_fault(place, "this text has no closing quote")
            .help("end it with the quote it began with, on the same line");
    }
    if says("unquoted keys cannot be empty") {
        return syntax_fault(place, "there is no key before the `=`").help("write `key = value`");
    }
    if complaint.contains("escape") {
        return syntax_fault(place, "a backslash stands before something that it can't escape")
            .help("write `\\\\` for a backslash, or put the text in single quotes");
    }
    if header && says("unclosed") {
        return syntax_fault(place, "this table's name has no closing bracket")
            .help("write `[name]`, or `[[name]]` for one of several");
    }
    parser_message_fault(complaint, place)
}

fn is_stray_control(character: char) -> bool {
    character.is_control() && !matches!(character, '\n' | '\r' | '\t')
}

fn duplicate_key_fault(lines: &SourceLines<'_>, place: Span, header: bool) -> ConfigFault {
    let key = lines.curtain.may_show(place).then(|| escape_and_truncate(lines.source.slice(place)));
    let (message, cure) = match (header, key) {
        (true, Some(key)) => {
            (format!("the table `{key}` is defined twice"), "put everything under one of the two")
        }
        (true, None) => ("this table is defined twice".to_owned(), "put everything under one of the two"),
        (false, Some(key)) => (format!("`{key}` is set twice"), "keep one of the two"),
        (false, None) => ("this key is set twice".to_owned(), "keep one of the two"),
    };
    ConfigFault::new(code::DUPLICATE_KEY, place, message).help(cure)
}

fn unquoted_text_fault(lines: &SourceLines<'_>, place: Span) -> ConfigFault {
    let key = lines.key_before(place);
    if lines.source.slice(place).is_empty() {
        let name = key.map_or("this key".to_owned(), |key| format!("`{key}`"));
        return syntax_fault(place, format!("{name} has no value"))
            .help("write a value after `=`, or take the line out");
    }
    let message = match key {
        Some(key) => format!("the text after `{key} =` must be in quotes"),
        None => "this text must be in quotes".to_owned(),
    };
    syntax_fault(place, message).help("put `\"` before and after it")
}

/// The parser's own words, with what it expected as the cure.
fn parser_message_fault(complaint: &str, place: Span) -> ConfigFault {
    let (message, cure) = match complaint.split_once(", expected ") {
        Some((message, expected)) => (message, format!("expected here: {expected}")),
        None if complaint.starts_with("cannot extend") => {
            (complaint, "give one of the two keys another name, or make the first a table".to_owned())
        }
        None => (complaint, "correct it, or take the line out".to_owned()),
    };
    syntax_fault(place, message).help(cure)
}

fn syntax_fault(place: Span, message: impl Into<String>) -> ConfigFault {
    ConfigFault::new(code::SYNTAX, place, message)
}
