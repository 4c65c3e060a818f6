//! Text for the terminal: escaping of unsafe characters, display width, truncation and wrapping.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Escapes characters that could control the terminal, reverse the direction of a line or hide text.
pub(crate) fn escape_unsafe(text: &str) -> String {
    let mut cleaned = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            // Variation selectors change the width of the character before them, differently in each terminal.
            '\u{fe00}'..='\u{fe0f}' => {}
            _ if is_harmful(character) => cleaned.extend(character.escape_default()),
            _ => cleaned.push(character),
        }
    }
    cleaned
}

/// Escapes unsafe characters in a text of several lines, and keeps the line breaks.
pub(crate) fn escape_unsafe_lines(text: &str) -> String {
    text.lines().map(escape_unsafe).collect::<Vec<_>>().join("\n")
}

fn is_harmful(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e0fff}')
}

/// Returns the number of columns that an escaped text takes.
pub(crate) fn width(text: &str) -> usize {
    text.width()
}

/// Cuts a text to a number of columns, with an ellipsis at the end if anything was cut.
pub(crate) fn truncate(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let mut taken = 0;
    let mut cut = String::new();
    for character in text.chars() {
        taken += character.width().unwrap_or(0);
        if taken + 1 > columns {
            break;
        }
        cut.push(character);
    }
    if columns > 0 {
        cut.push('…');
    }
    cut
}

/// Cuts or pads a text to exactly this number of columns.
pub(crate) fn pad_or_truncate(text: &str, columns: usize) -> String {
    let mut fitted = truncate(text, columns);
    fitted.extend(std::iter::repeat_n(' ', columns.saturating_sub(width(&fitted))));
    fitted
}

/// Breaks a text into lines of at most this number of columns, between words where possible.
pub(crate) fn wrap(text: &str, columns: usize) -> Vec<String> {
    let columns = columns.max(1);
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let gap = usize::from(!line.is_empty());
        if width(&line) + gap + width(word) <= columns {
            line.extend(std::iter::repeat_n(' ', gap));
            line.push_str(word);
            continue;
        }
        if !line.is_empty() {
            lines.push(std::mem::take(&mut line));
        }
        for character in word.chars() {
            if width(&line) + character.width().unwrap_or(0) > columns {
                lines.push(std::mem::take(&mut line));
            }
            line.push(character);
        }
    }
    if !line.is_empty() || lines.is_empty() {
        lines.push(line);
    }
    lines
}

/// Splits a line into words like a shell, as far as the examples in the help need it.
#[cfg(test)]
pub(crate) fn split_shell_words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (number, part) in line.split('"').enumerate() {
        if number % 2 == 1 {
            words.push(part.to_owned());
        } else {
            words.extend(part.split_whitespace().map(str::to_owned));
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_that_control_a_terminal_are_escaped() {
        assert_eq!(escape_unsafe("a\x1b[31mb\u{202e}c\n"), "a\\u{1b}[31mb\\u{202e}c\\n");
        assert_eq!(escape_unsafe("Übung ❤\u{fe0f} 数学"), "Übung ❤ 数学");
        assert_eq!(escape_unsafe_lines("a\nb\x07"), "a\nb\\u{7}");
    }

    #[test]
    fn a_text_is_as_wide_as_it_looks() {
        assert_eq!(pad_or_truncate("数学", 6), "数学  ");
        assert_eq!(pad_or_truncate("数学", 3), "数…");
        assert_eq!(pad_or_truncate("数学", 2), "… ");
        assert_eq!(pad_or_truncate("abc", 3), "abc");
        assert_eq!(pad_or_truncate("abc", 0), "");
        assert_eq!(truncate("abcd", 3), "ab…");
    }

    #[test]
    fn lines_break_between_words_and_long_words_anywhere() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("abcdefgh i", 3), ["abc", "def", "gh", "i"]);
        assert_eq!(wrap("", 3), [""]);
        assert_eq!(wrap("数学数学", 5), ["数学", "数学"]);
    }
}
