//! The grammar: lists, pipelines, commands and the constructs that hold them.

use super::reader::{Reader, Unreadable, ends_word, is_name};
use super::tree::{
    Assignment, Command, Compound, CompoundKind, Join, Line, List, Pipeline, Script, Simple, Word,
};
use super::word::Place;

/// No line that anyone writes is longer; a text of this size can still come as a here-document.
pub const LONGEST_LINE: usize = 1 << 20;

/// Words that mean something where a command begins.
const RESERVED: [&str; 19] = [
    "!", "[[", "case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for", "function", "if",
    "select", "then", "until", "while", "{", "}",
];

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
    Ok(Line { script, here_documents: reader.here_documents })
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
    fn body(&mut self, ends: &[&'static str]) -> Result<(Script, &'static str), Unreadable> {
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

    fn script(&mut self, ends: &[&'static str]) -> Result<Script, Unreadable> {
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

    fn command(&mut self) -> Result<Command, Unreadable> {
        self.skip_blanks();
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

    /// A construct after its first word.
    fn compound(&mut self, at: super::At, word: &'static str) -> Result<Compound, Unreadable> {
        let mut scripts = Vec::new();
        let mut words = Vec::new();
        let kind = match word {
            "{" => {
                scripts.push(self.body(&["}"])?.0);
                CompoundKind::Group
            }
            "if" => {
                self.branches(&mut scripts)?;
                CompoundKind::If
            }
            "while" | "until" => {
                scripts.push(self.body(&["do"])?.0);
                scripts.push(self.body(&["done"])?.0);
                CompoundKind::Loop
            }
            "for" | "select" => {
                words = self.run_through()?;
                scripts.push(self.body(&["done"])?.0);
                CompoundKind::For
            }
            "case" => {
                self.cases(&mut words, &mut scripts)?;
                CompoundKind::Case
            }
            "[[" => {
                words = self.tested()?;
                CompoundKind::Test
            }
            "function" => {
                self.skip_blanks();
                let name = self.word(Place::Ordinary)?.word.literal();
                self.skip_blanks();
                if self.take("(") {
                    self.skip_blanks();
                    if !self.take(")") {
                        return self.fault("a function's parentheses are empty");
                    }
                }
                return self.function(at, name.unwrap_or_default());
            }
            _ => return self.fault("this word can't stand where a command begins"),
        };
        Ok(Compound::new(at, kind, scripts, words))
    }

    fn branches(&mut self, scripts: &mut Vec<Script>) -> Result<(), Unreadable> {
        loop {
            scripts.push(self.body(&["then"])?.0);
            let (script, end) = self.body(&["elif", "else", "fi"])?;
            scripts.push(script);
            match end {
                "elif" => {}
                "else" => {
                    scripts.push(self.body(&["fi"])?.0);
                    return Ok(());
                }
                _ => return Ok(()),
            }
        }
    }

    /// `name in words; do` of a loop.
    fn run_through(&mut self) -> Result<Vec<Word>, Unreadable> {
        self.skip_blanks();
        if self.looking_at("(") {
            return self.fault("`for ((` is known to some shells only");
        }
        if !self.word(Place::Ordinary)?.word.literal().is_some_and(|name| is_name(&name)) {
            return self.fault("`for` needs the name of a variable");
        }
        let mut words = Vec::new();
        self.skip_lines()?;
        if self.plain_word_is("in") {
            self.step_over("in");
            words = self.words()?;
        }
        self.skip_blanks();
        self.take(";");
        self.skip_lines()?;
        if self.reserved() != Some("do") {
            return self.fault("`do` is missing");
        }
        self.step_over("do");
        Ok(words)
    }

    fn words(&mut self) -> Result<Vec<Word>, Unreadable> {
        let mut words = Vec::new();
        loop {
            self.skip_blanks();
            if self.peek().is_none_or(ends_word) && !self.at_process_substitution() {
                return Ok(words);
            }
            words.push(self.word(Place::Ordinary)?.word);
        }
    }

    fn cases(&mut self, words: &mut Vec<Word>, scripts: &mut Vec<Script>) -> Result<(), Unreadable> {
        self.skip_blanks();
        words.push(self.some_word()?);
        self.skip_lines()?;
        if !self.plain_word_is("in") {
            return self.fault("`in` is missing");
        }
        self.step_over("in");
        loop {
            self.skip_lines()?;
            if self.plain_word_is("esac") {
                self.step_over("esac");
                return Ok(());
            }
            self.take("(");
            loop {
                self.skip_blanks();
                words.push(self.some_word()?);
                self.skip_blanks();
                if self.take(")") {
                    break;
                }
                if !self.take("|") {
                    return self.fault("the pattern is not closed");
                }
            }
            scripts.push(self.script(&["esac"])?);
            if !(self.take(";;&") || self.take(";;") || self.take(";&") || self.plain_word_is("esac")) {
                return self.fault("a case is not closed");
            }
        }
    }

    fn some_word(&mut self) -> Result<Word, Unreadable> {
        let start = self.next;
        let word = self.word(Place::Ordinary)?.word;
        if self.next == start { self.fault("a word is missing") } else { Ok(word) }
    }

    /// `[[ … ]]` after its first word: what is compared. Its operators join no commands.
    fn tested(&mut self) -> Result<Vec<Word>, Unreadable> {
        let mut words = Vec::new();
        loop {
            self.skip_lines()?;
            if self.plain_word_is("]]") {
                self.step_over("]]");
                return Ok(words);
            }
            match self.peek() {
                None | Some(b';') => return self.fault("a `[[` is not closed"),
                Some(byte) if ends_word(byte) && !self.at_process_substitution() => self.next += 1,
                Some(_) => words.push(self.some_word()?),
            }
        }
    }

    /// A function after its name and parentheses.
    fn function(&mut self, at: super::At, name: String) -> Result<Compound, Unreadable> {
        self.skip_lines()?;
        match self.deeper(Self::command)? {
            Command::Compound(body) => {
                let script = Script::of(Command::Compound(body));
                Ok(Compound::new(at, CompoundKind::Function(name), vec![script], Vec::new()))
            }
            Command::Simple(_) => self.fault("a function needs braces"),
        }
    }

    /// A construct with the redirections after its end.
    fn ended(&mut self, mut compound: Compound) -> Result<Command, Unreadable> {
        loop {
            self.skip_blanks();
            match self.redirection()? {
                Some(redirection) => compound.redirections.push(redirection),
                None => return Ok(Command::Compound(compound)),
            }
        }
    }

    fn simple(&mut self) -> Result<Command, Unreadable> {
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

    /// Steps over an operator that a line's end must not hide the rest of.
    pub(super) fn operator(&mut self, operator: &str) -> Result<(), Unreadable> {
        self.next += operator.len();
        let before = self.next;
        self.skip_continuations();
        let split =
            self.next > before && matches!(self.peek(), Some(b'&' | b'|' | b';' | b'<' | b'>' | b'('));
        if split { self.fault("an operator goes on in the next line") } else { Ok(()) }
    }

    /// Steps over newlines, blanks and comments, and reads the here-documents that begin there.
    fn skip_lines(&mut self) -> Result<(), Unreadable> {
        loop {
            self.skip_blanks();
            if self.peek() != Some(b'\n') {
                return Ok(());
            }
            self.next += 1;
            self.here_documents()?;
        }
    }

    pub(super) fn at_process_substitution(&self) -> bool {
        matches!(self.peek(), Some(b'<' | b'>')) && self.peek_after(1) == Some(b'(')
    }

    /// The reserved word that comes next, if one does.
    fn reserved(&self) -> Option<&'static str> {
        RESERVED.into_iter().find(|word| self.plain_word_is(word))
    }

    /// Whether exactly this comes next as a word without quotes. It may be spread over lines.
    fn plain_word_is(&self, word: &str) -> bool {
        self.after_plain(word)
            .is_some_and(|after| self.text.as_bytes().get(after).copied().is_none_or(ends_word))
    }

    fn step_over(&mut self, word: &str) {
        if let Some(after) = self.after_plain(word) {
            self.next = after;
        }
    }

    /// Where the text goes on after these letters, if they come next.
    fn after_plain(&self, word: &str) -> Option<usize> {
        let bytes = self.text.as_bytes();
        let mut place = self.next;
        let skip = |mut place: usize| {
            while bytes.get(place..).is_some_and(|rest| rest.starts_with(b"\\\n")) {
                place += 2;
            }
            place
        };
        for letter in word.bytes() {
            if bytes.get(place) != Some(&letter) {
                return None;
            }
            place = skip(place + 1);
        }
        Some(place)
    }
}

impl Simple {
    fn is_empty(&self) -> bool {
        self.assignments.is_empty() && self.words.is_empty() && self.redirections.is_empty()
    }
}

impl Compound {
    fn new(at: super::At, kind: CompoundKind, scripts: Vec<Script>, words: Vec<Word>) -> Self {
        Self { at, kind, scripts, words, redirections: Vec::new() }
    }
}

impl Script {
    fn of(command: Command) -> Self {
        let first = Pipeline { negated: false, commands: vec![command] };
        Self { lists: vec![List { first, rest: Vec::new(), background: None }] }
    }
}

/// Notes that both outputs go into the pipe, which only some shells know.
fn mark_dialect(command: &mut Command, at: super::At) {
    use super::tree::{Redirection, Target};
    let redirections = match command {
        Command::Simple(simple) => &mut simple.redirections,
        Command::Compound(compound) => &mut compound.redirections,
    };
    let target = Target::Dialect(Word { at, parts: Vec::new() });
    redirections.push(Redirection { at, descriptor: None, target });
}

/// `{name}` before a redirection is a descriptor to some shells.
fn names_a_descriptor(word: &Word) -> bool {
    word.literal().is_some_and(|text| {
        text.strip_prefix('{').and_then(|text| text.strip_suffix('}')).is_some_and(is_name)
    })
}
