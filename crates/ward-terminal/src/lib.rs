//! Text for a terminal, as both command lines show it.
//!
//! - [`escape_line`], [`escape_lines`] and [`escape_label`] make text from elsewhere safe to print: characters that
//!   control the terminal, hide text or reverse its direction are written out as `\u{…}`.
//! - [`paint`] colours a text by its [`TextTone`].
//! - [`display_width`], [`truncate`], [`pad_or_truncate`] and [`wrap`] measure and fit text in terminal columns.
//! - [`ConsoleTable`] and [`align_columns`] lay out rows in columns.
//! - [`format_count`] writes a number with its noun.
//!
//! The crate makes strings. It never prints, never reads the environment and doesn't know whether the output is a
//! terminal: the program that prints removes the colours where they aren't wanted.

#![warn(missing_docs)]

mod count;
mod escape;
mod layout;
mod table;
mod tone;

pub use count::format_count;
pub use escape::{escape_char, escape_label, escape_line, escape_lines, is_invisible};
pub use layout::{display_width, pad_or_truncate, truncate, wrap};
pub use table::{ConsoleTable, TableCell, align_columns};
pub use tone::{TextTone, paint, paint_optional};
