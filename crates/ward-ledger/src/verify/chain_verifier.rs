//! Finds the first broken link of a chain, and classifies it.
//!
//! Three facts are known about each record: its number, the previous hash that it claims, and whether its own
//! hash matches. A line that doesn't continue the chain is a suspect. The rest of the log shows what happened
//! to it.

use super::report::{BreakKind, ChainBreak, LogAuthenticity};
use crate::canonical::RecordParseError;
use crate::chain::LedgerFormat;
use crate::error::LedgerReadError;
use crate::hash::Sha256Hash;
use crate::key::KeyId;
use crate::lines::{LinePosition, LogLines, ParsedLine};
use crate::plural::record_count;
use crate::record::{CheckedRecord, RecordIntegrity, RecordReader};

/// The number of accepted records to remember, for finding the first of several inserted records.
const RECENT_RECORDS: usize = 64;

pub(super) struct ChainVerifier<'a> {
    format: &'a LedgerFormat,
    key: Option<KeyId>,
    /// The number of records and the last hash that the head covers.
    head: Option<(u64, Sha256Hash)>,
    /// The number of the last accepted record.
    sequence: u64,
    hash: Sha256Hash,
    segment: u64,
    signed: Option<SignatureStart>,
    recent: Vec<(CheckedRecord, LinePosition)>,
}

/// The record at which the signatures of a log begin.
#[derive(Clone, Copy)]
struct SignatureStart {
    by: KeyId,
    from: u64,
    /// True if no records come before the first signature, or if the first signed record adopts them.
    vouches_for_all: bool,
}

/// A line that doesn't continue the chain.
pub(super) struct SuspectLine {
    position: LinePosition,
    reason: SuspectReason,
}

enum SuspectReason {
    ParseFailed(RecordParseError),
    Truncated,
    HashMismatch(CheckedRecord),
    NotCanonical(CheckedRecord),
    /// The number or the previous hash is not that of the next record.
    BrokenLink(CheckedRecord),
    OtherKey(CheckedRecord, KeyId),
    InvalidMac(CheckedRecord),
    Unsigned(CheckedRecord),
    /// The chain is intact, but not the chain that the head covers.
    HeadMismatch,
}

/// Findings in the rest of the log, after the suspect.
#[derive(Default)]
struct RestOfLog {
    /// The record that continues the chain comes later.
    has_continuation: bool,
    /// The suspect occurs again later.
    has_copy: bool,
    /// A later record continues the suspect.
    has_follower: bool,
}

impl<'a> ChainVerifier<'a> {
    pub(super) fn new(format: &'a LedgerFormat, key: Option<KeyId>, head: Option<(u64, Sha256Hash)>) -> Self {
        Self {
            format,
            key,
            head,
            sequence: 0,
            hash: Sha256Hash::GENESIS,
            segment: 0,
            signed: None,
            recent: Vec::new(),
        }
    }

    pub(super) fn record_count(&self) -> u64 {
        self.sequence
    }

    pub(super) fn last_hash(&self) -> Option<Sha256Hash> {
        (self.sequence > 0).then_some(self.hash)
    }

    pub(super) fn is_signed(&self) -> bool {
        self.signed.is_some()
    }

    /// Returns who wrote the log, as far as the signatures show. In a log without records, only the head can
    /// be signed.
    pub(super) fn authenticity(&self, signed_head: bool) -> LogAuthenticity {
        match (self.signed, self.key) {
            (Some(SignatureStart { by, from, vouches_for_all }), Some(_)) => match vouches_for_all {
                true => LogAuthenticity::Signed { key_id: by, from },
                false => LogAuthenticity::NotAdopted { key_id: by, from },
            },
            (Some(SignatureStart { by, .. }), None) => LogAuthenticity::NoKey { key_id: by },
            (None, Some(key_id)) if signed_head && self.sequence == 0 => {
                LogAuthenticity::Signed { key_id, from: 1 }
            }
            (None, Some(given)) => LogAuthenticity::NotSigned { given },
            (None, None) => LogAuthenticity::Unsigned,
        }
    }

    /// Accepts the line as the next link, or returns it as a suspect.
    pub(super) fn accept(
        &mut self,
        position: &LinePosition,
        line: &ParsedLine<CheckedRecord>,
    ) -> Result<(), SuspectLine> {
        let suspect = |reason| Err(SuspectLine { position: position.clone(), reason });
        let record = match line {
            ParsedLine::Record(record) => *record,
            ParsedLine::Invalid(fault) => return suspect(SuspectReason::ParseFailed(fault.clone())),
            ParsedLine::Torn { .. } => return suspect(SuspectReason::Truncated),
        };
        if record.integrity == RecordIntegrity::HashMismatch {
            return suspect(SuspectReason::HashMismatch(record));
        }
        if !self.is_continued_by(&record) {
            return suspect(SuspectReason::BrokenLink(record));
        }
        let key_id = match record.integrity {
            RecordIntegrity::NotCanonical => return suspect(SuspectReason::NotCanonical(record)),
            RecordIntegrity::HashMismatch | RecordIntegrity::Unsigned => None,
            RecordIntegrity::Forged(_) => return suspect(SuspectReason::InvalidMac(record)),
            RecordIntegrity::Unchecked(key_id) if self.key.is_some() => {
                return suspect(SuspectReason::OtherKey(record, key_id));
            }
            RecordIntegrity::Signed(key_id) | RecordIntegrity::Unchecked(key_id) => Some(key_id),
        };
        match (self.signed, key_id) {
            (Some(_), None) => return suspect(SuspectReason::Unsigned(record)),
            (Some(before), Some(now)) if before.by != now => {
                return suspect(SuspectReason::OtherKey(record, now));
            }
            _ => {}
        }
        if self.head.is_some_and(|(count, hash)| count == record.sequence && hash != record.hash) {
            return suspect(SuspectReason::HeadMismatch);
        }
        if self.signed.is_none() {
            let vouches_for_all = record.sequence == 1 || record.is_adoption;
            self.signed = key_id.map(|by| SignatureStart { by, from: record.sequence, vouches_for_all });
        }
        self.remember(record, position);
        (self.sequence, self.hash, self.segment) = (record.sequence, record.hash, position.segment.number);
        Ok(())
    }

    fn is_continued_by(&self, record: &CheckedRecord) -> bool {
        record.sequence == self.sequence + 1 && record.previous_hash == self.hash
    }

    fn remember(&mut self, record: CheckedRecord, position: &LinePosition) {
        if self.recent.len() == 2 * RECENT_RECORDS {
            self.recent.drain(..RECENT_RECORDS);
        }
        self.recent.push((record, position.clone()));
    }

    /// Reads the rest of the log and classifies the break.
    pub(super) fn diagnose_break(
        &self,
        suspect: SuspectLine,
        lines: &mut LogLines<RecordReader>,
    ) -> Result<ChainBreak, LedgerReadError> {
        let suspect_record = match &suspect.reason {
            SuspectReason::HashMismatch(record)
            | SuspectReason::NotCanonical(record)
            | SuspectReason::BrokenLink(record)
            | SuspectReason::OtherKey(record, _)
            | SuspectReason::InvalidMac(record)
            | SuspectReason::Unsigned(record) => Some(*record),
            SuspectReason::ParseFailed(_) | SuspectReason::Truncated | SuspectReason::HeadMismatch => None,
        };
        let mut rest = RestOfLog::default();
        while let Some((_, line)) = lines.next_line()? {
            let ParsedLine::Record(record) = line else { continue };
            if record.integrity == RecordIntegrity::HashMismatch {
                continue;
            }
            rest.has_continuation |= self.is_continued_by(&record);
            if let Some(other) = suspect_record {
                rest.has_copy |= (record.sequence, record.hash) == (other.sequence, other.hash);
                rest.has_follower |= record.previous_hash == other.hash;
            }
        }
        Ok(self.classify_break(suspect, &rest))
    }

    fn classify_break(&self, SuspectLine { position, reason }: SuspectLine, rest: &RestOfLog) -> ChainBreak {
        let next = self.sequence + 1;
        let at = |kind, detail: String| ChainBreak::new(kind, &position, next, detail);
        match reason {
            SuspectReason::ParseFailed(fault @ RecordParseError::UnexpectedEnd) => {
                at(BreakKind::Truncated, fault.to_string())
            }
            SuspectReason::ParseFailed(fault @ RecordParseError::NotJson(_)) => {
                at(BreakKind::NotJson, fault.to_string())
            }
            SuspectReason::ParseFailed(RecordParseError::NotRecord(_))
            | SuspectReason::HashMismatch(_)
            | SuspectReason::NotCanonical(_)
            | SuspectReason::InvalidMac(_)
            | SuspectReason::Unsigned(_)
                if rest.has_continuation =>
            {
                at(
                    BreakKind::Inserted,
                    "the chain continues after this line as if it didn't exist".to_owned(),
                )
            }
            SuspectReason::ParseFailed(fault @ RecordParseError::NotRecord(_)) => {
                at(BreakKind::Edited, self.explain_missing_members(&fault))
            }
            SuspectReason::Truncated => {
                at(BreakKind::Truncated, "a closed segment ends in the middle of a record".to_owned())
            }
            SuspectReason::HashMismatch(_) => {
                at(BreakKind::Edited, "its hash doesn't match its content".to_owned())
            }
            SuspectReason::NotCanonical(_) => at(BreakKind::Edited, "it is not in canonical form".to_owned()),
            SuspectReason::InvalidMac(_) => {
                at(BreakKind::Edited, "its MAC was not made with this key".to_owned())
            }
            SuspectReason::Unsigned(_)
                if rest.has_follower || self.head.is_some_and(|(count, _)| count >= next) =>
            {
                at(BreakKind::Edited, "it has no MAC, but the records before it do".to_owned())
            }
            SuspectReason::Unsigned(_) => at(
                BreakKind::Inserted,
                "it was added without the key that signed the records before it".to_owned(),
            ),
            SuspectReason::OtherKey(_, key_id) => at(BreakKind::WrongKey, self.explain_key(key_id)),
            SuspectReason::HeadMismatch => at(
                BreakKind::Edited,
                "the chain was rewritten: the head has the hash of a different record with this number"
                    .to_owned(),
            ),
            SuspectReason::BrokenLink(record) => self.classify_link_break(&record, &position, rest),
        }
    }

    fn classify_link_break(
        &self,
        record: &CheckedRecord,
        position: &LinePosition,
        rest: &RestOfLog,
    ) -> ChainBreak {
        let next = self.sequence + 1;
        let found = record.sequence;
        if found > next {
            let (kind, detail) = match (rest.has_continuation, rest.has_copy) {
                (true, true) => (BreakKind::Inserted, format!("a copy of record {found}, which comes later")),
                (true, false) => {
                    (BreakKind::Reordered, format!("record {found} is in the place of record {next}"))
                }
                (false, _) => (BreakKind::Removed, self.explain_gap(found, position)),
            };
            return ChainBreak::new(kind, position, next, detail);
        }
        if found == next {
            return self.classify_rehashed_record(position, rest);
        }
        // All lower numbers are already in use, so either this record was inserted, or the earlier record
        // with the same number and its successors were.
        let rival = self.recent.iter().find(|(other, _)| other.sequence == found);
        match rival {
            Some((other, other_place))
                if rest.has_follower
                    && other.hash != record.hash
                    && other.previous_hash == record.previous_hash =>
            {
                let detail = "the chain continues after it as if it didn't exist".to_owned();
                ChainBreak::new(BreakKind::Inserted, other_place, found, detail)
            }
            Some((other, _)) if other.hash == record.hash => {
                ChainBreak::new(BreakKind::Inserted, position, next, format!("a copy of record {found}"))
            }
            _ => ChainBreak::new(
                BreakKind::Inserted,
                position,
                next,
                format!("there already is a record {found}"),
            ),
        }
    }

    /// Classifies a record with the right number and a wrong previous hash. Usually the record before it was
    /// changed and given a new hash, while this record still contains the old hash.
    fn classify_rehashed_record(&self, position: &LinePosition, rest: &RestOfLog) -> ChainBreak {
        if rest.has_continuation {
            let detail = "it doesn't continue the record before it, but a later record does".to_owned();
            return ChainBreak::new(BreakKind::Inserted, position, self.sequence + 1, detail);
        }
        match self.recent.last() {
            Some((_, before)) => {
                let detail =
                    "its hash was changed, but the next record still contains the old hash".to_owned();
                ChainBreak::new(BreakKind::Edited, before, self.sequence, detail)
            }
            None => {
                let detail = "the previous hash of the first record must be 64 zeros".to_owned();
                ChainBreak::new(BreakKind::Edited, position, 1, detail)
            }
        }
    }

    fn explain_gap(&self, found: u64, position: &LinePosition) -> String {
        let (next, last) = (self.sequence + 1, found - 1);
        let records =
            if next == last { format!("record {next} is") } else { format!("records {next} to {last} are") };
        let missing = self.segment + 1..position.segment.number;
        match missing.end.saturating_sub(missing.start) {
            0 => format!("{records} missing"),
            1 => format!("{records} missing with segment {:06}", missing.start),
            _ => format!("{records} missing with segments {:06} to {:06}", missing.start, missing.end - 1),
        }
    }

    fn explain_missing_members(&self, fault: &RecordParseError) -> String {
        if self.sequence == 0 {
            return format!("{fault}; is `{}` the hash member of this log?", self.format.hash_field());
        }
        fault.to_string()
    }

    fn explain_key(&self, key_id: KeyId) -> String {
        match self.key.or(self.signed.map(|signed| signed.by)) {
            Some(expected) => format!("signed with key {key_id}, but checked with key {expected}"),
            None => format!("signed with key {key_id}"),
        }
    }

    /// Checks the end of a log with intact links against the head and the names of its segments.
    pub(super) fn check_log_end(
        &self,
        last: Option<&LinePosition>,
        missing_segment: Option<u64>,
    ) -> Option<ChainBreak> {
        let covered = self.head.map_or(0, |(covered, _)| covered);
        let (kind, detail) = match (covered.saturating_sub(self.sequence), missing_segment) {
            (0, None) => return None,
            (0, Some(number)) => (
                BreakKind::Removed,
                format!(
                    "segment {number:06} is missing, but every link is intact: segments were renamed or joined"
                ),
            ),
            _ => (
                BreakKind::Truncated,
                format!("the head covers {}, but the log has {}", record_count(covered), self.sequence),
            ),
        };
        Some(ChainBreak::after(kind, last, self.sequence + 1, detail))
    }
}
