//! What is known about programs: one table of facts, as data with examples that are tests (C7.3b).
//!
//! A fact says which flags take values, which arguments are paths, and which of them run or write something else.
//! What a program is *not* known to do it is taken to do nothing of; so a program whose flags can run things lists all
//! the flags that are known to be harmless, and any other counts as unknown ([`UnlistedFlags::UnknownFlag`]).

mod archive;
mod argument;
mod inspect;
mod modify;
mod remote;
mod search;
mod text;
mod wrappers;

#[cfg(test)]
mod examples;
#[cfg(test)]
mod installed_programs;

pub(crate) use argument::{CommandArgument, FileTransfer, ForEachCommand, ParsedArgument, parse_arguments};

/// What is known about a program.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ProgramSpec {
    /// Its names, separated by blanks.
    pub(crate) names: &'static str,
    pub(crate) kind: ProgramKind,
    /// Flags with a value or an effect.
    pub(crate) flags: &'static [FlagSpec],
    /// What to think of all other flags.
    pub(crate) unlisted_flags: UnlistedFlags,
    pub(crate) operands: OperandRule,
    pub(crate) flag_syntax: FlagSyntax,
    /// Lines and what they do, which a test runs through the gate.
    pub(crate) examples: &'static [ProgramExample],
}

/// What a program does if no flag says otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProgramKind {
    /// It reads and prints.
    ReadOnly,
    /// It changes files, or more than files.
    Modifies,
    /// It does what the command inside does, and nothing of its own.
    Wrapper,
    /// It runs a command with other rights, elsewhere, or later.
    Elevates,
    /// It runs a command with more words than it is given, which nobody knows.
    AppendsArguments,
    /// It runs text as commands of a shell.
    Shell,
    /// It runs text as a program.
    Interpreter,
}

/// A flag with a value or an effect.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FlagSpec {
    /// `-n --lines`
    pub(crate) names: &'static str,
    pub(crate) effect: FlagEffect,
}

/// What a flag says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FlagEffect {
    /// Nothing that matters; for programs whose other flags are suspect.
    Harmless,
    /// Its value means this.
    Value(WordMeaning),
    /// A value that can only be joined to it (`-iSUFFIX`, `--color=WHEN`).
    JoinedValue(WordMeaning),
    /// A name and then a value that means this (`jq --arg`).
    NamedValue(WordMeaning),
    /// Its value takes the place of the first operand (`grep -e`).
    ReplacesOperand(WordMeaning),
    /// The words after it, up to `;` or `{} +`, are a command (`find -exec`).
    CommandUntilEnd,
    /// The same, and the program does something else with it.
    SideEffectUntilEnd(&'static str),
    /// The program does something else with it.
    SideEffect(&'static str),
    /// The program does something else with its value.
    SideEffectWithValue(&'static str),
    /// The program does something else: it writes the file that is its value.
    WritesFile,
    /// The program writes the files that it otherwise looks at. What is joined to it is added to the names of what was
    /// there (`sed -i.bak`).
    EditsInPlace,
}

/// What a word means to a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WordMeaning {
    /// Text.
    Text,
    /// A path that is looked at.
    ReadPath,
    /// A path that is written.
    WrittenPath,
    /// A path that goes away, with all that is in it.
    MovedPath,
    /// A path that is written, or a place on another machine if there is a colon in it.
    ArchivePath,
    /// A path that is looked at, or text; it is a path if it leads out of the folder.
    PossiblePath,
    /// An address of the network.
    Address,
    /// `+FORMAT`; anything else sets the clock.
    DateFormat,
    /// A line for the shell.
    ShellLine,
    /// A line that `env` takes apart by rules of its own.
    EnvLine,
    /// Code that is run; what it does can't be known.
    Code,
    /// A script of `sed`.
    SedScript,
    /// A program of `awk`.
    AwkProgram,
    /// `NAME=value`, a variable of `awk`.
    AwkVariable,
    /// A program of `jq`.
    JqProgram,
}

/// What to think of flags that a program's facts don't name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UnlistedFlags {
    /// None of them takes a value, runs or writes anything.
    Harmless,
    /// Anything is possible.
    Suspect,
}

impl OperandRule {
    /// Whether the first of them, wherever it stands, is what is run.
    fn first_is_executed(self) -> bool {
        match self {
            Self::FirstThenRest(first, _) => {
                matches!(
                    first,
                    WordMeaning::ShellLine
                        | WordMeaning::Code
                        | WordMeaning::SedScript
                        | WordMeaning::AwkProgram
                        | WordMeaning::JqProgram
                )
            }
            Self::Command { .. }
            | Self::VariablesThenCommand
            | Self::CommandAnywhere
            | Self::Applet
            | Self::Subcommands(_) => true,
            Self::All(_) | Self::SourcesThenTarget(_) => false,
        }
    }
}

/// What the words mean that are no flags.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OperandRule {
    /// All the same.
    All(WordMeaning),
    /// The first means something else than the rest.
    FirstThenRest(WordMeaning, WordMeaning),
    /// Those before the last are put there, or into it if it is a folder; a flag may name it instead.
    SourcesThenTarget(WordMeaning),
    /// After so many words of its own a command begins.
    Command { after: usize },
    /// After any number of `NAME=value` a command begins.
    VariablesThenCommand,
    /// A command begins somewhere, but after which words depends on flags that nobody listed: at any of them.
    CommandAnywhere,
    /// The first names another program inside this one (`busybox ls`).
    Applet,
    /// The first names a command of the program's own, with facts of its own.
    Subcommands(&'static [ProgramSpec]),
}

/// How a program spells its flags.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FlagSyntax {
    /// `-a -b`, `-ab`, `--long`, `--long=value`; anywhere before `--`.
    Gnu,
    /// The same, but only before the first operand.
    LeadingOnly,
    /// As [`Self::Gnu`], and `+command`.
    GnuAndPlus,
    /// As [`Self::Gnu`], and the first word is flags even without its dash.
    Bundle,
    /// `-name value`, in whole words.
    WholeWords,
    /// `a=b`, in whole words, as `dd` does.
    Assignments,
}

/// A line, and how it is judged with the program on the list.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ProgramExample {
    pub(crate) line: &'static str,
    pub(crate) expected: ExampleOutcome,
}

/// How an example is judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExampleOutcome {
    /// It only looks.
    ReadOnly,
    /// It changes something inside the workspace.
    Modifies,
    /// What it does can't be known.
    Unknown,
    /// It is refused at every level.
    Blocked,
}

impl ProgramSpec {
    /// A program that reads the files it is given and prints.
    const READ_ONLY: Self = Self {
        names: "",
        kind: ProgramKind::ReadOnly,
        flags: &[],
        unlisted_flags: UnlistedFlags::Harmless,
        operands: OperandRule::All(WordMeaning::ReadPath),
        flag_syntax: FlagSyntax::Gnu,
        examples: &[],
    };
    /// A program that writes the files it is given.
    const MODIFYING: Self = Self {
        kind: ProgramKind::Modifies,
        operands: OperandRule::All(WordMeaning::WrittenPath),
        ..Self::READ_ONLY
    };
    /// A program that runs the command it is given.
    const WRAPPER: Self = Self {
        kind: ProgramKind::Wrapper,
        unlisted_flags: UnlistedFlags::Suspect,
        operands: OperandRule::Command { after: 0 },
        flag_syntax: FlagSyntax::LeadingOnly,
        ..Self::READ_ONLY
    };
    /// A program that runs the command it is given with other rights, elsewhere, or later.
    const ELEVATING: Self = Self { kind: ProgramKind::Elevates, ..Self::WRAPPER };

    /// Looks a program up by its last name.
    pub(crate) fn find_by_name(name: &str) -> Option<&'static Self> {
        all_programs().find(|program| program.is_named(name))
    }

    pub(crate) fn is_named(&self, name: &str) -> bool {
        self.names.split(' ').any(|known| known == name)
    }
}

/// The whole table.
pub(crate) fn all_programs() -> impl Iterator<Item = &'static ProgramSpec> {
    [
        inspect::PROGRAMS,
        text::PROGRAMS,
        search::PROGRAMS,
        modify::PROGRAMS,
        archive::PROGRAMS,
        remote::PROGRAMS,
        wrappers::PROGRAMS,
    ]
    .into_iter()
    .flatten()
}

const fn text(names: &'static str) -> FlagSpec {
    FlagSpec { names, effect: FlagEffect::Value(WordMeaning::Text) }
}
const fn input_flag(names: &'static str) -> FlagSpec {
    FlagSpec { names, effect: FlagEffect::Value(WordMeaning::ReadPath) }
}
const fn output_flag(names: &'static str) -> FlagSpec {
    FlagSpec { names, effect: FlagEffect::Value(WordMeaning::WrittenPath) }
}
const fn harmless_flag(names: &'static str) -> FlagSpec {
    FlagSpec { names, effect: FlagEffect::Harmless }
}
const fn joined_flag(names: &'static str) -> FlagSpec {
    FlagSpec { names, effect: FlagEffect::JoinedValue(WordMeaning::Text) }
}
/// Takes its files from a list that nobody has looked at.
const fn file_list_flag(names: &'static str) -> FlagSpec {
    effect_value_flag(names, "use files that a list names")
}
const fn operand_flag(names: &'static str, meaning: WordMeaning) -> FlagSpec {
    FlagSpec { names, effect: FlagEffect::ReplacesOperand(meaning) }
}
const fn effect_flag(names: &'static str, what: &'static str) -> FlagSpec {
    FlagSpec { names, effect: FlagEffect::SideEffect(what) }
}
const fn effect_value_flag(names: &'static str, what: &'static str) -> FlagSpec {
    FlagSpec { names, effect: FlagEffect::SideEffectWithValue(what) }
}
const fn write_file_flag(names: &'static str) -> FlagSpec {
    FlagSpec { names, effect: FlagEffect::WritesFile }
}
const fn example(line: &'static str, is: ExampleOutcome) -> ProgramExample {
    ProgramExample { line, expected: is }
}
