//! The sentences that Shepherd says to a family, in the language of the policy.
//!
//! Each language has a catalogue, a file in the format of Project Fluent (`en.ftl`, `de.ftl`). [`SentenceCatalogue`]
//! has a method for each sentence, which takes the variables of the sentence. Tests show that every catalogue has every
//! sentence with the same variables.
//!
//! Everything here is a function of its arguments: no clock, time zone, file or environment is read. The engine doesn't
//! use this crate; the daemon and its clients put the engine's results into words.
//!
//! To add a sentence, add a line to `sentences.rs` and to each catalogue. `reason.rs` chooses the sentence for a reason.

mod catalogue;
mod closed_entry;
mod login;
mod reason;
mod sentences;
mod time;
mod warning;

pub use catalogue::SentenceCatalogue;
pub use closed_entry::ClosedEntry;
pub use shepherd_api::Language;
pub use warning::WarningWords;
