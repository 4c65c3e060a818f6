//! Text for a terminal.
//!
//! The crate makes strings and prints nothing: writing them is for the program.

#![warn(missing_docs)]

mod escape;

pub use escape::{escape_line, escape_lines};
