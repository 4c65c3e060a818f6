//! The grammar: lists, pipelines, commands and the constructs that hold them.

use super::reader::{Reader, Unreadable};
use super::tree::{
    At, Command, Compound, CompoundKind, Join, Line, List, Pipeline, Redirection, Script, Target, Word,
};

/// No line that anyone writes is longer; a text of this size can still come as a here-document.
pub const LONGEST_LINE: usize = 1 << 20;

/// Reads a line as the shell would.
///
/// # Errors
/// When it can't be read, or not with certainty, because shells read it differently.
pub fn parse(line: &str) -> Result<Line, Unreadable> {
    let mut reader = Reader::new(line);
    if line.len() > LONGEST_LINE {
        return reader.fault("the line is too long");
    }
    if let Some(place) =
        line.bytes().position(|byte| byte.is_ascii_control() && !matches!(byte, b'\n' | b'\t'))
    {
        reader.next = place;
        return reader.fault("there is a control character");
    }
    let script = reader.whole()?;
    Ok(Line { script, here_documents: reader.shared.here_documents })
}

impl Reader<'_> {
    /// Everything that this reader holds.
    pub(super) fn whole(&mut self) -> Result<Script, Unreadable> {
        let script = self.script(&[])?;
        if let Some(awaited) = self.awaited.first() {
            return Err(Unreadable { at: awaited.at, what: "the text of this here-document is missing" });
        }
        if self.peek().is_some() {
            return self.fault("nothing like this can stand here");
        }
        Ok(script)
    }

    /// Commands up to a closing parenthesis, which is left where it is. There may be none.
    pub(super) fn script_until(&mut self, close: &'static str) -> Result<Script, Unreadable> {
        let script = self.script(&[])?;
        if self.looking_at(close) { Ok(script) } else { self.fault("a parenthesis is not closed") }
    }

    /// Commands up to one of the reserved words, which is stepped over. There must be one at least.
    pub(super) fn body(&mut self, ends: &[&'static str]) -> Result<(Script, &'static str), Unreadable> {
        let script = self.script(ends)?;
        if script.lists.is_empty() {
            return self.fault("a command is missing");
        }
        match self.reserved().filter(|word| ends.contains(word)) {
            Some(end) => {
                self.step_over(end);
                Ok((script, end))
            }
            None => self.fault("a construct is not closed"),
        }
    }

    pub(super) fn script(&mut self, ends: &[&'static str]) -> Result<Script, Unreadable> {
        let mut lists = Vec::new();
        loop {
            self.skip_lines()?;
            let over = match self.peek() {
                None | Some(b')') => true,
                Some(b';') => self.looking_at(";;") || self.looking_at(";&"),
                Some(_) => self.reserved().is_some_and(|word| ends.contains(&word)),
            };
            if over {
                return Ok(Script { lists });
            }
            let mut list = self.list()?;
            self.skip_blanks();
            let at = self.at();
            match self.peek() {
                Some(b'&') => {
                    self.operator("&")?;
                    list.background = Some(at);
                }
                Some(b';') if !self.looking_at(";;") && !self.looking_at(";&") => self.operator(";")?,
                None | Some(b'\n' | b')' | b';') => {}
                Some(_) if self.reserved().is_some_and(|word| ends.contains(&word)) => {}
                Some(_) => return self.fault("nothing like this can stand here"),
            }
            lists.push(list);
        }
    }

    fn list(&mut self) -> Result<List, Unreadable> {
        let first = self.pipeline()?;
        let mut rest = Vec::new();
        loop {
            self.skip_blanks();
            let join = if self.looking_at("&&") {
                self.operator("&&")?;
                Join::IfSucceeded
            } else if self.looking_at("||") {
                self.operator("||")?;
                Join::IfFailed
            } else {
                return Ok(List { first, rest, background: None });
            };
            self.skip_lines()?;
            rest.push((join, self.pipeline()?));
        }
    }

    fn pipeline(&mut self) -> Result<Pipeline, Unreadable> {
        self.skip_blanks();
        let negated = self.reserved() == Some("!");
        if negated {
            self.step_over("!");
        }
        let mut commands = vec![self.command()?];
        loop {
            self.skip_blanks();
            if self.looking_at("|&") {
                let at = self.at();
                self.operator("|&")?;
                if let Some(last) = commands.last_mut() {
                    mark_dialect(last, at);
                }
            } else if self.looking_at("|") && !self.looking_at("||") {
                self.operator("|")?;
            } else {
                return Ok(Pipeline { negated, commands });
            }
            self.skip_lines()?;
            commands.push(self.command()?);
        }
    }

    pub(super) fn command(&mut self) -> Result<Command, Unreadable> {
        self.skip_blanks();
        self.count_command()?;
        let at = self.at();
        if self.looking_at("((") {
            return self.fault("`((` means different things to different shells; write `( (`");
        }
        if self.take("(") {
            let script = self.deeper(|reader| reader.script_until(")"))?;
            self.next += 1;
            if script.lists.is_empty() {
                return self.fault("a command is missing");
            }
            return self.ended(Compound::new(at, CompoundKind::Subshell, vec![script], Vec::new()));
        }
        match self.reserved() {
            None => self.simple(),
            Some(word) => {
                self.step_over(word);
                let compound = self.deeper(|reader| reader.compound(at, word))?;
                self.ended(compound)
            }
        }
    }
}

/// Notes that both outputs go into the pipe, which only some shells know.
fn mark_dialect(command: &mut Command, at: At) {
    let redirections = match command {
        Command::Simple(simple) => &mut simple.redirections,
        Command::Compound(compound) => &mut compound.redirections,
    };
    let target = Target::Dialect(Word { at, parts: Vec::new() });
    redirections.push(Redirection { at, descriptor: 2, target });
}
