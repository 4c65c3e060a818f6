//! What counts as the same letter.
//!
//! Every character is folded by itself, whatever stands beside it. So a piece of a text, folded, is a piece of the
//! folded text, in every script; nothing that was kept can become impossible to find.

use unicode_normalization::char::decompose_compatible;

/// A text without case, accents, invisible characters and line breaks; every gap is one space.
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

/// What stays as it is but for its case; a space does after anything else.
fn is_plain(byte: u8) -> bool {
    matches!(byte, b' '..=b'~')
}

/// Where in `text` that part begins which is at `place` in the folded text.
pub(super) fn unfolded_offset(text: &str, place: usize) -> usize {
    let mut folder = TextFolder { folded: String::with_capacity(place + 8) };
    for (start, character) in text.char_indices() {
        folder.push(character);
        if folder.folded.len() > place {
            return start;
        }
    }
    text.len()
}

/// Whether a character has no shape of its own: controls, directions, zero widths. None of it belongs on a screen.
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
    /// Most of most texts is plain, and taken as one piece in a fraction of the time.
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
            // What no table decomposes, and people type without.
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

/// Accents and points that a word is the same word without. Vowel signs of Indic scripts are none.
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
    fn a_text_is_folded_as_its_characters_are() {
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
    fn a_syllable_is_the_same_in_one_piece_and_in_three() {
        assert_eq!(fold("한국"), fold("\u{1112}\u{1161}\u{11ab}\u{1100}\u{116e}\u{11a8}"));
    }

    #[test]
    fn a_place_is_found_again() {
        let text = "Große Crème brûlée";
        let place = fold(text).find("brulee").unwrap();
        assert_eq!(&text[unfolded_offset(text, place)..], "brûlée");
        assert_eq!(unfolded_offset(text, 1_000), text.len());
    }
}
