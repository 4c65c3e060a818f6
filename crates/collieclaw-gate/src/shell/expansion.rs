//! Expansions: what stands behind a `$` or in back-quotes, with the commands inside it.

use super::reader::{Reader, Unreadable};
use super::tree::{Part, Script, Unknown, UnknownKind};
use super::word::{Parts, Quotes};

impl Reader<'_> {
    /// A `$` outside of quotes.
    pub(super) fn dollar(&mut self, parts: &mut Parts) -> Result<(), Unreadable> {
        let at = self.at();
        match self.peek_after(1) {
            Some(b'\'') => {
                self.next += 2;
                self.decoded_quotes()?;
                parts.push(Part::Unknown(Unknown {
                    at,
                    kind: UnknownKind::DollarQuote,
                    scripts: Vec::new(),
                }));
                Ok(())
            }
            Some(b'"') => {
                self.next += 1;
                parts.push(Part::Unknown(Unknown {
                    at,
                    kind: UnknownKind::DollarQuote,
                    scripts: Vec::new(),
                }));
                self.double_quotes(parts)
            }
            _ => self.dollar_in_text(parts),
        }
    }

    /// `$'…'`, whose escapes only some shells know; its text stays unknown.
    fn decoded_quotes(&mut self) -> Result<(), Unreadable> {
        loop {
            self.take_until(|byte| matches!(byte, b'\'' | b'\\'));
            if self.take("'") {
                return Ok(());
            }
            self.next += 1;
            if self.take_char().is_none() {
                return self.fault("a quote is not closed");
            }
        }
    }

    /// A `$` where quotes mean nothing of their own.
    pub(super) fn dollar_in_text(&mut self, parts: &mut Parts) -> Result<(), Unreadable> {
        self.few(parts)?;
        let at = self.at();
        let unknown = |kind, scripts| Part::Unknown(Unknown { at, kind, scripts });
        match self.peek_after(1) {
            Some(b'(') if self.peek_after(2) == Some(b'(') => {
                self.next += 3;
                let scripts = self.deeper(Self::arithmetic)?;
                parts.push(unknown(UnknownKind::Arithmetic, scripts));
            }
            Some(b'(') => {
                self.next += 2;
                let script = self.deeper(Self::substituted)?;
                parts.push(unknown(UnknownKind::CommandSubstitution, vec![script]));
            }
            Some(b'{') => {
                self.next += 2;
                let scripts = self.deeper(Self::parameter)?;
                parts.push(unknown(UnknownKind::Variable, scripts));
            }
            Some(b'[') => return self.fault("`$[` means different things to different shells"),
            Some(b'\\') if self.peek_after(2) == Some(b'\n') => {
                return self.fault("a `$` at the end of a line that goes on");
            }
            Some(byte) if byte == b'_' || byte.is_ascii_alphabetic() => {
                self.next += 1;
                self.take_until(|byte| byte != b'_' && !byte.is_ascii_alphanumeric());
                parts.push(unknown(UnknownKind::Variable, Vec::new()));
            }
            Some(b'@' | b'*' | b'#' | b'?' | b'-' | b'$' | b'!' | b'0'..=b'9') => {
                self.next += 2;
                parts.push(unknown(UnknownKind::Variable, Vec::new()));
            }
            _ => {
                self.next += 1;
                parts.text.push('$');
            }
        }
        Ok(())
    }

    fn substituted(&mut self) -> Result<Script, Unreadable> {
        let script = self.script_until(")")?;
        if self.take(")") { Ok(script) } else { self.fault("a `$(` is not closed") }
    }

    pub(super) fn process_substitution(&mut self) -> Result<Part, Unreadable> {
        let at = self.at();
        self.next += 2;
        let script = self.deeper(Self::substituted)?;
        Ok(Part::Unknown(Unknown { at, kind: UnknownKind::ProcessSubstitution, scripts: vec![script] }))
    }

    /// `${…}` after its brace: the commands inside it.
    fn parameter(&mut self) -> Result<Vec<Script>, Unreadable> {
        if matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'|')) {
            return self.fault("`${` with a command means different things to different shells");
        }
        let mut inside = Parts::default();
        loop {
            self.take_until(|byte| matches!(byte, b'}' | b'"' | b'\'' | b'\\' | b'$' | b'`' | b'{'));
            match self.peek() {
                Some(b'}') => {
                    self.next += 1;
                    return Ok(scripts_of(inside));
                }
                Some(b'"') => self.double_quotes(&mut inside)?,
                Some(b'$') => self.dollar_in_text(&mut inside)?,
                Some(b'`') => {
                    let part = self.back_quotes(Quotes::None)?;
                    inside.push(part);
                }
                Some(_) => {
                    return self
                        .fault("quotes and braces inside `${` mean different things to different shells");
                }
                None => return self.fault("a `${` is not closed"),
            }
        }
    }

    /// `$((…))` after its parentheses: the commands inside it.
    fn arithmetic(&mut self) -> Result<Vec<Script>, Unreadable> {
        let mut inside = Parts::default();
        let mut open = 0_usize;
        loop {
            self.take_until(|byte| matches!(byte, b'(' | b')' | b'"' | b'\'' | b'\\' | b'$' | b'`'));
            match self.peek() {
                Some(b'(') => open += 1,
                Some(b')') if open > 0 => open -= 1,
                Some(b')') => {
                    return if self.take("))") {
                        Ok(scripts_of(inside))
                    } else {
                        self.fault("`$((` is not closed by `))`")
                    };
                }
                Some(b'$') => {
                    self.dollar_in_text(&mut inside)?;
                    continue;
                }
                Some(b'`') => {
                    let part = self.back_quotes(Quotes::None)?;
                    inside.push(part);
                    continue;
                }
                Some(_) => {
                    return self.fault("quotes inside `$((` mean different things to different shells");
                }
                None => return self.fault("a `$((` is not closed"),
            }
            self.next += 1;
        }
    }

    /// Back-quotes: their text is unescaped once and then read as a line of its own.
    pub(super) fn back_quotes(&mut self, quotes: Quotes) -> Result<Part, Unreadable> {
        let at = self.at();
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
                Some('"') if quotes == Quotes::Double => text.push('"'),
                Some(other) => text.extend(['\\', other]),
                None => return Err(Unreadable { at, what: "this back-quote is not closed" }),
            }
        }
        let script = self.deeper(|reader| reader.within(&text, at, Reader::whole))?;
        Ok(Part::Unknown(Unknown { at, kind: UnknownKind::CommandSubstitution, scripts: vec![script] }))
    }
}

fn scripts_of(parts: Parts) -> Vec<Script> {
    let unknown = parts.finish().into_iter().filter_map(|part| match part {
        Part::Unknown(unknown) => Some(unknown.scripts),
        Part::Literal(_) | Part::Glob(_) | Part::Home => None,
    });
    unknown.flatten().collect()
}
