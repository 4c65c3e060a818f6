//! The parser's complaints in words that help somebody who has never heard of TOML.

use super::lines::Lines;
use crate::printable::readable;
use crate::{Fault, Span, code};

/// A syntax fault and the part of the text that must be taken out to read on.
pub(super) struct Broken {
    pub(super) fault: Fault,
    pub(super) blank: Span,
}

pub(super) fn explain(lines: &Lines<'_>, complaint: &str, place: Span) -> Broken {
    if complaint.contains("recursion") {
        let fault = Fault::new(code::TOO_DEEP, place, "this is nested too deeply")
            .help("use fewer brackets and dots");
        return Broken { fault, blank: lines.around(place) };
    }
    if let Some(list) = lines.list_around(place) {
        return in_a_list(lines, complaint, place, list);
    }
    let header = lines.is_header(place.start);
    let blank = if header { lines.section(place) } else { lines.around(place) };
    Broken { fault: in_plain_words(lines, complaint, place), blank }
}

/// A list that was never closed swallows the lines after it: one of them looks like a key or a header.
fn in_a_list(lines: &Lines<'_>, complaint: &str, place: Span, list: Span) -> Broken {
    let whole = lines.whole(list);
    if let Some(swallowed) = lines.first_statement_in(list) {
        let opening = Span { start: list.start, end: list.start + 1 };
        let fault = syntax(opening, "this list is never closed").help("put a `]` after its last element");
        return Broken { fault, blank: Span { start: whole.start, end: swallowed } };
    }
    let fault = if complaint.starts_with("missing comma") {
        syntax(place, "a comma is missing before this element").help("separate the elements with `,`")
    } else {
        in_plain_words(lines, complaint, place)
    };
    Broken { fault, blank: whole }
}

fn in_plain_words(lines: &Lines<'_>, complaint: &str, place: Span) -> Fault {
    let says = |beginning: &str| complaint.starts_with(beginning);
    let header = lines.is_header(place.start);
    if complaint == "duplicate key" {
        return set_twice(lines, place, header);
    }
    if lines.source.text().get(place.start..).is_some_and(|rest| rest.starts_with(is_stray_control)) {
        return syntax(place, "an invisible control character stands here").help("take it out");
    }
    if says("string values must be quoted") || says("invalid literal string") && place.start == place.end {
        return without_quotes(lines, place);
    }
    if says("key with no value") {
        return syntax(lines.trimmed(place), "this line has no `=`")
            .help("write `key = value`, put a table's name in `[…]`, or start a comment with `#`");
    }
    if says("invalid basic string") || says("invalid literal string") {
        return syntax(place, "this text has no closing quote")
            .help("end it with the quote it began with, on the same line");
    }
    if says("unquoted keys cannot be empty") {
        return syntax(place, "there is no key before the `=`").help("write `key = value`");
    }
    if complaint.contains("escape") {
        return syntax(place, "a backslash stands before something that it can't escape")
            .help("write `\\\\` for a backslash, or put the text in single quotes");
    }
    if header && says("unclosed") {
        return syntax(place, "this table's name has no closing bracket")
            .help("write `[name]`, or `[[name]]` for one of several");
    }
    as_complained(complaint, place)
}

fn is_stray_control(character: char) -> bool {
    character.is_control() && !matches!(character, '\n' | '\r' | '\t')
}

fn set_twice(lines: &Lines<'_>, place: Span, header: bool) -> Fault {
    let key = lines.curtain.shows(place).then(|| readable(lines.source.slice(place)));
    let (message, cure) = match (header, key) {
        (true, Some(key)) => {
            (format!("the table `{key}` is defined twice"), "put everything under one of the two")
        }
        (true, None) => ("this table is defined twice".to_owned(), "put everything under one of the two"),
        (false, Some(key)) => (format!("`{key}` is set twice"), "keep one of the two"),
        (false, None) => ("this key is set twice".to_owned(), "keep one of the two"),
    };
    Fault::new(code::DUPLICATE_KEY, place, message).help(cure)
}

fn without_quotes(lines: &Lines<'_>, place: Span) -> Fault {
    let key = lines.key_before(place);
    if lines.source.slice(place).is_empty() {
        let name = key.map_or("this key".to_owned(), |key| format!("`{key}`"));
        return syntax(place, format!("{name} has no value"))
            .help("write a value after `=`, or take the line out");
    }
    let message = match key {
        Some(key) => format!("the text after `{key} =` must be in quotes"),
        None => "this text must be in quotes".to_owned(),
    };
    syntax(place, message).help("put `\"` before and after it")
}

/// The parser's own words, with what it expected as the cure.
fn as_complained(complaint: &str, place: Span) -> Fault {
    let (message, cure) = match complaint.split_once(", expected ") {
        Some((message, expected)) => (message, format!("expected here: {expected}")),
        None if complaint.starts_with("cannot extend") => {
            (complaint, "give one of the two keys another name, or make the first a table".to_owned())
        }
        None => (complaint, "correct it, or take the line out".to_owned()),
    };
    syntax(place, message).help(cure)
}

fn syntax(place: Span, message: impl Into<String>) -> Fault {
    Fault::new(code::SYNTAX, place, message)
}
