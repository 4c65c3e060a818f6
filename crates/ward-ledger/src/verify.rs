//! Checking a log: every link, nothing missing, written by the holder of the key.
//!
//! Reads each file once, front to back, in constant memory. The first break is looked into by
//! reading on to the end: what comes later tells a removed record from one that was moved.

use std::path::Path;

use crate::chain::Format;
use crate::error::ReadError;
use crate::head::{Head, HeadFile, Signature};
use crate::key::Key;
use crate::lines::{Line, LogLines};
use crate::record::RecordReader;
use crate::snapshot::Snapshot;

mod judge;
mod report;

pub use report::{Authenticity, Break, BreakKind, Completeness, Report, TornLine};

use judge::Judge;

/// Why a log could not be checked. What is wrong *in* a log is in the [`Report`].
pub type VerifyError = ReadError;

/// Checks the log at `path` as it is at this moment; writers are not kept waiting.
///
/// # Errors
/// When the files can't be read.
pub fn verify(path: &Path, format: &Format, key: Option<&Key>) -> Result<Report, VerifyError> {
    let snapshot = Snapshot::take(path, key)?;
    let head = snapshot.head.as_ref().and_then(HeadFile::written).map(|head| (head.count, head.hash));
    let mut judge = Judge::new(format, key.map(Key::id), head);
    let mut lines = LogLines::new(snapshot.segments, RecordReader::new(format, key));
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
    let signed_head =
        matches!(snapshot.head, Some(HeadFile::Written(Head { signature: Signature::Valid(_), .. })));
    let whole = found_break.is_none();
    let found_break = found_break.or_else(|| judge.end_of_log(lines.last_place(), snapshot.missing));
    Ok(Report {
        log: path.to_owned(),
        records: judge.records(),
        segments: snapshot.segment_count,
        last_hash: judge.last_hash(),
        completeness: completeness(snapshot.head.as_ref(), &judge, whole, key),
        authenticity: judge.authenticity(signed_head),
        broken: found_break,
        torn,
        strays: snapshot.strays,
    })
}

fn completeness(head: Option<&HeadFile>, judge: &Judge<'_>, whole: bool, key: Option<&Key>) -> Completeness {
    let signed_log = key.is_some() || judge.is_keyed();
    let head = match head {
        None | Some(HeadFile::Empty) if signed_log => return Completeness::HeadMissing,
        None | Some(HeadFile::Empty) => return Completeness::NoHead,
        Some(HeadFile::Unreadable) => return Completeness::HeadUnreadable,
        Some(HeadFile::Written(head)) => head,
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
