//! Parses constructs that contain commands: branches, loops, groups and functions.

use super::parser::{ShellParseError, ShellParser, ends_word, is_name};
use super::syntax_tree::{
    BytePosition, CommandList, CompoundCommand, CompoundKind, Pipeline, ShellCommand, ShellScript, ShellWord,
    UnknownPart, UnknownPartKind, WordPart,
};
use super::word::WordPosition;

impl ShellParser<'_> {
    /// Parses a construct after its first word.
    pub(super) fn compound(
        &mut self,
        at: BytePosition,
        word: &'static str,
    ) -> Result<CompoundCommand, ShellParseError> {
        let mut scripts = Vec::new();
        let mut words = Vec::new();
        let kind = match word {
            "{" => {
                scripts.push(self.body(&["}"])?.0);
                CompoundKind::Group
            }
            "if" => {
                self.if_branches(&mut scripts)?;
                CompoundKind::If
            }
            "while" | "until" => {
                scripts.push(self.body(&["do"])?.0);
                scripts.push(self.body(&["done"])?.0);
                CompoundKind::Loop
            }
            "for" | "select" => {
                words = self.for_words()?;
                scripts.push(self.body(&["done"])?.0);
                CompoundKind::For
            }
            "case" => {
                self.case_branches(&mut words, &mut scripts)?;
                CompoundKind::Case
            }
            "[[" => {
                words = self.condition_words()?;
                CompoundKind::Test
            }
            "coproc" => {
                // A name may come before a construct.
                self.skip_blanks();
                let start = self.next;
                if self.reserved_word().is_none() && self.peek() != Some(b'(') {
                    self.word(WordPosition::Ordinary)?;
                    self.skip_blanks();
                    if self.reserved_word().is_none() && self.peek() != Some(b'(') {
                        // Here, too, an index that shells read differently must not hide commands.
                        self.assignment_lengths()?;
                        self.next = start;
                    }
                }
                scripts.push(ShellScript::from_command(self.command()?));
                CompoundKind::Coprocess
            }
            "function" => {
                self.skip_blanks();
                let name = self.word(WordPosition::Ordinary)?.word.literal();
                self.skip_blanks();
                if self.take("(") {
                    self.skip_blanks();
                    if !self.take(")") {
                        return self.error("the parentheses of a function must be empty");
                    }
                }
                return self.function(at, name.unwrap_or_default());
            }
            _ => return self.error("a command can't start with this word"),
        };
        Ok(CompoundCommand::new(at, kind, scripts, words))
    }

    fn if_branches(&mut self, scripts: &mut Vec<ShellScript>) -> Result<(), ShellParseError> {
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

    /// Parses `name in words; do` of a loop, and returns the words.
    fn for_words(&mut self) -> Result<Vec<ShellWord>, ShellParseError> {
        self.skip_blanks();
        if self.take("((") {
            let scripts = self.nested(Self::arithmetic)?;
            let at = self.position();
            let kind = UnknownPartKind::Arithmetic;
            let counter = ShellWord { at, parts: vec![WordPart::Unknown(UnknownPart { at, kind, scripts })] };
            return self.expect_do().map(|()| vec![counter]);
        }
        if !self.word(WordPosition::Ordinary)?.word.literal().is_some_and(|name| is_name(&name)) {
            return self.error("`for` needs the name of a variable");
        }
        let mut words = Vec::new();
        self.skip_lines()?;
        if self.plain_word_is("in") {
            self.step_over("in");
            words = self.words()?;
        }
        self.expect_do().map(|()| words)
    }

    fn expect_do(&mut self) -> Result<(), ShellParseError> {
        self.skip_blanks();
        self.take(";");
        self.skip_lines()?;
        if self.reserved_word() != Some("do") {
            return self.error("`do` is missing");
        }
        self.step_over("do");
        Ok(())
    }

    fn words(&mut self) -> Result<Vec<ShellWord>, ShellParseError> {
        let mut words = Vec::new();
        loop {
            self.skip_blanks();
            if self.peek().is_none_or(ends_word) && !self.at_process_substitution() {
                return Ok(words);
            }
            words.push(self.word(WordPosition::Ordinary)?.word);
        }
    }

    fn case_branches(
        &mut self,
        words: &mut Vec<ShellWord>,
        scripts: &mut Vec<ShellScript>,
    ) -> Result<(), ShellParseError> {
        self.skip_blanks();
        words.push(self.required_word()?);
        self.skip_lines()?;
        if !self.plain_word_is("in") {
            return self.error("`in` is missing");
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
                words.push(self.required_word()?);
                self.skip_blanks();
                if self.take(")") {
                    break;
                }
                if !self.take("|") {
                    return self.error("a pattern of this `case` is not closed");
                }
            }
            scripts.push(self.script(&["esac"])?);
            if !(self.take(";;&") || self.take(";;") || self.take(";&") || self.plain_word_is("esac")) {
                return self.error("a branch of this `case` is not closed");
            }
        }
    }

    fn required_word(&mut self) -> Result<ShellWord, ShellParseError> {
        let start = self.next;
        let word = self.word(WordPosition::Ordinary)?.word;
        if self.next == start { self.error("a word is missing") } else { Ok(word) }
    }

    /// Parses `[[ … ]]` after its first word, and returns the compared words. Operators such as `&&` don't
    /// separate commands here.
    fn condition_words(&mut self) -> Result<Vec<ShellWord>, ShellParseError> {
        let mut words = Vec::new();
        loop {
            self.skip_lines()?;
            if self.plain_word_is("]]") {
                self.step_over("]]");
                return Ok(words);
            }
            match self.peek() {
                None | Some(b';') => return self.error("a `[[` is not closed"),
                Some(byte) if ends_word(byte) && !self.at_process_substitution() => self.next += 1,
                Some(_) => words.push(self.required_word()?),
            }
        }
    }

    /// Parses the body of a function.
    pub(super) fn function(
        &mut self,
        at: BytePosition,
        name: String,
    ) -> Result<CompoundCommand, ShellParseError> {
        self.skip_lines()?;
        match self.nested(Self::command)? {
            ShellCommand::Compound(body) => {
                let script = ShellScript::from_command(ShellCommand::Compound(body));
                Ok(CompoundCommand::new(at, CompoundKind::Function(name), vec![script], Vec::new()))
            }
            ShellCommand::Simple(_) => self.error("a function needs braces"),
        }
    }

    /// Parses the redirections after the end of a construct.
    pub(super) fn with_redirections(
        &mut self,
        mut compound: CompoundCommand,
    ) -> Result<ShellCommand, ShellParseError> {
        loop {
            self.skip_blanks();
            match self.redirection()? {
                Some(redirection) => compound.redirections.push(redirection),
                None => return Ok(ShellCommand::Compound(compound)),
            }
        }
    }
}

impl CompoundCommand {
    pub(super) fn new(
        at: BytePosition,
        kind: CompoundKind,
        scripts: Vec<ShellScript>,
        words: Vec<ShellWord>,
    ) -> Self {
        Self { at, kind, scripts, words, redirections: Vec::new() }
    }
}

impl ShellScript {
    fn from_command(command: ShellCommand) -> Self {
        let first = Pipeline { negated: false, commands: vec![command] };
        Self { lists: vec![CommandList { first, rest: Vec::new(), background: None }] }
    }
}
