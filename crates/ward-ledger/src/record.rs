//! A line of a log, read: its place in the chain and whether it is what its hash says.

use hmac::{Hmac, Mac};
use serde_json::Value;
use sha2::Sha256;

use crate::canonical::{self, RecordParseError};
use crate::chain::{KEY_ID, LedgerFormat, MAC, PREVIOUS_HASH, RECOVERY_FIELD, SEQUENCE};
use crate::hash::Sha256Hash;
use crate::key::{KeyId, LedgerKey, MacPurpose};
use crate::lines::LineParser;
use crate::scan::{self, ScannedRecord};

/// A record whose members have been looked at one by one; nothing is known about its neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CheckedRecord {
    pub(crate) sequence: u64,
    pub(crate) previous_hash: Sha256Hash,
    pub(crate) hash: Sha256Hash,
    pub(crate) integrity: RecordIntegrity,
    /// The ledger tells in it that it continued, by somebody's decision, records it can't vouch for.
    pub(crate) is_adoption: bool,
}

/// Whether a record is what its writer wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RecordIntegrity {
    /// The hash doesn't fit the content.
    HashMismatch,
    /// The hash fits, and the line is written in another form than the canonical one.
    NotCanonical,
    /// The hash fits; there is no MAC.
    Unsigned,
    /// The hash fits, and so does the MAC.
    Signed(KeyId),
    /// The hash fits, the MAC doesn't: written by someone without the key.
    Forged(KeyId),
    /// The hash fits, and the MAC is of another key than the one at hand, or there is none at hand.
    Unchecked(KeyId),
}

/// Reads records of one format, with or without a key.
pub(crate) struct RecordReader {
    format: LedgerFormat,
    key: Option<(KeyId, Hmac<Sha256>)>,
}

impl RecordReader {
    pub(crate) fn new(format: &LedgerFormat, key: Option<&LedgerKey>) -> Self {
        Self { format: format.clone(), key: key.map(|key| (key.id(), key.mac(MacPurpose::Record))) }
    }

    /// Reads the canonical record that `bytes` begin with and says how long it is; `None` when
    /// they begin with anything else.
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

    /// Reads any line.
    pub(crate) fn read(&self, line: &[u8]) -> Result<CheckedRecord, RecordParseError> {
        if let Some((record, length)) = self.read_canonical(line)
            && length == line.len()
        {
            return Ok(record);
        }
        self.read_by_parsing(line)
    }

    /// The same by parsing and writing again, for lines with unusual names, in another form or
    /// with a fault.
    pub(crate) fn read_by_parsing(&self, line: &[u8]) -> Result<CheckedRecord, RecordParseError> {
        let mut object = canonical::parse_object(line)?;
        let member = |name: &str| object.get(name).and_then(|value| value.as_str()).map(str::as_bytes);
        let fault = RecordParseError::missing_member;

        let hash_field = self.format.hash_field();
        let hash = member(hash_field).and_then(Sha256Hash::from_hex).ok_or_else(|| fault(hash_field))?;
        let previous_hash =
            member(PREVIOUS_HASH).and_then(Sha256Hash::from_hex).ok_or_else(|| fault(PREVIOUS_HASH))?;
        let sequence = object.get(SEQUENCE).and_then(Value::as_u64).ok_or_else(|| fault(SEQUENCE))?;
        let signature = if object.contains_key(KEY_ID) || object.contains_key(MAC) {
            let key_id = member(KEY_ID).and_then(KeyId::from_hex).ok_or_else(|| fault(KEY_ID))?;
            Some((key_id, member(MAC).and_then(Sha256Hash::from_hex).ok_or_else(|| fault(MAC))?))
        } else {
            None
        };

        let write = |object: &_| {
            canonical::canonical_json(object).map_err(|error| RecordParseError::NotRecord(error.to_string()))
        };
        let adopts = object.get(RECOVERY_FIELD).is_some_and(is_adoption_recovery);
        let is_canonical = write(&object)? == line;
        object.remove(hash_field);
        let without_hash = write(&object)?;
        object.remove(MAC);
        let without_hash_and_mac = write(&object)?;
        let content = HashedContent {
            hash: Sha256Hash::of(&[&without_hash]),
            without_hash_and_mac: &[without_hash_and_mac.as_slice()],
        };
        let own = match self.check_integrity(hash, signature, &content) {
            RecordIntegrity::HashMismatch => RecordIntegrity::HashMismatch,
            _ if !is_canonical => RecordIntegrity::NotCanonical,
            own => own,
        };
        Ok(CheckedRecord { sequence, previous_hash, hash, integrity: own, is_adoption: adopts })
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

/// Whether the ledger wrote this recovery when it adopted records: those that were not signed, or
/// had no head. The first signed record of a log that was begun without a key is one of the two.
fn is_adoption_recovery(recovery: &Value) -> bool {
    matches!(recovery.get("head").and_then(Value::as_str), Some("signed" | "replaced"))
}

/// What a record's hash and MAC are over.
struct HashedContent<'a> {
    hash: Sha256Hash,
    without_hash_and_mac: &'a [&'a [u8]],
}

#[cfg(test)]
mod tests;
