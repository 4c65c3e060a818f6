//! Parses simple commands: assignments, words and redirections in any order.

use super::parser::{ShellParseError, ShellParser, ends_word, is_name};
use super::syntax_tree::{
    Redirection, ShellCommand, ShellScript, ShellWord, SimpleCommand, UnknownPart, UnknownPartKind,
    VariableAssignment, WordPart,
};
use super::word::WordPosition;

/// The longest index of an array that is searched for its end.
const LONGEST_SUBSCRIPT: usize = 1000;

/// Stands for the descriptor that a shell chooses for `{name}>`.
const CHOSEN_DESCRIPTOR: u32 = 10;

impl WordPart {
    /// Returns the commands inside a part.
    fn into_scripts(self) -> Option<Vec<ShellScript>> {
        match self {
            Self::Unknown(unknown) => Some(unknown.scripts),
            Self::Literal(_) | Self::Glob(_) | Self::Home => None,
        }
    }
}

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
                Some(b'(') if self.array_follows(&simple) => {
                    let part = self.array_literal()?;
                    if let Some(word) = simple.words.last_mut() {
                        word.parts.push(part);
                    }
                    continue;
                }
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
            if !read.quoted
                && names_a_descriptor(&read.word)
                && let Some(redirection) = self.redirection()?
            {
                // The shell chooses a descriptor from 10 on.
                simple.redirections.push(Redirection { descriptor: CHOSEN_DESCRIPTOR, ..redirection });
                continue;
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
        let length = match self.peek_after(length) {
            Some(b'=') => length + 1,
            Some(b'+') if self.peek_after(length + 1) == Some(b'=') => length + 2,
            Some(b'[') => match self.subscript_length(length) {
                Some(end) => end,
                None => return Ok(None),
            },
            // After a line continuation, the word could still become an assignment.
            Some(b'\\') if self.peek_after(length + 1) == Some(b'\n') => {
                return self.error("the first word of a command can't continue on the next line");
            }
            _ => return Ok(None),
        };
        let at = self.position();
        let is_plain = rest.get(..length).is_some_and(|text| is_name(text.trim_end_matches('=')));
        let subscript = rest.get(name.len()..length).unwrap_or_default();
        let mut parts = Vec::new();
        if !is_plain {
            // The old value or an index is part of the result, and an index may contain commands.
            let scripts = self.parse_nested_text(subscript, at, ShellParser::here_document_parts)?;
            let scripts = scripts.into_iter().filter_map(WordPart::into_scripts).flatten().collect();
            parts.push(WordPart::Unknown(UnknownPart { at, kind: UnknownPartKind::Variable, scripts }));
        }
        self.next += length;
        if self.starts_with("(") {
            parts.push(self.array_literal()?);
        } else {
            parts.extend(self.word(WordPosition::AssignmentValue)?.word.parts);
        }
        Ok(Some(VariableAssignment { name: name.to_owned(), value: ShellWord { at, parts } }))
    }

    /// Returns the length of `NAME[index]=`, if that comes next. Otherwise the brackets are a pattern.
    fn subscript_length(&self, name_length: usize) -> Option<usize> {
        let rest = self.rest();
        let mut depth = 0_usize;
        for (place, byte) in rest.bytes().enumerate().skip(name_length).take(LONGEST_SUBSCRIPT) {
            match byte {
                b'[' => depth += 1,
                b']' => depth = depth.checked_sub(1)?,
                b'\n' => return None,
                _ => {}
            }
            if depth == 0 {
                let after = rest.get(place + 1..)?;
                let sign = if after.starts_with('=') { 1 } else { 2 };
                return (sign == 1 || after.starts_with("+=")).then_some(place + 1 + sign);
            }
        }
        None
    }

    /// Returns true if a builtin that declares variables is followed by the elements of an array, as in `declare a=(x)`.
    fn array_follows(&self, simple: &SimpleCommand) -> bool {
        let declares = simple.words.first().and_then(ShellWord::literal).is_some_and(|name| {
            matches!(name.as_str(), "declare" | "export" | "local" | "readonly" | "typeset")
        });
        let before = self.text.get(..self.next).unwrap_or_default();
        declares && simple.words.len() > 1 && before.ends_with('=')
    }

    /// Parses the elements of an array, in parentheses.
    fn array_literal(&mut self) -> Result<WordPart, ShellParseError> {
        let at = self.position();
        self.next += 1;
        let mut scripts = Vec::new();
        loop {
            self.skip_lines()?;
            if self.take(")") {
                return Ok(WordPart::Unknown(UnknownPart { at, kind: UnknownPartKind::Variable, scripts }));
            }
            let start = self.next;
            let word = self.word(WordPosition::Ordinary)?.word;
            if self.next == start {
                return self.error("the elements of an array are not closed");
            }
            scripts.extend(word.parts.into_iter().filter_map(WordPart::into_scripts).flatten());
        }
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
