//! Parses shell lines into a syntax tree.
//!
//! The parser is stricter than any shell on purpose. Text that shells read differently, or whose value only a
//! shell would know, is either marked in the tree ([`UnknownPart`], [`RedirectionTarget::NonPortable`]) or
//! refused with a [`ShellParseError`]. The running time is linear in the length of the line, and nesting is
//! bounded.

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
