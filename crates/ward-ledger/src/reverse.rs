//! Reads the records of a log from its end, without verifying them. Only the requested part of the log is
//! read, however long the log is.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use crate::chain::LedgerFormat;
use crate::error::LedgerReadError;
use crate::lines::{LineParser, LogSegment};
use crate::read::EntryParser;
use crate::snapshot::LedgerSnapshot;
use crate::tail::{LinesFromEnd, find_last_line_end, find_line_end};

/// Reads the log at `path` as it is at this moment, newest record first. With `before`, yields only records
/// with lower numbers, and finds them without reading the newer ones. Lines that are not records are skipped.
///
/// This doesn't verify anything: call [`verify()`](crate::verify()) to find damage, and before relying on the
/// records.
///
/// # Errors
/// Fails if there is no log, or if its files can't be opened.
pub fn read_records_reversed(
    path: &Path,
    format: &LedgerFormat,
    before: Option<u64>,
) -> Result<ReverseLedgerRecords, LedgerReadError> {
    let segments = LedgerSnapshot::take(path, None)?.segments;
    Ok(ReverseLedgerRecords { segments, open: None, parser: EntryParser { format: format.clone() }, before })
}

/// An iterator over the records of a log, newest first. It ends after the first error.
pub struct ReverseLedgerRecords {
    /// The segments that have not been opened yet. The last of them is next.
    segments: Vec<LogSegment>,
    open: Option<OpenSegment>,
    parser: EntryParser,
    before: Option<u64>,
}

/// The segment that is being read.
struct OpenSegment {
    path: PathBuf,
    file: File,
    /// The offset from which on everything has been read, or was not requested.
    end: u64,
}

/// A record, and the number that it claims to have.
pub type NumberedRecord = (u64, Map<String, Value>);

impl Iterator for ReverseLedgerRecords {
    type Item = Result<NumberedRecord, LedgerReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        let read = self.read_previous().transpose();
        if matches!(read, None | Some(Err(_))) {
            (self.open, self.segments) = (None, Vec::new());
        }
        read
    }
}

impl ReverseLedgerRecords {
    fn read_previous(&mut self) -> Result<Option<NumberedRecord>, LedgerReadError> {
        loop {
            let Some(open) = &mut self.open else {
                let Some(segment) = self.segments.pop() else { return Ok(None) };
                self.open = self.open_segment(segment)?;
                continue;
            };
            let mut lines = LinesFromEnd::new(&open.file, open.end);
            let line = lines.next_line().map_err(|source| LedgerReadError::File {
                step: "read",
                path: open.path.clone(),
                source,
            })?;
            open.end = lines.current_offset();
            let Some(line) = line else {
                self.open = None;
                continue;
            };
            let record = self.parser.parse_line(&line).ok();
            let is_wanted = |sequence| self.before.is_none_or(|before| sequence < before);
            if let Some(content) = record.filter(|content| is_wanted(content.sequence)) {
                return Ok(Some((content.sequence, content.record)));
            }
        }
    }

    fn open_segment(&self, segment: LogSegment) -> Result<Option<OpenSegment>, LedgerReadError> {
        let path = segment.path().to_owned();
        let file_error = |step| {
            let path = path.clone();
            move |source| LedgerReadError::File { step, path, source }
        };
        let Some((file, length)) = segment.open().map_err(file_error("open"))? else { return Ok(None) };
        let end = match self.before {
            None => find_last_line_end(&file, length),
            Some(before) => self.find_sequence_offset(&file, length, before),
        };
        Ok(Some(OpenSegment { path: path.clone(), file, end: end.map_err(file_error("read"))? }))
    }

    /// Returns the offset of the first record with this number or a higher one. Numbers increase along the
    /// log, so a binary search finds it.
    fn find_sequence_offset(&self, file: &File, length: u64, number: u64) -> io::Result<u64> {
        let (mut low, mut high) = (0, find_last_line_end(file, length)?);
        while low < high {
            let end = find_line_end(file, low + (high - low) / 2, high)?;
            let mut lines = LinesFromEnd::new(file, end);
            let line = lines.next_line()?.unwrap_or_default();
            match self.parser.parse_line(&line) {
                Ok(content) if content.sequence >= number => high = lines.current_offset(),
                // Lines that fail to parse have no sequence number, so the search skips them.
                _ => low = end,
            }
        }
        Ok(high)
    }
}

#[cfg(test)]
mod tests;
