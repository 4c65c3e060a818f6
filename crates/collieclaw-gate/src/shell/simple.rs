//! Parses simple commands: assignments, words and redirections in any order.

use super::parser::{ShellParseError, ShellParser, ends_word, is_name};
use super::syntax_tree::{ShellCommand, ShellWord, SimpleCommand, VariableAssignment};
use super::word::WordPosition;

impl ShellParser<'_> {
    pub(super) fn simple_command(&mut self) -> Result<ShellCommand, ShellParseError> {
        let at = self.position();
        let mut simple =
            SimpleCommand { at, assignments: Vec::new(), words: Vec::new(), redirections: Vec::new() };
        loop {
            self.skip_blanks();
            if let Some(redirection) = self.redirection()? {
                simple.redirections.push(redirection);
                continue;
            }
            match self.peek() {
                Some(b'(') => return self.function_definition(&simple),
                Some(byte) if !ends_word(byte) || self.at_process_substitution() => {}
                _ if simple.is_empty() => return self.error("a command is missing"),
                _ => return Ok(ShellCommand::Simple(simple)),
            }
            if simple.words.is_empty()
                && let Some(assignment) = self.assignment()?
            {
                simple.assignments.push(assignment);
                continue;
            }
            let read = self.word(WordPosition::Ordinary)?;
            if !read.quoted && matches!(self.peek(), Some(b'<' | b'>')) && names_a_descriptor(&read.word) {
                return self.error("only some shells know `{name}>`");
            }
            simple.words.push(read.word);
        }
    }

    /// Parses `NAME=value`, if it comes next.
    fn assignment(&mut self) -> Result<Option<VariableAssignment>, ShellParseError> {
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
                return self.error("only some shells know `+=`");
            }
            Some(b'[') => return self.error("only some shells know arrays"),
            // After a line continuation, the word could still become an assignment.
            Some(b'\\') if self.peek_after(length + 1) == Some(b'\n') => {
                return self.error("the first word of a command can't continue on the next line");
            }
            _ => return Ok(None),
        }
        self.next += length + 1;
        if self.starts_with("(") {
            return self.error("only some shells know arrays");
        }
        let value = self.word(WordPosition::AssignmentValue)?.word;
        Ok(Some(VariableAssignment { name: name.to_owned(), value }))
    }

    /// Parses a function definition, if the command so far is only the function's name.
    fn function_definition(&mut self, simple: &SimpleCommand) -> Result<ShellCommand, ShellParseError> {
        let name = match simple.words.as_slice() {
            [name] if simple.assignments.is_empty() && simple.redirections.is_empty() => name.literal(),
            _ => None,
        };
        self.next += 1;
        self.skip_blanks();
        match name {
            Some(name) if self.take(")") => Ok(ShellCommand::Compound(self.function(simple.at, name)?)),
            _ => self.error("a parenthesis is not allowed here"),
        }
    }
}

impl SimpleCommand {
    fn is_empty(&self) -> bool {
        self.assignments.is_empty() && self.words.is_empty() && self.redirections.is_empty()
    }
}

/// Returns true for `{name}`, which some shells read as a descriptor before a redirection.
fn names_a_descriptor(word: &ShellWord) -> bool {
    word.literal().is_some_and(|text| {
        text.strip_prefix('{').and_then(|text| text.strip_suffix('}')).is_some_and(is_name)
    })
}
