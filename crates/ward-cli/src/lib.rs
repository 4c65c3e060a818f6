//! The parts of a command line that `shepherd` and `collieclaw` share.
//!
//! - [`OutputArgs`] is the flag `--output`, with its [`OutputFormat`].
//! - [`to_json_document`] and [`to_json_line`] format a result for scripts.
//! - [`WriteStatus`] remembers whether standard output could be written to.
//! - [`completion_script`], [`manual_page`] and [`write_manual_pages`] are generated from the definition of the
//!   command line.
//!
//! The crate never prints: only [`write_manual_pages`] touches files. It is separate from `ward-terminal` to keep
//! `clap` out of libraries that only escape text.

#![warn(missing_docs)]

mod generate;
mod json;
mod output_format;
mod write_status;

pub use clap_complete::Shell;
pub use generate::{completion_script, manual_page, write_manual_pages};
pub use json::{to_json_document, to_json_line};
pub use output_format::{OutputArgs, OutputFormat};
pub use write_status::WriteStatus;
