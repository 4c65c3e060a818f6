//! The head: a small file beside the log with the number of records and the hash of the last record.
//!
//! The log is synced to disk first, and the head second. In the opposite order, a crash in between would
//! leave a head that vouches for a record that was never written, and an honest log would look truncated. In
//! this order, a crash leaves a head that is behind, which the next opener updates.
//!
//! The head is overwritten in place, in a single write of one disk sector, so it is never half old and half
//! new. Writers also lock the head file, so it is never renamed or replaced.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use serde_json::Map;

use crate::canonical::{canonical_json, parse_object};
use crate::chain::{KEY_ID, MAC};
use crate::hash::Sha256Hash;
use crate::key::{KeyId, LedgerKey, MacPurpose};

/// The size of the head file: one disk sector, which disks write completely or not at all.
const HEAD_BYTES: usize = 512;

const COUNT: &str = "count";
const HASH: &str = "hash";
const SEGMENT: &str = "segment";

/// The content of a head file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LedgerHead {
    pub(crate) count: u64,
    pub(crate) hash: Sha256Hash,
    /// The number that the current segment will have once it is closed.
    pub(crate) segment: u64,
    pub(crate) signature: HeadSignature,
}

/// The result of checking the signature of a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HeadSignature {
    /// The head is not signed. It still reveals accidents, and attackers who don't know about it.
    Unsigned,
    /// The signature was made with the given key.
    Valid(KeyId),
    /// The signature claims to be made with the given key, but was not.
    Forged(KeyId),
    /// The signature was made with a different key, or no key was given.
    Unchecked(KeyId),
}

/// The state of a head file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LedgerHeadState {
    Empty,
    Unreadable,
    Written(LedgerHead),
}

impl LedgerHeadState {
    /// Returns the content of the head, if the file is neither empty nor unreadable.
    pub(crate) fn as_written(&self) -> Option<&LedgerHead> {
        match self {
            Self::Written(head) => Some(head),
            Self::Empty | Self::Unreadable => None,
        }
    }
}

/// Reads the head file, and checks its signature if a key is given.
pub(crate) fn read(file: &File, key: Option<&LedgerKey>) -> io::Result<LedgerHeadState> {
    let mut buffer = [0; HEAD_BYTES];
    let mut filled = 0;
    while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match file.read_at(rest, filled as u64) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    if filled == 0 {
        return Ok(LedgerHeadState::Empty);
    }
    let text = buffer.get(..filled).unwrap_or_default();
    Ok(parse_head(text, key).map_or(LedgerHeadState::Unreadable, LedgerHeadState::Written))
}

/// Parses the text of a head. Returns `None` if a member is missing, malformed or unknown.
fn parse_head(text: &[u8], key: Option<&LedgerKey>) -> Option<LedgerHead> {
    let mut object = parse_object(text).ok()?;
    let mac = object.remove(MAC);
    let signed = canonical_json(&object).ok()?;
    let count = object.remove(COUNT)?.as_u64()?;
    let hash = Sha256Hash::from_hex(object.remove(HASH)?.as_str()?.as_bytes())?;
    let segment = object.remove(SEGMENT)?.as_u64()?;
    let key_id = object.remove(KEY_ID);
    if !object.is_empty() {
        return None;
    }
    let signature = match (key_id, mac) {
        (None, None) => HeadSignature::Unsigned,
        (Some(key_id), Some(mac)) => {
            let key_id = KeyId::from_hex(key_id.as_str()?.as_bytes())?;
            let mac = Sha256Hash::from_hex(mac.as_str()?.as_bytes())?;
            match key.filter(|key| key.id() == key_id) {
                Some(key) if key.verify_mac(MacPurpose::Head, &signed, mac) => HeadSignature::Valid(key_id),
                Some(_) => HeadSignature::Forged(key_id),
                None => HeadSignature::Unchecked(key_id),
            }
        }
        (Some(_), None) | (None, Some(_)) => return None,
    };
    Some(LedgerHead { count, hash, segment, signature })
}

/// Writes the head and syncs it to disk.
pub(crate) fn write_head(
    file: &File,
    (count, hash): (u64, Sha256Hash),
    segment: u64,
    key: Option<&LedgerKey>,
) -> io::Result<()> {
    let mut object = Map::new();
    object.insert(COUNT.to_owned(), count.into());
    object.insert(HASH.to_owned(), hash.to_string().into());
    object.insert(SEGMENT.to_owned(), segment.into());
    let to_canonical = |object: &_| canonical_json(object).map_err(io::Error::other);
    if let Some(key) = key {
        object.insert(KEY_ID.to_owned(), key.id().to_string().into());
        let mac = key.sign(MacPurpose::Head, &to_canonical(&object)?);
        object.insert(MAC.to_owned(), mac.to_string().into());
    }
    let mut text = to_canonical(&object)?;
    debug_assert!(text.len() < HEAD_BYTES, "two hashes, three numbers and their names");
    text.resize(HEAD_BYTES - 1, b' ');
    text.push(b'\n');
    file.write_all_at(&text, 0)?;
    file.sync_data()
}
