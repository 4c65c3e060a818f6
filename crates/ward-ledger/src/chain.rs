//! What makes a record a link: its place, the hash of the one before, its own hash. No I/O.

use serde_json::{Map, Value};
use thiserror::Error;

use crate::canonical::{JsonValueError, canonical_json};
use crate::hash::Sha256Hash;
use crate::key::{LedgerKey, MacPurpose};

/// Records hold hashes, reasons and durations, never contents; the limit bounds what a reader
/// keeps in memory for one line.
pub const MAX_RECORD_BYTES: usize = 1 << 20;

pub(crate) const SEQUENCE: &str = "sequence";
pub(crate) const PREVIOUS_HASH: &str = "previous_hash";
pub(crate) const KEY_ID: &str = "key_id";
pub(crate) const MAC: &str = "mac";

/// The member that makes a record the ledger's own account of what it put right; see
/// [`crate::LedgerRecovery`].
pub const RECOVERY_FIELD: &str = "ledger_recovery";

/// What distinguishes the logs of one product from those of another: the name of the member
/// that holds a record's own hash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerFormat {
    hash_field: String,
}

/// The name can't be used for the hash of a record.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "`{0}` can't name the hash of a record: use lower-case letters and `_`, beginning with a letter and ending in `_hash`, not `previous_hash`"
)]
pub struct LedgerFormatError(String);

/// Why a record can't become a link.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SealError {
    /// The member is the ledger's own to set.
    #[error("the member `{0}` is set by the ledger: leave it out of the record")]
    Reserved(String),
    /// JSON tools disagree about a value.
    #[error(transparent)]
    Value(#[from] JsonValueError),
    /// Over [`MAX_RECORD_BYTES`].
    #[error(
        "the record has {0} bytes, and {MAX_RECORD_BYTES} are the most: store contents elsewhere and their hash here"
    )]
    TooLong(usize),
}

/// A record as it stands in the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealedRecord {
    /// Canonical JSON and a newline.
    pub line: Vec<u8>,
    /// The record's own hash, which the next one carries.
    pub hash: Sha256Hash,
}

impl LedgerFormat {
    /// A format whose records carry their own hash in this member, such as `receipt_hash`.
    ///
    /// # Errors
    /// When the name is not made of lower-case letters and `_`, doesn't begin with a letter, or
    /// doesn't end in `_hash`.
    pub fn new(hash_field: &str) -> Result<Self, LedgerFormatError> {
        let letters = hash_field.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
        let begins_with_letter = hash_field.starts_with(|first: char| first.is_ascii_lowercase());
        if !letters || !begins_with_letter || !hash_field.ends_with("_hash") || hash_field == PREVIOUS_HASH {
            return Err(LedgerFormatError(hash_field.to_owned()));
        }
        Ok(Self { hash_field: hash_field.to_owned() })
    }

    /// The member that holds a record's own hash.
    #[must_use]
    pub fn hash_field(&self) -> &str {
        &self.hash_field
    }
}

/// Makes `fields` the link number `sequence` (from 1) after the record with hash `previous`.
///
/// # Errors
/// When the fields are not what a record may carry.
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

/// The same for the ledger's own records too.
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
