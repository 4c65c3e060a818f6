//! The table of facts about programs, with examples that run as tests (C7.3b).
//!
//! The facts say which flags take values, which arguments are paths, which arguments run or write something
//! else, and which programs download. A flag that a program's facts don't name counts as harmless by default.
//! A program whose flags can run commands therefore lists all its harmless flags, and its other flags are
//! suspect ([`UnlistedFlags::Suspect`]).

mod archive;
mod argument;
mod data;
mod flag_index;
mod git;
mod inspect;
mod interpreters;
mod modify;
mod project;
mod remote;
mod search;
mod text;
mod wrappers;

use std::collections::HashMap;
use std::sync::LazyLock;

#[cfg(test)]
mod examples;
#[cfg(test)]
mod installed_programs;

pub(crate) use argument::{CommandArgument, FileTransfer, ForEachCommand, ParsedArgument, parse_arguments};

/// The facts about a program, or about several programs that behave alike.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ProgramSpec {
    /// The names of the programs, separated by blanks.
    pub(crate) names: &'static str,
    pub(crate) kind: ProgramKind,
    /// True for programs that fetch data from another machine, such as `curl`. The gate refuses to run that
    /// data as code (C7.2).
    pub(crate) downloads: bool,
    /// Flags with a value or an effect.
    pub(crate) flags: &'static [FlagSpec],
    pub(crate) unlisted_flags: UnlistedFlags,
    pub(crate) operands: OperandRule,
    pub(crate) flag_syntax: FlagSyntax,
    /// Lines with their expected outcome, which a test runs through the gate.
    pub(crate) examples: &'static [ProgramExample],
}

/// The behaviour of a program without flags that change it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProgramKind {
    /// Reads and prints.
    ReadOnly,
    /// Changes files or anything else.
    Modifies,
    /// Runs another command, and does nothing else.
    Wrapper,
    /// Runs a command with other permissions, in another place, or later.
    Elevates,
    /// Runs a command with additional arguments that are known only at run time.
    AppendsArguments,
    /// Runs text as shell commands.
    Shell,
    /// Runs text as a program.
    Interpreter,
    /// A program that the table lists only for [`ProgramSpec::downloads`]. The gate judges its arguments like
    /// those of a program that isn't in the table.
    UnknownArguments,
}

/// A flag with a value or an effect.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FlagSpec {
    /// The spellings of the flag, separated by blanks: `-n --lines`.
    pub(crate) names: &'static str,
    pub(crate) effect: FlagEffect,
}

/// The effect of a flag. Effects in words are verb phrases that complete "this flag makes the program …".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FlagEffect {
    /// No effect that matters; listed for programs whose other flags are suspect.
    Harmless,
    /// Takes a value with this meaning.
    Value(WordMeaning),
    /// Takes a value only if it is joined to the flag (`-iSUFFIX`, `--color=WHEN`).
    JoinedValue(WordMeaning),
    /// Takes a name and then a value with this meaning (`jq --arg`).
    NamedValue(WordMeaning),
    /// Takes a value that replaces the first operand (`grep -e`).
    ReplacesOperand(WordMeaning),
    /// Takes a command, up to `;` or `{} +` (`find -exec`).
    CommandUntilEnd,
    /// Takes a command as [`Self::CommandUntilEnd`] does, and has another effect, too.
    SideEffectUntilEnd(&'static str),
    /// Makes the program do more than its usual work.
    SideEffect(&'static str),
    /// Takes a value, and makes the program do more than its usual work.
    SideEffectWithValue(&'static str),
    /// Makes the program write the file that is the flag's value.
    WritesFile,
    /// Makes the program write the files that it otherwise reads. A joined value is the suffix of the backup
    /// files (`sed -i.bak`).
    EditsInPlace,
    /// Gives all operands another meaning (`rg --files`, `find -delete`).
    OperandsBecome(WordMeaning),
    /// Takes the text of a program with this meaning; all words after it are operands (`python3 -c`).
    LastFlag(WordMeaning),
    /// Takes the name of a module, which gets all words after it (`python3 -m`).
    Module,
    /// Makes the program create symbolic links.
    LinksSymbolically,
    /// Makes the program save what it fetches under the name in the address (`curl -O`).
    KeepsRemoteName,
}

/// The meaning of a word to a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WordMeaning {
    /// Text without further meaning.
    Text,
    ReadPath,
    WrittenPath,
    /// A path that the program moves or removes, with its contents.
    MovedPath,
    /// A path that the program may write, or a place on another machine if it contains a colon.
    ArchivePath,
    /// Text that counts as a path to read if it leads out of the folder.
    PossiblePath,
    /// A place that is read, or written inside of the folder; it may also be on another machine.
    Repository,
    /// Permissions such as `u+x` or `755`; any other text is a path that the program writes.
    FileMode,
    /// Data that a program sends; after `@`, the path of a file with that data.
    SentData,
    /// Commands of `sqlite3`.
    SqliteInput,
    /// A setting of `git` for one command: `name=value`.
    GitSetting,
    /// A setting of `git` that a new repository keeps: `name=value`.
    LastingGitSetting,
    /// A repository's own folder. The folder in which the program runs becomes its work tree.
    GitFolder,
    /// A path with files that make programs run commands.
    SteeringPath,
    /// The folder in which the program does its work; later paths start there.
    ChangedFolder,
    /// A web address.
    Address,
    /// `+FORMAT`; any other text sets the clock.
    DateFormat,
    /// A line that a shell runs.
    ShellLine,
    /// A line that `env -S` splits by its own rules.
    EnvLine,
    /// The name of a variable that the inner command doesn't get.
    RemovedVariable,
    /// Code that the gate can't judge.
    Code,
    SedScript,
    AwkProgram,
    /// An assignment to a variable of `awk`: `NAME=value`.
    AwkVariable,
    JqProgram,
}

/// The treatment of flags that a program's facts don't name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UnlistedFlags {
    /// Such flags take no value, and neither run nor write anything.
    Harmless,
    /// Such flags may do anything.
    Suspect,
    /// Such flags run nothing that the program wouldn't run anyway; their values may be paths.
    PossiblePaths,
}

impl OperandRule {
    /// Returns true if the program runs its first operand as a command or as code.
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
            Self::All(_) | Self::SourcesThenTarget(_) | Self::SettingAndValue | Self::SideEffect(_) => false,
        }
    }
}

/// The meaning of the operands, which are the words that aren't flags.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OperandRule {
    /// All operands have the same meaning.
    All(WordMeaning),
    /// The first operand has another meaning than the rest.
    FirstThenRest(WordMeaning, WordMeaning),
    /// All operands but the last are sources with this meaning; the last is the target file or folder. A flag
    /// may name the target instead.
    SourcesThenTarget(WordMeaning),
    /// A command starts after this number of operands.
    Command { after: usize },
    /// A command starts after any number of `NAME=value`.
    VariablesThenCommand,
    /// A command may start at any operand, because the facts don't say which flags take values.
    CommandAnywhere,
    /// The first operand is the name of another program inside this program (`busybox ls`).
    Applet,
    /// The first operand is a subcommand with its own facts. Facts with the name `*` hold for all other
    /// subcommands.
    Subcommands(&'static [ProgramSpec]),
    /// The name of a setting of `git`, and perhaps its new value.
    SettingAndValue,
    /// The subcommand itself has this effect, whatever its operands are.
    SideEffect(&'static str),
}

/// The spelling of a program's flags.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FlagSyntax {
    /// `-a -b`, `-ab`, `--long`, `--long=value`; anywhere before `--`.
    Gnu,
    /// Like [`Self::Gnu`], but only before the first operand.
    LeadingOnly,
    /// Like [`Self::Gnu`], and also `+command`.
    GnuAndPlus,
    /// Like [`Self::Gnu`], and the first word contains flags even without a dash (`tar xf`).
    Bundle,
    /// `-name value`, in whole words.
    WholeWords,
    /// `name=value`, in whole words, as in `dd`.
    Assignments,
}

/// A line with its expected outcome when the program is on the list of allowed commands.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ProgramExample {
    pub(crate) line: &'static str,
    pub(crate) expected: ExampleOutcome,
}

/// The expected outcome of an example.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExampleOutcome {
    /// The line changes nothing.
    ReadOnly,
    /// The line changes something inside the workspace.
    Modifies,
    /// The line has high risk, because its effects aren't known.
    Unknown,
    /// The line is refused at every level.
    Blocked,
}

impl ProgramSpec {
    /// A program that reads the files it is given and prints.
    const READ_ONLY: Self = Self {
        names: "",
        kind: ProgramKind::ReadOnly,
        downloads: false,
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
    /// A program that builds, tests or formats the project. The operator lists it to run the project's code, so
    /// its arguments are only checked for paths that lead out of the workspace.
    const PROJECT_TOOL: Self = Self {
        unlisted_flags: UnlistedFlags::PossiblePaths,
        operands: OperandRule::All(WordMeaning::PossiblePath),
        ..Self::MODIFYING
    };
    /// A program that runs the command it is given.
    const WRAPPER: Self = Self {
        kind: ProgramKind::Wrapper,
        unlisted_flags: UnlistedFlags::Suspect,
        operands: OperandRule::Command { after: 0 },
        flag_syntax: FlagSyntax::LeadingOnly,
        ..Self::READ_ONLY
    };
    /// A program that runs the command it is given with other permissions, in another place, or later.
    const ELEVATING: Self = Self { kind: ProgramKind::Elevates, ..Self::WRAPPER };

    /// Returns the facts about a program, given its name without a path.
    pub(crate) fn find_by_name(name: &str) -> Option<&'static Self> {
        static INDEX: LazyLock<HashMap<&'static str, &'static ProgramSpec>> = LazyLock::new(|| {
            all_programs()
                .flat_map(|program| program.names.split(' ').map(move |name| (name, program)))
                .collect()
        });
        INDEX.get(name).copied()
    }

    /// Returns the facts about a program if they cover its arguments.
    pub(crate) fn find_described(name: &str) -> Option<&'static Self> {
        Self::find_by_name(name).filter(|program| program.kind != ProgramKind::UnknownArguments)
    }

    pub(crate) fn is_named(&self, name: &str) -> bool {
        self.names.split(' ').any(|known| known == name)
    }
}

/// Returns the entries of the whole table.
pub(crate) fn all_programs() -> impl Iterator<Item = &'static ProgramSpec> {
    // A static, so that every entry has only one address, by which its flags are indexed.
    static TABLE: [&[ProgramSpec]; 11] = [
        inspect::PROGRAMS,
        text::PROGRAMS,
        search::PROGRAMS,
        modify::PROGRAMS,
        archive::PROGRAMS,
        remote::PROGRAMS,
        git::PROGRAMS,
        data::PROGRAMS,
        project::PROGRAMS,
        interpreters::PROGRAMS,
        wrappers::PROGRAMS,
    ];
    TABLE.into_iter().flatten()
}

const fn text_flag(names: &'static str) -> FlagSpec {
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
/// Describes a flag that makes the program read the names of its files from a list, which the gate hasn't
/// seen.
const fn file_list_flag(names: &'static str) -> FlagSpec {
    effect_value_flag(names, FILE_LIST_EFFECT)
}
const FILE_LIST_EFFECT: &str = "use the files named in a list that the gate hasn't checked";

const fn operand_flag(names: &'static str, meaning: WordMeaning) -> FlagSpec {
    FlagSpec { names, effect: FlagEffect::ReplacesOperand(meaning) }
}
const fn effect_flag(names: &'static str, effect: &'static str) -> FlagSpec {
    FlagSpec { names, effect: FlagEffect::SideEffect(effect) }
}
const fn effect_value_flag(names: &'static str, effect: &'static str) -> FlagSpec {
    FlagSpec { names, effect: FlagEffect::SideEffectWithValue(effect) }
}
const fn write_file_flag(names: &'static str) -> FlagSpec {
    FlagSpec { names, effect: FlagEffect::WritesFile }
}
const fn example(line: &'static str, expected: ExampleOutcome) -> ProgramExample {
    ProgramExample { line, expected }
}
