//! Shell lines: read as the shell reads them, into a tree.
//!
//! The reading is narrower than any shell's on purpose. What shells read differently, or what would need one to be
//! known, is either marked in the tree ([`Unknown`], [`Target::Dialect`]) or refused as [`Unreadable`]. The work grows
//! with the length of the line, and nesting is bounded.

mod construct;
mod expansion;
mod parse;
mod reader;
mod redirect;
mod scan;
mod simple;
mod tree;
mod word;

pub use parse::{LONGEST_LINE, parse};
pub use reader::Unreadable;
pub use tree::{
    Assignment, At, Command, Compound, CompoundKind, HereId, Join, Line, List, Part, Pipeline, Redirection,
    Script, Simple, Target, Unknown, UnknownKind, Word,
};
