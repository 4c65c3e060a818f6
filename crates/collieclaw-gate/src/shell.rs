//! Shell lines: read as the shell reads them, into a tree.
//!
//! The reading is narrower than any shell's on purpose. What shells read differently, or what would need one to be
//! known, is either marked in the tree ([`Unknown`], [`RedirectionTarget::NonPortable`]) or refused as [`ShellParseError`]. The work grows
//! with the length of the line, and nesting is bounded.

mod compound;
mod expansion;
mod grammar;
mod parser;
mod redirect;
mod scan;
mod simple;
mod syntax_tree;
mod word;

pub use grammar::{LONGEST_LINE, parse};
pub use parser::ShellParseError;
pub use syntax_tree::{
    BytePosition, CommandList, CompoundCommand, CompoundKind, HereDocumentId, ListOperator, Pipeline,
    Redirection, RedirectionTarget, ShellCommand, ShellLine, ShellScript, ShellWord, SimpleCommand,
    UnknownPart, UnknownPartKind, VariableAssignment, WordPart,
};
