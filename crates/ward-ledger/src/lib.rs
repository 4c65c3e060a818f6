//! One tamper-evident, hash-chained log for every product.
//!
//! A log is a file of JSON objects, one a line, each with the hash of the one before. Changing,
//! removing, adding or moving a record breaks a link that [`verify()`] names. `docs/ledger-format.md`
//! describes the format so that other tools can check it.
//!
//! The crate never reads a clock, never prints and never drops a byte of a log: what a crash left
//! half-written is moved to a file beside it, and the log itself tells of it.
//!
//! Start with [`Ledger::open`] to write, [`verify()`] to check and [`read()`] or, from the end,
//! [`read_back()`] to list; [`Key`] makes a log that nobody
//! without the key can rewrite.

#![warn(missing_docs)]

mod canonical;
mod hash;

mod chain;
mod key;
mod scan;

mod record;

mod files;
mod head;
mod tail;

mod error;
mod ledger;

mod lines;
mod snapshot;

mod back;
mod read;
pub mod verify;

pub use back::{Numbered, RecordsBack, read_back};
pub use canonical::{MAX_DEPTH, MAX_SAFE_INTEGER, ParseError, ValueError, canonical_json, parse_object};
pub use chain::{Format, FormatError, MAX_RECORD_BYTES, RECOVERY_FIELD, RecordError, Sealed, seal};
pub use error::{AppendError, OpenError, ReadError};
pub use hash::Hash;
pub use key::{Key, KeyError, KeyId};
pub use ledger::{Appended, HeadRecovery, Ledger, Options, Recovery, TornTail};
pub use read::{Entry, ReadFault, Records, read};
pub use verify::{Report, verify};
