//! Folding of texts for the search, which ignores case, accents and widths.
//!
//! Every character is folded on its own, independently of its neighbours. So the folded form of a part of a
//! text is always a part of the folded text, in every script, and each stored text can be found.

use unicode_normalization::char::decompose_compatible;

/// Returns the text in lower case, without accents and invisible characters, and with single spaces for all
/// whitespace.
pub(super) fn fold(text: &str) -> String {
    let mut folder = TextFolder { folded: String::with_capacity(text.len()) };
    let mut rest = text;
    while !rest.is_empty() {
        let plain = rest.bytes().position(|byte| !is_plain(byte)).unwrap_or(rest.len());
        let (run, behind) = rest.split_at(plain);
        folder.push_run(run);
        let mut behind = behind.chars();
        if let Some(character) = behind.next() {
            folder.push(character);
        }
        rest = behind.as_str();
    }
    folder.folded
}

/// Returns true for ASCII characters that only need lower-casing. A space is one of them unless it follows
/// another space.
fn is_plain(byte: u8) -> bool {
    matches!(byte, b' '..=b'~')
}

/// Returns the offset in `text` of the character at offset `place` in the folded text.
pub(super) fn unfolded_offset(text: &str, folded_offset: usize) -> usize {
    let mut folder = TextFolder { folded: String::with_capacity(folded_offset + 8) };
    for (start, character) in text.char_indices() {
        folder.push(character);
        if folder.folded.len() > folded_offset {
            return start;
        }
    }
    text.len()
}

/// Returns true for control, direction and zero-width characters, which must not be printed to a terminal.
pub(super) fn is_invisible(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

struct TextFolder {
    folded: String,
}

impl TextFolder {
    /// Folds a run of plain ASCII. Most texts are mostly ASCII, and folding a whole run is much faster than
    /// single characters.
    fn push_run(&mut self, run: &str) {
        let is_after_gap = self.folded.is_empty() || self.folded.ends_with(' ');
        if (is_after_gap && run.starts_with(' ')) || run.contains("  ") {
            run.chars().for_each(|character| self.push(character));
        } else {
            let start = self.folded.len();
            self.folded.push_str(run);
            if let Some(pushed) = self.folded.get_mut(start..) {
                pushed.make_ascii_lowercase();
            }
        }
    }

    fn push(&mut self, character: char) {
        if character.is_ascii_graphic() {
            self.folded.push(character.to_ascii_lowercase());
        } else if character.is_whitespace() || character.is_control() {
            if !self.folded.is_empty() && !self.folded.ends_with(' ') {
                self.folded.push(' ');
            }
        } else {
            decompose_compatible(character, |part| {
                for lower in part.to_lowercase() {
                    self.push_letter(lower);
                }
            });
        }
    }

    fn push_letter(&mut self, letter: char) {
        match letter {
            // Letters that Unicode doesn't decompose, but that people type without their marks.
            'ß' => self.folded.push_str("ss"),
            'æ' => self.folded.push_str("ae"),
            'œ' => self.folded.push_str("oe"),
            'ø' => self.folded.push('o'),
            'ł' => self.folded.push('l'),
            'đ' => self.folded.push('d'),
            'ı' => self.folded.push('i'),
            'ς' => self.folded.push('σ'),
            ' ' if self.folded.is_empty() || self.folded.ends_with(' ') => {}
            letter if is_mark(letter) || is_invisible(letter) => {}
            letter => self.folded.push(letter),
        }
    }
}

/// Returns true for accents and points that don't change a word. Vowel signs of Indic scripts do, so they are
/// not included.
fn is_mark(letter: char) -> bool {
    matches!(letter,
        '\u{300}'..='\u{36f}'
        | '\u{591}'..='\u{5bd}' | '\u{5bf}' | '\u{5c1}' | '\u{5c2}' | '\u{5c4}' | '\u{5c5}' | '\u{5c7}'
        | '\u{610}'..='\u{61a}' | '\u{640}' | '\u{64b}'..='\u{65f}' | '\u{670}' | '\u{6d6}'..='\u{6dc}'
        | '\u{1ab0}'..='\u{1aff}' | '\u{1dc0}'..='\u{1dff}' | '\u{20d0}'..='\u{20ff}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{fe20}'..='\u{fe2f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_accents_and_widths_do_not_count() {
        for (text, folded) in [
            ("Crème BRÛLÉE", "creme brulee"),
            ("Cre\u{300}me", "creme"),
            ("Straße STRASSE", "strasse strasse"),
            ("Łódź Ørsted İstanbul", "lodz orsted istanbul"),
            ("ΟΔΟΣ οδός", "οδοσ οδοσ"),
            ("Ёлка", "елка"),
            ("ＦＵＬＬ ﬁ", "full fi"),
            ("شُكْرًا", "شكرا"),
            ("שָׁלוֹם", "שלום"),
            ("東京", "東京"),
            ("  a\r\n\t b\0c ", "a b c "),
            ("soft\u{ad}hy\u{200b}phen", "softhyphen"),
        ] {
            assert_eq!(fold(text), folded, "{text:?}");
        }
    }

    #[test]
    fn folding_a_text_equals_folding_its_characters() {
        let pieces = ["Word", " ", "  ", "\n", "É", "a,B", "\u{200b}", "東", "\u{a0}", "\u{301}", "~"];
        for number in 0..pieces.len().pow(4) {
            let text: String =
                (0..4).map(|digit| pieces[number / pieces.len().pow(digit) % pieces.len()]).collect();
            let mut folder = TextFolder { folded: String::new() };
            text.chars().for_each(|character| folder.push(character));
            assert_eq!(fold(&text), folder.folded, "{text:?}");
        }
    }

    #[test]
    fn composed_and_decomposed_hangul_fold_to_the_same_text() {
        assert_eq!(fold("한국"), fold("\u{1112}\u{1161}\u{11ab}\u{1100}\u{116e}\u{11a8}"));
    }

    #[test]
    fn an_offset_in_the_folded_text_is_mapped_back() {
        let text = "Große Crème brûlée";
        let offset = fold(text).find("brulee").unwrap();
        assert_eq!(&text[unfolded_offset(text, offset)..], "brûlée");
        assert_eq!(unfolded_offset(text, 1_000), text.len());
    }
}
