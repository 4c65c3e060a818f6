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
//! [`read_records_reversed()`] to list; [`Key`] makes a log that nobody
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

mod read;
mod reverse;
pub mod verify;

pub use canonical::{
    JsonValueError, MAX_DEPTH, MAX_SAFE_INTEGER, RecordParseError, canonical_json, parse_object,
};
pub use chain::{
    LedgerFormat, LedgerFormatError, MAX_RECORD_BYTES, RECOVERY_FIELD, SealError, SealedRecord, seal,
};
pub use error::{LedgerAppendError, LedgerOpenError, LedgerReadError};
pub use hash::Sha256Hash;
pub use key::{KeyId, LedgerKey, LedgerKeyError};
pub use ledger::{AppendedRecord, HeadRecovery, Ledger, LedgerOptions, LedgerRecovery, TornTail};
pub use read::{EntryReadError, LedgerEntry, LedgerRecords, read};
pub use reverse::{NumberedRecord, ReverseLedgerRecords, read_records_reversed};
pub use verify::{VerificationReport, verify};
