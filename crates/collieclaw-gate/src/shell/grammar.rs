//! The entry point of the parser, and the grammar of scripts, lists, pipelines and commands.

use super::parser::{ShellParseError, ShellParser};
use super::syntax_tree::{
    BytePosition, CommandList, CompoundCommand, CompoundKind, ListOperator, Pipeline, Redirection,
    RedirectionTarget, ShellCommand, ShellLine, ShellScript, ShellWord,
};

/// The maximum length of a line in bytes, which leaves room for a large here-document.
pub const LONGEST_LINE: usize = 1 << 20;

/// Parses a shell line.
///
/// # Errors
/// Fails if the line has a syntax error, exceeds a limit, or contains text that shells read differently.
pub fn parse(line: &str) -> Result<ShellLine, ShellParseError> {
    let mut parser = ShellParser::new(line);
    if line.len() > LONGEST_LINE {
        return parser.error("the line is too long");
    }
    if let Some(place) =
        line.bytes().position(|byte| byte.is_ascii_control() && !matches!(byte, b'\n' | b'\t'))
    {
        parser.next = place;
        return parser.error("the line contains a control character");
    }
    let script = parser.whole_script()?;
    Ok(ShellLine { script, here_documents: parser.shared.here_documents })
}

impl ShellParser<'_> {
    /// Parses the whole text as a script.
    pub(super) fn whole_script(&mut self) -> Result<ShellScript, ShellParseError> {
        let script = self.script(&[])?;
        if let Some(pending) = self.pending.first() {
            return Err(ShellParseError {
                at: pending.at,
                what: "the text of this here-document is missing",
            });
        }
        match self.peek() {
            None => Ok(script),
            Some(b')') => self.error("this `)` closes nothing"),
            // A script ends early only before `)`, `;;` and `;&`.
            Some(_) => self.error("`;;` and `;&` are allowed only in a `case`"),
        }
    }

    /// Parses commands, possibly none, up to a closing parenthesis, which is not consumed.
    pub(super) fn script_until(&mut self, close: &'static str) -> Result<ShellScript, ShellParseError> {
        let script = self.script(&[])?;
        if self.starts_with(close) { Ok(script) } else { self.error("a parenthesis is not closed") }
    }

    /// Parses at least one command, up to a reserved word from `ends`, which is consumed and returned.
    pub(super) fn body(
        &mut self,
        ends: &[&'static str],
    ) -> Result<(ShellScript, &'static str), ShellParseError> {
        let script = self.script(ends)?;
        if script.lists.is_empty() {
            return self.error("a command is missing");
        }
        match self.reserved_word().filter(|word| ends.contains(word)) {
            Some(end) => {
                self.step_over(end);
                Ok((script, end))
            }
            None => self.error("a construct such as `if` or `{` is not closed"),
        }
    }

    pub(super) fn script(&mut self, ends: &[&'static str]) -> Result<ShellScript, ShellParseError> {
        let mut lists = Vec::new();
        loop {
            self.skip_lines()?;
            let over = match self.peek() {
                None | Some(b')') => true,
                Some(b';') => self.starts_with(";;") || self.starts_with(";&"),
                Some(_) => self.reserved_word().is_some_and(|word| ends.contains(&word)),
            };
            if over {
                return Ok(ShellScript { lists });
            }
            let mut list = self.list()?;
            self.skip_blanks();
            let at = self.position();
            match self.peek() {
                Some(b'&') => {
                    self.operator("&")?;
                    list.background = Some(at);
                }
                Some(b';') if !self.starts_with(";;") && !self.starts_with(";&") => self.operator(";")?,
                None | Some(b'\n' | b')' | b';') => {}
                Some(_) if self.reserved_word().is_some_and(|word| ends.contains(&word)) => {}
                Some(_) => return self.error("`;` or a new line is missing before this"),
            }
            lists.push(list);
        }
    }

    fn list(&mut self) -> Result<CommandList, ShellParseError> {
        let first = self.pipeline()?;
        let mut rest = Vec::new();
        loop {
            self.skip_blanks();
            let join = if self.starts_with("&&") {
                self.operator("&&")?;
                ListOperator::IfSucceeded
            } else if self.starts_with("||") {
                self.operator("||")?;
                ListOperator::IfFailed
            } else {
                return Ok(CommandList { first, rest, background: None });
            };
            self.skip_lines()?;
            rest.push((join, self.pipeline()?));
        }
    }

    fn pipeline(&mut self) -> Result<Pipeline, ShellParseError> {
        self.skip_blanks();
        let negated = self.reserved_word() == Some("!");
        if negated {
            self.step_over("!");
        }
        self.skip_timed_construct();
        let mut commands = vec![self.command()?];
        loop {
            self.skip_blanks();
            if self.starts_with("|&") {
                let at = self.position();
                self.operator("|&")?;
                if let Some(last) = commands.last_mut() {
                    mark_dialect(last, at);
                }
            } else if self.starts_with("|") && !self.starts_with("||") {
                self.operator("|")?;
            } else {
                return Ok(Pipeline { negated, commands });
            }
            self.skip_lines()?;
            commands.push(self.command()?);
        }
    }

    /// Parses `((…))`. Shells disagree about `((` before two nested subshells, which have to be written as `( (`.
    fn arithmetic_command(&mut self, at: BytePosition) -> Result<ShellCommand, ShellParseError> {
        let start = self.next;
        self.next += 2;
        let Ok(scripts) = self.nested(Self::arithmetic) else {
            self.next = start;
            return self.error("`((` means different things to different shells; write `( (`");
        };
        self.with_redirections(CompoundCommand::new(at, CompoundKind::Arithmetic, scripts, Vec::new()))
    }

    /// Steps over the keyword `time` before a construct. Before a simple command it is judged as the program.
    fn skip_timed_construct(&mut self) {
        if !self.plain_word_is("time") {
            return;
        }
        let start = self.next;
        self.step_over("time");
        self.skip_blanks();
        let is_construct = self.peek() == Some(b'(') || self.reserved_word().is_some_and(|word| word != "!");
        if !is_construct {
            self.next = start;
        }
    }

    pub(super) fn command(&mut self) -> Result<ShellCommand, ShellParseError> {
        self.skip_blanks();
        self.count_command()?;
        let at = self.position();
        if self.starts_with("((") {
            return self.arithmetic_command(at);
        }
        if self.take("(") {
            let script = self.nested(|parser| parser.script_until(")"))?;
            self.next += 1;
            if script.lists.is_empty() {
                return self.error("a command is missing");
            }
            return self.with_redirections(CompoundCommand::new(
                at,
                CompoundKind::Subshell,
                vec![script],
                Vec::new(),
            ));
        }
        match self.reserved_word() {
            None => self.simple_command(),
            Some(word) => {
                self.step_over(word);
                let compound = self.nested(|parser| parser.compound(at, word))?;
                self.with_redirections(compound)
            }
        }
    }
}

/// Marks a command before `|&`, which only some shells know.
fn mark_dialect(command: &mut ShellCommand, at: BytePosition) {
    let redirections = match command {
        ShellCommand::Simple(simple) => &mut simple.redirections,
        ShellCommand::Compound(compound) => &mut compound.redirections,
    };
    let target = RedirectionTarget::NonPortable(ShellWord { at, parts: Vec::new() });
    redirections.push(Redirection { at, descriptor: 2, target });
}
