//! Simple commands: assignments, words and redirections, in the order in which they come.

use super::reader::{Reader, Unreadable, ends_word, is_name};
use super::tree::{Assignment, Command, Simple, Word};
use super::word::Place;

impl Reader<'_> {
    pub(super) fn simple(&mut self) -> Result<Command, Unreadable> {
        let at = self.at();
        let mut simple = Simple { at, assignments: Vec::new(), words: Vec::new(), redirections: Vec::new() };
        loop {
            self.skip_blanks();
            if let Some(redirection) = self.redirection()? {
                simple.redirections.push(redirection);
                continue;
            }
            match self.peek() {
                Some(b'(') => return self.defined(&simple),
                Some(byte) if !ends_word(byte) || self.at_process_substitution() => {}
                _ if simple.is_empty() => return self.fault("a command is missing"),
                _ => return Ok(Command::Simple(simple)),
            }
            if simple.words.is_empty()
                && let Some(assignment) = self.assignment()?
            {
                simple.assignments.push(assignment);
                continue;
            }
            let read = self.word(Place::Ordinary)?;
            if !read.quoted && matches!(self.peek(), Some(b'<' | b'>')) && names_a_descriptor(&read.word) {
                return self.fault("`{name}>` is known to some shells only");
            }
            simple.words.push(read.word);
        }
    }

    /// `NAME=value`, if that comes next.
    fn assignment(&mut self) -> Result<Option<Assignment>, Unreadable> {
        let rest = self.rest();
        let length =
            rest.bytes().position(|byte| byte != b'_' && !byte.is_ascii_alphanumeric()).unwrap_or(rest.len());
        let name = rest.get(..length).unwrap_or_default();
        if !is_name(name) {
            return Ok(None);
        }
        match self.peek_after(length) {
            Some(b'=') => {}
            Some(b'+') if self.peek_after(length + 1) == Some(b'=') => {
                return self.fault("`+=` is known to some shells only");
            }
            Some(b'[') => return self.fault("a list is known to some shells only"),
            // It could go on behind the end of the line, as a name or as an assignment.
            Some(b'\\') if self.peek_after(length + 1) == Some(b'\n') => {
                return self.fault("the first word of a command goes on in the next line");
            }
            _ => return Ok(None),
        }
        self.next += length + 1;
        if self.looking_at("(") {
            return self.fault("a list is known to some shells only");
        }
        let value = self.word(Place::Assigned)?.word;
        Ok(Some(Assignment { name: name.to_owned(), value }))
    }

    /// A function, if what was read of a command is its name.
    fn defined(&mut self, simple: &Simple) -> Result<Command, Unreadable> {
        let name = match simple.words.as_slice() {
            [name] if simple.assignments.is_empty() && simple.redirections.is_empty() => name.literal(),
            _ => None,
        };
        self.next += 1;
        self.skip_blanks();
        match name {
            Some(name) if self.take(")") => Ok(Command::Compound(self.function(simple.at, name)?)),
            _ => self.fault("a parenthesis can't stand here"),
        }
    }
}

impl Simple {
    fn is_empty(&self) -> bool {
        self.assignments.is_empty() && self.words.is_empty() && self.redirections.is_empty()
    }
}

/// `{name}` before a redirection is a descriptor to some shells.
fn names_a_descriptor(word: &Word) -> bool {
    word.literal().is_some_and(|text| {
        text.strip_prefix('{').and_then(|text| text.strip_suffix('}')).is_some_and(is_name)
    })
}
