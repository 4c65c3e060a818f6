//! Parses redirections, and the here-documents that follow on the next lines.

use super::parser::{HereDocumentExpansion, LeadingTabs, PendingHereDocument, ShellParseError, ShellParser};
use super::syntax_tree::{Redirection, RedirectionTarget, ShellWord, WordPart};
use super::word::WordPosition;

impl ShellParser<'_> {
    /// Parses a redirection, if one comes next.
    pub(super) fn redirection(&mut self) -> Result<Option<Redirection>, ShellParseError> {
        let at = self.position();
        let digits = self.rest().bytes().take_while(u8::is_ascii_digit).count();
        if digits > 0 && self.rest().get(digits..).is_some_and(|rest| rest.starts_with("\\\n")) {
            return self.error("a number can't continue on the next line");
        }
        if digits > 1 && self.peek() == Some(b'0') && matches!(self.peek_after(digits), Some(b'<' | b'>')) {
            return self.error("shells read a descriptor of several digits differently");
        }
        let both = digits == 0 && self.starts_with("&>");
        let opens = matches!(self.peek_after(digits), Some(b'<' | b'>'));
        // `<(` starts a word even after a number.
        if !both && (!opens || self.peek_after(digits + 1) == Some(b'(')) {
            return Ok(None);
        }
        let number = self.rest().get(..digits).unwrap_or_default();
        let Ok(descriptor) = (if digits == 0 { Ok(None) } else { number.parse().map(Some) }) else {
            return self.error("this number is too large for a descriptor");
        };
        self.next += digits;
        let (default_descriptor, target) = self.target()?;
        Ok(Some(Redirection { at, descriptor: descriptor.unwrap_or(default_descriptor), target }))
    }

    /// Parses the operator and the target of a redirection, and returns the operator's default descriptor
    /// with the target.
    fn target(&mut self) -> Result<(u32, RedirectionTarget), ShellParseError> {
        /// The redirection operators; an operator comes before its own prefixes.
        const OPERATORS: [&str; 12] =
            ["&>>", "&>", "<<<", "<<-", "<<", "<>", "<&", "<", ">>", ">|", ">&", ">"];
        let Some(operator) = OPERATORS.into_iter().find(|operator| self.starts_with(operator)) else {
            return self.error("this is not a redirection");
        };
        self.operator(operator)?;
        self.skip_blanks();
        let target = match operator {
            "<<" => self.here_document_target(LeadingTabs::Kept)?,
            "<<-" => self.here_document_target(LeadingTabs::Stripped)?,
            "<&" | ">&" => self.duplicate_target()?,
            "<" => RedirectionTarget::Read(self.redirection_word()?),
            ">" | ">|" => RedirectionTarget::Write(self.redirection_word()?),
            ">>" => RedirectionTarget::Append(self.redirection_word()?),
            "<>" => RedirectionTarget::ReadWrite(self.redirection_word()?),
            "<<<" => RedirectionTarget::HereString(self.redirection_word()?),
            _ => RedirectionTarget::NonPortable(self.redirection_word()?),
        };
        Ok((if operator.starts_with('<') { 0 } else { 1 }, target))
    }

    fn redirection_word(&mut self) -> Result<ShellWord, ShellParseError> {
        let word = self.word(WordPosition::Ordinary)?.word;
        if word.parts.is_empty() { self.error("the file of a redirection is missing") } else { Ok(word) }
    }

    /// Parses the target of `>&` and `<&`, a number or `-`. Shells differ when a file follows.
    fn duplicate_target(&mut self) -> Result<RedirectionTarget, ShellParseError> {
        let word = self.redirection_word()?;
        Ok(match word.literal().as_deref() {
            Some("-") => RedirectionTarget::Closed,
            // `parse` would accept `+2`, which shells read as a file.
            Some(text) if text.bytes().all(|byte| byte.is_ascii_digit()) => match text.parse() {
                Ok(number) => RedirectionTarget::Descriptor(number),
                Err(_) => RedirectionTarget::NonPortable(word),
            },
            Some(_) | None => RedirectionTarget::NonPortable(word),
        })
    }

    /// Parses the delimiter after `<<`. The text of the here-document starts on the next line.
    fn here_document_target(
        &mut self,
        leading_tabs: LeadingTabs,
    ) -> Result<RedirectionTarget, ShellParseError> {
        let at = self.position();
        let start = self.next;
        let read = self.word(WordPosition::Ordinary)?;
        let written = self.text.get(start..self.next).unwrap_or_default();
        if self.next == start || written.contains(['$', '`', '\n', '<', '>']) {
            return self.error("the delimiter of a here-document must be a plain word");
        }
        // Shells don't expand a delimiter: `*` stands for itself.
        let delimiter: String = read
            .word
            .parts
            .iter()
            .map(|part| match part {
                WordPart::Literal(text) | WordPart::Glob(text) => text.as_str(),
                WordPart::Home => "~",
                WordPart::Unknown(_) => "",
            })
            .collect();
        if read.word.unknowns().next().is_some() {
            return self.error("the delimiter of a here-document must be a plain word");
        }
        let expansion = if read.quoted { HereDocumentExpansion::No } else { HereDocumentExpansion::Yes };
        let id = self.reserve_here_document(at)?;
        self.pending.push(PendingHereDocument {
            id,
            delimiter,
            at,
            depth: self.depth,
            expansion,
            leading_tabs,
        });
        Ok(RedirectionTarget::HereDocument(id))
    }

    /// Reads the here-documents whose delimiters were on the line that has just ended.
    pub(super) fn here_documents(&mut self) -> Result<(), ShellParseError> {
        for pending in std::mem::take(&mut self.pending) {
            // A construct may end on the line of the delimiter: `if x; then cat <<END; fi`.
            if pending.depth < self.depth {
                return Err(ShellParseError {
                    at: pending.at,
                    what: "the text of this here-document must come before the end of its construct",
                });
            }
            let document = self.here_document(&pending)?;
            if let Some(place) = self.shared.here_documents.get_mut(pending.id.0) {
                *place = document;
            }
        }
        Ok(())
    }

    fn here_document(&mut self, pending: &PendingHereDocument) -> Result<ShellWord, ShellParseError> {
        let mut text = String::new();
        // A line that ends with a backslash continues, so the next line can't be the delimiter.
        let mut continues = false;
        loop {
            if self.peek().is_none() {
                return Err(ShellParseError {
                    at: pending.at,
                    what: "the closing delimiter of this here-document is missing",
                });
            }
            let mut line = self.take_until(|byte| byte == b'\n');
            self.take("\n");
            if pending.leading_tabs == LeadingTabs::Stripped {
                line = line.trim_start_matches('\t');
            }
            if line == pending.delimiter && !continues {
                break;
            }
            let backslashes = line.bytes().rev().take_while(|byte| *byte == b'\\').count();
            continues = pending.expansion == HereDocumentExpansion::Yes && backslashes % 2 == 1;
            text.push_str(line);
            text.push('\n');
        }
        let parts = match pending.expansion {
            HereDocumentExpansion::No => vec![WordPart::Literal(text)],
            HereDocumentExpansion::Yes => {
                self.parse_nested_text(&text, pending.at, ShellParser::here_document_parts)?
            }
        };
        Ok(ShellWord { at: pending.at, parts })
    }
}
