//! The state of the parser: its position, its nesting depth and its limits.

use super::syntax_tree::{BytePosition, HereDocumentId, ShellWord};

/// The maximum nesting depth, because each level costs stack. People don't write deeper nesting.
pub(super) const MAX_NESTING: usize = 40;

/// The maximum number of commands in a line. Nobody can review a longer line before approving it.
const MAX_COMMANDS: usize = 1_000;

/// The maximum number of words in a line. The files that a pattern matches are counted separately.
const MAX_WORDS: usize = 4_096;

/// The maximum number of literals, patterns and expansions in all words together.
const MAX_LINE_PARTS: usize = 20_000;

/// The maximum number of here-documents in a line.
const MAX_HERE_DOCUMENTS: usize = 100;

/// A fault in a line, or a text that shells read differently.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShellParseError {
    pub at: BytePosition,
    /// The fault as a sentence without a full stop.
    pub what: &'static str,
}

/// A parser over a shell line, or over a text cut out of a line (back-quotes, here-documents).
pub(super) struct ShellParser<'a> {
    pub(super) text: &'a str,
    pub(super) next: usize,
    pub(super) depth: usize,
    /// The position in the whole line, if the text was cut out of it.
    origin: Option<BytePosition>,
    /// Here-documents whose delimiter was read, and whose text starts on the next line.
    pub(super) pending: Vec<PendingHereDocument>,
    /// No `[` before this position is closed within its word.
    pub(super) no_brackets_before: usize,
    pub(super) shared: SharedParseState,
}

/// The state that the parser of a line shares with the parsers of texts cut out of the line.
#[derive(Default)]
pub(super) struct SharedParseState {
    /// The texts, indexed by [`HereDocumentId`]; empty until the text has been read.
    pub(super) here_documents: Vec<ShellWord>,
    commands: usize,
    words: usize,
    parts: usize,
}

/// A here-document whose text has not been read yet.
pub(super) struct PendingHereDocument {
    pub(super) id: HereDocumentId,
    pub(super) delimiter: String,
    pub(super) at: BytePosition,
    pub(super) depth: usize,
    pub(super) expansion: HereDocumentExpansion,
    pub(super) leading_tabs: LeadingTabs,
}

/// The expansion of a here-document's text, which a quoted delimiter turns off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HereDocumentExpansion {
    Yes,
    No,
}

/// The treatment of leading tabs in a here-document; `<<-` strips them.
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

    /// Parses a text that was cut out of this text at a position.
    pub(super) fn parse_nested_text<'b, T>(
        &mut self,
        text: &'b str,
        at: BytePosition,
        read: impl FnOnce(&mut ShellParser<'b>) -> Result<T, ShellParseError>,
    ) -> Result<T, ShellParseError> {
        let shared = std::mem::take(&mut self.shared);
        let mut parser =
            ShellParser { depth: self.depth, origin: Some(at), shared, ..ShellParser::new(text) };
        let read = read(&mut parser);
        self.shared = parser.shared;
        read
    }

    /// Reserves an entry for the text of a here-document that has not been read yet.
    pub(super) fn reserve_here_document(
        &mut self,
        at: BytePosition,
    ) -> Result<HereDocumentId, ShellParseError> {
        let id = HereDocumentId(self.shared.here_documents.len());
        if id.0 == MAX_HERE_DOCUMENTS {
            return self.error("the line has too many here-documents");
        }
        self.shared.here_documents.push(ShellWord { at, parts: Vec::new() });
        Ok(id)
    }

    pub(super) fn count_command(&mut self) -> Result<(), ShellParseError> {
        self.shared.commands += 1;
        if self.shared.commands > MAX_COMMANDS {
            return self.error("the line has too many commands");
        }
        Ok(())
    }

    pub(super) fn count_word(&mut self) -> Result<(), ShellParseError> {
        self.shared.words += 1;
        if self.shared.words > MAX_WORDS {
            return self.error("the line has too many words");
        }
        Ok(())
    }

    pub(super) fn count_parts(&mut self, parts: usize) -> Result<(), ShellParseError> {
        self.shared.parts += parts;
        if self.shared.parts > MAX_LINE_PARTS {
            return self.error("the line has too many expansions and patterns");
        }
        Ok(())
    }

    pub(super) fn position(&self) -> BytePosition {
        self.origin.unwrap_or(BytePosition(self.next))
    }

    pub(super) fn error<T>(&self, what: &'static str) -> Result<T, ShellParseError> {
        Err(ShellParseError { at: self.position(), what })
    }

    /// Returns the next byte without consuming it.
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

    /// Consumes the text if it comes next, and returns true if it did.
    pub(super) fn take(&mut self, text: &str) -> bool {
        let found = self.starts_with(text);
        if found {
            self.next += text.len();
        }
        found
    }

    /// Consumes and returns the text up to the first byte for which `ends` is true.
    pub(super) fn take_until(&mut self, ends: impl Fn(u8) -> bool) -> &'a str {
        let rest = self.rest();
        let length = rest.bytes().position(ends).unwrap_or(rest.len());
        self.next += length;
        rest.get(..length).unwrap_or_default()
    }

    /// Consumes and returns the next character.
    pub(super) fn take_char(&mut self) -> Option<char> {
        let next = self.rest().chars().next()?;
        self.next += next.len_utf8();
        Some(next)
    }

    /// Skips line continuations, each a backslash before a newline.
    pub(super) fn skip_continuations(&mut self) {
        while self.take("\\\n") {}
    }

    /// Skips blanks, line continuations and a comment.
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

    /// Runs `read` at the next nesting level.
    pub(super) fn nested<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, ShellParseError>,
    ) -> Result<T, ShellParseError> {
        if self.depth == MAX_NESTING {
            return self.error("the line is nested too deeply");
        }
        self.depth += 1;
        let read = read(self);
        self.depth -= 1;
        read
    }
}

/// Returns true for bytes that end an unquoted word.
pub(super) fn ends_word(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b'(' | b')' | b'<' | b'>')
}

/// Returns true if a text is a valid name of a variable.
pub(super) fn is_name(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes.next().is_some_and(|first| first == b'_' || first.is_ascii_alphabetic())
        && bytes.all(|byte| byte == b'_' || byte.is_ascii_alphanumeric())
}
