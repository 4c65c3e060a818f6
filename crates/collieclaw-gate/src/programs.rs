//! What is known about programs: one table of facts, as data with examples that are tests (C7.3b).
//!
//! A fact says which flags take values, which arguments are paths, and which of them run or write something else.
//! What a program is *not* known to do it is taken to do nothing of; so a program whose flags can run things lists all
//! the flags that are known to be harmless, and any other counts as unknown ([`Others::Suspect`]).

mod archive;
mod argument;
mod change;
mod look;
mod reach;
mod search;
mod text;
mod wrap;

#[cfg(test)]
mod examples;
#[cfg(test)]
mod installed;

pub(crate) use argument::{Argument, ForEach, Found, Put, found_in};

/// What is known about a program.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Program {
    /// Its names, separated by blanks.
    pub(crate) names: &'static str,
    pub(crate) nature: Nature,
    /// Flags with a value or an effect.
    pub(crate) flags: &'static [Flag],
    /// What to think of all other flags.
    pub(crate) others: Others,
    pub(crate) operands: Operands,
    pub(crate) spelling: Spelling,
    /// Lines and what they do, which a test runs through the gate.
    pub(crate) examples: &'static [Example],
}

/// What a program does if no flag says otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Nature {
    /// It reads and prints.
    Looks,
    /// It changes files, or more than files.
    Changes,
    /// It does what the command inside does, and nothing of its own.
    Wraps,
    /// It runs a command with other rights, elsewhere, or later.
    Elevates,
    /// It runs a command with more words than it is given, which nobody knows.
    Appends,
    /// It runs text as commands of a shell.
    Shell,
    /// It runs text as a program.
    Interprets,
}

/// A flag with a value or an effect.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Flag {
    /// `-n --lines`
    pub(crate) names: &'static str,
    pub(crate) means: FlagMeans,
}

/// What a flag says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FlagMeans {
    /// Nothing that matters; for programs whose other flags are suspect.
    Nothing,
    /// Its value means this.
    Value(Meaning),
    /// A value that can only be joined to it (`-iSUFFIX`, `--color=WHEN`).
    Joined(Meaning),
    /// A name and then a value that means this (`jq --arg`).
    Named(Meaning),
    /// Its value takes the place of the first operand (`grep -e`).
    Instead(Meaning),
    /// The words after it, up to `;` or `{} +`, are a command (`find -exec`).
    CommandUntilEnd,
    /// The same, and the program does something else with it.
    DoesUntilEnd(&'static str),
    /// The program does something else with it.
    Does(&'static str),
    /// The program does something else with its value.
    DoesWith(&'static str),
    /// The program does something else: it writes the file that is its value.
    Writes,
    /// The program writes the files that it otherwise looks at. What is joined to it is added to the names of what was
    /// there (`sed -i.bak`).
    InPlace,
}

/// What a word means to a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// Text.
    Text,
    /// A path that is looked at.
    Looked,
    /// A path that is written.
    Written,
    /// A path that goes away, with all that is in it.
    Moved,
    /// A path that is written, or a place on another machine if there is a colon in it.
    Archive,
    /// A path that is looked at, or text; it is a path if it leads out of the folder.
    Perhaps,
    /// An address of the network.
    Address,
    /// `+FORMAT`; anything else sets the clock.
    Clock,
    /// A line for the shell.
    Line,
    /// A line that `env` takes apart by rules of its own.
    EnvLine,
    /// Code that is run; what it does can't be known.
    Code,
    /// A script of `sed`.
    Sed,
    /// A program of `awk`.
    Awk,
    /// `NAME=value`, a variable of `awk`.
    AwkVariable,
    /// A program of `jq`.
    Jq,
}

/// What to think of flags that a program's facts don't name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Others {
    /// None of them takes a value, runs or writes anything.
    Harmless,
    /// Anything is possible.
    Suspect,
}

impl Operands {
    /// Whether the first of them, wherever it stands, is what is run.
    fn begin_with_a_deed(self) -> bool {
        match self {
            Self::First(first, _) => {
                matches!(first, Meaning::Line | Meaning::Code | Meaning::Sed | Meaning::Awk | Meaning::Jq)
            }
            Self::Command { .. }
            | Self::VariablesThenCommand
            | Self::CommandSomewhere
            | Self::Applet
            | Self::Subcommands(_) => true,
            Self::All(_) | Self::Into(_) => false,
        }
    }
}

/// What the words mean that are no flags.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operands {
    /// All the same.
    All(Meaning),
    /// The first means something else than the rest.
    First(Meaning, Meaning),
    /// Those before the last are put there, or into it if it is a folder; a flag may name it instead.
    Into(Meaning),
    /// After so many words of its own a command begins.
    Command { after: usize },
    /// After any number of `NAME=value` a command begins.
    VariablesThenCommand,
    /// A command begins somewhere, but after which words depends on flags that nobody listed: at any of them.
    CommandSomewhere,
    /// The first names another program inside this one (`busybox ls`).
    Applet,
    /// The first names a command of the program's own, with facts of its own.
    Subcommands(&'static [Program]),
}

/// How a program spells its flags.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Spelling {
    /// `-a -b`, `-ab`, `--long`, `--long=value`; anywhere before `--`.
    Gnu,
    /// The same, but only before the first operand.
    Leading,
    /// As [`Self::Gnu`], and `+command`.
    Plus,
    /// As [`Self::Gnu`], and the first word is flags even without its dash.
    Bundle,
    /// `-name value`, in whole words.
    Words,
    /// `a=b`, in whole words, as `dd` does.
    Assignments,
}

/// A line, and how it is judged with the program on the list.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Example {
    pub(crate) line: &'static str,
    pub(crate) is: Judged,
}

/// How an example is judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Judged {
    /// It only looks.
    Looks,
    /// It changes something inside the workspace.
    Changes,
    /// What it does can't be known.
    Unknown,
    /// It is refused at every level.
    Blocked,
}

impl Program {
    /// A program that reads the files it is given and prints.
    const LOOKS: Self = Self {
        names: "",
        nature: Nature::Looks,
        flags: &[],
        others: Others::Harmless,
        operands: Operands::All(Meaning::Looked),
        spelling: Spelling::Gnu,
        examples: &[],
    };
    /// A program that writes the files it is given.
    const CHANGES: Self =
        Self { nature: Nature::Changes, operands: Operands::All(Meaning::Written), ..Self::LOOKS };
    /// A program that runs the command it is given.
    const WRAPS: Self = Self {
        nature: Nature::Wraps,
        others: Others::Suspect,
        operands: Operands::Command { after: 0 },
        spelling: Spelling::Leading,
        ..Self::LOOKS
    };
    /// A program that runs the command it is given with other rights, elsewhere, or later.
    const ELEVATES: Self = Self { nature: Nature::Elevates, ..Self::WRAPS };

    /// Looks a program up by its last name.
    pub(crate) fn named(name: &str) -> Option<&'static Self> {
        all().find(|program| program.is_named(name))
    }

    pub(crate) fn is_named(&self, name: &str) -> bool {
        self.names.split(' ').any(|known| known == name)
    }
}

/// The whole table.
pub(crate) fn all() -> impl Iterator<Item = &'static Program> {
    [
        look::PROGRAMS,
        text::PROGRAMS,
        search::PROGRAMS,
        change::PROGRAMS,
        archive::PROGRAMS,
        reach::PROGRAMS,
        wrap::PROGRAMS,
    ]
    .into_iter()
    .flatten()
}

const fn text(names: &'static str) -> Flag {
    Flag { names, means: FlagMeans::Value(Meaning::Text) }
}
const fn looked(names: &'static str) -> Flag {
    Flag { names, means: FlagMeans::Value(Meaning::Looked) }
}
const fn written(names: &'static str) -> Flag {
    Flag { names, means: FlagMeans::Value(Meaning::Written) }
}
const fn harmless(names: &'static str) -> Flag {
    Flag { names, means: FlagMeans::Nothing }
}
const fn joined(names: &'static str) -> Flag {
    Flag { names, means: FlagMeans::Joined(Meaning::Text) }
}
/// Takes its files from a list that nobody has looked at.
const fn listed(names: &'static str) -> Flag {
    does_with(names, "use files that a list names")
}
const fn instead(names: &'static str, meaning: Meaning) -> Flag {
    Flag { names, means: FlagMeans::Instead(meaning) }
}
const fn does(names: &'static str, what: &'static str) -> Flag {
    Flag { names, means: FlagMeans::Does(what) }
}
const fn does_with(names: &'static str, what: &'static str) -> Flag {
    Flag { names, means: FlagMeans::DoesWith(what) }
}
const fn writes(names: &'static str) -> Flag {
    Flag { names, means: FlagMeans::Writes }
}
const fn example(line: &'static str, is: Judged) -> Example {
    Example { line, is }
}
