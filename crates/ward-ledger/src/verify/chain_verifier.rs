//! Which link is broken, and how.
//!
//! Three things are known of each record: its number, the hash of the one before it as it claims,
//! and whether its own hash fits. A record that doesn't continue the chain is a suspicion; the
//! rest of the log decides what it means.

use super::report::{BreakKind, ChainBreak, LogAuthenticity};
use crate::canonical::RecordParseError;
use crate::chain::LedgerFormat;
use crate::error::LedgerReadError;
use crate::hash::Sha256Hash;
use crate::key::KeyId;
use crate::lines::{LinePosition, LogLines, ParsedLine};
use crate::record::{CheckedRecord, RecordIntegrity, RecordReader};

/// How many accepted records are remembered, to find the first of several that were slipped in.
const RECENT_RECORDS: usize = 64;

pub(super) struct ChainVerifier<'a> {
    format: &'a LedgerFormat,
    key: Option<KeyId>,
    /// Count and hash that the head vouches for.
    head: Option<(u64, Sha256Hash)>,
    /// Number and hash of the last accepted record.
    sequence: u64,
    hash: Sha256Hash,
    segment: u64,
    signed: Option<SignatureStart>,
    recent: Vec<(CheckedRecord, LinePosition)>,
}

/// Where the signatures of a log begin.
#[derive(Clone, Copy)]
struct SignatureStart {
    by: KeyId,
    from: u64,
    /// Nothing stands before them, or they begin with an adoption.
    vouches_for_all: bool,
}

/// A line that doesn't continue the chain.
pub(super) struct SuspectLine {
    place: LinePosition,
    reason: SuspectReason,
}

enum SuspectReason {
    ParseFailed(RecordParseError),
    Truncated,
    HashMismatch(CheckedRecord),
    NotCanonical(CheckedRecord),
    /// Another number or another previous hash than the next record must have.
    BrokenLink(CheckedRecord),
    OtherKey(CheckedRecord, KeyId),
    InvalidMac(CheckedRecord),
    Unsigned(CheckedRecord),
    /// A sound chain, but not the one that the head vouches for.
    HeadMismatch,
}

/// What the rest of the log shows.
#[derive(Default)]
struct RestOfLog {
    /// The record that continues the chain stands further down.
    has_continuation: bool,
    /// The suspect stands further down once more.
    has_copy: bool,
    /// A record further down continues the suspect.
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
            recent: Vec::with_capacity(2 * RECENT_RECORDS),
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

    /// Of a log without records, the head is all that can be signed.
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

    /// Takes the line as the next link, or says why it isn't.
    pub(super) fn accept(
        &mut self,
        place: &LinePosition,
        line: &ParsedLine<CheckedRecord>,
    ) -> Result<(), SuspectLine> {
        let suspicion = |doubt| Err(SuspectLine { place: place.clone(), reason: doubt });
        let record = match line {
            ParsedLine::Record(record) => *record,
            ParsedLine::Invalid(fault) => return suspicion(SuspectReason::ParseFailed(fault.clone())),
            ParsedLine::Torn { .. } => return suspicion(SuspectReason::Truncated),
        };
        if record.integrity == RecordIntegrity::HashMismatch {
            return suspicion(SuspectReason::HashMismatch(record));
        }
        if !self.is_continued_by(&record) {
            return suspicion(SuspectReason::BrokenLink(record));
        }
        let key_id = match record.integrity {
            RecordIntegrity::NotCanonical => return suspicion(SuspectReason::NotCanonical(record)),
            RecordIntegrity::HashMismatch | RecordIntegrity::Unsigned => None,
            RecordIntegrity::Forged(_) => return suspicion(SuspectReason::InvalidMac(record)),
            RecordIntegrity::Unchecked(key_id) if self.key.is_some() => {
                return suspicion(SuspectReason::OtherKey(record, key_id));
            }
            RecordIntegrity::Signed(key_id) | RecordIntegrity::Unchecked(key_id) => Some(key_id),
        };
        match (self.signed, key_id) {
            (Some(_), None) => return suspicion(SuspectReason::Unsigned(record)),
            (Some(before), Some(now)) if before.by != now => {
                return suspicion(SuspectReason::OtherKey(record, now));
            }
            _ => {}
        }
        if self.head.is_some_and(|(count, hash)| count == record.sequence && hash != record.hash) {
            return suspicion(SuspectReason::HeadMismatch);
        }
        if self.signed.is_none() {
            let vouches_for_all = record.sequence == 1 || record.is_adoption;
            self.signed = key_id.map(|by| SignatureStart { by, from: record.sequence, vouches_for_all });
        }
        self.remember(record, place);
        (self.sequence, self.hash, self.segment) = (record.sequence, record.hash, place.segment.number);
        Ok(())
    }

    fn is_continued_by(&self, record: &CheckedRecord) -> bool {
        record.sequence == self.sequence + 1 && record.previous_hash == self.hash
    }

    fn remember(&mut self, record: CheckedRecord, place: &LinePosition) {
        if self.recent.len() == 2 * RECENT_RECORDS {
            self.recent.drain(..RECENT_RECORDS);
        }
        self.recent.push((record, place.clone()));
    }

    /// Reads the rest of the log and says what happened.
    pub(super) fn diagnose_break(
        &self,
        suspicion: SuspectLine,
        lines: &mut LogLines<RecordReader>,
    ) -> Result<ChainBreak, LedgerReadError> {
        let suspect = match &suspicion.reason {
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
            if let Some(suspect) = suspect {
                rest.has_copy |= (record.sequence, record.hash) == (suspect.sequence, suspect.hash);
                rest.has_follower |= record.previous_hash == suspect.hash;
            }
        }
        Ok(self.classify_break(suspicion, &rest))
    }

    fn classify_break(
        &self,
        SuspectLine { place, reason: doubt }: SuspectLine,
        rest: &RestOfLog,
    ) -> ChainBreak {
        let next = self.sequence + 1;
        let at = |kind, detail: String| ChainBreak::new(kind, &place, next, detail);
        match doubt {
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
                    "the chain goes on after this line as if it were not there".to_owned(),
                )
            }
            SuspectReason::ParseFailed(fault @ RecordParseError::NotRecord(_)) => {
                at(BreakKind::Edited, self.explain_missing_members(&fault))
            }
            SuspectReason::Truncated => {
                at(BreakKind::Truncated, "a closed segment ends in the middle of a record".to_owned())
            }
            SuspectReason::HashMismatch(_) => {
                at(BreakKind::Edited, "its hash does not fit its content".to_owned())
            }
            SuspectReason::NotCanonical(_) => at(BreakKind::Edited, "it is not in canonical form".to_owned()),
            SuspectReason::InvalidMac(_) => {
                at(BreakKind::Edited, "its MAC was not made with the key".to_owned())
            }
            SuspectReason::Unsigned(_)
                if rest.has_follower || self.head.is_some_and(|(count, _)| count >= next) =>
            {
                at(BreakKind::Edited, "it lost its MAC, and the records before it have one".to_owned())
            }
            SuspectReason::Unsigned(_) => at(
                BreakKind::Inserted,
                "it was added without the key that the records before it have".to_owned(),
            ),
            SuspectReason::OtherKey(_, key_id) => at(BreakKind::WrongKey, self.explain_key(key_id)),
            SuspectReason::HeadMismatch => at(
                BreakKind::Edited,
                "the chain was rewritten: the head vouches for another record of this number".to_owned(),
            ),
            SuspectReason::BrokenLink(record) => self.classify_link_break(&record, &place, rest),
        }
    }

    fn classify_link_break(
        &self,
        record: &CheckedRecord,
        place: &LinePosition,
        rest: &RestOfLog,
    ) -> ChainBreak {
        let next = self.sequence + 1;
        let found = record.sequence;
        if found > next {
            let (kind, detail) = match (rest.has_continuation, rest.has_copy) {
                (true, true) => {
                    (BreakKind::Inserted, format!("a copy of record {found}, which stands further down"))
                }
                (true, false) => {
                    (BreakKind::Reordered, format!("record {found} stands where record {next} belongs"))
                }
                (false, _) => (BreakKind::Removed, self.explain_gap(found, place)),
            };
            return ChainBreak::new(kind, place, next, detail);
        }
        if found == next {
            return self.classify_rehashed_record(place, rest);
        }
        // Every number up to the last is taken, so one of two records is not of this chain: this
        // one, or those that stand where its successors belong.
        let rival = self.recent.iter().find(|(other, _)| other.sequence == found);
        match rival {
            Some((other, other_place))
                if rest.has_follower
                    && other.hash != record.hash
                    && other.previous_hash == record.previous_hash =>
            {
                let detail = "the chain goes on after it as if it were not there".to_owned();
                ChainBreak::new(BreakKind::Inserted, other_place, found, detail)
            }
            Some((other, _)) if other.hash == record.hash => {
                ChainBreak::new(BreakKind::Inserted, place, next, format!("a copy of record {found}"))
            }
            _ => ChainBreak::new(
                BreakKind::Inserted,
                place,
                next,
                format!("there is a record {found} already"),
            ),
        }
    }

    /// The number is right and the link is not: a record was changed and given a new hash. It is
    /// the one before, whose old hash this record still carries.
    fn classify_rehashed_record(&self, place: &LinePosition, rest: &RestOfLog) -> ChainBreak {
        if rest.has_continuation {
            let detail = "it does not continue the record before it, and one further down does".to_owned();
            return ChainBreak::new(BreakKind::Inserted, place, self.sequence + 1, detail);
        }
        match self.recent.last() {
            Some((_, before)) => {
                let detail = "it was given a new hash, and the next record carries the old one".to_owned();
                ChainBreak::new(BreakKind::Edited, before, self.sequence, detail)
            }
            None => {
                let detail = "the first record must carry 64 zeros as the hash before it".to_owned();
                ChainBreak::new(BreakKind::Edited, place, 1, detail)
            }
        }
    }

    fn explain_gap(&self, found: u64, place: &LinePosition) -> String {
        let (next, last) = (self.sequence + 1, found - 1);
        let records =
            if next == last { format!("record {next} is") } else { format!("records {next} to {last} are") };
        let missing = self.segment + 1..place.segment.number;
        match missing.end.saturating_sub(missing.start) {
            0 => format!("{records} missing"),
            1 => format!("{records} missing with segment {:06}", missing.start),
            _ => format!("{records} missing with segments {:06} to {:06}", missing.start, missing.end - 1),
        }
    }

    fn explain_missing_members(&self, fault: &RecordParseError) -> String {
        if self.sequence == 0 {
            return format!("{fault}; is this a log whose hashes are called `{}`?", self.format.hash_field());
        }
        fault.to_string()
    }

    fn explain_key(&self, key_id: KeyId) -> String {
        match self.key.or(self.signed.map(|signed| signed.by)) {
            Some(expected) => format!("signed with key {key_id}, and checked with key {expected}"),
            None => format!("signed with key {key_id}"),
        }
    }

    /// What the head, and the names of the files, say of a log whose links hold.
    pub(super) fn check_log_end(
        &self,
        last: Option<&LinePosition>,
        missing_segment: Option<u64>,
    ) -> Option<ChainBreak> {
        let vouched = self.head.map_or(0, |(vouched, _)| vouched);
        let (kind, detail) = match (vouched.saturating_sub(self.sequence), missing_segment) {
            (0, None) => return None,
            (0, Some(number)) => (
                BreakKind::Removed,
                format!("segment {number:06} is missing, and the links hold: others were renamed or joined"),
            ),
            (gone, _) => (
                BreakKind::Truncated,
                format!("the head vouches for {vouched} records, and the last {gone} are gone"),
            ),
        };
        Some(ChainBreak::after(kind, last, self.sequence + 1, detail))
    }
}
