//! Replaces exact pieces of a text, and explains why a piece can't be replaced.

use std::borrow::Cow;

use super::TextEdit;
use crate::tools::truncate_text;

/// The maximum number of line numbers in a message.
const MAX_LINES_NAMED: usize = 10;

/// The maximum number of lines that are compared with a text that isn't found.
const MAX_LINES_COMPARED: usize = 20_000;

/// The maximum number of lines whose distance to the missing text is measured.
const MAX_CANDIDATES: usize = 2_000;

/// The maximum length of a line that is compared or quoted.
const MAX_LINE_CHARS: usize = 160;

/// The maximum size of a text after the edits, relative to the limit for files.
const MAX_RESULT_BYTES: usize = 16 << 20;

/// Makes all edits, one after the other. Returns the new text and the number of replacements.
pub(super) fn apply_edits(text: &str, edits: &[TextEdit]) -> Result<(String, usize), String> {
    let mut current = text.to_owned();
    let mut replacements = 0;
    let has_crlf = uses_crlf(text);
    for (number, edit) in (1..).zip(edits) {
        let old = match_line_endings(&edit.old_text, has_crlf);
        let new = match_line_endings(&edit.new_text, has_crlf);
        let found = current.matches(&*old).count();
        if found == 0 {
            return Err(format!("edit {number}: {}", explain_missing(&current, &edit.old_text)));
        }
        if found > 1 && !edit.replace_all {
            return Err(format!("edit {number}: {}", explain_repeated(&current, &old, found)));
        }
        let grown = found.saturating_mul(new.len()).saturating_add(current.len());
        if grown > MAX_RESULT_BYTES {
            return Err(format!(
                "edit {number}: the text would become larger than {} MB",
                MAX_RESULT_BYTES >> 20
            ));
        }
        current = current.replace(&*old, &new);
        replacements += found;
    }
    if current == text {
        return Err("the edits undo each other".to_owned());
    }
    Ok((current, replacements))
}

/// Returns true if every line of a text ends with CR and LF.
fn uses_crlf(text: &str) -> bool {
    let line_ends = text.matches('\n').count();
    line_ends > 0 && text.matches("\r\n").count() == line_ends
}

/// Gives a piece of text the line endings of the file. Models write only LF.
fn match_line_endings(piece: &str, has_crlf: bool) -> Cow<'_, str> {
    if has_crlf && piece.contains('\n') {
        Cow::Owned(piece.replace("\r\n", "\n").replace('\n', "\r\n"))
    } else {
        Cow::Borrowed(piece)
    }
}

fn explain_repeated(text: &str, old: &str, found: usize) -> String {
    let lines: Vec<String> = text
        .match_indices(old)
        .take(MAX_LINES_NAMED)
        .map(|(at, _)| line_number(text, at).to_string())
        .collect();
    let more = if found > lines.len() { " and more" } else { "" };
    format!(
        "`old_text` occurs {found} times, in lines {}{more}; add lines around it until it is unique, or set `replace_all`",
        lines.join(", ")
    )
}

fn line_number(text: &str, at: usize) -> usize {
    text.get(..at).unwrap_or_default().matches('\n').count() + 1
}

fn explain_missing(text: &str, old: &str) -> String {
    if let Some(line) = find_with_other_whitespace(text, old) {
        return format!(
            "`old_text` is not in the file, but line {line} differs only in whitespace; copy the text exactly"
        );
    }
    let wanted = old.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().trim();
    let lines = || text.lines().take(MAX_LINES_COMPARED).enumerate();
    let short = |line: &str| line.len() <= MAX_LINE_CHARS;
    if let Some((number, _)) = lines().find(|(_, line)| line.trim() == wanted) {
        return format!(
            "`old_text` is not in the file; its first line is line {}, but the lines after it differ",
            number + 1
        );
    }
    let is_alike = |line: &&str| line.len() <= 2 * wanted.len() && wanted.len() <= 2 * line.len();
    let candidates =
        lines().map(|(_, line)| line.trim()).filter(is_alike).filter(|line| short(line)).take(MAX_CANDIDATES);
    let nearest = if short(wanted) { ward_diag::closest(wanted, candidates) } else { None };
    let place = nearest.and_then(|near| lines().find(|(_, line)| line.trim() == near));
    match place {
        Some((number, line)) => format!(
            "`old_text` is not in the file; the nearest line is line {}: {}",
            number + 1,
            truncate_text(&line.escape_debug().to_string(), MAX_LINE_CHARS)
        ),
        None => "`old_text` is not in the file; read the file and copy the text exactly".to_owned(),
    }
}

/// Returns the number of the line at which a text begins that differs only in whitespace.
fn find_with_other_whitespace(text: &str, old: &str) -> Option<usize> {
    let wanted: Vec<String> = old.lines().map(squeeze).filter(|line| !line.is_empty()).collect();
    let lines: Vec<(usize, String)> = (1..)
        .zip(text.lines().take(MAX_LINES_COMPARED))
        .map(|(number, line)| (number, squeeze(line)))
        .filter(|(_, line)| !line.is_empty())
        .collect();
    let matches_at = |window: &&[(usize, String)]| window.iter().map(|(_, line)| line).eq(&wanted);
    if wanted.is_empty() {
        return None;
    }
    lines.windows(wanted.len()).find(matches_at)?.first().map(|(number, _)| *number)
}

/// Removes all whitespace of a line.
fn squeeze(line: &str) -> String {
    line.chars().filter(|letter| !letter.is_whitespace()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edit(old: &str, new: &str) -> TextEdit {
        TextEdit { old_text: old.to_owned(), new_text: new.to_owned(), replace_all: false }
    }

    fn check(text: &str, edits: &[TextEdit], expected: Result<&str, &str>) {
        match (apply_edits(text, edits), expected) {
            (Ok((text, _)), Ok(expected)) => assert_eq!(text, expected),
            (Err(fault), Err(expected)) => assert!(fault.contains(expected), "{fault}"),
            (found, expected) => panic!("{found:?} instead of {expected:?}"),
        }
    }

    #[test]
    fn all_edits_are_made_or_none() {
        check("one\ntwo\n", &[edit("one", "1"), edit("two", "2")], Ok("1\n2\n"));
        check("one\n", &[edit("one", "two"), edit("two", "three")], Ok("three\n"));
        check(
            "one\ntwo\n",
            &[edit("one", "1"), edit("three", "3")],
            Err("edit 2: `old_text` is not in the file"),
        );
        check("one\n", &[edit("one", "two"), edit("two", "one")], Err("undo each other"));
    }

    #[test]
    fn a_text_that_occurs_several_times_is_named_with_its_lines() {
        let text = "x\ny\nx\n";
        check(text, &[edit("x", "z")], Err("occurs 2 times, in lines 1, 3;"));
        let all = TextEdit { replace_all: true, ..edit("x", "z") };
        assert_eq!(apply_edits(text, &[all]), Ok(("z\ny\nz\n".to_owned(), 2)));
    }

    #[test]
    fn a_text_that_is_missing_is_explained() {
        let text = "fn main() {\n\tprintln!(\"hello\");\n}\n";
        check(text, &[edit("    println!(\"hello\");", "x")], Err("line 2 differs only in whitespace"));
        check(text, &[edit("println!(\"helo\");", "x")], Err("nearest line is line 2"));
        check(
            text,
            &[edit("fn main() {\n    other();", "x")],
            Err("first line is line 1, but the lines after it"),
        );
        check(text, &[edit("struct Unrelated;", "x")], Err("read the file and copy"));
    }

    #[test]
    fn line_endings_of_the_file_are_kept() {
        check("a\r\nb\r\n", &[edit("a\nb", "c\nd")], Ok("c\r\nd\r\n"));
        check("a\r\nb\r\n", &[edit("a", "x\ny")], Ok("x\r\ny\r\nb\r\n"));
        check("a\r\nb\n", &[edit("b", "x\ny")], Ok("a\r\nx\ny\n"));
        check("\u{feff}a", &[edit("a", "b")], Ok("\u{feff}b"));
    }
}
