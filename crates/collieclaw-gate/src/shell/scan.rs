//! Scans operators, newlines and reserved words.

use super::parser::{ShellParseError, ShellParser, ends_word};

/// Words that are special at the beginning of a command.
const RESERVED_WORDS: [&str; 19] = [
    "!", "[[", "case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for", "function", "if",
    "select", "then", "until", "while", "{", "}",
];

impl ShellParser<'_> {
    /// Consumes an operator. A line continuation must not split a longer operator, because shells would join
    /// its parts.
    pub(super) fn operator(&mut self, operator: &str) -> Result<(), ShellParseError> {
        self.next += operator.len();
        let before = self.next;
        self.skip_continuations();
        let split =
            self.next > before && matches!(self.peek(), Some(b'&' | b'|' | b';' | b'<' | b'>' | b'('));
        if split { self.error("an operator can't continue on the next line") } else { Ok(()) }
    }

    /// Skips newlines, blanks and comments, and reads the here-documents that start after a newline.
    pub(super) fn skip_lines(&mut self) -> Result<(), ShellParseError> {
        loop {
            self.skip_blanks();
            if self.peek() != Some(b'\n') {
                return Ok(());
            }
            self.next += 1;
            self.here_documents()?;
        }
    }

    pub(super) fn at_process_substitution(&self) -> bool {
        matches!(self.peek(), Some(b'<' | b'>')) && self.peek_after(1) == Some(b'(')
    }

    /// Returns the reserved word that comes next.
    pub(super) fn reserved_word(&self) -> Option<&'static str> {
        RESERVED_WORDS.into_iter().find(|word| self.plain_word_is(word))
    }

    /// Returns true if exactly this unquoted word comes next; line continuations may interrupt it.
    pub(super) fn plain_word_is(&self, word: &str) -> bool {
        self.after_plain(word)
            .is_some_and(|after| self.text.as_bytes().get(after).copied().is_none_or(ends_word))
    }

    pub(super) fn step_over(&mut self, word: &str) {
        if let Some(after) = self.after_plain(word) {
            self.next = after;
        }
    }

    /// Returns the position after these letters, if they come next.
    fn after_plain(&self, word: &str) -> Option<usize> {
        let bytes = self.text.as_bytes();
        let mut place = self.next;
        let skip = |mut place: usize| {
            while bytes.get(place..).is_some_and(|rest| rest.starts_with(b"\\\n")) {
                place += 2;
            }
            place
        };
        for letter in word.bytes() {
            if bytes.get(place) != Some(&letter) {
                return None;
            }
            place = skip(place + 1);
        }
        Some(place)
    }
}
