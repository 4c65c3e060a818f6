//! Text in terminal columns: measured, cut, padded and wrapped. The text must be escaped and not painted, because
//! control characters and colours have no width.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Returns the number of columns that a text takes.
#[must_use]
pub fn display_width(text: &str) -> usize {
    text.width()
}

/// Cuts a text to a number of columns, with an ellipsis at the end if anything was cut.
#[must_use]
pub fn truncate(text: &str, columns: usize) -> String {
    if text.width() <= columns {
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
#[must_use]
pub fn pad_or_truncate(text: &str, columns: usize) -> String {
    let mut fitted = truncate(text, columns);
    fitted.extend(std::iter::repeat_n(' ', columns.saturating_sub(fitted.width())));
    fitted
}

/// Breaks a text into lines of at most this number of columns, between words where possible.
#[must_use]
pub fn wrap(text: &str, columns: usize) -> Vec<String> {
    let columns = columns.max(1);
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let gap = usize::from(!line.is_empty());
        if line.width() + gap + word.width() <= columns {
            line.extend(std::iter::repeat_n(' ', gap));
            line.push_str(word);
            continue;
        }
        if !line.is_empty() {
            lines.push(std::mem::take(&mut line));
        }
        for character in word.chars() {
            if line.width() + character.width().unwrap_or(0) > columns {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_as_wide_as_it_looks() {
        assert_eq!(pad_or_truncate("数学", 6), "数学  ");
        assert_eq!(pad_or_truncate("数学", 3), "数…");
        assert_eq!(pad_or_truncate("数学", 2), "… ");
        assert_eq!(pad_or_truncate("abc", 3), "abc");
        assert_eq!(pad_or_truncate("abc", 0), "");
        assert_eq!(truncate("abcd", 3), "ab…");
        assert_eq!(display_width("数学 a"), 6);
    }

    #[test]
    fn lines_break_between_words_and_long_words_anywhere() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("abcdefgh i", 3), ["abc", "def", "gh", "i"]);
        assert_eq!(wrap("", 3), [""]);
        assert_eq!(wrap("数学数学", 5), ["数学", "数学"]);
    }
}
