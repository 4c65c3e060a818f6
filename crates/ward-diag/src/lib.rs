//! Reads a TOML configuration into a typed value, or reports *every* fault in it. Each fault has a place, a
//! message and advice on how to fix it.
//!
//! Start with [`read`]: it parses a [`SourceText`], passes the root [`TomlTable`] to the caller, and returns
//! the value or a [`FaultReport`]. Reading doesn't stop at the first fault: each accessor records the fault
//! and returns `None`, so that a person can fix a whole file at once. A report can be rendered for a terminal
//! or serialised as JSON.
//!
//! ```
//! use ward_diag::{read, ConfigFault, ReportStyle, SourceText, Spanned, TomlTable, code};
//!
//! struct Entry { id: String, argv: Vec<String>, max_run: u32, warn: u32 }
//!
//! fn entry(mut table: TomlTable<'_>) -> Option<Entry> {
//!     let id = table.required::<String>("id");
//!     let argv = table.required::<Vec<String>>("argv");
//!     let max_run = table.required::<Spanned<u32>>("max_run");
//!     let warn = table.optional::<Spanned<u32>>("warn").unwrap_or(Spanned::without_span(5));
//!     let faults = table.faults();
//!     table.finish();
//!     // Use `?` only after `finish`, so that the faults of every key are recorded.
//!     let (id, argv, max_run) = (id?, argv?, max_run?);
//!     if warn.value >= max_run.value {
//!         faults.push(
//!             ConfigFault::new(code::INVALID, warn.span, format!("`{id}` warns before it can start"))
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
//! let report = read(SourceText::new("policy.toml", text), |root| {
//!     root.tables("entry").into_iter().map(entry).collect::<Option<Vec<_>>>()
//! })
//! .err()
//! .expect("three faults");
//!
//! assert_eq!(report.render(ReportStyle::Plain), r#"policy.toml:6:8: `tuxmath` warns before it can start
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
//! This crate never reads files, never prints, never decides whether to use colours, and doesn't know what
//! any key means. To keep secret values out of reports, name their keys with [`SourceText::hide_values_of`].
//!
//! [`ErrorChain`] displays an error together with its causes.

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
pub use document::{read, read_with_warnings};
pub use error_chain::ErrorChain;
pub use fault::{ConfigFault, FaultCollector, InvalidValue, MAX_FAULTS, RelatedPlace, code};
pub use render::ReportStyle;
pub use report::FaultReport;
pub use source::{MAX_SOURCE_BYTES, SourcePosition, SourceText};
pub use span::{Span, Spanned};
pub use suggest::{closest, date_in_other_notation};
pub use syntax::MAX_SYNTAX_FAULTS;
pub use table::{TomlTable, UnknownKeyAdvice};
pub use value::{TomlValue, ValueKind};
