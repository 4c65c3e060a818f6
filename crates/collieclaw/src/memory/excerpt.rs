//! A few words of a text, on one line, fit for any screen.

use super::fold::{fold, is_invisible, unfolded_place};
use super::query::Query;

/// In characters.
const LONGEST: usize = 160;

/// So much of it is before what was found.
const BEFORE: usize = 50;

/// In characters: the title of a conversation.
const TITLE: usize = 80;

/// How a text begins.
pub(super) fn first_words(text: &str) -> String {
    line(text, TITLE)
}

/// The words around what was found in a text.
pub(super) fn around(text: &str, query: &Query) -> String {
    let folded = fold(text);
    let place = query
        .phrase
        .as_ref()
        .and_then(|phrase| folded.find(phrase.as_str()))
        .or_else(|| query.terms.iter().filter_map(|term| folded.find(&term.folded)).min())
        .unwrap_or(0);
    let place = unfolded_place(text, place);
    let before = text.get(..place).unwrap_or_default();
    let start = before.char_indices().rev().nth(BEFORE - 1).map_or(0, |(start, _)| start);
    if start == 0 {
        return line(text, LONGEST);
    }
    // Beginning with half a word looks like an accident; a script without gaps has no better place.
    let gap = before.get(start..).and_then(|lead| lead.find(char::is_whitespace)).unwrap_or(0);
    format!("…{}", line(text.get(start + gap..).unwrap_or_default().trim_start(), LONGEST - 1))
}

/// The first characters of a text as one line.
fn line(text: &str, longest: usize) -> String {
    let mut line = String::new();
    let mut length = 0;
    for character in text.chars() {
        let character = if character.is_whitespace() { ' ' } else { character };
        if character == ' ' && (line.is_empty() || line.ends_with(' ')) {
            continue;
        }
        if character != ' ' && is_invisible(character) {
            continue;
        }
        if length == longest {
            line.truncate(line.trim_end().len());
            line.push('…');
            return line;
        }
        line.push(character);
        length += 1;
    }
    line.truncate(line.trim_end().len());
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_one_line_without_anything_that_moves_a_cursor() {
        assert_eq!(first_words("  a\n\n b\t\u{1b}[31mred\u{202e}\u{0}c\u{9b}2J "), "a b [31mredc2J");
        assert_eq!(first_words(&"x".repeat(200)), format!("{}…", "x".repeat(TITLE)));
    }

    #[test]
    fn it_has_what_was_found_in_it() {
        let query = Query::parse("adapter").unwrap();
        let text = format!("{} Aardvark Adapter {}", "before it ".repeat(100), "after it ".repeat(100));
        let excerpt = around(&text, &query);
        assert!(excerpt.starts_with("…it before it"), "{excerpt}");
        assert!(excerpt.contains("Aardvark Adapter after"), "{excerpt}");
        assert!(excerpt.ends_with('…') && excerpt.chars().count() <= LONGEST + 1, "{excerpt}");
        assert_eq!(around("An Ádapter", &query), "An Ádapter");
        let run = format!("{}adapter{}", "漢".repeat(300), "字".repeat(300));
        assert!(around(&run, &query).contains("漢adapter字"));
    }
}
