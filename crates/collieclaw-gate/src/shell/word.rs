//! Parses words: quotes, escapes, patterns and expansions.

use super::parser::{ShellParseError, ShellParser, ends_word, is_name};
use super::syntax_tree::{ShellWord, UnknownPart, UnknownPartKind, WordPart};

/// The distance within which the parser searches for the closing bracket of a pattern.
const LONGEST_BRACKET: usize = 200;

/// The maximum number of parts in a word. People don't write larger words.
const MAX_WORD_PARTS: usize = 4096;

/// The position of a word, which decides where a `~` means the home folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WordPosition {
    /// A `~` is special at the beginning of the word.
    Ordinary,
    /// The value of an assignment: a `~` is special after each `:`, too.
    AssignmentValue,
}

/// A word with the information if a part of it was quoted.
pub(super) struct ParsedWord {
    pub(super) word: ShellWord,
    pub(super) quoted: bool,
}

/// Collects the parts of a word and joins adjacent literals.
#[derive(Default)]
pub(super) struct WordPartsBuilder {
    finished: Vec<WordPart>,
    pub(super) text: String,
}

impl WordPartsBuilder {
    pub(super) fn push(&mut self, part: WordPart) {
        self.end_literal();
        self.finished.push(part);
    }

    fn is_empty(&self) -> bool {
        self.finished.is_empty() && self.text.is_empty()
    }

    fn end_literal(&mut self) {
        if !self.text.is_empty() {
            self.finished.push(WordPart::Literal(std::mem::take(&mut self.text)));
        }
    }

    pub(super) fn finish(mut self) -> Vec<WordPart> {
        self.end_literal();
        self.finished
    }
}

/// The open braces of a word. Some shells expand braces that contain a comma or `..`.
#[derive(Default)]
struct BraceState {
    open: usize,
    divided: bool,
}

impl BraceState {
    fn divide(&mut self) {
        self.divided |= self.open > 0;
    }
}

impl ShellParser<'_> {
    /// Parses a word up to its end. The caller has checked that a word comes next.
    pub(super) fn word(&mut self, place: WordPosition) -> Result<ParsedWord, ShellParseError> {
        self.count_word()?;
        let at = self.position();
        let start = self.next;
        let mut parts = WordPartsBuilder::default();
        let mut braces = BraceState::default();
        let mut quoted = false;
        let mut goes_on = false;
        let mut is_assigned = None;
        while let Some(byte) = self.peek() {
            self.check_part_count(&parts)?;
            match byte {
                b'<' | b'>' if self.peek_after(1) == Some(b'(') => {
                    let part = self.process_substitution()?;
                    parts.push(part);
                }
                byte if ends_word(byte) => break,
                b'\'' => {
                    quoted = true;
                    self.single_quotes(&mut parts)?;
                }
                b'"' => {
                    quoted = true;
                    self.double_quotes(&mut parts)?;
                }
                b'\\' => {
                    if self.take("\\\n") {
                        goes_on = true;
                        continue;
                    }
                    quoted = true;
                    self.next += 1;
                    match self.take_char() {
                        Some(escaped) => parts.text.push(escaped),
                        None => return self.error("the line ends with a backslash"),
                    }
                }
                b'$' => self.dollar(&mut parts)?,
                b'`' => {
                    let part = self.back_quotes(QuoteContext::None)?;
                    parts.push(part);
                }
                b'*' | b'?' => {
                    self.next += 1;
                    parts.push(WordPart::Glob(char::from(byte).to_string()));
                }
                b'[' => {
                    // The brackets may contain the comma that divides open braces.
                    braces.divide();
                    self.bracket(&mut parts);
                }
                // After a line continuation, shells disagree if this `~` is at the beginning of the word.
                b'~' if goes_on => {
                    let at = self.position();
                    self.next += 1;
                    parts.push(WordPart::Unknown(UnknownPart {
                        at,
                        kind: UnknownPartKind::Tilde,
                        scripts: Vec::new(),
                    }));
                }
                b'~' => {
                    let is_assigned = *is_assigned.get_or_insert_with(|| {
                        looks_like_assignment(self.text.get(start..).unwrap_or_default())
                    });
                    self.tilde(place, start, is_assigned, &mut parts);
                }
                b'{' | b'}' | b',' | b'.' => self.brace(byte, &mut braces, &mut parts),
                _ => {
                    let plain = self.take_until(is_special);
                    parts.text.push_str(plain);
                }
            }
        }
        // `''` is an empty word, not a missing one.
        if quoted && parts.is_empty() {
            parts.finished.push(WordPart::Literal(String::new()));
        }
        let parts = parts.finish();
        self.count_parts(parts.len())?;
        Ok(ParsedWord { word: ShellWord { at, parts }, quoted })
    }

    pub(super) fn check_part_count(&self, parts: &WordPartsBuilder) -> Result<(), ShellParseError> {
        if parts.finished.len() > MAX_WORD_PARTS {
            self.error("this word has too many expansions and patterns")
        } else {
            Ok(())
        }
    }

    fn single_quotes(&mut self, parts: &mut WordPartsBuilder) -> Result<(), ShellParseError> {
        let opened = self.position();
        self.next += 1;
        let text = self.take_until(|byte| byte == b'\'');
        parts.text.push_str(text);
        if self.take("'") {
            Ok(())
        } else {
            Err(ShellParseError { at: opened, what: "this quote is not closed" })
        }
    }

    pub(super) fn double_quotes(&mut self, parts: &mut WordPartsBuilder) -> Result<(), ShellParseError> {
        let opened = self.position();
        self.next += 1;
        loop {
            let text = self.take_until(|byte| matches!(byte, b'"' | b'\\' | b'$' | b'`'));
            parts.text.push_str(text);
            match self.peek() {
                Some(b'"') => {
                    self.next += 1;
                    return Ok(());
                }
                Some(b'\\') => self.escape_in_text(parts, QuoteContext::Double),
                Some(b'$') => self.dollar_in_text(parts)?,
                Some(b'`') => {
                    let part = self.back_quotes(QuoteContext::Double)?;
                    parts.push(part);
                }
                _ => return Err(ShellParseError { at: opened, what: "this quote is not closed" }),
            }
        }
    }

    /// Parses the whole text as a here-document with expansions.
    pub(super) fn here_document_parts(&mut self) -> Result<Vec<WordPart>, ShellParseError> {
        let mut parts = WordPartsBuilder::default();
        loop {
            let text = self.take_until(|byte| matches!(byte, b'\\' | b'$' | b'`'));
            parts.text.push_str(text);
            match self.peek() {
                Some(b'\\') => self.escape_in_text(&mut parts, QuoteContext::None),
                Some(b'$') => self.dollar_in_text(&mut parts)?,
                Some(b'`') => {
                    let part = self.back_quotes(QuoteContext::None)?;
                    parts.push(part);
                }
                _ => return Ok(parts.finish()),
            }
        }
    }

    /// Parses a backslash inside quotes or a here-document, where it escapes only special characters.
    fn escape_in_text(&mut self, parts: &mut WordPartsBuilder, quotes: QuoteContext) {
        self.next += 1;
        match self.peek() {
            Some(b'\n') => self.next += 1,
            Some(escaped @ (b'$' | b'`' | b'\\')) => {
                self.next += 1;
                parts.text.push(char::from(escaped));
            }
            Some(b'"') if quotes == QuoteContext::Double => {
                self.next += 1;
                parts.text.push('"');
            }
            _ => parts.text.push('\\'),
        }
    }

    /// Parses a `[`, which starts a pattern if a `]` closes it within the word.
    fn bracket(&mut self, parts: &mut WordPartsBuilder) {
        if self.next < self.no_brackets_before {
            self.next += 1;
            parts.text.push('[');
            return;
        }
        let inside = self.rest().get(1..).unwrap_or_default();
        // A `]` in first place belongs to the set and doesn't close it.
        let closes = inside
            .bytes()
            .take(LONGEST_BRACKET)
            .enumerate()
            .take_while(|(_, byte)| !ends_word(*byte))
            .skip(1)
            .find(|(_, byte)| *byte == b']');
        let Some((length, _)) = closes else {
            let word = inside.bytes().take(LONGEST_BRACKET).take_while(|byte| !ends_word(*byte));
            let (mut length, mut quotes) = (0, false);
            for byte in word {
                length += 1;
                quotes |= matches!(byte, b'\'' | b'"' | b'\\' | b'$' | b'`');
            }
            // The word may go on behind a quoted blank, or beyond the searched distance.
            if quotes || length == LONGEST_BRACKET {
                let at = self.position();
                parts.push(WordPart::Unknown(UnknownPart {
                    at,
                    kind: UnknownPartKind::Pattern,
                    scripts: Vec::new(),
                }));
            } else {
                parts.text.push('[');
                // No other `[` of this word is closed either, so don't search again.
                self.no_brackets_before = self.next + length;
            }
            self.next += 1;
            return;
        };
        let set = inside.get(..length).unwrap_or_default();
        let simple =
            |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'!' | b',');
        if set.bytes().all(simple) && set != "!" {
            parts.push(WordPart::Glob(format!("[{set}]")));
            self.next += set.len() + 2;
        } else {
            let at = self.position();
            parts.push(WordPart::Unknown(UnknownPart {
                at,
                kind: UnknownPartKind::Pattern,
                scripts: Vec::new(),
            }));
            self.next += 1;
        }
    }

    /// Parses an unquoted `~` in the word that starts at `start`. `is_assigned` says if the word looks like
    /// an assignment.
    fn tilde(&mut self, place: WordPosition, start: usize, is_assigned: bool, parts: &mut WordPartsBuilder) {
        let at = self.position();
        let before = self.text.get(start..self.next).unwrap_or_default();
        self.next += 1;
        let begins = before.is_empty() || (place == WordPosition::AssignmentValue && before.ends_with(':'));
        let alone = self.peek().is_none_or(|byte| {
            byte == b'/' || ends_word(byte) || (place == WordPosition::AssignmentValue && byte == b':')
        });
        let unknown =
            WordPart::Unknown(UnknownPart { at, kind: UnknownPartKind::Tilde, scripts: Vec::new() });
        if begins && alone {
            parts.push(WordPart::Home);
        } else if begins || (is_assigned && before.ends_with(['=', ':'])) {
            parts.push(unknown);
        } else {
            parts.text.push('~');
        }
    }

    /// Parses a byte of a brace expression: some shells expand `{a,b}` and `{1..3}` to several words.
    fn brace(&mut self, byte: u8, braces: &mut BraceState, parts: &mut WordPartsBuilder) {
        match byte {
            b'{' => braces.open += 1,
            b',' => braces.divide(),
            // After a line continuation, a second dot may follow.
            b'.' if matches!(self.peek_after(1), Some(b'.' | b'\\')) => braces.divide(),
            b'.' => {}
            // Some shells don't let `{}` close a brace, so the open braces are never counted down.
            _ => {
                if braces.divided {
                    let at = self.position();
                    parts.push(WordPart::Unknown(UnknownPart {
                        at,
                        kind: UnknownPartKind::Braces,
                        scripts: Vec::new(),
                    }));
                }
            }
        }
        self.next += 1;
        parts.text.push(char::from(byte));
    }
}

/// The quotes around a back-quote or a backslash, which decide the characters that a backslash escapes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum QuoteContext {
    None,
    Double,
}

/// Returns true for bytes that are special in an unquoted word.
fn is_special(byte: u8) -> bool {
    ends_word(byte)
        || matches!(
            byte,
            b'\'' | b'"' | b'\\' | b'$' | b'`' | b'*' | b'?' | b'[' | b'~' | b'{' | b'}' | b',' | b'.'
        )
}

/// Returns true if a word starts with `NAME=`. In such an argument, some shells expand a `~` after the `=`
/// and after each `:`.
fn looks_like_assignment(word: &str) -> bool {
    let after = word.trim_start_matches(|letter: char| letter == '_' || letter.is_ascii_alphanumeric());
    ["=", "+=", "["].into_iter().any(|sign| after.starts_with(sign))
        && word.strip_suffix(after).is_some_and(is_name)
}
