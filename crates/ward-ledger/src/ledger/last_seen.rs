//! The last record that a running writer has seen, which detects a log that was rolled back.
//!
//! If a log and its head are both put back to an earlier state, they match each other, and opening the log
//! can't detect it. A writer that has seen later records can: the last record it has seen must stay where it
//! was.

use std::io;
use std::path::Path;

use super::tip::ChainTip;
use crate::files;
use crate::hash::Sha256Hash;
use crate::record::{RecordIntegrity, RecordReader};
use crate::tail::LinesFromEnd;

/// The last record that a writer has seen, and its place in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LastSeenRecord {
    pub(super) sequence: u64,
    hash: Sha256Hash,
    segment: u64,
    /// The offset of the record's end, or `None` if the record is the last of a closed segment.
    end: Option<u64>,
}

impl LastSeenRecord {
    /// Returns the last record before the tip, or `None` if the log has no records.
    pub(super) fn from_tip(tip: &ChainTip) -> Option<Self> {
        let (segment, end) = match tip.length {
            0 => (tip.segment - 1, None),
            length => (tip.segment, Some(length)),
        };
        (tip.sequence > 0).then_some(Self { sequence: tip.sequence, hash: tip.hash, segment, end })
    }

    /// Returns true if the record is still in the same place. Its segment may have been closed since.
    pub(super) fn is_still_present(
        &self,
        log: &Path,
        current: u64,
        reader: &RecordReader,
    ) -> io::Result<bool> {
        let path = if self.segment == current { log } else { &files::segment_path(log, self.segment) };
        match self.read_line(path) {
            Ok(Some(line)) => Ok(reader.read(&line).is_ok_and(|record| {
                (record.sequence, record.hash) == (self.sequence, self.hash)
                    && matches!(record.integrity, RecordIntegrity::Unsigned | RecordIntegrity::Signed(_))
            })),
            Ok(None) => Ok(false),
            // The file is missing, or the line that ends here is longer than a record may be.
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::InvalidData) => {
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    fn read_line(&self, path: &Path) -> io::Result<Option<Vec<u8>>> {
        let file = files::open_existing(path)?;
        let length = file.metadata()?.len();
        let end = self.end.unwrap_or(length);
        if end > length {
            return Ok(None);
        }
        LinesFromEnd::new(&file, end).next_line()
    }
}
