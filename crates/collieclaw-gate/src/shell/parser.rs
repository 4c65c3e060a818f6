//! Reading along a line: where we are, how deep, and what can't be read.

use super::syntax_tree::{BytePosition, HereDocumentId, ShellWord};

/// Deeper nesting is no command that anyone writes, and each level costs stack.
pub(super) const MAX_NESTING: usize = 40;

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
pub struct ShellParseError {
    /// The place, in bytes.
    pub at: BytePosition,
    /// What is wrong there, as a sentence without a full stop.
    pub what: &'static str,
}

/// A place in the text that moves on.
pub(super) struct ShellParser<'a> {
    pub(super) text: &'a str,
    pub(super) next: usize,
    pub(super) depth: usize,
    /// Where the text as a whole is, when it was cut out of another.
    origin: Option<BytePosition>,
    /// Here-documents whose mark was read, but whose text comes with the next line.
    pub(super) pending: Vec<PendingHereDocument>,
    /// Before this place no `[` is closed within its word.
    pub(super) no_brackets_before: usize,
    pub(super) shared: SharedParseState,
}

/// What a text shares with the texts that are cut out of it.
#[derive(Default)]
pub(super) struct SharedParseState {
    /// By [`HereDocumentId`]; empty until the text has come.
    pub(super) here_documents: Vec<ShellWord>,
    commands: usize,
    words: usize,
    parts: usize,
}

/// A here-document whose text is still to come.
pub(super) struct PendingHereDocument {
    pub(super) id: HereDocumentId,
    pub(super) mark: String,
    pub(super) at: BytePosition,
    pub(super) depth: usize,
    pub(super) expansion: HereDocumentExpansion,
    pub(super) leading_tabs: LeadingTabs,
}

/// Whether the text of a here-document is expanded: not if its mark is quoted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HereDocumentExpansion {
    Yes,
    No,
}

/// Whether the tabs before each line of a here-document are taken away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LeadingTabs {
    Kept,
    Stripped,
}

impl<'a> ShellParser<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self {
            text,
            next: 0,
            depth: 0,
            origin: None,
            pending: Vec::new(),
            no_brackets_before: 0,
            shared: SharedParseState::default(),
        }
    }

    /// Reads a text that was cut out of this one at a place.
    pub(super) fn parse_nested_text<'b, T>(
        &mut self,
        text: &'b str,
        at: BytePosition,
        read: impl FnOnce(&mut ShellParser<'b>) -> Result<T, ShellParseError>,
    ) -> Result<T, ShellParseError> {
        let shared = std::mem::take(&mut self.shared);
        let mut reader =
            ShellParser { depth: self.depth, origin: Some(at), shared, ..ShellParser::new(text) };
        let read = read(&mut reader);
        self.shared = reader.shared;
        read
    }

    /// A place for the text of a here-document that is still to come.
    pub(super) fn reserve_here_document(
        &mut self,
        at: BytePosition,
    ) -> Result<HereDocumentId, ShellParseError> {
        let id = HereDocumentId(self.shared.here_documents.len());
        if id.0 == MOST_HERE_DOCUMENTS {
            return self.error("there are more here-documents than anyone can look through");
        }
        self.shared.here_documents.push(ShellWord { at, parts: Vec::new() });
        Ok(id)
    }

    pub(super) fn count_command(&mut self) -> Result<(), ShellParseError> {
        self.shared.commands += 1;
        if self.shared.commands > MOST_COMMANDS {
            return self.error("there are more commands than anyone can look through");
        }
        Ok(())
    }

    pub(super) fn count_word(&mut self) -> Result<(), ShellParseError> {
        self.shared.words += 1;
        if self.shared.words > MOST_WORDS {
            return self.error("there are more words than anyone can look through");
        }
        Ok(())
    }

    pub(super) fn count_parts(&mut self, parts: usize) -> Result<(), ShellParseError> {
        self.shared.parts += parts;
        if self.shared.parts > MOST_PARTS {
            return self.error("the words have more parts than anyone can look through");
        }
        Ok(())
    }

    pub(super) fn position(&self) -> BytePosition {
        self.origin.unwrap_or(BytePosition(self.next))
    }

    pub(super) fn error<T>(&self, what: &'static str) -> Result<T, ShellParseError> {
        Err(ShellParseError { at: self.position(), what })
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

    pub(super) fn starts_with(&self, text: &str) -> bool {
        self.rest().starts_with(text)
    }

    /// Steps over the text if it comes next.
    pub(super) fn take(&mut self, text: &str) -> bool {
        let there = self.starts_with(text);
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
    pub(super) fn nested<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, ShellParseError>,
    ) -> Result<T, ShellParseError> {
        if self.depth == MAX_NESTING {
            return self.error("this is nested too deeply");
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
