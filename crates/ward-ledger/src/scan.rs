//! A fast scanner for canonical records, which hashes a line in place and allocates nothing.
//!
//! The scanner accepts only text that [`crate::canonical::canonical_json`] would write, byte for byte. It
//! leaves some of that to the slow path (parse, serialise, compare, hash) as well: names with escapes or
//! beyond ASCII, which sort differently. Malformed lines take the slow path too.

use std::ops::Range;

use crate::canonical::{MAX_DEPTH, MAX_SAFE_INTEGER};
use crate::chain::{KEY_ID, MAC, PREVIOUS_HASH, RECOVERY_FIELD, SEQUENCE};

/// A canonical record, with the members that belong to the chain.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ScannedRecord<'a> {
    /// The record, from its opening to its closing brace.
    pub(crate) text: &'a [u8],
    pub(crate) sequence: u64,
    pub(crate) previous_hash: &'a [u8],
    pub(crate) hash: &'a [u8],
    pub(crate) key_id: Option<&'a [u8]>,
    pub(crate) mac: Option<&'a [u8]>,
    /// The ledger's own report about a recovery, as JSON.
    pub(crate) recovery: Option<&'a [u8]>,
    /// The range of the hash member, including the comma to remove with it.
    hash_member: Range<usize>,
    mac_member: Option<Range<usize>>,
}

impl ScannedRecord<'_> {
    /// Returns the canonical form of the record without its hash, in pieces.
    pub(crate) fn without_hash(&self) -> [&[u8]; 2] {
        [self.slice(0..self.hash_member.start), self.slice(self.hash_member.end..self.text.len())]
    }

    /// Returns the canonical form of the record without its hash and MAC, in pieces.
    pub(crate) fn without_hash_and_mac(&self) -> [&[u8]; 3] {
        let mac = self.mac_member.clone().unwrap_or(0..0);
        let (first, second) = if mac.start < self.hash_member.start {
            (&mac, &self.hash_member)
        } else {
            (&self.hash_member, &mac)
        };
        [
            self.slice(0..first.start),
            self.slice(first.end..second.start),
            self.slice(second.end..self.text.len()),
        ]
    }

    fn slice(&self, range: Range<usize>) -> &[u8] {
        self.text.get(range).unwrap_or_default()
    }
}

/// Scans the canonical record at the start of `bytes`. Returns `None` for anything else.
pub(crate) fn scan_record<'a>(bytes: &'a [u8], hash_field: &str) -> Option<ScannedRecord<'a>> {
    let mut cursor = JsonCursor { bytes, at: 0, ascii: true };
    let mut members = ChainMembers::default();
    cursor.expect_byte(b'{')?;
    let mut previous_name: &[u8] = b"";
    loop {
        let start = cursor.at;
        let name = cursor.parse_plain_string()?;
        if start > 1 && name <= previous_name {
            return None;
        }
        previous_name = name;
        cursor.expect_byte(b':')?;
        let value = cursor.at;
        if name == SEQUENCE.as_bytes() {
            members.sequence = u64::try_from(cursor.parse_integer()?).ok();
        } else if name == PREVIOUS_HASH.as_bytes() {
            members.previous_hash = Some(cursor.parse_plain_string()?);
        } else if name == KEY_ID.as_bytes() {
            members.key_id = Some(cursor.parse_plain_string()?);
        } else if name == MAC.as_bytes() {
            members.mac = Some((start, cursor.parse_plain_string()?));
        } else if name == hash_field.as_bytes() {
            members.hash = Some((start, cursor.parse_plain_string()?));
        } else {
            cursor.skip_value(2)?;
            if name == RECOVERY_FIELD.as_bytes() {
                members.recovery = bytes.get(value..cursor.at);
            }
        }
        debug_assert!(cursor.at > value, "a value has at least one byte");
        match cursor.next()? {
            b',' => members.mark_member_end(cursor.at),
            b'}' => break,
            _ => return None,
        }
    }
    let text = bytes.get(..cursor.at)?;
    if !cursor.ascii && std::str::from_utf8(text).is_err() {
        return None;
    }
    members.into_scanned(text)
}

#[derive(Default)]
struct ChainMembers<'a> {
    sequence: Option<u64>,
    previous_hash: Option<&'a [u8]>,
    key_id: Option<&'a [u8]>,
    /// The start of the MAC member, and its value.
    mac: Option<(usize, &'a [u8])>,
    /// The start of the hash member, and its value.
    hash: Option<(usize, &'a [u8])>,
    recovery: Option<&'a [u8]>,
    /// The start of the member after the MAC, once that member was reached.
    mac_end: Option<usize>,
    /// The start of the member after the hash, once that member was reached.
    hash_end: Option<usize>,
}

impl<'a> ChainMembers<'a> {
    fn mark_member_end(&mut self, next_start: usize) {
        if self.mac.is_some() {
            self.mac_end.get_or_insert(next_start);
        }
        if self.hash.is_some() {
            self.hash_end.get_or_insert(next_start);
        }
    }

    fn into_scanned(self, text: &'a [u8]) -> Option<ScannedRecord<'a>> {
        let (hash_start, hash) = self.hash?;
        // A member is removed with the comma after it, and the last member with the comma before it. The two
        // members never share a comma: `previous_hash` always follows the MAC, so the MAC is never last, and
        // never directly before a hash that is last.
        let hash_member = match self.hash_end {
            Some(end) => hash_start..end,
            None => hash_start.checked_sub(1)?..text.len() - 1,
        };
        let mac_member = match self.mac {
            Some((start, _)) => Some(start..self.mac_end?),
            None => None,
        };
        Some(ScannedRecord {
            text,
            sequence: self.sequence?,
            previous_hash: self.previous_hash?,
            hash,
            key_id: self.key_id,
            mac: self.mac.map(|(_, mac)| mac),
            recovery: self.recovery,
            hash_member,
            mac_member,
        })
    }
}

struct JsonCursor<'a> {
    bytes: &'a [u8],
    at: usize,
    ascii: bool,
}

/// A JSON string, without its quotes.
struct JsonString<'a> {
    raw: &'a [u8],
    /// True for ASCII without escapes. The raw bytes are then the value, and sort like UTF-16.
    plain: bool,
}

impl<'a> JsonCursor<'a> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn next(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += 1;
        Some(byte)
    }

    fn expect_byte(&mut self, expected: u8) -> Option<()> {
        (self.next()? == expected).then_some(())
    }

    fn expect_word(&mut self, expected: &[u8]) -> Option<()> {
        self.bytes.get(self.at..)?.starts_with(expected).then(|| self.at += expected.len())
    }

    fn skip_value(&mut self, depth: usize) -> Option<()> {
        match self.peek()? {
            b'"' => self.parse_string().map(|_| ()),
            b'{' if depth <= MAX_DEPTH => self.skip_object(depth),
            b'[' if depth <= MAX_DEPTH => self.skip_array(depth),
            b't' => self.expect_word(b"true"),
            b'f' => self.expect_word(b"false"),
            b'n' => self.expect_word(b"null"),
            _ => self.parse_integer().map(|_| ()),
        }
    }

    fn skip_object(&mut self, depth: usize) -> Option<()> {
        self.expect_byte(b'{')?;
        if self.peek()? == b'}' {
            return self.expect_byte(b'}');
        }
        let mut previous_name: Option<&[u8]> = None;
        loop {
            let name = self.parse_plain_string()?;
            if previous_name.is_some_and(|previous| name <= previous) {
                return None;
            }
            previous_name = Some(name);
            self.expect_byte(b':')?;
            self.skip_value(depth + 1)?;
            match self.next()? {
                b',' => {}
                b'}' => return Some(()),
                _ => return None,
            }
        }
    }

    fn skip_array(&mut self, depth: usize) -> Option<()> {
        self.expect_byte(b'[')?;
        if self.peek()? == b']' {
            return self.expect_byte(b']');
        }
        loop {
            self.skip_value(depth + 1)?;
            match self.next()? {
                b',' => {}
                b']' => return Some(()),
                _ => return None,
            }
        }
    }

    /// Parses a string of ASCII characters without escapes. Other strings are left to the slow path.
    fn parse_plain_string(&mut self) -> Option<&'a [u8]> {
        let text = self.parse_string()?;
        text.plain.then_some(text.raw)
    }

    fn parse_string(&mut self) -> Option<JsonString<'a>> {
        self.expect_byte(b'"')?;
        let start = self.at;
        let mut plain = true;
        loop {
            self.skip_plain();
            match self.next()? {
                b'"' => return Some(JsonString { raw: self.bytes.get(start..self.at - 1)?, plain }),
                b'\\' => self.skip_escape()?,
                0x20..0x80 => continue,
                0x80.. => self.ascii = false,
                _ => return None,
            }
            plain = false;
        }
    }

    /// Skips plain characters, eight bytes at a time.
    fn skip_plain(&mut self) {
        const ONES: u64 = u64::from_ne_bytes([1; 8]);
        const HIGHS: u64 = ONES << 7;
        while let Some(&chunk) = self.bytes.get(self.at..).and_then(<[u8]>::first_chunk::<8>) {
            let word = u64::from_le_bytes(chunk);
            // Bit tricks that mark a zero byte, and a byte below a bound, in a word
            // (https://graphics.stanford.edu/~seander/bithacks.html#ZeroInWord). Higher bytes can be marked
            // wrongly, but the lowest marked byte is always right, and only that byte is used.
            let zero_byte = |word: u64| word.wrapping_sub(ONES) & !word;
            let control = word.wrapping_sub(ONES * 0x20) & !word;
            let quote = zero_byte(word ^ (ONES * u64::from(b'"')));
            let backslash = zero_byte(word ^ (ONES * u64::from(b'\\')));
            let special = (control | quote | backslash | word) & HIGHS;
            if special != 0 {
                self.at += special.trailing_zeros() as usize / 8;
                return;
            }
            self.at += 8;
        }
    }

    /// Skips an escape sequence after its backslash. Accepts only the sequences that RFC 8785 uses.
    fn skip_escape(&mut self) -> Option<()> {
        match self.next()? {
            b'"' | b'\\' | b'b' | b'f' | b'n' | b'r' | b't' => Some(()),
            b'u' => {
                self.expect_word(b"00")?;
                let (high, low) = (self.next()?, self.next()?);
                let low_is_digit = matches!(low, b'0'..=b'9' | b'a'..=b'f');
                let has_short_form = high == b'0' && matches!(low, b'8' | b'9' | b'a' | b'c' | b'd');
                (matches!(high, b'0' | b'1') && low_is_digit && !has_short_form).then_some(())
            }
            _ => None,
        }
    }

    fn parse_integer(&mut self) -> Option<i64> {
        let negative = self.peek()? == b'-';
        if negative {
            self.at += 1;
        }
        let start = self.at;
        let mut value: i64 = 0;
        while let Some(digit @ b'0'..=b'9') = self.peek() {
            value = value * 10 + i64::from(digit - b'0');
            if value > MAX_SAFE_INTEGER {
                return None;
            }
            self.at += 1;
        }
        let digits = self.at - start;
        let leading_zero = self.bytes.get(start) == Some(&b'0') && (digits > 1 || negative);
        (digits > 0 && !leading_zero).then_some(if negative { -value } else { value })
    }
}

#[cfg(test)]
mod tests;
