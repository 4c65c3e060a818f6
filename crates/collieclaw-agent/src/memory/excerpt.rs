//! A few words of a text, on one line, fit for any screen.

use super::fold::{fold, is_invisible, unfolded_offset};
use super::query::MemoryQuery;

/// In characters.
const MAX_EXCERPT_CHARS: usize = 160;

/// So much of it is before what was found.
const LEAD_CHARS: usize = 50;

/// In characters: the title of a conversation.
const MAX_TITLE_CHARS: usize = 80;

/// How a text begins.
pub(super) fn first_words(text: &str) -> String {
    single_line(text, MAX_TITLE_CHARS)
}

/// The words around what was found in a text.
pub(super) fn excerpt_around(text: &str, query: &MemoryQuery) -> String {
    let folded = fold(text);
    let place = query
        .phrase
        .as_ref()
        .and_then(|phrase| folded.find(phrase.as_str()))
        .or_else(|| query.terms.iter().filter_map(|term| folded.find(&term.folded)).min())
        .unwrap_or(0);
    let place = unfolded_offset(text, place);
    let before = text.get(..place).unwrap_or_default();
    let start = before.char_indices().rev().nth(LEAD_CHARS - 1).map_or(0, |(start, _)| start);
    if start == 0 {
        return single_line(text, MAX_EXCERPT_CHARS);
    }
    // Beginning with half a word looks like an accident; a script without gaps has no better place.
    let gap = before.get(start..).and_then(|lead| lead.find(char::is_whitespace)).unwrap_or(0);
    format!(
        "…{}",
        single_line(text.get(start + gap..).unwrap_or_default().trim_start(), MAX_EXCERPT_CHARS - 1)
    )
}

/// The first characters of a text as one line.
fn single_line(text: &str, longest: usize) -> String {
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
        assert_eq!(first_words(&"x".repeat(200)), format!("{}…", "x".repeat(MAX_TITLE_CHARS)));
    }

    #[test]
    fn it_has_what_was_found_in_it() {
        let query = MemoryQuery::parse("adapter").unwrap();
        let text = format!("{} Aardvark Adapter {}", "before it ".repeat(100), "after it ".repeat(100));
        let excerpt = excerpt_around(&text, &query);
        assert!(excerpt.starts_with("…it before it"), "{excerpt}");
        assert!(excerpt.contains("Aardvark Adapter after"), "{excerpt}");
        assert!(excerpt.ends_with('…') && excerpt.chars().count() <= MAX_EXCERPT_CHARS + 1, "{excerpt}");
        assert_eq!(excerpt_around("An Ádapter", &query), "An Ádapter");
        let run = format!("{}adapter{}", "漢".repeat(300), "字".repeat(300));
        assert!(excerpt_around(&run, &query).contains("漢adapter字"));
    }
}
