//! A consistent view of a log for readers, while other processes write the log.

use std::fs::File;
use std::io;
use std::path::Path;

use crate::error::LedgerReadError;
use crate::files::{self, SiblingFiles};
use crate::head::{self, LedgerHeadState};
use crate::key::LedgerKey;
use crate::lines::LogSegment;

/// The files of a log at one moment. Closed segments never change, and the current segment only grows, so the
/// view stays valid without a lock.
pub(crate) struct LedgerSnapshot {
    pub(crate) head: Option<LedgerHeadState>,
    pub(crate) segments: Vec<LogSegment>,
    pub(crate) segment_count: u64,
    /// The first number that is missing among the closed segments.
    pub(crate) missing: Option<u64>,
    pub(crate) strays: Vec<String>,
}

impl LedgerSnapshot {
    pub(crate) fn take(log: &Path, key: Option<&LedgerKey>) -> Result<Self, LedgerReadError> {
        let head_path = &files::head_path(log);
        let head_error = |step| move |source| LedgerReadError::File { step, path: head_path.clone(), source };
        let log_error = |step| move |source| LedgerReadError::File { step, path: log.to_owned(), source };

        let head_file = open_if_exists(head_path).map_err(head_error("open"))?;
        let mut head = None;
        if let Some(file) = &head_file {
            // The lock is held until the end of this function, so that no writer changes the files in
            // between.
            file.lock_shared().map_err(head_error("lock"))?;
            head = Some(head::read(file, key).map_err(head_error("read"))?);
        }
        let by_head = head.as_ref().and_then(LedgerHeadState::as_written).map(|head| head.segment);
        let SiblingFiles { closed, missing, strays, .. } =
            files::list_siblings(log, by_head).map_err(log_error("list the files of"))?;
        let current = open_if_exists(log).map_err(log_error("open"))?;
        if closed.is_empty() && current.is_none() && head.is_none() {
            return Err(LedgerReadError::NoLog { path: log.to_owned() });
        }
        let after_closed = closed.last().map_or(1, |number| number + 1);
        let mut segments: Vec<LogSegment> = closed
            .into_iter()
            .map(|number| LogSegment::closed(files::segment_path(log, number), number))
            .collect();
        let segment_count = segments.len() as u64 + u64::from(current.is_some());
        let number = after_closed.max(by_head.unwrap_or(0));
        segments.push(match current {
            Some(file) => {
                let length = file.metadata().map_err(log_error("inspect"))?.len();
                LogSegment::current(log.to_owned(), number, file, length)
            }
            None => LogSegment::absent(log.to_owned(), number),
        });
        Ok(Self { head, segments, segment_count, missing, strays })
    }
}

fn open_if_exists(path: &Path) -> io::Result<Option<File>> {
    match files::open_existing(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
