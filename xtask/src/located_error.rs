//! Error messages with a place, a fault and a cure.

use std::fmt;

/// A fault with its place and its cure.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LocatedError {
    place: String,
    message: String,
    help: String,
}

impl LocatedError {
    /// Creates a fault. `place` is a path, a path with a line, or the name of a step.
    pub(crate) fn new(place: impl Into<String>, fault: impl Into<String>, cure: impl Into<String>) -> Self {
        Self { place: place.into(), message: fault.into(), help: cure.into() }
    }
}

impl fmt::Display for LocatedError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}\nhelp: {}", self.place, self.message, self.help)
    }
}

impl std::error::Error for LocatedError {}
