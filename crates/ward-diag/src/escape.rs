//! Quotations of text from a file in messages.

use ward_terminal::escape_char;

/// The longest text that a message quotes, in characters.
const MAX_QUOTED: usize = 60;

/// Escapes invisible characters, and shortens the text to [`MAX_QUOTED`] characters.
pub(crate) fn escape_and_truncate(text: &str) -> String {
    let mut shown: String = text.chars().take(MAX_QUOTED).flat_map(escape_char).collect();
    if text.chars().nth(MAX_QUOTED).is_some() {
        shown.push('…');
    }
    shown
}
