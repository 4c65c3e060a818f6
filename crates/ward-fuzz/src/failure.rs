//! The report of a failed fuzz run, with everything that is needed to reproduce the bug.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// A failed fuzz run: usually an input on which the function under test panicked or hung.
#[derive(Clone)]
pub struct FuzzFailure {
    /// Name of the fuzz target.
    pub name: String,
    /// Seed of the run.
    pub seed: u64,
    /// Number of inputs that passed before this one.
    pub tried: u64,
    /// Reason for the failure.
    pub fault: FuzzFailureKind,
    /// Failing input, minimised if the target panicked.
    pub input: Vec<u8>,
    /// File that the input was saved to, so that every later run tries it first; `None` if it could not be saved.
    pub kept: Option<PathBuf>,
}

/// The reason why a fuzz run failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FuzzFailureKind {
    /// The target panicked with this message.
    Panicked(String),
    /// The target took this long for a single input.
    TooSlow(Duration),
    /// The run could not start, for this reason.
    NotRun(String),
}

impl std::error::Error for FuzzFailure {}

impl fmt::Display for FuzzFailure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, seed, tried, fault, input, kept } = self;
        match fault {
            FuzzFailureKind::NotRun(reason) => {
                return write!(formatter, "could not run fuzz target `{name}`: {reason}");
            }
            FuzzFailureKind::Panicked(message) => {
                writeln!(formatter, "fuzz target `{name}` panicked: {message}")?;
            }
            FuzzFailureKind::TooSlow(time) => {
                writeln!(formatter, "fuzz target `{name}` took {time:?} for one input")?;
            }
        }
        let length = count(input.len() as u64, "byte");
        writeln!(formatter, "input of {length}: b\"{}\"", input.escape_ascii())?;
        writeln!(formatter, "seed {seed}, after {}", count(*tried, "input"))?;
        match kept {
            Some(path) => {
                writeln!(formatter, "saved in {}", path.display())?;
                write!(formatter, "help: every later run tries the saved input first")
            }
            None => write!(formatter, "help: the input could not be saved; copy it from the line above"),
        }
    }
}

/// Formats a number with its noun, in the plural unless the number is 1.
pub(crate) fn count(number: u64, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

/// The same text as `Display`, so that `unwrap` in a test prints a readable report.
impl fmt::Debug for FuzzFailure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}
