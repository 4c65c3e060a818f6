//! Redirections, and the here-documents that come with the next line.

use super::parser::{HereDocumentExpansion, LeadingTabs, PendingHereDocument, ShellParseError, ShellParser};
use super::syntax_tree::{Redirection, RedirectionTarget, ShellWord, WordPart};
use super::word::WordPosition;

impl ShellParser<'_> {
    /// A redirection, if one comes next.
    pub(super) fn redirection(&mut self) -> Result<Option<Redirection>, ShellParseError> {
        let at = self.position();
        let digits = self.rest().bytes().take_while(u8::is_ascii_digit).count();
        if digits > 0 && self.rest().get(digits..).is_some_and(|rest| rest.starts_with("\\\n")) {
            return self.error("a number goes on in the next line");
        }
        if digits > 1 && matches!(self.peek_after(digits), Some(b'<' | b'>')) {
            return self.error("a descriptor of several digits is one to some shells and a word to others");
        }
        let both = digits == 0 && self.starts_with("&>");
        let opens = matches!(self.peek_after(digits), Some(b'<' | b'>'));
        // `<(` is a word of its own, whatever number stands before it.
        if !both && (!opens || self.peek_after(digits + 1) == Some(b'(')) {
            return Ok(None);
        }
        let number = self.rest().get(..digits).unwrap_or_default();
        let Ok(descriptor) = (if digits == 0 { Ok(None) } else { number.parse().map(Some) }) else {
            return self.error("no descriptor has this number");
        };
        self.next += digits;
        let (usual, target) = self.target()?;
        Ok(Some(Redirection { at, descriptor: descriptor.unwrap_or(usual), target }))
    }

    /// Where it leads, and which descriptor if none is named.
    fn target(&mut self) -> Result<(u32, RedirectionTarget), ShellParseError> {
        /// Longer ones first.
        const OPERATORS: [&str; 12] =
            ["&>>", "&>", "<<<", "<<-", "<<", "<>", "<&", "<", ">>", ">|", ">&", ">"];
        let Some(operator) = OPERATORS.into_iter().find(|operator| self.starts_with(operator)) else {
            return self.error("nothing like this can stand here");
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
            _ => RedirectionTarget::NonPortable(self.redirection_word()?),
        };
        Ok((if operator.starts_with('<') { 0 } else { 1 }, target))
    }

    fn redirection_word(&mut self) -> Result<ShellWord, ShellParseError> {
        let word = self.word(WordPosition::Ordinary)?.word;
        if word.parts.is_empty() { self.error("the file of a redirection is missing") } else { Ok(word) }
    }

    /// After `>&` and `<&`: a number or `-`. With a file, shells differ.
    fn duplicate_target(&mut self) -> Result<RedirectionTarget, ShellParseError> {
        let word = self.redirection_word()?;
        Ok(match word.literal().as_deref() {
            Some("-") => RedirectionTarget::Closed,
            // `+2` is a file.
            Some(text) if text.bytes().all(|byte| byte.is_ascii_digit()) => match text.parse() {
                Ok(number) => RedirectionTarget::Descriptor(number),
                Err(_) => RedirectionTarget::NonPortable(word),
            },
            Some(_) | None => RedirectionTarget::NonPortable(word),
        })
    }

    /// After `<<`: the mark. The text comes with the next line.
    fn here_document_target(&mut self, tabs: LeadingTabs) -> Result<RedirectionTarget, ShellParseError> {
        let at = self.position();
        let start = self.next;
        let read = self.word(WordPosition::Ordinary)?;
        let written = self.text.get(start..self.next).unwrap_or_default();
        if self.next == start || written.contains(['$', '`', '\n', '<', '>']) {
            return self.error("the mark of a here-document must be a plain word");
        }
        // A mark is not expanded: `*` is just itself.
        let mark: String = read
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
            return self.error("the mark of a here-document must be a plain word");
        }
        let expands = if read.quoted { HereDocumentExpansion::No } else { HereDocumentExpansion::Yes };
        let id = self.reserve_here_document(at)?;
        self.pending.push(PendingHereDocument {
            id,
            mark,
            at,
            depth: self.depth,
            expansion: expands,
            leading_tabs: tabs,
        });
        Ok(RedirectionTarget::HereDocument(id))
    }

    /// The texts that were announced in the line that has just ended.
    pub(super) fn here_documents(&mut self) -> Result<(), ShellParseError> {
        for awaited in std::mem::take(&mut self.pending) {
            if awaited.depth != self.depth {
                return Err(ShellParseError {
                    at: awaited.at,
                    what: "this here-document begins inside a construct",
                });
            }
            let document = self.here_document(&awaited)?;
            if let Some(place) = self.shared.here_documents.get_mut(awaited.id.0) {
                *place = document;
            }
        }
        Ok(())
    }

    fn here_document(&mut self, awaited: &PendingHereDocument) -> Result<ShellWord, ShellParseError> {
        let mut text = String::new();
        loop {
            if self.peek().is_none() {
                return Err(ShellParseError {
                    at: awaited.at,
                    what: "the end of this here-document is missing",
                });
            }
            let mut line = self.take_until(|byte| byte == b'\n');
            self.take("\n");
            if awaited.leading_tabs == LeadingTabs::Stripped {
                line = line.trim_start_matches('\t');
            }
            if line == awaited.mark {
                break;
            }
            if awaited.expansion == HereDocumentExpansion::Yes && line.ends_with('\\') {
                return self.error("a line of a here-document ends with a backslash; quote its mark");
            }
            text.push_str(line);
            text.push('\n');
        }
        let parts = match awaited.expansion {
            HereDocumentExpansion::No => vec![WordPart::Literal(text)],
            HereDocumentExpansion::Yes => {
                self.parse_nested_text(&text, awaited.at, ShellParser::here_document_parts)?
            }
        };
        Ok(ShellWord { at: awaited.at, parts })
    }
}
