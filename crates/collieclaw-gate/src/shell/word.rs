//! Words: quotes, escapes, patterns, and what can be known only when it runs.

use super::parser::{ShellParseError, ShellParser, ends_word, is_name};
use super::syntax_tree::{ShellWord, UnknownPart, UnknownPartKind, WordPart};

/// A pattern in brackets is looked for no farther than this.
const LONGEST_BRACKET: usize = 200;

/// A word of more parts is none that anyone writes.
const MOST_PARTS: usize = 4096;

/// Where a word stands, which decides where a `~` is the home folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WordPosition {
    Ordinary,
    /// After the `=` of an assignment: also after each `:`.
    AssignmentValue,
}

/// A word, and whether any of it was quoted.
pub(super) struct ParsedWord {
    pub(super) word: ShellWord,
    pub(super) quoted: bool,
}

/// Parts as they come; literals that touch are one.
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

/// What is open in a word that only some shells would expand.
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
    /// Reads a word up to where it ends. There must be one.
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
                    // What divides braces may be in it.
                    braces.divide();
                    self.bracket(&mut parts);
                }
                // What comes before it in the text is not all that comes before it in the word.
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
        // `''` is a word, too.
        if quoted && parts.is_empty() {
            parts.finished.push(WordPart::Literal(String::new()));
        }
        let parts = parts.finish();
        self.count_parts(parts.len())?;
        Ok(ParsedWord { word: ShellWord { at, parts }, quoted })
    }

    pub(super) fn check_part_count(&self, parts: &WordPartsBuilder) -> Result<(), ShellParseError> {
        if parts.finished.len() > MOST_PARTS { self.error("this word has too many parts") } else { Ok(()) }
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

    /// The text of a here-document whose mark is not quoted: all of what this reader holds.
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

    /// Inside text a backslash is one, unless it stands before what would mean something.
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

    /// A `[`: a pattern if it is closed within the word.
    fn bracket(&mut self, parts: &mut WordPartsBuilder) {
        if self.next < self.no_brackets_before {
            self.next += 1;
            parts.text.push('[');
            return;
        }
        let inside = self.rest().get(1..).unwrap_or_default();
        // The first byte may be the `]` that belongs to the set.
        let closes = inside
            .bytes()
            .take(LONGEST_BRACKET)
            .enumerate()
            .skip(1)
            .take_while(|(_, byte)| !ends_word(*byte))
            .find(|(_, byte)| *byte == b']');
        let Some((length, _)) = closes else {
            let word = inside.bytes().take(LONGEST_BRACKET).take_while(|byte| !ends_word(*byte));
            let (mut length, mut quotes) = (0, false);
            for byte in word {
                length += 1;
                quotes |= matches!(byte, b'\'' | b'"' | b'\\' | b'$' | b'`');
            }
            // A blank in quotes ends no word.
            if quotes || length == LONGEST_BRACKET {
                let at = self.position();
                parts.push(WordPart::Unknown(UnknownPart {
                    at,
                    kind: UnknownPartKind::Pattern,
                    scripts: Vec::new(),
                }));
            } else {
                parts.text.push('[');
                // Nor is any other that is open in this word closed.
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

    /// A `~` that is not quoted, in a word that starts there and perhaps looks like an assignment.
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

    /// `{a,b}` and `{1..3}` are several words to some shells.
    fn brace(&mut self, byte: u8, braces: &mut BraceState, parts: &mut WordPartsBuilder) {
        match byte {
            b'{' => braces.open += 1,
            b',' => braces.divide(),
            // The second one may come on the next line.
            b'.' if matches!(self.peek_after(1), Some(b'.' | b'\\')) => braces.divide(),
            b'.' => {}
            // `{}` closes nothing for some, so what is open stays so.
            _ => {
                if braces.open > 0 && braces.divided {
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

/// Which quotes a back-quote stands in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum QuoteContext {
    None,
    Double,
}

/// Whether a byte means something in a word that is not quoted.
fn is_special(byte: u8) -> bool {
    ends_word(byte)
        || matches!(
            byte,
            b'\'' | b'"' | b'\\' | b'$' | b'`' | b'*' | b'?' | b'[' | b'~' | b'{' | b'}' | b',' | b'.'
        )
}

/// Whether a word begins with `NAME=`: behind it, and behind each `:`, some shells expand a `~` although it is an
/// argument.
fn looks_like_assignment(word: &str) -> bool {
    let after = word.trim_start_matches(|letter: char| letter == '_' || letter.is_ascii_alphanumeric());
    ["=", "+=", "["].into_iter().any(|sign| after.starts_with(sign))
        && word.get(..word.len() - after.len()).is_some_and(is_name)
}
