//! Sealing: turns the fields of a record into a link of the chain, by adding its sequence number, hashes and
//! MAC. No I/O.

use serde_json::{Map, Value};
use thiserror::Error;

use crate::canonical::{JsonValueError, canonical_json};
use crate::hash::Sha256Hash;
use crate::key::{LedgerKey, MacPurpose};

/// The maximum length of a record in bytes, including its newline. It bounds the memory that a reader needs
/// for a line. Records contain hashes, reasons and durations, never whole files or messages, so they stay far
/// below it.
pub const MAX_RECORD_BYTES: usize = 1 << 20;

pub(crate) const SEQUENCE: &str = "sequence";
pub(crate) const PREVIOUS_HASH: &str = "previous_hash";
pub(crate) const KEY_ID: &str = "key_id";
pub(crate) const MAC: &str = "mac";

/// The member that marks a record as the ledger's own report about a recovery; see [`crate::LedgerRecovery`].
pub const RECOVERY_FIELD: &str = "ledger_recovery";

/// The format of a log. The logs of different products differ in the name of the member that contains a
/// record's own hash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerFormat {
    hash_field: String,
}

/// The error for a name that can't be used for the hash member.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "`{0}` can't be the name of the hash member: use lower-case letters and `_`, beginning with a letter and ending in `_hash`, not `previous_hash`"
)]
pub struct LedgerFormatError(String);

/// The error for fields that can't become a record.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SealError {
    /// The fields contain a member that only the ledger may set.
    #[error("the member `{0}` is set by the ledger: leave it out of the record")]
    Reserved(String),
    /// The fields contain a value that JSON tools don't agree about.
    #[error(transparent)]
    Value(#[from] JsonValueError),
    /// The record is longer than [`MAX_RECORD_BYTES`].
    #[error(
        "the record has {0} bytes, but the limit is {MAX_RECORD_BYTES}: store the content elsewhere and its hash here"
    )]
    TooLong(usize),
}

/// A record in the form in which it is written to the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealedRecord {
    /// The record as canonical JSON, followed by a newline.
    pub line: Vec<u8>,
    /// The hash of the record, which the next record contains as its `previous_hash`.
    pub hash: Sha256Hash,
}

impl LedgerFormat {
    /// Creates a format whose records contain their own hash in the member `hash_field`, such as
    /// `receipt_hash`.
    ///
    /// # Errors
    /// Fails unless the name consists of lower-case letters and `_`, begins with a letter, ends in `_hash`,
    /// and differs from `previous_hash`.
    pub fn new(hash_field: &str) -> Result<Self, LedgerFormatError> {
        let letters = hash_field.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
        let begins_with_letter = hash_field.starts_with(|first: char| first.is_ascii_lowercase());
        if !letters || !begins_with_letter || !hash_field.ends_with("_hash") || hash_field == PREVIOUS_HASH {
            return Err(LedgerFormatError(hash_field.to_owned()));
        }
        Ok(Self { hash_field: hash_field.to_owned() })
    }

    /// Returns the name of the member that contains a record's own hash.
    #[must_use]
    pub fn hash_field(&self) -> &str {
        &self.hash_field
    }
}

/// Turns `fields` into the record number `sequence` (starting at 1), which follows the record with the hash
/// `previous`.
///
/// # Errors
/// Fails if the fields contain a reserved member or a value that a record can't hold, or if the record is too
/// long.
pub fn seal(
    format: &LedgerFormat,
    key: Option<&LedgerKey>,
    (sequence, previous): (u64, Sha256Hash),
    fields: Map<String, Value>,
) -> Result<SealedRecord, SealError> {
    if fields.contains_key(RECOVERY_FIELD) {
        return Err(SealError::Reserved(RECOVERY_FIELD.to_owned()));
    }
    seal_unrestricted(format, key, (sequence, previous), fields)
}

/// Does the same as [`seal`], but also allows the ledger's own [`RECOVERY_FIELD`].
pub(crate) fn seal_unrestricted(
    format: &LedgerFormat,
    key: Option<&LedgerKey>,
    (sequence, previous): (u64, Sha256Hash),
    fields: Map<String, Value>,
) -> Result<SealedRecord, SealError> {
    let mut record = fields;
    for name in [SEQUENCE, PREVIOUS_HASH, KEY_ID, MAC, format.hash_field()] {
        if record.contains_key(name) {
            return Err(SealError::Reserved(name.to_owned()));
        }
    }
    record.insert(SEQUENCE.to_owned(), sequence.into());
    record.insert(PREVIOUS_HASH.to_owned(), previous.to_string().into());
    if let Some(key) = key {
        record.insert(KEY_ID.to_owned(), key.id().to_string().into());
        let mac = key.sign(MacPurpose::Record, &canonical_json(&record)?);
        record.insert(MAC.to_owned(), mac.to_string().into());
    }
    let hash = Sha256Hash::of(&[&canonical_json(&record)?]);
    record.insert(format.hash_field().to_owned(), hash.to_string().into());
    let mut line = canonical_json(&record)?;
    line.push(b'\n');
    if line.len() > MAX_RECORD_BYTES {
        return Err(SealError::TooLong(line.len()));
    }
    Ok(SealedRecord { line, hash })
}
