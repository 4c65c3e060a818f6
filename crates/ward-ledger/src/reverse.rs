//! Reading the records of a log from its end, without judging them: what is asked for is what is read, however long the
//! log is.

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

/// Reads the log at `path` as it is at this moment, the newest record first; with a number, only those below it, which
/// are found without reading the ones above. What is no record is passed over: [`verify()`](crate::verify()) names it,
/// and only that says whether what is yielded can be relied on.
///
/// # Errors
/// When there is no log, or its files can't be used.
pub fn read_records_reversed(
    path: &Path,
    format: &LedgerFormat,
    before: Option<u64>,
) -> Result<ReverseLedgerRecords, LedgerReadError> {
    let segments = LedgerSnapshot::take(path, None)?.segments;
    Ok(ReverseLedgerRecords { segments, open: None, parser: EntryParser { format: format.clone() }, before })
}

/// The records of a log, newest first; ends after the first error.
pub struct ReverseLedgerRecords {
    /// Those that are not read yet; the last one is next.
    segments: Vec<LogSegment>,
    open: Option<OpenSegment>,
    parser: EntryParser,
    before: Option<u64>,
}

/// A segment that is read.
struct OpenSegment {
    path: PathBuf,
    file: File,
    /// Everything from here on has been read, or is not asked for.
    end: u64,
}

/// A record, and the number that it says it has.
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
            let wanted = |sequence| self.before.is_none_or(|before| sequence < before);
            if let Some(content) = record.filter(|content| wanted(content.sequence)) {
                return Ok(Some((content.sequence, content.record)));
            }
        }
    }

    fn open_segment(&self, segment: LogSegment) -> Result<Option<OpenSegment>, LedgerReadError> {
        let path = segment.path().to_owned();
        let failed = |step| {
            let path = path.clone();
            move |source| LedgerReadError::File { step, path, source }
        };
        let Some((file, length)) = segment.open().map_err(failed("open"))? else { return Ok(None) };
        let end = match self.before {
            None => find_last_line_end(&file, length),
            Some(before) => self.find_sequence_offset(&file, length, before),
        };
        Ok(Some(OpenSegment { path: path.clone(), file, end: end.map_err(failed("read"))? }))
    }

    /// Where the first record with this number or a higher one begins: numbers only grow, so half of what is left can be
    /// passed over again and again.
    fn find_sequence_offset(&self, file: &File, length: u64, number: u64) -> io::Result<u64> {
        let (mut low, mut high) = (0, find_last_line_end(file, length)?);
        while low < high {
            let end = find_line_end(file, low + (high - low) / 2, high)?;
            let mut lines = LinesFromEnd::new(file, end);
            let line = lines.next_line()?.unwrap_or_default();
            match self.parser.parse_line(&line) {
                Ok(content) if content.sequence >= number => high = lines.current_offset(),
                // What is no record stands somewhere, and has no number to say where.
                _ => low = end,
            }
        }
        Ok(high)
    }
}
