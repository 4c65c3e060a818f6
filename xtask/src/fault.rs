//! A message for people: place, fault and cure.

use std::fmt;

/// One thing that is wrong, where it is, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Fault {
    place: String,
    fault: String,
    cure: String,
}

impl Fault {
    /// A fault at `place`: a path, a path with a line, or the name of a step.
    pub(crate) fn new(place: impl Into<String>, fault: impl Into<String>, cure: impl Into<String>) -> Self {
        Self { place: place.into(), fault: fault.into(), cure: cure.into() }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}\nhelp: {}", self.place, self.fault, self.cure)
    }
}

impl std::error::Error for Fault {}
