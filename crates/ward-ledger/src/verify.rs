//! Checking a log: every link, nothing missing, written by the holder of the key.
//!
//! Reads each file once, front to back, in constant memory. The first break is looked into by
//! reading on to the end: what comes later tells a removed record from one that was moved.

use std::path::Path;

use crate::chain::LedgerFormat;
use crate::error::LedgerReadError;
use crate::head::{HeadSignature, LedgerHead, LedgerHeadState};
use crate::key::LedgerKey;
use crate::lines::{LogLines, ParsedLine};
use crate::record::RecordReader;
use crate::snapshot::LedgerSnapshot;

mod chain_verifier;
mod report;

pub use report::{BreakKind, ChainBreak, LogAuthenticity, LogCompleteness, TornLine, VerificationReport};

use chain_verifier::ChainVerifier;

/// Why a log could not be checked. What is wrong *in* a log is in the [`VerificationReport`].
pub type LedgerVerifyError = LedgerReadError;

/// Checks the log at `path` as it is at this moment; writers are not kept waiting.
///
/// # Errors
/// When the files can't be read.
pub fn verify(
    path: &Path,
    format: &LedgerFormat,
    key: Option<&LedgerKey>,
) -> Result<VerificationReport, LedgerVerifyError> {
    let snapshot = LedgerSnapshot::take(path, key)?;
    let head =
        snapshot.head.as_ref().and_then(LedgerHeadState::as_written).map(|head| (head.count, head.hash));
    let mut judge = ChainVerifier::new(format, key.map(LedgerKey::id), head);
    let mut lines = LogLines::new(snapshot.segments, RecordReader::new(format, key));
    let mut found_break = None;
    let mut torn = None;
    while let Some((place, line)) = lines.next_line()? {
        if let ParsedLine::Torn { bytes } = line
            && place.segment.is_last
        {
            torn = Some(TornLine { segment: place.segment.name(), line: place.line, bytes });
            break;
        }
        if let Err(suspicion) = judge.accept(&place, &line) {
            found_break = Some(judge.diagnose_break(suspicion, &mut lines)?);
            break;
        }
    }
    let signed_head = matches!(
        snapshot.head,
        Some(LedgerHeadState::Written(LedgerHead { signature: HeadSignature::Valid(_), .. }))
    );
    let whole = found_break.is_none();
    let found_break = found_break.or_else(|| judge.check_log_end(lines.last_position(), snapshot.missing));
    Ok(VerificationReport {
        log: path.to_owned(),
        records: judge.record_count(),
        segments: snapshot.segment_count,
        last_hash: judge.last_hash(),
        completeness: check_completeness(snapshot.head.as_ref(), &judge, whole, key),
        authenticity: judge.authenticity(signed_head),
        broken: found_break,
        torn,
        strays: snapshot.strays,
    })
}

fn check_completeness(
    head: Option<&LedgerHeadState>,
    judge: &ChainVerifier<'_>,
    whole: bool,
    key: Option<&LedgerKey>,
) -> LogCompleteness {
    let signed_log = key.is_some() || judge.is_signed();
    let head = match head {
        None | Some(LedgerHeadState::Empty) if signed_log => return LogCompleteness::HeadMissing,
        None | Some(LedgerHeadState::Empty) => return LogCompleteness::NoHead,
        Some(LedgerHeadState::Unreadable) => return LogCompleteness::HeadUnreadable,
        Some(LedgerHeadState::Written(head)) => head,
    };
    match head.signature {
        HeadSignature::Forged(_) => return LogCompleteness::HeadForged,
        HeadSignature::Unsigned if signed_log => return LogCompleteness::HeadForged,
        HeadSignature::Unchecked(key_id) if key.is_some() => {
            return LogCompleteness::HeadOfOtherKey { key_id };
        }
        HeadSignature::Unsigned | HeadSignature::Valid(_) | HeadSignature::Unchecked(_) => {}
    }
    let (vouched, found) = (head.count, judge.record_count());
    if !whole {
        LogCompleteness::NotReached { vouched }
    } else if found < vouched {
        LogCompleteness::Cut { vouched, found }
    } else {
        LogCompleteness::Complete { vouched, unvouched: found - vouched }
    }
}
