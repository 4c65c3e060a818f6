//! Parses the arguments of a program by its facts: finds flags, values, operands and inner commands.

mod commands;
mod operands;

use super::flag_index::FlagLookup;
use super::{FlagEffect, FlagSpec, FlagSyntax, OperandRule, ProgramSpec, UnlistedFlags, WordMeaning};

/// The maximum number of flags in a word such as `-abc`. People don't write longer bundles.
const MAX_BUNDLED_FLAGS: usize = 32;

/// The maximum number of flags before a joined path, as in `-xf/path`. In longer words such as `-Isrc/x`, the
/// slash belongs to a relative path.
const MAX_FLAGS_BEFORE_PATH: usize = 3;

/// A word of a command, as far as its text is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CommandArgument {
    /// The text, with patterns left as written; `None` if it is known only at run time.
    pub(crate) text: Option<String>,
    pub(crate) at: crate::shell::BytePosition,
}

/// An argument of a command with its meaning to the program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ParsedArgument<'a> {
    /// An operand, or the value of a flag.
    Value(WordMeaning, &'a str),
    /// A word that is known only at run time.
    UnknownWord(&'a CommandArgument),
    /// A flag, and the effect that it has on the program.
    SideEffect(&'a str, &'static str),
    /// A flag that the program's facts don't name.
    UnknownFlag(&'a str),
    /// The words of an inner command.
    Command(&'a [CommandArgument]),
    /// An inner command that runs for each found file.
    CommandForEach(ForEachCommand<'a>),
    /// An assignment `NAME=value` before the inner command.
    Variable(&'a str),
    Transfer(FileTransfer<'a>),
    /// A symbolic link: the path that it contains, and the file or folder in which it is created.
    SymbolicLink(&'a str, &'a str),
    /// A setting of `git` that is changed for good.
    ChangedSetting(&'a str),
    /// A path and the suffix under which the program keeps a backup of it.
    Backup(&'a str, &'a str),
    /// A flag that makes the program save what it fetches under the name in the address.
    RemoteName,
    /// The facts of a subcommand, and its arguments.
    Subcommand(&'static ProgramSpec, &'a [CommandArgument]),
}

/// A command that runs for each found file, with the name of the file in place of `{}`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ForEachCommand<'a> {
    pub(crate) words: &'a [CommandArgument],
    /// True if the final `{}` stands for any number of names, as before `+`.
    pub(crate) takes_many_names: bool,
    /// A pattern that all found file names match, if there is such a condition.
    pub(crate) name_pattern: Option<&'a str>,
}

/// A file or folder that is copied, moved or linked to a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileTransfer<'a> {
    pub(crate) source: &'a str,
    /// The target file, or the folder that receives the source.
    pub(crate) target: &'a str,
    /// True if the source replaces the target even if the target is a folder (`-T`).
    pub(crate) replaces_target: bool,
    /// True if folders are transferred with their contents.
    pub(crate) recursive: bool,
    /// True if links are transferred as links.
    pub(crate) keeps_links: bool,
}

/// Parses the words after a program's name.
pub(crate) fn parse_arguments<'a>(
    program: &'static ProgramSpec,
    arguments: &'a [CommandArgument],
) -> Vec<ParsedArgument<'a>> {
    let mut parser = ArgumentParser {
        program,
        flags: FlagLookup::of(program),
        arguments,
        next: 0,
        parsed: Vec::new(),
        operands: Vec::new(),
        operand_replacement: None,
        backup_suffix: None,
        operand_meaning: None,
        flags_over: false,
        links_symbolically: false,
    };
    parser.parse_all();
    parser.parsed
}

struct ArgumentParser<'a> {
    program: &'static ProgramSpec,
    flags: FlagLookup,
    arguments: &'a [CommandArgument],
    next: usize,
    parsed: Vec<ParsedArgument<'a>>,
    operands: Vec<&'a str>,
    /// The value of a flag that replaces an operand.
    operand_replacement: Option<&'a str>,
    /// The suffix of backups if the program edits its operands in place; empty for no backup.
    backup_suffix: Option<&'a str>,
    /// The meaning of all operands, if a flag changes it.
    operand_meaning: Option<WordMeaning>,
    /// True if all remaining words are operands.
    flags_over: bool,
    links_symbolically: bool,
}

impl<'a> ArgumentParser<'a> {
    fn parse_all(&mut self) {
        if self.program.operands == OperandRule::CommandAnywhere {
            self.command_anywhere();
            return;
        }
        if self.program.flag_syntax == FlagSyntax::Bundle {
            self.parse_bundle();
        }
        while let Some(argument) = self.next_argument() {
            let Some(text) = argument.text.as_deref() else {
                self.parsed.push(ParsedArgument::UnknownWord(argument));
                // The word may turn out to be a flag, or several words, so it is not counted as an operand.
                continue;
            };
            let is_flag = match self.program.flag_syntax {
                FlagSyntax::Gnu | FlagSyntax::LeadingOnly | FlagSyntax::WholeWords | FlagSyntax::Bundle => {
                    text.len() > 1 && text.starts_with('-')
                }
                FlagSyntax::GnuAndPlus => text.len() > 1 && text.starts_with(['-', '+']),
                FlagSyntax::Assignments => text.contains('='),
            };
            if self.flags_over || !is_flag {
                if self.take_operand(text) {
                    return;
                }
                self.flags_over |= self.program.flag_syntax == FlagSyntax::LeadingOnly;
            } else if text == "--" {
                self.flags_over = true;
            } else {
                self.parse_flag(text);
            }
        }
        self.finish();
    }

    fn next_argument(&mut self) -> Option<&'a CommandArgument> {
        let argument = self.arguments.get(self.next)?;
        self.next += 1;
        Some(argument)
    }

    fn parse_flag(&mut self, text: &'a str) {
        match self.program.flag_syntax {
            FlagSyntax::WholeWords => self.apply_flag(self.find_flag(text), text, None),
            FlagSyntax::Assignments => {
                let (name, value) = text.split_once('=').unwrap_or((text, ""));
                self.apply_flag(self.find_flag(name), text, Some(value));
            }
            FlagSyntax::GnuAndPlus if text.starts_with('+') => {
                self.parsed.push(ParsedArgument::UnknownFlag(text));
            }
            FlagSyntax::Gnu | FlagSyntax::LeadingOnly | FlagSyntax::GnuAndPlus | FlagSyntax::Bundle => {
                match text.strip_prefix("--") {
                    Some(_) => {
                        let (name, value) =
                            text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)));
                        match self.find_flag(name) {
                            Some(flag) => self.apply_flag(Some(flag), text, value),
                            None => self.apply_abbreviated_flag(name, text, value),
                        }
                    }
                    // Some programs have flags such as `-nc`, which is neither `-n` nor `-c`.
                    None => match self.find_word_flag(text) {
                        Some((flag, value)) => self.apply_flag(Some(flag), text, value),
                        None => self.parse_short_flags(text),
                    },
                }
            }
        }
    }

    /// Parses a first word of flags without a dash (`tar cf out.tar`). The values of such flags are judged as
    /// operands.
    fn parse_bundle(&mut self) {
        let Some(text) = self.arguments.first().and_then(|first| first.text.as_deref()) else { return };
        if text.starts_with('-') {
            return;
        }
        self.next += 1;
        for letter in text.chars() {
            match self.find_short_flag(letter).map(|flag| flag.effect) {
                Some(FlagEffect::SideEffect(what) | FlagEffect::SideEffectWithValue(what)) => {
                    self.parsed.push(ParsedArgument::SideEffect(text, what));
                }
                Some(_) => {}
                None => self.apply_flag(None, text, None),
            }
        }
    }

    fn find_short_flag(&self, letter: char) -> Option<&'static FlagSpec> {
        self.flags.find_short(letter)
    }

    /// Parses `-abc`. A flag that takes a value takes the rest of the word.
    fn parse_short_flags(&mut self, text: &'a str) {
        let letters = text.get(1..).unwrap_or_default();
        // In `head -5c`, the number is the value of the letter, which takes no other value.
        let first = letters.chars().next().unwrap_or_default();
        let numbered = first.is_ascii_digit() && self.find_short_flag(first).is_none();
        for (count, (place, letter)) in letters.char_indices().enumerate() {
            if count == MAX_BUNDLED_FLAGS {
                self.parsed.push(ParsedArgument::UnknownFlag(text));
                return;
            }
            let rest = letters.get(place + letter.len_utf8()..).filter(|rest| !rest.is_empty());
            let known = self.find_short_flag(letter);
            match known.map(|flag| flag.effect) {
                Some(FlagEffect::Value(_)) if numbered && rest.is_none() => return,
                Some(
                    FlagEffect::Value(_)
                    | FlagEffect::JoinedValue(_)
                    | FlagEffect::ReplacesOperand(_)
                    | FlagEffect::SideEffectWithValue(_)
                    | FlagEffect::WritesFile
                    | FlagEffect::EditsInPlace
                    | FlagEffect::LastFlag(_)
                    | FlagEffect::Module,
                ) => {
                    self.apply_flag(known, text, rest);
                    return;
                }
                Some(FlagEffect::SideEffect(_)) => self.apply_flag(known, text, rest),
                Some(_) => self.apply_flag(known, text, None),
                // A number such as in `head -5`.
                None if letter.is_ascii_digit() => {}
                // The rest of the word may be a value, or more flags.
                None if self.program.unlisted_flags == UnlistedFlags::PossiblePaths => {
                    if !letter.is_ascii_alphanumeric() {
                        return;
                    }
                    let value = rest.filter(|rest| {
                        count == 0 || (count < MAX_FLAGS_BEFORE_PATH && rest.starts_with(['/', '~']))
                    });
                    self.parsed
                        .extend(value.map(|value| ParsedArgument::Value(WordMeaning::PossiblePath, value)));
                }
                None => self.apply_flag(None, text, None),
            }
        }
    }

    fn apply_flag(&mut self, flag: Option<&'static FlagSpec>, text: &'a str, value: Option<&'a str>) {
        let Some(flag) = flag else {
            match self.program.unlisted_flags {
                UnlistedFlags::Suspect => self.add_ambiguous_flag(text),
                UnlistedFlags::PossiblePaths => self
                    .parsed
                    .extend(value.map(|value| ParsedArgument::Value(WordMeaning::PossiblePath, value))),
                UnlistedFlags::Harmless => {}
            }
            return;
        };
        match flag.effect {
            FlagEffect::Harmless => {}
            FlagEffect::SideEffect(what) => {
                self.parsed.push(ParsedArgument::SideEffect(text, what));
                self.parsed
                    .extend(value.map(|value| ParsedArgument::Value(WordMeaning::PossiblePath, value)));
            }
            FlagEffect::SideEffectWithValue(what) => {
                self.parsed.push(ParsedArgument::SideEffect(text, what));
                self.take_value(WordMeaning::PossiblePath, value);
            }
            FlagEffect::WritesFile => {
                self.parsed.push(ParsedArgument::SideEffect(text, "write another file"));
                self.take_value(WordMeaning::WrittenPath, value);
            }
            FlagEffect::EditsInPlace => {
                let suffix = value.unwrap_or_default();
                if suffix.contains(['/', '*', '\\']) {
                    self.parsed.push(ParsedArgument::SideEffect(
                        text,
                        "keep the old file under another name or in another folder",
                    ));
                }
                self.backup_suffix = Some(suffix);
            }
            FlagEffect::JoinedValue(meaning) => {
                if let Some(value) = value {
                    self.parsed.push(ParsedArgument::Value(meaning, value));
                }
            }
            FlagEffect::Value(meaning) => self.take_value(meaning, value),
            FlagEffect::NamedValue(meaning) => {
                self.take_value(WordMeaning::Text, value);
                self.take_value(meaning, None);
            }
            FlagEffect::ReplacesOperand(meaning) => {
                self.take_value(meaning, value);
                self.operand_replacement = match self.parsed.last() {
                    Some(ParsedArgument::Value(_, text)) => Some(text),
                    _ => Some(""),
                };
            }
            FlagEffect::OperandsBecome(meaning) => self.operand_meaning = Some(meaning),
            FlagEffect::LinksSymbolically => self.links_symbolically = true,
            FlagEffect::KeepsRemoteName => self.parsed.push(ParsedArgument::RemoteName),
            FlagEffect::LastFlag(meaning) => {
                self.take_value(meaning, value);
                self.operand_replacement = Some("");
                self.flags_over = true;
            }
            FlagEffect::Module => self.take_module(value),
            FlagEffect::CommandUntilEnd => self.command_until_end(),
            FlagEffect::SideEffectUntilEnd(what) => {
                self.parsed.push(ParsedArgument::SideEffect(text, what));
                self.command_until_end();
            }
        }
    }

    fn take_value(&mut self, meaning: WordMeaning, joined: Option<&'a str>) {
        if let Some(value) = joined {
            self.parsed.push(ParsedArgument::Value(meaning, value));
            return;
        }
        match self.next_argument() {
            Some(CommandArgument { text: Some(text), .. }) => {
                self.parsed.push(ParsedArgument::Value(meaning, text));
            }
            Some(unknown) => self.parsed.push(ParsedArgument::UnknownWord(unknown)),
            // The value is missing, and the program will refuse to run.
            None => {}
        }
    }

    /// Adds an operand. Returns true if the operand starts a command, which takes all remaining words.
    fn take_operand(&mut self, text: &'a str) -> bool {
        match self.program.operands {
            OperandRule::Command { after } => {
                if self.operands.len() < after {
                    self.operands.push(text);
                    return false;
                }
                let rest = self.arguments.get(self.next - 1..).unwrap_or_default();
                self.parsed.push(ParsedArgument::Command(rest));
                true
            }
            // `env - ls` means `env -i ls`.
            OperandRule::VariablesThenCommand if text == "-" => false,
            OperandRule::VariablesThenCommand if text.contains('=') => {
                self.parsed.push(ParsedArgument::Variable(text));
                false
            }
            OperandRule::Applet | OperandRule::VariablesThenCommand => {
                let rest = self.arguments.get(self.next - 1..).unwrap_or_default();
                self.parsed.push(ParsedArgument::Command(rest));
                true
            }
            // The name of a toolchain (`cargo +nightly build`).
            OperandRule::Subcommands(_) if text.starts_with('+') => false,
            OperandRule::Subcommands(programs) => {
                let rest = self.arguments.get(self.next..).unwrap_or_default();
                let named = programs.iter().find(|program| program.is_named(text));
                match named.or_else(|| programs.iter().find(|program| program.names == "*")) {
                    Some(program) => {
                        if let OperandRule::SideEffect(what) = program.operands {
                            self.parsed.push(ParsedArgument::SideEffect(text, what));
                        }
                        self.parsed.push(ParsedArgument::Subcommand(program, rest));
                    }
                    None => self.parsed.push(ParsedArgument::UnknownFlag(text)),
                }
                true
            }
            OperandRule::All(_)
            | OperandRule::FirstThenRest(..)
            | OperandRule::SourcesThenTarget(_)
            | OperandRule::SettingAndValue
            | OperandRule::SideEffect(_)
            | OperandRule::CommandAnywhere => {
                self.operands.push(text);
                false
            }
        }
    }

    /// Finds a flag of several letters behind one dash, with its value after `=`.
    fn find_word_flag(&self, text: &'a str) -> Option<(&'static FlagSpec, Option<&'a str>)> {
        let (name, value) = text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)));
        let is_word =
            name.len() > 2 || value.is_some() && self.program.unlisted_flags == UnlistedFlags::PossiblePaths;
        self.find_flag(name).filter(|_| is_word).map(|flag| (flag, value))
    }

    fn find_flag(&self, text: &str) -> Option<&'static FlagSpec> {
        self.flags.find(text)
    }

    /// Applies a long flag that may abbreviate a known flag, preferring known flags with an effect. The flag
    /// may also be another flag without a value, so the next word is judged as an operand, too. If the first
    /// operand is a command or a script, the gate can't tell which word that is, and the flag counts as
    /// ambiguous.
    fn apply_abbreviated_flag(&mut self, name: &str, text: &'a str, value: Option<&'a str>) {
        let flag = self.flags.find_abbreviated(name);
        let next = self.next;
        self.apply_flag(flag, text, value);
        let took_a_word = std::mem::replace(&mut self.next, next) > next;
        if took_a_word && self.program.operands.first_is_executed() {
            self.add_ambiguous_flag(text);
        }
    }
}
