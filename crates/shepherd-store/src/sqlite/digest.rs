//! A checksum over all rows that is updated row by row.
//!
//! SQLite checks the structure of its pages, not their content: a flipped bit in a number is another number. The sum of
//! the hashes of all rows is therefore kept in a row of its own. It protects against accidents; an attacker who can
//! write the file can also write the sum.

use rusqlite::types::ValueRef;
use ward_ledger::Sha256Hash;

/// The sum of the hashes of a set of rows, in any order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RowSetDigest([u64; 4]);

impl RowSetDigest {
    pub(super) fn add(&mut self, row: Sha256Hash) {
        for (lane, part) in self.0.iter_mut().zip(digest_lanes(row.as_bytes())) {
            *lane = lane.wrapping_add(part);
        }
    }

    pub(super) fn remove(&mut self, row: Sha256Hash) {
        for (lane, part) in self.0.iter_mut().zip(digest_lanes(row.as_bytes())) {
            *lane = lane.wrapping_sub(part);
        }
    }

    pub(super) fn to_bytes(self) -> Vec<u8> {
        self.0.iter().flat_map(|lane| lane.to_le_bytes()).collect()
    }

    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; 32] = bytes.try_into().ok()?;
        let mut digest = Self::default();
        for (lane, part) in digest.0.iter_mut().zip(digest_lanes(bytes)) {
            *lane = part;
        }
        Some(digest)
    }
}

fn digest_lanes(bytes: &[u8; 32]) -> impl Iterator<Item = u64> + '_ {
    bytes.as_chunks::<8>().0.iter().map(|chunk| u64::from_le_bytes(*chunk))
}

/// Hashes rows without a new buffer for each. The type and length of every value are included, so that no two rows look
/// the same, in few bytes: a usage row fits one block of the hash, which halves the time of a check.
#[derive(Debug, Default)]
pub(super) struct RowHasher {
    buffer: Vec<u8>,
}

impl RowHasher {
    /// Returns the hash of a row.
    pub(super) fn hash<'v>(
        &mut self,
        table: &str,
        values: impl IntoIterator<Item = ValueRef<'v>>,
    ) -> Sha256Hash {
        self.begin(table);
        values.into_iter().for_each(|value| self.put(value));
        self.finish()
    }

    /// Begins a row whose values are [put](Self::put) one by one.
    pub(super) fn begin(&mut self, table: &str) {
        self.buffer.clear();
        self.put_bytes(b'@', table.as_bytes());
    }

    pub(super) fn put(&mut self, value: ValueRef<'_>) {
        match value {
            ValueRef::Null => self.buffer.push(b'n'),
            ValueRef::Integer(number) => self.put_number(b'i', number.to_le_bytes()),
            ValueRef::Real(number) => self.put_number(b'r', number.to_le_bytes()),
            ValueRef::Text(text) => self.put_bytes(b't', text),
            ValueRef::Blob(bytes) => self.put_bytes(b'b', bytes),
        }
    }

    pub(super) fn finish(&self) -> Sha256Hash {
        Sha256Hash::of(&[&self.buffer])
    }

    fn put_number(&mut self, kind: u8, bytes: [u8; 8]) {
        self.buffer.push(kind);
        self.buffer.extend_from_slice(&bytes);
    }

    fn put_bytes(&mut self, kind: u8, bytes: &[u8]) {
        self.buffer.push(kind);
        // Short lengths take one byte; long ones have a first byte that no short length uses.
        match u8::try_from(bytes.len()) {
            Ok(length) if length < u8::MAX => self.buffer.push(length),
            _ => {
                self.buffer.push(u8::MAX);
                self.buffer.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
            }
        }
        self.buffer.extend_from_slice(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn added_and_removed_values_cancel_out_in_any_order() {
        let mut hasher = RowHasher::default();
        let rows: Vec<Sha256Hash> =
            (0..9).map(|number| hasher.hash("t", [ValueRef::Integer(number)])).collect();
        let mut forward = RowSetDigest::default();
        rows.iter().for_each(|row| forward.add(*row));
        let mut backward = RowSetDigest::default();
        rows.iter().rev().for_each(|row| backward.add(*row));
        assert_eq!(forward, backward);
        assert_eq!(RowSetDigest::from_bytes(&forward.to_bytes()), Some(forward));
        rows.iter().for_each(|row| forward.remove(*row));
        assert_eq!(forward, RowSetDigest::default());
    }

    #[test]
    fn rows_that_differ_have_hashes_that_differ() {
        let mut hasher = RowHasher::default();
        let mut hash = |table, values: &[ValueRef<'_>]| hasher.hash(table, values.iter().copied());
        let hashes = [
            hash("t", &[ValueRef::Text(b"ab"), ValueRef::Text(b"c")]),
            hash("t", &[ValueRef::Text(b"a"), ValueRef::Text(b"bc")]),
            hash("u", &[ValueRef::Text(b"a"), ValueRef::Text(b"bc")]),
            hash("t", &[ValueRef::Blob(b"a"), ValueRef::Text(b"bc")]),
            hash("t", &[ValueRef::Integer(1)]),
            hash("t", &[ValueRef::Null]),
            hash("t", &[]),
        ];
        for (index, one) in hashes.iter().enumerate() {
            assert!(hashes.iter().skip(index + 1).all(|other| other != one));
        }
    }
}
