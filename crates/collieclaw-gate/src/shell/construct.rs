//! The constructs that hold commands: choices, loops, groups, functions.

use super::reader::{Reader, Unreadable, ends_word, is_name};
use super::tree::{At, Command, Compound, CompoundKind, List, Pipeline, Script, Word};
use super::word::Place;

impl Reader<'_> {
    /// A construct after its first word.
    pub(super) fn compound(&mut self, at: At, word: &'static str) -> Result<Compound, Unreadable> {
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
    pub(super) fn function(&mut self, at: At, name: String) -> Result<Compound, Unreadable> {
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
    pub(super) fn ended(&mut self, mut compound: Compound) -> Result<Command, Unreadable> {
        loop {
            self.skip_blanks();
            match self.redirection()? {
                Some(redirection) => compound.redirections.push(redirection),
                None => return Ok(Command::Compound(compound)),
            }
        }
    }
}

impl Compound {
    pub(super) fn new(at: At, kind: CompoundKind, scripts: Vec<Script>, words: Vec<Word>) -> Self {
        Self { at, kind, scripts, words, redirections: Vec::new() }
    }
}

impl Script {
    fn of(command: Command) -> Self {
        let first = Pipeline { negated: false, commands: vec![command] };
        Self { lists: vec![List { first, rest: Vec::new(), background: None }] }
    }
}
