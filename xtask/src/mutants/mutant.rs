//! A mutant, and the place in the source where it is switched on.

use std::ops::Range;

use serde::{Deserialize, Serialize};

/// A small change to the source that a test should notice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mutant {
    pub(crate) id: u32,
    pub(crate) name: MutantName,
    /// The line of the original source.
    pub(crate) line: usize,
}

/// The identity of a mutant, which doesn't change if lines are added above it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MutantName {
    /// The path below the folder of the crate, such as `src/hours.rs`.
    pub(crate) file: String,
    /// The function, with its type if it has one, such as `Weekdays::is_empty`.
    pub(crate) function: String,
    /// The change in words. The end `#2` tells equal changes of one function apart.
    pub(crate) change: String,
}

/// A part of the source that is rewritten, so that its mutants can be switched on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MutationSite {
    /// The bytes of the original source; empty for an insertion.
    pub(crate) range: Range<usize>,
    pub(crate) form: SiteForm,
}

/// The way in which a site is rewritten.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SiteForm {
    /// An expression that is replaced by one of these. Their numbers are consecutive.
    Expression(Vec<Alternative>),
    /// The start of a function's body, which returns one of these early.
    BodyStart(Vec<Alternative>),
    /// The last expression of a function that returns an iterator; the mutant makes the iterator empty.
    IteratorEnd(u32),
    /// The end of the pattern of a match arm without a guard; the mutant makes the arm match nothing.
    ArmEnd(u32),
    /// The guard of a match arm.
    Guard(GuardMutants),
}

/// The mutants of a match arm with a guard.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct GuardMutants {
    pub(crate) deletes_arm: Option<u32>,
    pub(crate) is_true: Option<u32>,
    pub(crate) is_false: Option<u32>,
    /// True if the guard binds names with `let`, so that it can't stand in parentheses.
    pub(crate) has_let: bool,
}

/// Code that takes the place of the original.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Alternative {
    pub(crate) id: u32,
    pub(crate) code: String,
}

impl MutationSite {
    /// Returns the numbers of the mutants at this site.
    pub(crate) fn ids(&self) -> Vec<u32> {
        match &self.form {
            SiteForm::Expression(alternatives) | SiteForm::BodyStart(alternatives) => {
                alternatives.iter().map(|alternative| alternative.id).collect()
            }
            SiteForm::IteratorEnd(id) | SiteForm::ArmEnd(id) => vec![*id],
            SiteForm::Guard(guard) => {
                [guard.deletes_arm, guard.is_true, guard.is_false].into_iter().flatten().collect()
            }
        }
    }
}
