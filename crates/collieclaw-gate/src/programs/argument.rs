//! What the words of a command mean to its program.

use super::{Flag, FlagMeans, Meaning, Operands, Others, Program, Spelling};

/// More flags in one word are none that anyone writes.
const MOST_LETTERS: usize = 32;

/// A word of a command as far as it is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Argument {
    /// Its text; a pattern stays as it is written. `None` if it is known only when it runs.
    pub(crate) text: Option<String>,
    /// Where it is in the line.
    pub(crate) at: crate::shell::At,
}

/// What was found in the words of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Found<'a> {
    /// A word, or the value of a flag, with its meaning.
    Value(Meaning, &'a str),
    /// A word that is not known before it runs.
    Unknown(&'a Argument),
    /// A flag that makes the program do something else.
    Does(&'a str, &'static str),
    /// A flag that isn't known.
    Suspect(&'a str),
    /// The words that are a command inside.
    Command(&'a [Argument]),
    /// The same, for files that are found; `{}` in it is their name.
    CommandForEach(ForEach<'a>),
    /// `NAME=value` before the command inside.
    Variable(&'a str),
    /// Something is put somewhere.
    Put(Put<'a>),
    /// What was at a path is kept, with this at the end of its name.
    Kept(&'a str, &'a str),
    /// The command of the program's own that is given, with its words.
    Subcommand(&'static Program, &'a [Argument]),
}

/// A command for files that are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ForEach<'a> {
    pub(crate) words: &'a [Argument],
    /// Whether the `{}` at its end stands for any number of names, as before `+`.
    pub(crate) many: bool,
    /// The pattern that their last names fit, if that is certain.
    pub(crate) named: Option<&'a str>,
}

/// What is put where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Put<'a> {
    pub(crate) source: &'a str,
    /// If it is a folder, the source gets a place in it.
    pub(crate) target: &'a str,
    /// Whether the source takes the place of the target even then.
    pub(crate) in_place: bool,
    /// Whether folders are put there with all that is in them.
    pub(crate) folders: bool,
    /// Whether links are put there as links.
    pub(crate) keeps_links: bool,
}

/// Reads the words after a program's name.
pub(crate) fn found_in<'a>(program: &'static Program, arguments: &'a [Argument]) -> Vec<Found<'a>> {
    let mut reading = Reading {
        program,
        arguments,
        next: 0,
        found: Vec::new(),
        operands: Vec::new(),
        instead: None,
        in_place: None,
    };
    reading.run();
    reading.found
}

struct Reading<'a> {
    program: &'static Program,
    arguments: &'a [Argument],
    next: usize,
    found: Vec<Found<'a>>,
    operands: Vec<&'a str>,
    /// What a flag gave that takes the place of an operand.
    instead: Option<&'a str>,
    /// What is added to the names of operands before they are written.
    in_place: Option<&'a str>,
}

impl<'a> Reading<'a> {
    fn run(&mut self) {
        if self.program.operands == Operands::CommandSomewhere {
            self.command_anywhere();
            return;
        }
        let mut flags_over = false;
        if self.program.spelling == Spelling::Bundle {
            self.bundle();
        }
        while let Some(argument) = self.take() {
            let Some(text) = argument.text.as_deref() else {
                self.found.push(Found::Unknown(argument));
                // It may be a flag, or many words.
                continue;
            };
            let is_flag = match self.program.spelling {
                Spelling::Gnu | Spelling::Leading | Spelling::Words | Spelling::Bundle => {
                    text.len() > 1 && text.starts_with('-')
                }
                Spelling::Plus => text.len() > 1 && text.starts_with(['-', '+']),
                Spelling::Assignments => text.contains('='),
            };
            if flags_over || !is_flag {
                if self.operand(text) {
                    return;
                }
                flags_over |= self.program.spelling == Spelling::Leading;
            } else if text == "--" {
                flags_over = true;
            } else {
                self.flag(text);
            }
        }
        self.finish();
    }

    /// Any of the words that are left may begin the command inside.
    fn command_anywhere(&mut self) {
        let starts = (self.next..self.arguments.len()).filter_map(|from| self.arguments.get(from..));
        let commands = starts.filter(|words| !words.first().is_some_and(is_flag));
        self.found.extend(commands.map(Found::Command));
    }

    /// A flag that may take the next word, or may not: where a command or a script begins then is not known.
    fn unsure(&mut self, text: &'a str) {
        self.found.push(Found::Suspect(text));
        if matches!(
            self.program.operands,
            Operands::Command { .. } | Operands::VariablesThenCommand | Operands::Applet
        ) {
            self.command_anywhere();
        }
    }

    fn take(&mut self) -> Option<&'a Argument> {
        let argument = self.arguments.get(self.next)?;
        self.next += 1;
        Some(argument)
    }

    fn flag(&mut self, text: &'a str) {
        match self.program.spelling {
            Spelling::Words => self.known_or_not(self.exactly(text), text, None),
            Spelling::Assignments => {
                let (name, value) = text.split_once('=').unwrap_or((text, ""));
                self.known_or_not(self.exactly(name), text, Some(value));
            }
            Spelling::Plus if text.starts_with('+') => self.found.push(Found::Suspect(text)),
            Spelling::Gnu | Spelling::Leading | Spelling::Plus | Spelling::Bundle => {
                match text.strip_prefix("--") {
                    Some(_) => {
                        let (name, value) =
                            text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)));
                        match self.exactly(name) {
                            Some(flag) => self.known_or_not(Some(flag), text, value),
                            None => self.cut_short(name, text, value),
                        }
                    }
                    None => self.letters(text),
                }
            }
        }
    }

    /// `tar cf out.tar`: what the letters do; their values are judged with the operands.
    fn bundle(&mut self) {
        let Some(text) = self.arguments.first().and_then(|first| first.text.as_deref()) else { return };
        if text.starts_with('-') {
            return;
        }
        self.next += 1;
        for letter in text.chars() {
            match self.letter(letter).map(|flag| flag.means) {
                Some(FlagMeans::Does(what) | FlagMeans::DoesWith(what)) => {
                    self.found.push(Found::Does(text, what));
                }
                Some(_) => {}
                None => self.known_or_not(None, text, None),
            }
        }
    }

    fn letter(&self, letter: char) -> Option<&'static Flag> {
        self.program.flags.iter().find(|flag| {
            flag.names.split(' ').any(|name| {
                let mut letters = name.chars();
                letters.next() == Some('-') && letters.next() == Some(letter) && letters.next().is_none()
            })
        })
    }

    /// `-abc`, where a letter that takes a value takes the rest as one.
    fn letters(&mut self, text: &'a str) {
        let letters = text.get(1..).unwrap_or_default();
        // `head -5c`: after a number a letter takes no value.
        let begins = letters.chars().next().unwrap_or_default();
        let numbered = begins.is_ascii_digit() && self.letter(begins).is_none();
        for (count, (place, letter)) in letters.char_indices().enumerate() {
            if count == MOST_LETTERS {
                self.found.push(Found::Suspect(text));
                return;
            }
            let rest = letters.get(place + letter.len_utf8()..).filter(|rest| !rest.is_empty());
            let known = self.letter(letter);
            match known.map(|flag| flag.means) {
                Some(FlagMeans::Value(_)) if numbered && rest.is_none() => return,
                Some(
                    FlagMeans::Value(_)
                    | FlagMeans::Joined(_)
                    | FlagMeans::Instead(_)
                    | FlagMeans::DoesWith(_)
                    | FlagMeans::Writes
                    | FlagMeans::InPlace,
                ) => {
                    self.known_or_not(known, text, rest);
                    return;
                }
                Some(FlagMeans::Does(_)) => self.known_or_not(known, text, rest),
                Some(_) => self.known_or_not(known, text, None),
                // `head -5`
                None if letter.is_ascii_digit() => {}
                None => self.known_or_not(None, text, None),
            }
        }
    }

    fn known_or_not(&mut self, flag: Option<&'static Flag>, text: &'a str, value: Option<&'a str>) {
        let Some(flag) = flag else {
            if self.program.others == Others::Suspect {
                self.unsure(text);
            }
            return;
        };
        match flag.means {
            FlagMeans::Nothing => {}
            FlagMeans::Does(what) => {
                self.found.push(Found::Does(text, what));
                self.found.extend(value.map(|value| Found::Value(Meaning::Perhaps, value)));
            }
            FlagMeans::DoesWith(what) => {
                self.found.push(Found::Does(text, what));
                self.value(Meaning::Perhaps, value);
            }
            FlagMeans::Writes => {
                self.found.push(Found::Does(text, "write another file"));
                self.value(Meaning::Written, value);
            }
            FlagMeans::InPlace => {
                let suffix = value.unwrap_or_default();
                if suffix.contains(['/', '*', '\\']) {
                    self.found.push(Found::Does(text, "keep what was there under another name"));
                }
                self.in_place = Some(suffix);
            }
            FlagMeans::Joined(meaning) => {
                if let Some(value) = value {
                    self.found.push(Found::Value(meaning, value));
                }
            }
            FlagMeans::Value(meaning) => self.value(meaning, value),
            FlagMeans::Named(meaning) => {
                self.value(Meaning::Text, value);
                self.value(meaning, None);
            }
            FlagMeans::Instead(meaning) => {
                self.value(meaning, value);
                self.instead = match self.found.last() {
                    Some(Found::Value(_, text)) => Some(text),
                    _ => Some(""),
                };
            }
            FlagMeans::CommandUntilEnd => self.command_until_end(),
            FlagMeans::DoesUntilEnd(what) => {
                self.found.push(Found::Does(text, what));
                self.command_until_end();
            }
        }
    }

    fn command_until_end(&mut self) {
        let rest = self.arguments.get(self.next..).unwrap_or_default();
        let text = |place: usize| rest.get(place).and_then(|argument| argument.text.as_deref());
        // Anywhere else `+` is a word of the command.
        let ends = |place: &usize| match text(*place) {
            Some(";") => true,
            Some("+") => place.checked_sub(1).and_then(text) == Some("{}"),
            _ => false,
        };
        let length = (0..rest.len()).find(ends).unwrap_or(rest.len());
        let words = rest.get(..length).unwrap_or_default();
        let many = text(length) == Some("+");
        self.found.push(Found::CommandForEach(ForEach { words, many, named: self.named() }));
        self.next += length + 1;
    }

    /// What a `-name` before this says of all that is found; nothing where anything but plain conditions comes before
    /// it, or others may hold instead.
    fn named(&self) -> Option<&'a str> {
        let texts = |words: &'a [Argument]| words.iter().map(|word| word.text.as_deref());
        let or =
            |text: Option<&str>| matches!(text, None | Some("-o" | "-or" | "," | "!" | "-not" | "(" | ")"));
        if texts(self.arguments).any(or) {
            return None;
        }
        let before = self.arguments.get(..self.next)?;
        let mut words = texts(before).flatten().skip_while(|word| !word.starts_with('-'));
        loop {
            match words.next()? {
                "-name" => return words.next(),
                "-type" | "-maxdepth" | "-mindepth" | "-size" | "-mtime" | "-mmin" | "-newer" => {
                    words.next()?;
                }
                _ => return None,
            }
        }
    }

    fn value(&mut self, meaning: Meaning, joined: Option<&'a str>) {
        if let Some(value) = joined {
            self.found.push(Found::Value(meaning, value));
            return;
        }
        match self.take() {
            Some(Argument { text: Some(text), .. }) => self.found.push(Found::Value(meaning, text)),
            Some(unknown) => self.found.push(Found::Unknown(unknown)),
            // The program will complain.
            None => {}
        }
    }

    /// Takes an operand. Whether it took all the rest with it.
    fn operand(&mut self, text: &'a str) -> bool {
        match self.program.operands {
            Operands::Command { after } => {
                if self.operands.len() < after {
                    self.operands.push(text);
                    return false;
                }
                let rest = self.arguments.get(self.next - 1..).unwrap_or_default();
                self.found.push(Found::Command(rest));
                true
            }
            // `env - ls` is `env -i ls`.
            Operands::VariablesThenCommand if text == "-" => false,
            Operands::VariablesThenCommand if text.contains('=') => {
                self.found.push(Found::Variable(text));
                false
            }
            Operands::Applet | Operands::VariablesThenCommand => {
                let rest = self.arguments.get(self.next - 1..).unwrap_or_default();
                self.found.push(Found::Command(rest));
                true
            }
            Operands::Subcommands(programs) => {
                let rest = self.arguments.get(self.next..).unwrap_or_default();
                match programs.iter().find(|program| program.is_named(text)) {
                    Some(program) => self.found.push(Found::Subcommand(program, rest)),
                    None => self.found.push(Found::Suspect(text)),
                }
                true
            }
            Operands::All(_) | Operands::First(..) | Operands::Into(_) | Operands::CommandSomewhere => {
                self.operands.push(text);
                false
            }
        }
    }

    fn finish(&mut self) {
        let operands = std::mem::take(&mut self.operands);
        let count = operands.len();
        if matches!(self.program.operands, Operands::Into(_)) {
            self.put(&operands);
        }
        for (place, text) in operands.into_iter().enumerate() {
            let meaning = match self.program.operands {
                Operands::All(meaning) => meaning,
                Operands::First(first, rest) => {
                    if place == 0 && self.instead.is_none() {
                        first
                    } else {
                        rest
                    }
                }
                Operands::Into(_) if place + 1 == count && self.instead.is_none() => Meaning::Written,
                Operands::Into(source) => source,
                Operands::Command { .. }
                | Operands::VariablesThenCommand
                | Operands::CommandSomewhere
                | Operands::Applet
                | Operands::Subcommands(_) => Meaning::Text,
            };
            match self.in_place {
                Some(suffix) if meaning == Meaning::Looked => {
                    self.found.push(Found::Value(Meaning::Written, text));
                    self.found.extend((!suffix.is_empty()).then_some(Found::Kept(text, suffix)));
                }
                _ => self.found.push(Found::Value(meaning, text)),
            }
        }
    }

    fn put(&mut self, operands: &[&'a str]) {
        let (sources, target) = match (self.instead, operands) {
            (Some(target), sources) => (sources, target),
            // `ln src/x` makes `./x`.
            (None, [_]) => (operands, "."),
            (None, [sources @ .., target]) => (sources, *target),
            (None, []) => return,
        };
        let in_place = self.given('T', "--no-t");
        let folders = ['r', 'R', 'a'].into_iter().any(|letter| self.given(letter, "--r"))
            || self.given('a', "--a")
            || self.program.operands == Operands::Into(Meaning::Moved);
        let keeps_links = ['P', 'd'].into_iter().any(|letter| self.given(letter, "--no-d"));
        let put = |source: &&'a str| Found::Put(Put { source, target, in_place, folders, keeps_links });
        self.found.extend(sources.iter().map(put));
    }

    /// Whether a flag may be among the words.
    fn given(&self, letter: char, long: &str) -> bool {
        let mut words = self.arguments.iter().filter_map(|argument| argument.text.as_deref());
        words.any(|word| match word.strip_prefix('-') {
            Some(letters) if !letters.starts_with('-') => letters.contains(letter),
            Some(_) => word.starts_with(long),
            None => false,
        })
    }

    fn exactly(&self, text: &str) -> Option<&'static Flag> {
        self.program.flags.iter().find(|flag| flag.names.split(' ').any(|name| name == text))
    }

    /// A long flag that is perhaps one of the table's, cut short. One that does something is found before one that
    /// doesn't. It may as well be another flag, without a value: the word behind it is judged as an operand, too; and
    /// where the first operand is a command or a script, it is not known which word that is.
    fn cut_short(&mut self, name: &str, text: &'a str, value: Option<&'a str>) {
        let starts = |flag: &&Flag| {
            flag.names.split(' ').any(|known| known.starts_with("--") && known.starts_with(name))
        };
        let matches = || self.program.flags.iter().filter(starts);
        let does = |flag: &&Flag| matches!(flag.means, FlagMeans::Does(_) | FlagMeans::DoesWith(_));
        let flag = matches().find(does).or_else(|| matches().next());
        let next = self.next;
        self.known_or_not(flag, text, value);
        let took_a_word = std::mem::replace(&mut self.next, next) > next;
        if took_a_word && self.program.operands.begin_with_a_deed() {
            self.unsure(text);
        }
    }
}

fn is_flag(argument: &Argument) -> bool {
    argument.text.as_deref().is_some_and(|text| text.starts_with('-'))
}
