//! Checking a log: every link, nothing missing, written by the holder of the key.
//!
//! Reads each file once, front to back, in constant memory. The first break is looked into by
//! reading on to the end: what comes later tells a removed record from one that was moved.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::chain::Format;
use crate::files;
use crate::hash::Hash;
use crate::head::{self, Head, HeadFile, Signature};
use crate::key::Key;
use crate::record::RecordReader;

mod judge;
mod lines;
mod report;

pub use report::{Authenticity, Break, BreakKind, Completeness, Report, TornLine};

use judge::Judge;
use lines::{Line, LogLines, Segment};

/// Why a log could not be checked. What is wrong *in* a log is in the [`Report`].
#[derive(Debug, Error)]
pub enum VerifyError {
    /// The system refused.
    #[error("can't {step} {}", path.display())]
    File {
        /// What was being done.
        step: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// There is no log, no segment of one and no head.
    #[error("there is no log at {}", path.display())]
    NoLog {
        /// Where one was looked for.
        path: PathBuf,
    },
}

/// Checks the log at `path` as it is at this moment; writers are not kept waiting.
///
/// # Errors
/// When the files can't be read.
pub fn verify(path: &Path, format: &Format, key: Option<&Key>) -> Result<Report, VerifyError> {
    let snapshot = Snapshot::take(path, key)?;
    let reader = RecordReader::new(format, key);
    let head = snapshot.head.as_ref().and_then(HeadState::written);
    let mut judge = Judge::new(format, key.map(Key::id), head);
    let mut lines = LogLines::new(snapshot.segments, &reader);
    let mut found_break = None;
    let mut torn = None;
    while let Some((place, line)) = lines.next_line()? {
        if let Line::Torn { bytes } = line
            && place.segment.is_last
        {
            torn = Some(TornLine { segment: place.segment.name(), line: place.line, bytes });
            break;
        }
        if let Err(suspicion) = judge.accept(&place, &line) {
            found_break = Some(judge.look_into(suspicion, &mut lines)?);
            break;
        }
    }
    let whole = found_break.is_none();
    let found_break = found_break.or_else(|| judge.end_of_log(lines.last_place()));
    Ok(Report {
        log: path.to_owned(),
        records: judge.records(),
        segments: snapshot.segment_count,
        last_hash: judge.last_hash(),
        completeness: completeness(snapshot.head.as_ref(), &judge, whole, key),
        authenticity: judge.authenticity(),
        broken: found_break,
        torn,
    })
}

fn completeness(head: Option<&HeadState>, judge: &Judge<'_>, whole: bool, key: Option<&Key>) -> Completeness {
    let signed_log = key.is_some() || judge.is_keyed();
    let head = match head {
        None | Some(HeadState::Empty) if signed_log => return Completeness::HeadMissing,
        None | Some(HeadState::Empty) => return Completeness::NoHead,
        Some(HeadState::Unreadable) => return Completeness::HeadUnreadable,
        Some(HeadState::Written(head)) => head,
    };
    match head.signature {
        Signature::Forged(_) => return Completeness::HeadForged,
        Signature::Unsigned if signed_log => return Completeness::HeadForged,
        Signature::Unchecked(key_id) if key.is_some() => return Completeness::HeadOfOtherKey { key_id },
        Signature::Unsigned | Signature::Valid(_) | Signature::Unchecked(_) => {}
    }
    let (vouched, found) = (head.count, judge.records());
    if !whole {
        Completeness::NotReached { vouched }
    } else if found < vouched {
        Completeness::Cut { vouched, found }
    } else {
        Completeness::Complete { vouched, unvouched: found - vouched }
    }
}

enum HeadState {
    Empty,
    Unreadable,
    Written(Head),
}

impl HeadState {
    fn written(&self) -> Option<(u64, Hash)> {
        match self {
            Self::Written(head) => Some((head.count, head.hash)),
            Self::Empty | Self::Unreadable => None,
        }
    }
}

/// The log at one moment: closed segments never change, and the one being written only grows.
struct Snapshot {
    head: Option<HeadState>,
    segments: Vec<Segment>,
    segment_count: u64,
}

impl Snapshot {
    fn take(log: &Path, key: Option<&Key>) -> Result<Self, VerifyError> {
        let head_path = &files::head_path(log);
        let head_error = |step| move |source| VerifyError::File { step, path: head_path.clone(), source };
        let log_error = |step| move |source| VerifyError::File { step, path: log.to_owned(), source };

        let head_file = open_if_there(head_path).map_err(head_error("open"))?;
        let mut head = None;
        if let Some(file) = &head_file {
            // Held until the end of this function, so that no writer is in the middle of something.
            file.lock_shared().map_err(head_error("lock"))?;
            head = Some(match head::read(file, key).map_err(head_error("read"))? {
                HeadFile::Empty => HeadState::Empty,
                HeadFile::Unreadable => HeadState::Unreadable,
                HeadFile::Written(head) => HeadState::Written(head),
            });
        }
        let closed = files::closed_segments(log).map_err(log_error("list the segments of"))?;
        let current = open_if_there(log).map_err(log_error("open"))?;
        if closed.is_empty() && current.is_none() && head.is_none() {
            return Err(VerifyError::NoLog { path: log.to_owned() });
        }
        let after_closed = closed.last().map_or(1, |number| number + 1);
        let by_head = match &head {
            Some(HeadState::Written(head)) => head.segment,
            _ => 0,
        };
        let mut segments: Vec<Segment> = closed
            .into_iter()
            .map(|number| Segment::closed(files::segment_path(log, number), number))
            .collect();
        let segment_count = segments.len() as u64 + u64::from(current.is_some());
        let number = after_closed.max(by_head);
        segments.push(match current {
            Some(file) => {
                let length = file.metadata().map_err(log_error("look at"))?.len();
                Segment::current(log.to_owned(), number, file, length)
            }
            None => Segment::absent(log.to_owned(), number),
        });
        Ok(Self { head, segments, segment_count })
    }
}

fn open_if_there(path: &Path) -> io::Result<Option<File>> {
    match files::open_existing(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
