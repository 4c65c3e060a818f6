//! Reading along a line: where we are, how deep, and what can't be read.

use super::tree::{At, HereId, Word};

/// Deeper nesting is no command that anyone writes, and each level costs stack.
pub(super) const DEEPEST: usize = 40;

/// More commands in a line are none that anyone can look through before saying yes.
const MOST_COMMANDS: usize = 1_000;

/// More words are no list that anyone writes; the files of a pattern are counted apart.
const MOST_WORDS: usize = 4_096;

/// Of all words together: literals, patterns, expansions.
const MOST_PARTS: usize = 20_000;

/// More here-documents in a line are none that anyone writes.
const MOST_HERE_DOCUMENTS: usize = 100;

/// Why a line can't be read with certainty, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreadable {
    /// The place, in bytes.
    pub at: At,
    /// What is wrong there, as a sentence without a full stop.
    pub what: &'static str,
}

/// A place in the text that moves on.
pub(super) struct Reader<'a> {
    pub(super) text: &'a str,
    pub(super) next: usize,
    pub(super) depth: usize,
    /// Where the text as a whole is, when it was cut out of another.
    origin: Option<At>,
    /// Here-documents whose mark was read, but whose text comes with the next line.
    pub(super) awaited: Vec<Awaited>,
    /// Before this place no `[` is closed within its word.
    pub(super) no_sets_before: usize,
    pub(super) shared: Shared,
}

/// What a text shares with the texts that are cut out of it.
#[derive(Default)]
pub(super) struct Shared {
    /// By [`HereId`]; empty until the text has come.
    pub(super) here_documents: Vec<Word>,
    commands: usize,
    words: usize,
    parts: usize,
}

/// A here-document whose text is still to come.
pub(super) struct Awaited {
    pub(super) id: HereId,
    pub(super) mark: String,
    pub(super) at: At,
    pub(super) depth: usize,
    pub(super) expands: Expands,
    pub(super) tabs: Tabs,
}

/// Whether the text of a here-document is expanded: not if its mark is quoted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Expands {
    Yes,
    No,
}

/// Whether the tabs before each line of a here-document are taken away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tabs {
    Kept,
    Stripped,
}

impl<'a> Reader<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self {
            text,
            next: 0,
            depth: 0,
            origin: None,
            awaited: Vec::new(),
            no_sets_before: 0,
            shared: Shared::default(),
        }
    }

    /// Reads a text that was cut out of this one at a place.
    pub(super) fn within<'b, T>(
        &mut self,
        text: &'b str,
        at: At,
        read: impl FnOnce(&mut Reader<'b>) -> Result<T, Unreadable>,
    ) -> Result<T, Unreadable> {
        let shared = std::mem::take(&mut self.shared);
        let mut reader = Reader { depth: self.depth, origin: Some(at), shared, ..Reader::new(text) };
        let read = read(&mut reader);
        self.shared = reader.shared;
        read
    }

    /// A place for the text of a here-document that is still to come.
    pub(super) fn announce(&mut self, at: At) -> Result<HereId, Unreadable> {
        let id = HereId(self.shared.here_documents.len());
        if id.0 == MOST_HERE_DOCUMENTS {
            return self.fault("there are more here-documents than anyone can look through");
        }
        self.shared.here_documents.push(Word { at, parts: Vec::new() });
        Ok(id)
    }

    pub(super) fn count_command(&mut self) -> Result<(), Unreadable> {
        self.shared.commands += 1;
        if self.shared.commands > MOST_COMMANDS {
            return self.fault("there are more commands than anyone can look through");
        }
        Ok(())
    }

    pub(super) fn count_word(&mut self) -> Result<(), Unreadable> {
        self.shared.words += 1;
        if self.shared.words > MOST_WORDS {
            return self.fault("there are more words than anyone can look through");
        }
        Ok(())
    }

    pub(super) fn count_parts(&mut self, parts: usize) -> Result<(), Unreadable> {
        self.shared.parts += parts;
        if self.shared.parts > MOST_PARTS {
            return self.fault("the words have more parts than anyone can look through");
        }
        Ok(())
    }

    pub(super) fn at(&self) -> At {
        self.origin.unwrap_or(At(self.next))
    }

    pub(super) fn fault<T>(&self, what: &'static str) -> Result<T, Unreadable> {
        Err(Unreadable { at: self.at(), what })
    }

    /// The byte that comes next.
    pub(super) fn peek(&self) -> Option<u8> {
        self.peek_after(0)
    }

    pub(super) fn peek_after(&self, bytes: usize) -> Option<u8> {
        self.text.as_bytes().get(self.next + bytes).copied()
    }

    pub(super) fn rest(&self) -> &'a str {
        self.text.get(self.next..).unwrap_or_default()
    }

    pub(super) fn looking_at(&self, text: &str) -> bool {
        self.rest().starts_with(text)
    }

    /// Steps over the text if it comes next.
    pub(super) fn take(&mut self, text: &str) -> bool {
        let there = self.looking_at(text);
        if there {
            self.next += text.len();
        }
        there
    }

    /// Takes the text up to the first byte that ends it.
    pub(super) fn take_until(&mut self, ends: impl Fn(u8) -> bool) -> &'a str {
        let rest = self.rest();
        let length = rest.bytes().position(ends).unwrap_or(rest.len());
        self.next += length;
        rest.get(..length).unwrap_or_default()
    }

    /// Takes one character.
    pub(super) fn take_char(&mut self) -> Option<char> {
        let next = self.rest().chars().next()?;
        self.next += next.len_utf8();
        Some(next)
    }

    /// Steps over a backslash with its newline, as often as they come.
    pub(super) fn skip_continuations(&mut self) {
        while self.take("\\\n") {}
    }

    /// Steps over what is between words, and over a comment.
    pub(super) fn skip_blanks(&mut self) {
        loop {
            self.skip_continuations();
            match self.peek() {
                Some(b' ' | b'\t') => self.next += 1,
                Some(b'#') => {
                    self.take_until(|byte| byte == b'\n');
                }
                _ => return,
            }
        }
    }

    /// One level down, for as long as `read` takes.
    pub(super) fn deeper<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, Unreadable>,
    ) -> Result<T, Unreadable> {
        if self.depth == DEEPEST {
            return self.fault("this is nested too deeply");
        }
        self.depth += 1;
        let read = read(self);
        self.depth -= 1;
        read
    }
}

/// Whether a byte ends a word that isn't quoted.
pub(super) fn ends_word(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b'(' | b')' | b'<' | b'>')
}

/// Whether a text is a name that a variable can have.
pub(super) fn is_name(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes.next().is_some_and(|first| first == b'_' || first.is_ascii_alphabetic())
        && bytes.all(|byte| byte == b'_' || byte.is_ascii_alphanumeric())
}
