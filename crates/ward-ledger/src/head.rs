//! The head: how many records there are and the hash of the last, in a file beside the log.
//!
//! The log becomes durable first and the head second. The other way round a crash in between
//! would leave a head that promises a record which was never written, and an honest log would
//! look cut. This way a crash leaves a head that is behind, which the next opener brings forward.
//!
//! The head is written over itself in one piece of one disk sector, so that it is never half old
//! and half new. It is also the file that writers lock: it is never renamed or replaced.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use serde_json::{Map, Value};

use crate::canonical::{canonical_json, parse_object};
use crate::chain::{KEY_ID, MAC};
use crate::hash::Hash;
use crate::key::{Key, KeyId};

/// The smallest unit that disks write entirely or not at all.
const HEAD_BYTES: usize = 512;

/// What the head says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) count: u64,
    pub(crate) hash: Hash,
    /// The number that the segment being written will have once it is closed.
    pub(crate) segment: u64,
    pub(crate) signature: Signature,
}

/// Who vouches for the head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signature {
    /// Nobody: it shows accidents, and attackers who don't know of it.
    Unsigned,
    /// The holder of the key at hand.
    Valid(KeyId),
    /// Nobody, though it claims so.
    Forged(KeyId),
    /// A key that is not at hand.
    Unchecked(KeyId),
}

/// What the head file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HeadFile {
    Empty,
    Unreadable,
    Written(Head),
}

impl HeadFile {
    /// What it says, if it says anything.
    pub(crate) fn written(&self) -> Option<&Head> {
        match self {
            Self::Written(head) => Some(head),
            Self::Empty | Self::Unreadable => None,
        }
    }
}

/// Reads the head file and checks its signature against the key at hand.
pub(crate) fn read(file: &File, key: Option<&Key>) -> io::Result<HeadFile> {
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
        return Ok(HeadFile::Empty);
    }
    let text = buffer.get(..filled).unwrap_or_default();
    Ok(parse(text, key).map_or(HeadFile::Unreadable, HeadFile::Written))
}

fn parse(text: &[u8], key: Option<&Key>) -> Option<Head> {
    let mut object = parse_object(text).ok()?;
    let hex = |name: &str| object.get(name).and_then(Value::as_str).map(str::as_bytes);
    let key_id = hex(KEY_ID).map(KeyId::from_hex);
    let stated = hex(MAC).map(Hash::from_hex);
    let hash = Hash::from_hex(hex("hash")?)?;
    let count = object.get("count")?.as_u64()?;
    let segment = object.get("segment")?.as_u64()?;
    object.remove(MAC);
    let signature = match (key_id, stated, key) {
        (None, None, _) => Signature::Unsigned,
        (Some(Some(key_id)), Some(Some(stated)), Some(key)) if key.id() == key_id => {
            if key.signed(&canonical_json(&object).ok()?, stated) {
                Signature::Valid(key_id)
            } else {
                Signature::Forged(key_id)
            }
        }
        (Some(Some(key_id)), Some(Some(_)), _) => Signature::Unchecked(key_id),
        _ => return None,
    };
    Some(Head { count, hash, segment, signature })
}

/// Writes the head and makes it durable.
pub(crate) fn write(
    file: &File,
    (count, hash): (u64, Hash),
    segment: u64,
    key: Option<&Key>,
) -> io::Result<()> {
    let mut object = Map::new();
    object.insert("count".to_owned(), count.into());
    object.insert("hash".to_owned(), hash.to_string().into());
    object.insert("segment".to_owned(), segment.into());
    let write = |object: &_| canonical_json(object).map_err(io::Error::other);
    if let Some(key) = key {
        object.insert(KEY_ID.to_owned(), key.id().to_string().into());
        let mac = key.sign(&write(&object)?);
        object.insert(MAC.to_owned(), mac.to_string().into());
    }
    let mut text = write(&object)?;
    debug_assert!(text.len() < HEAD_BYTES, "two hashes, three numbers and their names");
    text.resize(HEAD_BYTES - 1, b' ');
    text.push(b'\n');
    file.write_all_at(&text, 0)?;
    file.sync_data()
}
