//! Which link is broken, and how.
//!
//! Three things are known of each record: its number, the hash of the one before it as it claims,
//! and whether its own hash fits. A record that doesn't continue the chain is a suspicion; the
//! rest of the log decides what it means.

use super::report::{Authenticity, Break, BreakKind};
use crate::canonical::ParseError;
use crate::chain::Format;
use crate::error::ReadError;
use crate::hash::Hash;
use crate::key::KeyId;
use crate::lines::{Line, LogLines, Place};
use crate::record::{Own, Record, RecordReader};

/// How many accepted records are remembered, to find the first of several that were slipped in.
const REMEMBERED: usize = 64;

pub(super) struct Judge<'a> {
    format: &'a Format,
    key: Option<KeyId>,
    /// Count and hash that the head vouches for.
    head: Option<(u64, Hash)>,
    /// Number and hash of the last accepted record.
    sequence: u64,
    hash: Hash,
    segment: u64,
    signed: Option<Signed>,
    recent: Vec<(Record, Place)>,
}

/// Where the signatures of a log begin.
#[derive(Clone, Copy)]
struct Signed {
    by: KeyId,
    from: u64,
    /// Nothing stands before them, or they begin with an adoption.
    vouches_for_all: bool,
}

/// A line that doesn't continue the chain.
pub(super) struct Suspicion {
    place: Place,
    doubt: Doubt,
}

enum Doubt {
    Fault(ParseError),
    Cut,
    OwnHash(Record),
    Form(Record),
    /// Another number or another previous hash than the next record must have.
    Link(Record),
    Key(Record, KeyId),
    Mac(Record),
    Unsigned(Record),
    /// A sound chain, but not the one that the head vouches for.
    Head,
}

/// What the rest of the log shows.
#[derive(Default)]
struct Rest {
    /// The record that continues the chain stands further down.
    continuation: bool,
    /// The suspect stands further down once more.
    copy: bool,
    /// A record further down continues the suspect.
    follower: bool,
}

impl<'a> Judge<'a> {
    pub(super) fn new(format: &'a Format, key: Option<KeyId>, head: Option<(u64, Hash)>) -> Self {
        Self {
            format,
            key,
            head,
            sequence: 0,
            hash: Hash::GENESIS,
            segment: 0,
            signed: None,
            recent: Vec::with_capacity(2 * REMEMBERED),
        }
    }

    pub(super) fn records(&self) -> u64 {
        self.sequence
    }

    pub(super) fn last_hash(&self) -> Option<Hash> {
        (self.sequence > 0).then_some(self.hash)
    }

    pub(super) fn is_keyed(&self) -> bool {
        self.signed.is_some()
    }

    /// Of a log without records, the head is all that can be signed.
    pub(super) fn authenticity(&self, signed_head: bool) -> Authenticity {
        match (self.signed, self.key) {
            (Some(Signed { by, from, vouches_for_all }), Some(_)) => match vouches_for_all {
                true => Authenticity::Signed { key_id: by, from },
                false => Authenticity::NotAdopted { key_id: by, from },
            },
            (Some(Signed { by, .. }), None) => Authenticity::NoKey { key_id: by },
            (None, Some(key_id)) if signed_head && self.sequence == 0 => {
                Authenticity::Signed { key_id, from: 1 }
            }
            (None, Some(given)) => Authenticity::NotSigned { given },
            (None, None) => Authenticity::Unsigned,
        }
    }

    /// Takes the line as the next link, or says why it isn't.
    pub(super) fn accept(&mut self, place: &Place, line: &Line<Record>) -> Result<(), Suspicion> {
        let suspicion = |doubt| Err(Suspicion { place: place.clone(), doubt });
        let record = match line {
            Line::Record(record) => *record,
            Line::Fault(fault) => return suspicion(Doubt::Fault(fault.clone())),
            Line::Torn { .. } => return suspicion(Doubt::Cut),
        };
        if record.own == Own::Changed {
            return suspicion(Doubt::OwnHash(record));
        }
        if !self.is_continued_by(&record) {
            return suspicion(Doubt::Link(record));
        }
        let key_id = match record.own {
            Own::Respelled => return suspicion(Doubt::Form(record)),
            Own::Changed | Own::Plain => None,
            Own::Forged(_) => return suspicion(Doubt::Mac(record)),
            Own::Unchecked(key_id) if self.key.is_some() => return suspicion(Doubt::Key(record, key_id)),
            Own::Signed(key_id) | Own::Unchecked(key_id) => Some(key_id),
        };
        match (self.signed, key_id) {
            (Some(_), None) => return suspicion(Doubt::Unsigned(record)),
            (Some(before), Some(now)) if before.by != now => return suspicion(Doubt::Key(record, now)),
            _ => {}
        }
        if self.head.is_some_and(|(count, hash)| count == record.sequence && hash != record.hash) {
            return suspicion(Doubt::Head);
        }
        if self.signed.is_none() {
            let vouches_for_all = record.sequence == 1 || record.adopts;
            self.signed = key_id.map(|by| Signed { by, from: record.sequence, vouches_for_all });
        }
        self.remember(record, place);
        (self.sequence, self.hash, self.segment) = (record.sequence, record.hash, place.segment.number);
        Ok(())
    }

    fn is_continued_by(&self, record: &Record) -> bool {
        record.sequence == self.sequence + 1 && record.previous_hash == self.hash
    }

    fn remember(&mut self, record: Record, place: &Place) {
        if self.recent.len() == 2 * REMEMBERED {
            self.recent.drain(..REMEMBERED);
        }
        self.recent.push((record, place.clone()));
    }

    /// Reads the rest of the log and says what happened.
    pub(super) fn look_into(
        &self,
        suspicion: Suspicion,
        lines: &mut LogLines<RecordReader>,
    ) -> Result<Break, ReadError> {
        let suspect = match &suspicion.doubt {
            Doubt::OwnHash(record)
            | Doubt::Form(record)
            | Doubt::Link(record)
            | Doubt::Key(record, _)
            | Doubt::Mac(record)
            | Doubt::Unsigned(record) => Some(*record),
            Doubt::Fault(_) | Doubt::Cut | Doubt::Head => None,
        };
        let mut rest = Rest::default();
        while let Some((_, line)) = lines.next_line()? {
            let Line::Record(record) = line else { continue };
            if record.own == Own::Changed {
                continue;
            }
            rest.continuation |= self.is_continued_by(&record);
            if let Some(suspect) = suspect {
                rest.copy |= (record.sequence, record.hash) == (suspect.sequence, suspect.hash);
                rest.follower |= record.previous_hash == suspect.hash;
            }
        }
        Ok(self.decide(suspicion, &rest))
    }

    fn decide(&self, Suspicion { place, doubt }: Suspicion, rest: &Rest) -> Break {
        let next = self.sequence + 1;
        let at = |kind, detail: String| Break::new(kind, &place, next, detail);
        match doubt {
            Doubt::Fault(fault @ ParseError::CutOff) => at(BreakKind::Truncated, fault.to_string()),
            Doubt::Fault(fault @ ParseError::NotJson(_)) => at(BreakKind::NotJson, fault.to_string()),
            Doubt::Fault(ParseError::NotRecord(_))
            | Doubt::OwnHash(_)
            | Doubt::Form(_)
            | Doubt::Mac(_)
            | Doubt::Unsigned(_)
                if rest.continuation =>
            {
                at(
                    BreakKind::Inserted,
                    "the chain goes on after this line as if it were not there".to_owned(),
                )
            }
            Doubt::Fault(fault @ ParseError::NotRecord(_)) => {
                at(BreakKind::Edited, self.explain_missing_members(&fault))
            }
            Doubt::Cut => {
                at(BreakKind::Truncated, "a closed segment ends in the middle of a record".to_owned())
            }
            Doubt::OwnHash(_) => at(BreakKind::Edited, "its hash does not fit its content".to_owned()),
            Doubt::Form(_) => at(BreakKind::Edited, "it is not in canonical form".to_owned()),
            Doubt::Mac(_) => at(BreakKind::Edited, "its MAC was not made with the key".to_owned()),
            Doubt::Unsigned(_) if rest.follower || self.head.is_some_and(|(count, _)| count >= next) => {
                at(BreakKind::Edited, "it lost its MAC, and the records before it have one".to_owned())
            }
            Doubt::Unsigned(_) => at(
                BreakKind::Inserted,
                "it was added without the key that the records before it have".to_owned(),
            ),
            Doubt::Key(_, key_id) => at(BreakKind::WrongKey, self.explain_key(key_id)),
            Doubt::Head => at(
                BreakKind::Edited,
                "the chain was rewritten: the head vouches for another record of this number".to_owned(),
            ),
            Doubt::Link(record) => self.decide_link(&record, &place, rest),
        }
    }

    fn decide_link(&self, record: &Record, place: &Place, rest: &Rest) -> Break {
        let next = self.sequence + 1;
        let found = record.sequence;
        if found > next {
            let (kind, detail) = match (rest.continuation, rest.copy) {
                (true, true) => {
                    (BreakKind::Inserted, format!("a copy of record {found}, which stands further down"))
                }
                (true, false) => {
                    (BreakKind::Reordered, format!("record {found} stands where record {next} belongs"))
                }
                (false, _) => (BreakKind::Removed, self.explain_gap(found, place)),
            };
            return Break::new(kind, place, next, detail);
        }
        if found == next {
            return self.decide_rival_link(place, rest);
        }
        // Every number up to the last is taken, so one of two records is not of this chain: this
        // one, or those that stand where its successors belong.
        let rival = self.recent.iter().find(|(other, _)| other.sequence == found);
        match rival {
            Some((other, other_place))
                if rest.follower
                    && other.hash != record.hash
                    && other.previous_hash == record.previous_hash =>
            {
                let detail = "the chain goes on after it as if it were not there".to_owned();
                Break::new(BreakKind::Inserted, other_place, found, detail)
            }
            Some((other, _)) if other.hash == record.hash => {
                Break::new(BreakKind::Inserted, place, next, format!("a copy of record {found}"))
            }
            _ => Break::new(BreakKind::Inserted, place, next, format!("there is a record {found} already")),
        }
    }

    /// The number is right and the link is not: a record was changed and given a new hash. It is
    /// the one before, whose old hash this record still carries.
    fn decide_rival_link(&self, place: &Place, rest: &Rest) -> Break {
        if rest.continuation {
            let detail = "it does not continue the record before it, and one further down does".to_owned();
            return Break::new(BreakKind::Inserted, place, self.sequence + 1, detail);
        }
        match self.recent.last() {
            Some((_, before)) => {
                let detail = "it was given a new hash, and the next record carries the old one".to_owned();
                Break::new(BreakKind::Edited, before, self.sequence, detail)
            }
            None => {
                let detail = "the first record must carry 64 zeros as the hash before it".to_owned();
                Break::new(BreakKind::Edited, place, 1, detail)
            }
        }
    }

    fn explain_gap(&self, found: u64, place: &Place) -> String {
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

    fn explain_missing_members(&self, fault: &ParseError) -> String {
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
    pub(super) fn end_of_log(&self, last: Option<&Place>, missing_segment: Option<u64>) -> Option<Break> {
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
        Some(Break::after(kind, last, self.sequence + 1, detail))
    }
}
