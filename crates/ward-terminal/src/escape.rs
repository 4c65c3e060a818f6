//! Text of others, made safe to look at: what would move the cursor, hide or reorder text is written out.

/// On one line.
#[must_use]
pub fn escape_line(text: &str) -> String {
    escape_where(text, |letter| letter == '\n' || letter == '\t')
}

/// With its lines and tabs.
#[must_use]
pub fn escape_lines(text: &str) -> String {
    escape_where(text, |_| false)
}

fn escape_where(text: &str, also: impl Fn(char) -> bool) -> String {
    let mut shown = String::with_capacity(text.len());
    for letter in text.chars() {
        if is_deceptive(letter) || also(letter) {
            shown.extend(letter.escape_default());
        } else {
            shown.push(letter);
        }
    }
    shown
}

/// Control characters, and those of Unicode that no one sees or that turn the direction of what follows.
fn is_deceptive(letter: char) -> bool {
    (letter.is_control() && letter != '\n' && letter != '\t')
        || matches!(letter,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{180e}' | '\u{3164}' | '\u{ffa0}' | '\u{2800}' | '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_deceives_is_written_out() {
        let check = |text, shown: &str| assert_eq!(escape_lines(text), shown);
        check("plain\ttext\nü 漢字 🐑", "plain\ttext\nü 漢字 🐑");
        check("\x1b[2Jgone\r", "\\u{1b}[2Jgone\\r");
        check("a\u{202e}b\u{200b}", "a\\u{202e}b\\u{200b}");
        check("\u{9b}31m", "\\u{9b}31m");
        assert_eq!(escape_line("a\nb"), "a\\nb");
    }
}
