//! Escaping of text from a file, so that it can't send control sequences to a terminal, reverse the direction
//! of a line, or contain invisible characters.

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

/// Escapes invisible characters in a text of any length.
pub(crate) fn escape_invisible(text: &str) -> String {
    text.chars().flat_map(escape_char).collect()
}

/// Returns the character, or its escape sequence if it is invisible.
pub(crate) fn escape_char(character: char) -> impl Iterator<Item = char> {
    let escape = is_invisible(character);
    let escaped = escape.then(|| character.escape_default()).into_iter().flatten();
    let plain = (!escape).then_some(character);
    escaped.chain(plain)
}

/// Returns true if a character is invisible, changes how its neighbours are displayed, or has no standard
/// appearance.
pub(crate) fn is_invisible(character: char) -> bool {
    let after = INVISIBLE.partition_point(|(first, _)| *first <= character);
    let in_table = after
        .checked_sub(1)
        .and_then(|index| INVISIBLE.get(index))
        .is_some_and(|(_, last)| character <= *last);
    // The last two code points of each plane are never characters.
    in_table || u32::from(character) & 0xfffe == 0xfffe
}

/// Sorted ranges of the Unicode categories Cc, Cf, Zl, Zp and Co, of noncharacters, and of code points with
/// the property `Default_Ignorable_Code_Point` (fillers, joiners and variation selectors).
const INVISIBLE: &[(char, char)] = &[
    ('\u{0}', '\u{1f}'),
    ('\u{7f}', '\u{9f}'),
    ('\u{ad}', '\u{ad}'),
    ('\u{34f}', '\u{34f}'),
    ('\u{600}', '\u{605}'),
    ('\u{61c}', '\u{61c}'),
    ('\u{6dd}', '\u{6dd}'),
    ('\u{70f}', '\u{70f}'),
    ('\u{890}', '\u{891}'),
    ('\u{8e2}', '\u{8e2}'),
    ('\u{115f}', '\u{1160}'),
    ('\u{17b4}', '\u{17b5}'),
    ('\u{180b}', '\u{180f}'),
    ('\u{200b}', '\u{200f}'),
    ('\u{2028}', '\u{202e}'),
    ('\u{2060}', '\u{206f}'),
    ('\u{3164}', '\u{3164}'),
    ('\u{e000}', '\u{f8ff}'),
    ('\u{fdd0}', '\u{fdef}'),
    ('\u{fe00}', '\u{fe0f}'),
    ('\u{feff}', '\u{feff}'),
    ('\u{ffa0}', '\u{ffa0}'),
    ('\u{fff0}', '\u{fffb}'),
    ('\u{110bd}', '\u{110bd}'),
    ('\u{110cd}', '\u{110cd}'),
    ('\u{13430}', '\u{1343f}'),
    ('\u{1bca0}', '\u{1bca3}'),
    ('\u{1d173}', '\u{1d17a}'),
    ('\u{e0000}', '\u{e0fff}'),
    ('\u{f0000}', '\u{10ffff}'),
];
