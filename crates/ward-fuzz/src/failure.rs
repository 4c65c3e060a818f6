//! What a person needs to find the bug.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// An input that the function under test did not survive.
#[derive(Clone)]
pub struct FuzzFailure {
    /// Which target.
    pub name: String,
    /// The seed of the run.
    pub seed: u64,
    /// How many inputs were tried before it.
    pub tried: u64,
    /// What happened.
    pub fault: FuzzFailureKind,
    /// The input, made as small as could be.
    pub input: Vec<u8>,
    /// Where it was kept, so that every later run tries it first; `None` if it could not be.
    pub kept: Option<PathBuf>,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FuzzFailureKind {
    /// A panic, with its message.
    Panicked(String),
    /// It took so long.
    TooSlow(Duration),
    /// The run could not be made.
    NotRun(String),
}

impl std::error::Error for FuzzFailure {}

impl fmt::Display for FuzzFailure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, seed, tried, fault, input, kept } = self;
        match fault {
            FuzzFailureKind::NotRun(why) => {
                return write!(formatter, "fuzz target `{name}` did not run: {why}");
            }
            FuzzFailureKind::Panicked(message) => {
                writeln!(formatter, "fuzz target `{name}` panicked: {message}")?;
            }
            FuzzFailureKind::TooSlow(time) => {
                writeln!(formatter, "fuzz target `{name}` took {time:?} for one input")?;
            }
        }
        writeln!(formatter, "input of {} bytes: b\"{}\"", input.len(), input.escape_ascii())?;
        match kept {
            Some(path) => writeln!(formatter, "kept in {}", path.display())?,
            None => writeln!(formatter, "it could not be kept; copy it from here")?,
        }
        write!(
            formatter,
            "seed {seed}, after {tried} inputs\nhelp: every later run tries the kept input first"
        )
    }
}

/// The same as `Display`, so that `unwrap` in a test shows it readably.
impl fmt::Debug for FuzzFailure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}
