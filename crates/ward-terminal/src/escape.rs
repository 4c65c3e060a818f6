//! Escaping of text from elsewhere, so that it can't send control sequences to a terminal, reverse the direction
//! of a line, or contain invisible characters.

/// Escapes a text for one line: invisible characters, line breaks and tabs.
///
/// ```
/// assert_eq!(ward_terminal::escape_line("a\u{1b}[2J\nb"), "a\\u{1b}[2J\\nb");
/// ```
#[must_use]
pub fn escape_line(text: &str) -> String {
    text.chars().flat_map(escape_char).collect()
}

/// Escapes the invisible characters of a text, and keeps its line breaks and tabs.
#[must_use]
pub fn escape_lines(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' | '\t' => shown.push(character),
            _ => shown.extend(escape_char(character)),
        }
    }
    shown
}

/// Escapes a name for one line like [`escape_line`], but removes variation selectors, which many emoji have. They
/// change the width of the character before them differently in each terminal. Text that a person approves needs
/// [`escape_line`], which shows them: they can carry hidden data.
#[must_use]
pub fn escape_label(text: &str) -> String {
    let is_selector = |character: &char| matches!(character, '\u{fe00}'..='\u{fe0f}');
    text.chars().filter(|character| !is_selector(character)).flat_map(escape_char).collect()
}

/// Returns the character, or its escape sequence if it is invisible.
pub fn escape_char(character: char) -> impl Iterator<Item = char> {
    let escape = is_invisible(character);
    let escaped = escape.then(|| character.escape_default()).into_iter().flatten();
    let plain = (!escape).then_some(character);
    escaped.chain(plain)
}

/// Returns true if a character is invisible, changes how its neighbours are displayed, or has no standard
/// appearance. Spaces that have a width are visible, line breaks and tabs are not.
#[must_use]
pub fn is_invisible(character: char) -> bool {
    let after = INVISIBLE.partition_point(|(first, _)| *first <= character);
    let in_table = after
        .checked_sub(1)
        .and_then(|index| INVISIBLE.get(index))
        .is_some_and(|(_, last)| character <= *last);
    // The last two code points of each plane are never characters.
    in_table || u32::from(character) & 0xfffe == 0xfffe
}

/// Sorted ranges of the Unicode categories Cc, Cf, Zl, Zp and Co, of noncharacters, of code points with the
/// property `Default_Ignorable_Code_Point` (fillers, joiners and variation selectors), and the blank Braille pattern.
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
    ('\u{2800}', '\u{2800}'),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_that_deceive_are_written_out() {
        let check = |text, shown: &str| assert_eq!(escape_lines(text), shown);
        check("plain\ttext\nü 漢字 🐑", "plain\ttext\nü 漢字 🐑");
        check("\x1b[2Jgone\r", "\\u{1b}[2Jgone\\r");
        check("a\u{202e}b\u{200b}", "a\\u{202e}b\\u{200b}");
        check("\u{9b}31m", "\\u{9b}31m");
        check("a\u{2800}b\u{34f}\u{e0100}\u{fe0f}", "a\\u{2800}b\\u{34f}\\u{e0100}\\u{fe0f}");
    }

    #[test]
    fn a_line_has_no_line_breaks_and_no_tabs() {
        assert_eq!(escape_line("a\nb\tc"), "a\\nb\\tc");
        assert_eq!(escape_line("a\x1b[31mb\u{202e}c\n"), "a\\u{1b}[31mb\\u{202e}c\\n");
    }

    #[test]
    fn a_label_loses_its_variation_selectors_and_nothing_else() {
        assert_eq!(escape_label("Übung ❤\u{fe0f} 数学\u{200d}\n"), "Übung ❤ 数学\\u{200d}\\n");
    }

    #[test]
    fn the_table_is_sorted_and_has_no_overlaps() {
        assert!(INVISIBLE.iter().all(|(first, last)| first <= last));
        assert!(INVISIBLE.windows(2).all(|pair| pair[0].1 < pair[1].0));
    }
}
