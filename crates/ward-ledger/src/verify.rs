//! Verifies a log: every link is intact, nothing is missing, and the holder of the key wrote it.
//!
//! Each file is read once, front to back, in constant memory. After the first break, the rest of the log is
//! read only to classify the break: later records show whether a record was removed or moved.

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

/// The error for a log whose files can't be read. Damage *in* a log is reported in the
/// [`VerificationReport`].
pub type LedgerVerifyError = LedgerReadError;

/// Verifies the log at `path` as it is at this moment. Writers are not blocked.
///
/// # Errors
/// Fails if the files can't be read.
pub fn verify(
    path: &Path,
    format: &LedgerFormat,
    key: Option<&LedgerKey>,
) -> Result<VerificationReport, LedgerVerifyError> {
    let snapshot = LedgerSnapshot::take(path, key)?;
    let head =
        snapshot.head.as_ref().and_then(LedgerHeadState::as_written).map(|head| (head.count, head.hash));
    let mut verifier = ChainVerifier::new(format, key.map(LedgerKey::id), head);
    let mut lines = LogLines::new(snapshot.segments, RecordReader::new(format, key));
    let mut found_break = None;
    let mut torn = None;
    while let Some((position, line)) = lines.next_line()? {
        if let ParsedLine::Torn { bytes } = line
            && position.segment.is_last
        {
            torn = Some(TornLine { segment: position.segment.name(), line: position.line, bytes });
            break;
        }
        if let Err(suspect) = verifier.accept(&position, &line) {
            found_break = Some(verifier.diagnose_break(suspect, &mut lines)?);
            break;
        }
    }
    let signed_head = matches!(
        snapshot.head,
        Some(LedgerHeadState::Written(LedgerHead { signature: HeadSignature::Valid(_), .. }))
    );
    let all_read = found_break.is_none();
    let found_break = found_break.or_else(|| verifier.check_log_end(lines.last_position(), snapshot.missing));
    Ok(VerificationReport {
        log: path.to_owned(),
        records: verifier.record_count(),
        segments: snapshot.segment_count,
        last_hash: verifier.last_hash(),
        completeness: check_completeness(snapshot.head.as_ref(), &verifier, all_read, key),
        authenticity: verifier.authenticity(signed_head),
        broken: found_break,
        torn,
        strays: snapshot.strays,
    })
}

fn check_completeness(
    head: Option<&LedgerHeadState>,
    verifier: &ChainVerifier<'_>,
    all_read: bool,
    key: Option<&LedgerKey>,
) -> LogCompleteness {
    let signed_log = key.is_some() || verifier.is_signed();
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
    let (covered, found) = (head.count, verifier.record_count());
    if !all_read {
        LogCompleteness::NotReached { covered }
    } else if found < covered {
        LogCompleteness::Cut { covered, found }
    } else {
        LogCompleteness::Complete { covered, uncovered: found - covered }
    }
}
