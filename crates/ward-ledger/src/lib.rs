//! A tamper-evident, hash-chained log, used by all products of this repository.
//!
//! A log is a file of JSON objects, one per line. Each record contains the hash of the record before it, so
//! changing, removing, adding or moving a record breaks the chain, and [`verify()`] reports where.
//! `docs/ledger-format.md` describes the format so that other tools can check it.
//!
//! The crate never reads a clock, never prints and never drops a byte of a log: a half-written line that a
//! crash left behind is moved to a file beside the log, and the log records that.
//!
//! Start with [`Ledger::open`] to write a log, [`verify()`] to check it, and [`read()`] or
//! [`read_records_reversed()`] to list its records. With a [`LedgerKey`], a log can't be rewritten by anybody
//! who doesn't have the key.

#![warn(missing_docs)]

mod canonical;
mod hash;
mod plural;

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
