//! Short excerpts of texts, on one line and safe for terminals.

use super::fold::{fold, is_invisible, unfolded_offset};
use super::query::MemoryQuery;

const MAX_EXCERPT_CHARS: usize = 160;

/// The number of characters before the match.
const LEAD_CHARS: usize = 50;

/// The maximum length of a conversation's title.
const MAX_TITLE_CHARS: usize = 80;

/// Returns the start of a text.
pub(super) fn first_words(text: &str) -> String {
    single_line(text, MAX_TITLE_CHARS)
}

/// Returns the text around the first match.
pub(super) fn excerpt_around(text: &str, query: &MemoryQuery) -> String {
    let folded = fold(text);
    let position = query
        .phrase
        .as_ref()
        .and_then(|phrase| folded.find(phrase.as_str()))
        .or_else(|| query.terms.iter().filter_map(|term| folded.find(&term.folded)).min())
        .unwrap_or(0);
    let position = unfolded_offset(text, position);
    let before = text.get(..position).unwrap_or_default();
    let start = before.char_indices().rev().nth(LEAD_CHARS - 1).map_or(0, |(start, _)| start);
    if start == 0 {
        return single_line(text, MAX_EXCERPT_CHARS);
    }
    // An excerpt starts at a word if possible. Scripts without spaces have no better place.
    let gap = before.get(start..).and_then(|lead| lead.find(char::is_whitespace)).unwrap_or(0);
    format!(
        "…{}",
        single_line(text.get(start + gap..).unwrap_or_default().trim_start(), MAX_EXCERPT_CHARS - 1)
    )
}

/// Returns the start of a text as one line.
fn single_line(text: &str, max_chars: usize) -> String {
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
        if length == max_chars {
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
    fn an_excerpt_is_one_line_without_control_characters() {
        assert_eq!(first_words("  a\n\n b\t\u{1b}[31mred\u{202e}\u{0}c\u{9b}2J "), "a b [31mredc2J");
        assert_eq!(first_words(&"x".repeat(200)), format!("{}…", "x".repeat(MAX_TITLE_CHARS)));
    }

    #[test]
    fn an_excerpt_contains_the_match() {
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
