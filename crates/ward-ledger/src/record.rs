//! Reads a line of a log as a record, and checks its hash and MAC. The links between records are checked in
//! [`crate::verify`].

use hmac::{Hmac, Mac};
use serde_json::Value;
use sha2::Sha256;

use crate::canonical::{self, RecordParseError};
use crate::chain::{KEY_ID, LedgerFormat, MAC, PREVIOUS_HASH, RECOVERY_FIELD, SEQUENCE};
use crate::hash::Sha256Hash;
use crate::key::{KeyId, LedgerKey, MacPurpose};
use crate::lines::LineParser;
use crate::scan::{self, ScannedRecord};

/// A record whose hash and MAC have been checked, but not its links to its neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CheckedRecord {
    pub(crate) sequence: u64,
    pub(crate) previous_hash: Sha256Hash,
    pub(crate) hash: Sha256Hash,
    pub(crate) integrity: RecordIntegrity,
    /// True if this is the ledger's own record about adopting the records before it.
    pub(crate) is_adoption: bool,
}

/// The result of checking the hash and MAC of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RecordIntegrity {
    /// The hash doesn't match the content.
    HashMismatch,
    /// The hash matches, but the line is not in canonical form.
    NotCanonical,
    /// The hash matches, and there is no MAC.
    Unsigned,
    /// The hash and the MAC match.
    Signed(KeyId),
    /// The hash matches, but the MAC doesn't, so the record was written without the key.
    Forged(KeyId),
    /// The hash matches. The MAC was made with a different key than the given one, or no key was given.
    Unchecked(KeyId),
}

/// A reader for records of one format, with or without a key.
pub(crate) struct RecordReader {
    format: LedgerFormat,
    key: Option<(KeyId, Hmac<Sha256>)>,
}

impl RecordReader {
    pub(crate) fn new(format: &LedgerFormat, key: Option<&LedgerKey>) -> Self {
        Self { format: format.clone(), key: key.map(|key| (key.id(), key.mac(MacPurpose::Record))) }
    }

    /// Reads the canonical record at the start of `bytes`, and returns it with its length. Returns `None` if
    /// there is no such record.
    pub(crate) fn read_canonical(&self, bytes: &[u8]) -> Option<(CheckedRecord, usize)> {
        let scanned = scan::scan_record(bytes, self.format.hash_field())?;
        let record = self.check_scanned(&scanned)?;
        Some((record, scanned.text.len()))
    }

    fn check_scanned(&self, scanned: &ScannedRecord<'_>) -> Option<CheckedRecord> {
        let signature = match (scanned.key_id, scanned.mac) {
            (None, None) => None,
            (Some(key_id), Some(mac)) => Some((KeyId::from_hex(key_id)?, Sha256Hash::from_hex(mac)?)),
            _ => return None,
        };
        let content = HashedContent {
            hash: Sha256Hash::of(&scanned.without_hash()),
            without_hash_and_mac: &scanned.without_hash_and_mac(),
        };
        let recovery = scanned.recovery.and_then(|text| serde_json::from_slice(text).ok());
        let hash = Sha256Hash::from_hex(scanned.hash)?;
        Some(CheckedRecord {
            sequence: scanned.sequence,
            previous_hash: Sha256Hash::from_hex(scanned.previous_hash)?,
            hash,
            integrity: self.check_integrity(hash, signature, &content),
            is_adoption: recovery.as_ref().is_some_and(is_adoption_recovery),
        })
    }

    /// Reads a line, canonical or not.
    pub(crate) fn read(&self, line: &[u8]) -> Result<CheckedRecord, RecordParseError> {
        if let Some((record, length)) = self.read_canonical(line)
            && length == line.len()
        {
            return Ok(record);
        }
        self.read_by_parsing(line)
    }

    /// Reads a line by parsing it and serialising it again, which also works for lines with unusual names, in
    /// another form, or with errors.
    pub(crate) fn read_by_parsing(&self, line: &[u8]) -> Result<CheckedRecord, RecordParseError> {
        let mut object = canonical::parse_object(line)?;
        let member = |name: &str| object.get(name).and_then(|value| value.as_str()).map(str::as_bytes);
        let missing = RecordParseError::missing_member;

        let hash_field = self.format.hash_field();
        let hash = member(hash_field).and_then(Sha256Hash::from_hex).ok_or_else(|| missing(hash_field))?;
        let previous_hash =
            member(PREVIOUS_HASH).and_then(Sha256Hash::from_hex).ok_or_else(|| missing(PREVIOUS_HASH))?;
        let sequence = object.get(SEQUENCE).and_then(Value::as_u64).ok_or_else(|| missing(SEQUENCE))?;
        let signature = if object.contains_key(KEY_ID) || object.contains_key(MAC) {
            let key_id = member(KEY_ID).and_then(KeyId::from_hex).ok_or_else(|| missing(KEY_ID))?;
            Some((key_id, member(MAC).and_then(Sha256Hash::from_hex).ok_or_else(|| missing(MAC))?))
        } else {
            None
        };

        let to_canonical = |object: &_| {
            canonical::canonical_json(object).map_err(|error| RecordParseError::NotRecord(error.to_string()))
        };
        let is_adoption = object.get(RECOVERY_FIELD).is_some_and(is_adoption_recovery);
        let is_canonical = to_canonical(&object)? == line;
        object.remove(hash_field);
        let without_hash = to_canonical(&object)?;
        object.remove(MAC);
        let without_hash_and_mac = to_canonical(&object)?;
        let content = HashedContent {
            hash: Sha256Hash::of(&[&without_hash]),
            without_hash_and_mac: &[without_hash_and_mac.as_slice()],
        };
        let integrity = match self.check_integrity(hash, signature, &content) {
            RecordIntegrity::HashMismatch => RecordIntegrity::HashMismatch,
            _ if !is_canonical => RecordIntegrity::NotCanonical,
            integrity => integrity,
        };
        Ok(CheckedRecord { sequence, previous_hash, hash, integrity, is_adoption })
    }

    fn check_integrity(
        &self,
        hash: Sha256Hash,
        signature: Option<(KeyId, Sha256Hash)>,
        content: &HashedContent<'_>,
    ) -> RecordIntegrity {
        match (signature, &self.key) {
            _ if content.hash != hash => RecordIntegrity::HashMismatch,
            (None, _) => RecordIntegrity::Unsigned,
            (Some((key_id, stated)), Some((ours, keyed))) if key_id == *ours => {
                let mut mac = keyed.clone();
                content.without_hash_and_mac.iter().for_each(|piece| mac.update(piece));
                match mac.verify_slice(stated.as_bytes()) {
                    Ok(()) => RecordIntegrity::Signed(key_id),
                    Err(_) => RecordIntegrity::Forged(key_id),
                }
            }
            (Some((key_id, _)), _) => RecordIntegrity::Unchecked(key_id),
        }
    }
}

impl LineParser for RecordReader {
    type ParsedRecord = CheckedRecord;

    fn parse_ahead(&self, bytes: &[u8]) -> Option<(CheckedRecord, usize)> {
        self.read_canonical(bytes)
    }

    fn parse_line(&self, line: &[u8]) -> Result<CheckedRecord, RecordParseError> {
        self.read_by_parsing(line)
    }
}

/// Returns true if a recovery report is about adopting records that were unsigned or had no head. If a log
/// was begun without a key, its first signed record must be such a report.
fn is_adoption_recovery(recovery: &Value) -> bool {
    matches!(recovery.get("head").and_then(Value::as_str), Some("signed" | "replaced"))
}

/// The hash of a record's content, and the content that its MAC is computed over.
struct HashedContent<'a> {
    hash: Sha256Hash,
    without_hash_and_mac: &'a [&'a [u8]],
}

#[cfg(test)]
mod tests;
