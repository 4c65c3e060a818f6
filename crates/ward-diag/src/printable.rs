//! Text from a file that is safe to show: it can neither steer a terminal nor turn a line round.

/// Longest text that a message repeats.
const MAX_QUOTED: usize = 60;

/// The text with everything invisible escaped, cut short.
pub(crate) fn readable(text: &str) -> String {
    let mut shown: String = text.chars().take(MAX_QUOTED).flat_map(visible).collect();
    if text.chars().nth(MAX_QUOTED).is_some() {
        shown.push('…');
    }
    shown
}

/// The text with everything invisible escaped.
pub(crate) fn printable(text: &str) -> String {
    text.chars().flat_map(visible).collect()
}

fn visible(character: char) -> impl Iterator<Item = char> {
    // What turns the direction of writing round could make a message say something else.
    let turns =
        matches!(character, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let escape = turns || character.is_control();
    let escaped = escape.then(|| character.escape_default()).into_iter().flatten();
    let plain = (!escape).then_some(character);
    escaped.chain(plain)
}
