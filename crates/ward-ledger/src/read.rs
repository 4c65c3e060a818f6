//! Reads the records of a log in order, without verifying them.

use std::path::Path;

use serde_json::{Map, Value};
use thiserror::Error;

use crate::canonical::{RecordParseError, parse_object};
use crate::chain::{LedgerFormat, RECOVERY_FIELD, SEQUENCE};
use crate::error::LedgerReadError;
use crate::hash::Sha256Hash;
use crate::lines::{LineParser, LinePosition, LogLines, ParsedLine};
use crate::plural::plural_suffix;
use crate::snapshot::LedgerSnapshot;

/// Reads the log at `path` as it is at this moment, all segments in order. Writers are not blocked. Only one
/// record at a time is held in memory.
///
/// This does **not verify** anything: hashes, links, signatures and the head are ignored, and anybody may
/// have written the records. Call [`verify()`](crate::verify()) first if you rely on them.
///
/// # Errors
/// Fails if there is no log, or if its files can't be opened.
pub fn read(path: &Path, format: &LedgerFormat) -> Result<LedgerRecords, LedgerReadError> {
    let snapshot = LedgerSnapshot::take(path, None)?;
    let lines = LogLines::new(snapshot.segments, EntryParser { format: format.clone() });
    Ok(LedgerRecords { lines: Some(lines) })
}

/// An iterator over the records of a log, in order. It ends after the first [`EntryReadError::Log`].
pub struct LedgerRecords {
    lines: Option<LogLines<EntryParser>>,
}

/// A record and its place in the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerEntry {
    /// The name of the file that contains the record.
    pub segment: String,
    /// The line number in the file, starting at 1.
    pub line: u64,
    /// The number that the record claims to have.
    pub sequence: u64,
    /// The hash that the record claims to have.
    pub hash: Sha256Hash,
    /// The whole record, including the members of the chain.
    pub record: Map<String, Value>,
}

impl LedgerEntry {
    /// Returns the report about a recovery, or `None` if this is not one of the ledger's own records.
    #[must_use]
    pub fn recovery(&self) -> Option<&Value> {
        self.record.get(RECOVERY_FIELD)
    }
}

/// The error for a line that is not a record, or for a log that can't be read on.
#[derive(Debug, Error)]
pub enum EntryReadError {
    /// A line is not a record of this format. Reading continues with the next line.
    #[error("line {line} of {segment} is not a record")]
    Line {
        /// The name of the file that contains the line.
        segment: String,
        /// The line number in the file, starting at 1.
        line: u64,
        /// The reason for rejecting the line.
        source: RecordParseError,
    },
    /// A line has no newline. In the current segment a crash left it; a closed segment was truncated.
    #[error("line {line} of {segment} ends in the middle of a record, after {bytes} byte{}", plural_suffix(*bytes))]
    Torn {
        /// The name of the file that contains the line.
        segment: String,
        /// The line number in the file, starting at 1.
        line: u64,
        /// The length of the line in bytes.
        bytes: u64,
    },
    /// A file of the log can't be read. The iterator ends here.
    #[error(transparent)]
    Log(#[from] LedgerReadError),
}

impl Iterator for LedgerRecords {
    type Item = Result<LedgerEntry, EntryReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.lines.as_mut()?.next_line() {
            Ok(Some((position, line))) => Some(entry_from_line(&position, line)),
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
    position: &LinePosition,
    line: ParsedLine<ParsedEntry>,
) -> Result<LedgerEntry, EntryReadError> {
    let (segment, number) = (position.segment.name(), position.line);
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
