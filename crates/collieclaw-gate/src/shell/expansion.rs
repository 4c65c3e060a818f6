//! Parses expansions, which start with `$` or a back-quote, and the commands inside them.

use super::parser::{ShellParseError, ShellParser};
use super::syntax_tree::{ShellScript, UnknownPart, UnknownPartKind, WordPart};
use super::word::{QuoteContext, WordPartsBuilder};

impl ShellParser<'_> {
    /// Parses a `$` outside of quotes.
    pub(super) fn dollar(&mut self, parts: &mut WordPartsBuilder) -> Result<(), ShellParseError> {
        let at = self.position();
        match self.peek_after(1) {
            Some(b'\'') => {
                self.next += 2;
                self.dollar_quotes()?;
                parts.push(WordPart::Unknown(UnknownPart {
                    at,
                    kind: UnknownPartKind::DollarQuote,
                    scripts: Vec::new(),
                }));
                Ok(())
            }
            Some(b'"') => {
                self.next += 1;
                parts.push(WordPart::Unknown(UnknownPart {
                    at,
                    kind: UnknownPartKind::DollarQuote,
                    scripts: Vec::new(),
                }));
                self.double_quotes(parts)
            }
            _ => self.dollar_in_text(parts),
        }
    }

    /// Skips the rest of `$'…'`. Only some shells decode its escapes, so its text stays unknown.
    fn dollar_quotes(&mut self) -> Result<(), ShellParseError> {
        loop {
            self.take_until(|byte| matches!(byte, b'\'' | b'\\'));
            match self.take_char() {
                Some('\\') => _ = self.take_char(),
                Some(_) => return Ok(()),
                None => return self.error("a quote is not closed"),
            }
        }
    }

    /// Parses a `$` inside quotes or a here-document, where a following quote isn't special.
    pub(super) fn dollar_in_text(&mut self, parts: &mut WordPartsBuilder) -> Result<(), ShellParseError> {
        self.check_part_count(parts)?;
        let at = self.position();
        let unknown = |kind, scripts| WordPart::Unknown(UnknownPart { at, kind, scripts });
        match self.peek_after(1) {
            Some(b'(') if self.peek_after(2) == Some(b'(') => {
                self.next += 3;
                let scripts = self.nested(Self::arithmetic)?;
                parts.push(unknown(UnknownPartKind::Arithmetic, scripts));
            }
            Some(b'(') => {
                self.next += 2;
                let script = self.nested(Self::command_substitution)?;
                parts.push(unknown(UnknownPartKind::CommandSubstitution, vec![script]));
            }
            Some(b'{') => {
                self.next += 2;
                let scripts = self.nested(Self::parameter)?;
                parts.push(unknown(UnknownPartKind::Variable, scripts));
            }
            Some(b'[') => {
                self.next += 2;
                self.take_until(|byte| matches!(byte, b']' | b'\n'));
                if !self.take("]") {
                    return self.error("a `$[` is not closed");
                }
                parts.push(unknown(UnknownPartKind::Arithmetic, Vec::new()));
            }
            Some(b'\\') if self.peek_after(2) == Some(b'\n') => {
                return self.error("a `$` can't stand before a line continuation");
            }
            Some(byte) if byte == b'_' || byte.is_ascii_alphabetic() => {
                self.next += 1;
                self.take_until(|byte| byte != b'_' && !byte.is_ascii_alphanumeric());
                parts.push(unknown(UnknownPartKind::Variable, Vec::new()));
            }
            Some(b'@' | b'*' | b'#' | b'?' | b'-' | b'$' | b'!' | b'0'..=b'9') => {
                self.next += 2;
                parts.push(unknown(UnknownPartKind::Variable, Vec::new()));
            }
            _ => {
                self.next += 1;
                parts.text.push('$');
            }
        }
        Ok(())
    }

    fn command_substitution(&mut self) -> Result<ShellScript, ShellParseError> {
        let script = self.script_until(")")?;
        if self.take(")") { Ok(script) } else { self.error("a `$(` is not closed") }
    }

    pub(super) fn process_substitution(&mut self) -> Result<WordPart, ShellParseError> {
        let at = self.position();
        self.next += 2;
        let script = self.nested(Self::command_substitution)?;
        Ok(WordPart::Unknown(UnknownPart {
            at,
            kind: UnknownPartKind::ProcessSubstitution,
            scripts: vec![script],
        }))
    }

    /// Parses the rest of `${…}` after its brace, and returns the commands inside.
    fn parameter(&mut self) -> Result<Vec<ShellScript>, ShellParseError> {
        if matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'|')) {
            return self.error("`${` with a command means different things to different shells");
        }
        let mut inside = WordPartsBuilder::default();
        loop {
            self.take_until(|byte| matches!(byte, b'}' | b'"' | b'\'' | b'\\' | b'$' | b'`' | b'{'));
            match self.peek() {
                Some(b'}') => {
                    self.next += 1;
                    return Ok(collect_scripts(inside));
                }
                Some(b'"') => self.double_quotes(&mut inside)?,
                Some(b'$') => self.dollar_in_text(&mut inside)?,
                Some(b'`') => {
                    let part = self.back_quotes(QuoteContext::None)?;
                    inside.push(part);
                }
                Some(b'\\') => {
                    self.next += 1;
                    self.take_char();
                }
                // Inside of double quotes, a single quote quotes nothing in some expansions. Then it rarely has a partner.
                Some(b'\'') => {
                    let rest = self.rest().get(1..).unwrap_or_default();
                    let end = rest
                        .find('\'')
                        .filter(|end| !rest.get(..*end).is_some_and(|text| text.contains('\n')));
                    self.next += end.map_or(1, |end| end + 2);
                }
                Some(_) => self.next += 1,
                None => return self.error("a `${` is not closed"),
            }
        }
    }

    /// Parses the rest of `$((…))` after its parentheses, and returns the commands inside.
    pub(super) fn arithmetic(&mut self) -> Result<Vec<ShellScript>, ShellParseError> {
        let mut inside = WordPartsBuilder::default();
        let mut open = 0_usize;
        loop {
            self.take_until(|byte| matches!(byte, b'(' | b')' | b'"' | b'\'' | b'\\' | b'$' | b'`'));
            match self.peek() {
                Some(b'(') => open += 1,
                Some(b')') if open > 0 => open -= 1,
                Some(b')') => {
                    return if self.take("))") {
                        Ok(collect_scripts(inside))
                    } else {
                        self.error("`$((` is not closed by `))`")
                    };
                }
                Some(b'$') => {
                    self.dollar_in_text(&mut inside)?;
                    continue;
                }
                Some(b'`') => {
                    let part = self.back_quotes(QuoteContext::None)?;
                    inside.push(part);
                    continue;
                }
                Some(b'"') => {
                    self.double_quotes(&mut inside)?;
                    continue;
                }
                // A single quote or a backslash has no meaning of its own here.
                Some(_) => {}
                None => return self.error("a `$((` is not closed"),
            }
            self.next += 1;
        }
    }

    /// Parses back-quotes: their text is unescaped once and then parsed as a line of its own.
    pub(super) fn back_quotes(&mut self, quotes: QuoteContext) -> Result<WordPart, ShellParseError> {
        let at = self.position();
        self.next += 1;
        let mut text = String::new();
        loop {
            text.push_str(self.take_until(|byte| matches!(byte, b'`' | b'\\')));
            if self.take("`") {
                break;
            }
            self.next += 1;
            match self.take_char() {
                Some(escaped @ ('`' | '\\' | '$')) => text.push(escaped),
                Some('"') if quotes == QuoteContext::Double => text.push('"'),
                Some(other) => text.extend(['\\', other]),
                None => return Err(ShellParseError { at, what: "this back-quote is not closed" }),
            }
        }
        let script = self.nested(|parser| parser.parse_nested_text(&text, at, ShellParser::whole_script))?;
        Ok(WordPart::Unknown(UnknownPart {
            at,
            kind: UnknownPartKind::CommandSubstitution,
            scripts: vec![script],
        }))
    }
}

fn collect_scripts(parts: WordPartsBuilder) -> Vec<ShellScript> {
    let unknown = parts.finish().into_iter().filter_map(|part| match part {
        WordPart::Unknown(unknown) => Some(unknown.scripts),
        WordPart::Literal(_) | WordPart::Glob(_) | WordPart::Home => None,
    });
    unknown.flatten().collect()
}
