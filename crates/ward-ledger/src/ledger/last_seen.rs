//! What a writer knows of its log and nobody can make it forget.
//!
//! A log and its head that are put back together to an earlier state fit each other, and no opener
//! can tell. A writer that has seen more can: the last record it has seen must stay where it was.

use std::io;
use std::path::Path;

use super::tip::ChainTip;
use crate::files;
use crate::hash::Sha256Hash;
use crate::record::{RecordIntegrity, RecordReader};
use crate::tail::LinesFromEnd;

/// The last record that a writer has seen, and where it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LastSeenRecord {
    pub(super) sequence: u64,
    hash: Sha256Hash,
    segment: u64,
    /// `None` for the last of a closed segment.
    end: Option<u64>,
}

impl LastSeenRecord {
    /// The last record before the tip; `None` while there is none.
    pub(super) fn from_tip(tip: &ChainTip) -> Option<Self> {
        let (segment, end) = match tip.length {
            0 => (tip.segment - 1, None),
            length => (tip.segment, Some(length)),
        };
        (tip.sequence > 0).then_some(Self { sequence: tip.sequence, hash: tip.hash, segment, end })
    }

    /// Whether the record stands where it did; its segment may have been closed since.
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
            // The file is gone, or a line reaches to this place that is longer than any record.
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
