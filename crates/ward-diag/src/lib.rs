//! TOML in; a typed value or *every* fault out, each with its place, what is wrong and what would be right.
//!
//! Start at [`read`]: it parses a [`SourceText`], hands the root [`TomlTable`] to the caller, and returns the value
//! or a [`FaultReport`]. Reading never stops at the first fault: each accessor records what it found and returns
//! `None`, so that a person mends a file in one go. A report is rendered for a terminal or serialised as JSON.
//!
//! ```
//! use ward_diag::{read, Fault, Source, Spanned, Style, Table, code};
//!
//! struct Entry { id: String, argv: Vec<String>, max_run: u32, warn: u32 }
//!
//! fn entry(mut table: Table<'_>) -> Option<Entry> {
//!     let id = table.required::<String>("id");
//!     let argv = table.required::<Vec<String>>("argv");
//!     let max_run = table.required::<Spanned<u32>>("max_run");
//!     let warn = table.optional::<Spanned<u32>>("warn").unwrap_or(Spanned::nowhere(5));
//!     let faults = table.faults();
//!     table.finish();
//!     // Everything has been read and every fault of form recorded; only now does meaning come.
//!     let (id, argv, max_run) = (id?, argv?, max_run?);
//!     if warn.value >= max_run.value {
//!         faults.push(
//!             Fault::new(code::INVALID, warn.span, format!("`{id}` warns before it can start"))
//!                 .related(max_run.span, "its longest run")
//!                 .help(format!("lower `warn` below {}", max_run.value)),
//!         );
//!     }
//!     Some(Entry { id, argv, max_run: max_run.value, warn: warn.value })
//! }
//!
//! let text = r#"
//! [[entry]]
//! id = "tuxmath"
//! argv = ["tuxmath"]
//! max_run = 60
//! warn = 90
//!
//! [[entry]]
//! id = "paint"
//! arg = ["tuxpaint"]
//! max_run = "long"
//! "#;
//! let report = read(Source::new("policy.toml", text), |root| {
//!     root.tables("entry").into_iter().map(entry).collect::<Option<Vec<_>>>()
//! })
//! .err()
//! .expect("three faults");
//!
//! assert_eq!(report.render(Style::Plain), r#"policy.toml:6:8: `tuxmath` warns before it can start
//!    5 | max_run = 60
//!      |           -- its longest run
//!    6 | warn = 90
//!      |        ^^
//! help: lower `warn` below 60
//!
//! policy.toml:10:1: unknown key `arg` in `entry`
//!    10 | arg = ["tuxpaint"]
//!       | ^^^
//! help: did you mean `argv`?
//!
//! policy.toml:11:11: `max_run` must be a whole number, but this is text
//!    11 | max_run = "long"
//!       |           ^^^^^^
//! help: write it like `max_run = 10`
//! "#);
//! ```
//!
//! What this crate never does: read a file, print, decide about colours, or know what any key means.
//! A value that must not be shown is hidden by the name of its key: [`SourceText::hide_values_of`].
//!
//! [`ErrorChain`] does for errors what a report does for files: it shows one with everything behind it.

#![warn(missing_docs)]

mod error_chain;
mod escape;
mod source;
mod span;
mod span_set;
mod suggest;

mod fault;
mod secret;
mod syntax;

mod convert;
mod document;
mod table;
mod value;

mod render;
mod report;

pub use convert::FromValue;
pub use document::read;
pub use error_chain::ErrorChain;
pub use fault::{ConfigFault, FaultCollector, InvalidValue, MAX_FAULTS, RelatedPlace, code};
pub use render::ReportStyle;
pub use report::FaultReport;
pub use source::{MAX_SOURCE_BYTES, SourcePosition, SourceText};
pub use span::{Span, Spanned};
pub use suggest::closest;
pub use syntax::MAX_SYNTAX_FAULTS;
pub use table::TomlTable;
pub use value::{TomlValue, ValueKind};
