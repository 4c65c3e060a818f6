//! Reading the records of a log, without judging them.

use std::path::Path;

use serde_json::{Map, Value};
use thiserror::Error;

use crate::canonical::{RecordParseError, parse_object};
use crate::chain::{LedgerFormat, RECOVERY_FIELD, SEQUENCE};
use crate::error::LedgerReadError;
use crate::hash::Sha256Hash;
use crate::lines::{LineParser, LinePosition, LogLines, ParsedLine};
use crate::snapshot::LedgerSnapshot;

/// Reads the log at `path` as it is at this moment, all segments in their order; writers are not
/// kept waiting. Only one record at a time is in memory.
///
/// This does **not verify** anything: neither hashes nor links nor signatures nor the head are
/// looked at, and what is yielded is what somebody wrote there. Whoever relies on it calls
/// [`verify()`](crate::verify()) first.
///
/// # Errors
/// When there is no log, or its files can't be used.
pub fn read(path: &Path, format: &LedgerFormat) -> Result<LedgerRecords, LedgerReadError> {
    let snapshot = LedgerSnapshot::take(path, None)?;
    let lines = LogLines::new(snapshot.segments, EntryParser { format: format.clone() });
    Ok(LedgerRecords { lines: Some(lines) })
}

/// The records of a log, in the order they stand there; ends after the first [`EntryReadError::TestLog`].
pub struct LedgerRecords {
    lines: Option<LogLines<EntryParser>>,
}

/// A record and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerEntry {
    /// The file.
    pub segment: String,
    /// The line in it, from 1.
    pub line: u64,
    /// The number that the record says it has.
    pub sequence: u64,
    /// The hash that the record says it has.
    pub hash: Sha256Hash,
    /// The whole record, with the members of the chain.
    pub record: Map<String, Value>,
}

impl LedgerEntry {
    /// What the ledger itself tells of having put right; `None` in the records of the product.
    #[must_use]
    pub fn recovery(&self) -> Option<&Value> {
        self.record.get(RECOVERY_FIELD)
    }
}

/// What stands where a record should.
#[derive(Debug, Error)]
pub enum EntryReadError {
    /// A line that is no record of this format. The next one may be.
    #[error("{segment}, line {line}, is not a record")]
    Line {
        /// The file.
        segment: String,
        /// The line in it, from 1.
        line: u64,
        /// Why not.
        source: RecordParseError,
    },
    /// A line without an end: in the last segment a crash left it, in others somebody cut it.
    #[error("{segment}, line {line}, ends in the middle of a record after {bytes} bytes")]
    Torn {
        /// The file.
        segment: String,
        /// The line in it, from 1.
        line: u64,
        /// How many bytes there are.
        bytes: u64,
    },
    /// A file of the log can't be read. Nothing follows.
    #[error(transparent)]
    Log(#[from] LedgerReadError),
}

impl Iterator for LedgerRecords {
    type Item = Result<LedgerEntry, EntryReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.lines.as_mut()?.next_line() {
            Ok(Some((place, line))) => Some(entry_from_line(&place, line)),
            Ok(None) => {
                self.lines = None;
                None
            }
            Err(error) => {
                self.lines = None;
                Some(Err(error.into()))
            }
        }
    }
}

fn entry_from_line(
    place: &LinePosition,
    line: ParsedLine<ParsedEntry>,
) -> Result<LedgerEntry, EntryReadError> {
    let (segment, number) = (place.segment.name(), place.line);
    match line {
        ParsedLine::Record(ParsedEntry { sequence, hash, record }) => {
            Ok(LedgerEntry { segment, line: number, sequence, hash, record })
        }
        ParsedLine::Invalid(source) => Err(EntryReadError::Line { segment, line: number, source }),
        ParsedLine::Torn { bytes } => Err(EntryReadError::Torn { segment, line: number, bytes }),
    }
}

pub(crate) struct EntryParser {
    pub(crate) format: LedgerFormat,
}

pub(crate) struct ParsedEntry {
    pub(crate) sequence: u64,
    hash: Sha256Hash,
    pub(crate) record: Map<String, Value>,
}

impl LineParser for EntryParser {
    type ParsedRecord = ParsedEntry;

    fn parse_ahead(&self, _bytes: &[u8]) -> Option<(ParsedEntry, usize)> {
        None
    }

    fn parse_line(&self, line: &[u8]) -> Result<ParsedEntry, RecordParseError> {
        let record = parse_object(line)?;
        let hash_field = self.format.hash_field();
        let hash = record.get(hash_field).and_then(Value::as_str).map(str::as_bytes);
        let hash = hash
            .and_then(Sha256Hash::from_hex)
            .ok_or_else(|| RecordParseError::missing_member(hash_field))?;
        let sequence = record
            .get(SEQUENCE)
            .and_then(Value::as_u64)
            .ok_or_else(|| RecordParseError::missing_member(SEQUENCE))?;
        Ok(ParsedEntry { sequence, hash, record })
    }
}
