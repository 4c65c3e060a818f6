//! Redirections, and the here-documents that come with the next line.

use super::reader::{Awaited, Expands, Reader, Tabs, Unreadable};
use super::tree::{Part, Redirection, Target, Word};
use super::word::Place;

impl Reader<'_> {
    /// A redirection, if one comes next.
    pub(super) fn redirection(&mut self) -> Result<Option<Redirection>, Unreadable> {
        let at = self.at();
        let digits = self.rest().bytes().take_while(u8::is_ascii_digit).count();
        if digits > 0 && self.rest().get(digits..).is_some_and(|rest| rest.starts_with("\\\n")) {
            return self.fault("a number goes on in the next line");
        }
        if digits > 1 && matches!(self.peek_after(digits), Some(b'<' | b'>')) {
            return self.fault("a descriptor of several digits is one to some shells and a word to others");
        }
        let both = digits == 0 && self.looking_at("&>");
        let opens = matches!(self.peek_after(digits), Some(b'<' | b'>'));
        // `<(` is a word of its own, whatever number stands before it.
        if !both && (!opens || self.peek_after(digits + 1) == Some(b'(')) {
            return Ok(None);
        }
        let number = self.rest().get(..digits).unwrap_or_default();
        let Ok(descriptor) = (if digits == 0 { Ok(None) } else { number.parse().map(Some) }) else {
            return self.fault("no descriptor has this number");
        };
        self.next += digits;
        let (usual, target) = self.target()?;
        Ok(Some(Redirection { at, descriptor: descriptor.unwrap_or(usual), target }))
    }

    /// Where it leads, and which descriptor if none is named.
    fn target(&mut self) -> Result<(u32, Target), Unreadable> {
        /// Longer ones first.
        const OPERATORS: [&str; 12] =
            ["&>>", "&>", "<<<", "<<-", "<<", "<>", "<&", "<", ">>", ">|", ">&", ">"];
        let Some(operator) = OPERATORS.into_iter().find(|operator| self.looking_at(operator)) else {
            return self.fault("nothing like this can stand here");
        };
        self.operator(operator)?;
        self.skip_blanks();
        let target = match operator {
            "<<" => self.announced(Tabs::Kept)?,
            "<<-" => self.announced(Tabs::Stripped)?,
            "<&" | ">&" => self.copied()?,
            "<" => Target::Read(self.led_to()?),
            ">" | ">|" => Target::Write(self.led_to()?),
            ">>" => Target::Append(self.led_to()?),
            "<>" => Target::ReadWrite(self.led_to()?),
            _ => Target::Dialect(self.led_to()?),
        };
        Ok((if operator.starts_with('<') { 0 } else { 1 }, target))
    }

    fn led_to(&mut self) -> Result<Word, Unreadable> {
        let word = self.word(Place::Ordinary)?.word;
        if word.parts.is_empty() { self.fault("the file of a redirection is missing") } else { Ok(word) }
    }

    /// After `>&` and `<&`: a number or `-`. With a file, shells differ.
    fn copied(&mut self) -> Result<Target, Unreadable> {
        let word = self.led_to()?;
        Ok(match word.literal().as_deref() {
            Some("-") => Target::Closed,
            // `+2` is a file.
            Some(text) if text.bytes().all(|byte| byte.is_ascii_digit()) => match text.parse() {
                Ok(number) => Target::Descriptor(number),
                Err(_) => Target::Dialect(word),
            },
            Some(_) | None => Target::Dialect(word),
        })
    }

    /// After `<<`: the mark. The text comes with the next line.
    fn announced(&mut self, tabs: Tabs) -> Result<Target, Unreadable> {
        let at = self.at();
        let start = self.next;
        let read = self.word(Place::Ordinary)?;
        let written = self.text.get(start..self.next).unwrap_or_default();
        if self.next == start || written.contains(['$', '`', '\n', '<', '>']) {
            return self.fault("the mark of a here-document must be a plain word");
        }
        // A mark is not expanded: `*` is just itself.
        let mark: String = read
            .word
            .parts
            .iter()
            .map(|part| match part {
                Part::Literal(text) | Part::Glob(text) => text.as_str(),
                Part::Home => "~",
                Part::Unknown(_) => "",
            })
            .collect();
        if read.word.unknowns().next().is_some() {
            return self.fault("the mark of a here-document must be a plain word");
        }
        let expands = if read.quoted { Expands::No } else { Expands::Yes };
        let id = self.announce(at)?;
        self.awaited.push(Awaited { id, mark, at, depth: self.depth, expands, tabs });
        Ok(Target::HereDocument(id))
    }

    /// The texts that were announced in the line that has just ended.
    pub(super) fn here_documents(&mut self) -> Result<(), Unreadable> {
        for awaited in std::mem::take(&mut self.awaited) {
            if awaited.depth != self.depth {
                return Err(Unreadable {
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

    fn here_document(&mut self, awaited: &Awaited) -> Result<Word, Unreadable> {
        let mut text = String::new();
        loop {
            if self.peek().is_none() {
                return Err(Unreadable { at: awaited.at, what: "the end of this here-document is missing" });
            }
            let mut line = self.take_until(|byte| byte == b'\n');
            self.take("\n");
            if awaited.tabs == Tabs::Stripped {
                line = line.trim_start_matches('\t');
            }
            if line == awaited.mark {
                break;
            }
            if awaited.expands == Expands::Yes && line.ends_with('\\') {
                return self.fault("a line of a here-document ends with a backslash; quote its mark");
            }
            text.push_str(line);
            text.push('\n');
        }
        let parts = match awaited.expands {
            Expands::No => vec![Part::Literal(text)],
            Expands::Yes => self.within(&text, awaited.at, Reader::here_text)?,
        };
        Ok(Word { at: awaited.at, parts })
    }
}
