//! Parses simple commands: assignments, words and redirections in any order.

use super::parser::{ShellParseError, ShellParser, ends_word, is_name};
use super::syntax_tree::{
    Redirection, ShellCommand, ShellScript, ShellWord, SimpleCommand, UnknownPart, UnknownPartKind,
    VariableAssignment, WordPart,
};
use super::word::WordPosition;

/// The longest index of an array that is searched for its end.
const LONGEST_INDEX: usize = 1000;

const AMBIGUOUS_INDEX: &str =
    "shells read this index of an array differently; calculate it in a variable first";

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
            if simple.words.iter().all(is_time_keyword) {
                // An index that shells read differently must not hide commands here either.
                self.assignment_lengths()?;
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
        let Some(AssignmentLengths { name, sign, whole }) = self.assignment_lengths()? else {
            return Ok(None);
        };
        let rest = self.rest();
        let at = self.position();
        let mut parts = Vec::new();
        if whole > name + 1 {
            // The old value or an index is part of the result, and an index may contain commands.
            let scripts = self.index_scripts(rest.get(name..sign).unwrap_or_default())?;
            parts.push(WordPart::Unknown(UnknownPart { at, kind: UnknownPartKind::Variable, scripts }));
        }
        self.next += whole;
        if self.starts_with("(") {
            parts.push(self.array_literal()?);
        } else {
            parts.extend(self.word(WordPosition::AssignmentValue)?.word.parts);
        }
        let name = rest.get(..name).unwrap_or_default().to_owned();
        Ok(Some(VariableAssignment { name, value: ShellWord { at, parts } }))
    }

    /// Measures `NAME=`, `NAME+=` or `NAME[index]=`, if that comes next.
    pub(super) fn assignment_lengths(&self) -> Result<Option<AssignmentLengths>, ShellParseError> {
        let rest = self.rest();
        let is_in_name = |byte: u8| byte == b'_' || byte.is_ascii_alphanumeric();
        let name = rest.bytes().take_while(|byte| is_in_name(*byte)).count();
        if !rest.get(..name).is_some_and(is_name) {
            return Ok(None);
        }
        let sign = name + if self.peek_after(name) == Some(b'[') { self.index_length(name)? } else { 0 };
        let after = rest.get(sign..).unwrap_or_default();
        if after.starts_with('=') {
            Ok(Some(AssignmentLengths { name, sign, whole: sign + 1 }))
        } else if after.starts_with("+=") {
            Ok(Some(AssignmentLengths { name, sign, whole: sign + 2 }))
        } else if after.starts_with("\\\n") {
            // After a line continuation, the word could still become an assignment.
            self.error("the first word of a command can't continue on the next line")
        } else if rest.bytes().take(sign).any(ends_word) {
            self.error(AMBIGUOUS_INDEX)
        } else {
            Ok(None)
        }
    }

    /// Returns the length of `[index]`, which starts after these bytes. Shells with arrays read an index up to its
    /// bracket. Others read words and operators there, so a `;`, a line break and a process substitution, which no
    /// calculation needs, are errors.
    fn index_length(&self, from: usize) -> Result<usize, ShellParseError> {
        let mut brackets = 0_usize;
        // The brackets that close the expansions around a byte.
        let mut expansions = Vec::new();
        let (mut quote, mut escaped, mut before) = (None, false, b' ');
        for (length, byte) in (1..).zip(self.rest().bytes().skip(from).take(LONGEST_INDEX)) {
            match byte {
                b'\n' => break,
                _ if escaped => escaped = false,
                b'\\' if quote != Some(b'\'') => escaped = true,
                _ if quote == Some(byte) => quote = None,
                _ if quote.is_some() => {}
                b'\'' | b'"' => quote = Some(byte),
                b'(' if before == b'$' || expansions.last() == Some(&b')') => expansions.push(b')'),
                b'{' if before == b'$' => expansions.push(b'}'),
                _ if expansions.last() == Some(&byte) => _ = expansions.pop(),
                _ if !expansions.is_empty() => {}
                b'(' if matches!(before, b'<' | b'>') => break,
                b';' => break,
                b'[' => brackets += 1,
                b']' if brackets == 1 => return Ok(length),
                b']' => brackets -= 1,
                _ => {}
            }
            before = byte;
        }
        self.error(AMBIGUOUS_INDEX)
    }

    /// Returns the commands in the index of an array. Shells run them even inside of single quotes.
    fn index_scripts(&mut self, index: &str) -> Result<Vec<ShellScript>, ShellParseError> {
        let parts = self.parse_nested_text(index, self.position(), ShellParser::here_document_parts)?;
        Ok(parts.into_iter().filter_map(WordPart::into_scripts).flatten().collect())
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
            if self.starts_with("[") {
                let index = self.rest().get(..self.index_length(0)?).unwrap_or_default();
                scripts.extend(self.index_scripts(index)?);
                self.next += index.len();
            }
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

/// The lengths of `NAME[index]=` up to the end of the name, up to the sign, and of the whole.
pub(super) struct AssignmentLengths {
    name: usize,
    sign: usize,
    whole: usize,
}

impl SimpleCommand {
    fn is_empty(&self) -> bool {
        self.assignments.is_empty() && self.words.is_empty() && self.redirections.is_empty()
    }
}

/// Returns true for the keyword `time` and its flags. After them, another command starts.
fn is_time_keyword(word: &ShellWord) -> bool {
    word.literal().is_some_and(|text| matches!(text.as_str(), "time" | "-p" | "--"))
}

/// Returns true for `{name}`, which some shells read as a descriptor before a redirection.
fn names_a_descriptor(word: &ShellWord) -> bool {
    word.literal().is_some_and(|text| {
        text.strip_prefix('{').and_then(|text| text.strip_suffix('}')).is_some_and(is_name)
    })
}
