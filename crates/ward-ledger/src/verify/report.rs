//! What a check found, for people and for programs.

use std::fmt;
use std::path::PathBuf;

use serde::Serialize;

use crate::hash::Sha256Hash;
use crate::key::KeyId;
use crate::lines::LinePosition;

/// The outcome of a check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct VerificationReport {
    /// The log that was checked.
    pub log: PathBuf,
    /// How many records in a row are sound, from the first.
    pub records: u64,
    /// How many files the log has.
    pub segments: u64,
    /// The hash of the last sound record: write it down elsewhere, and nobody can rewrite the
    /// log unnoticed, not even with the key.
    pub last_hash: Option<Sha256Hash>,
    /// The first broken link.
    pub broken: Option<ChainBreak>,
    /// What a crash left half-written at the end; the next writer puts it aside.
    pub torn: Option<TornLine>,
    /// Files that are named like segments of this log and are none. What they hold was not read.
    pub strays: Vec<String>,
    /// Whether anything is missing at the end.
    pub completeness: LogCompleteness,
    /// Whether the holder of the key wrote it.
    pub authenticity: LogAuthenticity,
}

impl VerificationReport {
    /// Whether nothing speaks against the log.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        let complete = match self.completeness {
            // Of a log without signatures a lone copy may be checked.
            LogCompleteness::Complete { .. } | LogCompleteness::NoHead => true,
            LogCompleteness::HeadMissing
            | LogCompleteness::HeadUnreadable
            | LogCompleteness::HeadForged
            | LogCompleteness::HeadOfOtherKey { .. }
            | LogCompleteness::NotReached { .. }
            | LogCompleteness::Cut { .. } => false,
        };
        let authentic = match self.authenticity {
            LogAuthenticity::Unsigned | LogAuthenticity::Signed { .. } => true,
            LogAuthenticity::NotSigned { .. }
            | LogAuthenticity::NotAdopted { .. }
            | LogAuthenticity::NoKey { .. } => false,
        };
        self.broken.is_none() && self.strays.is_empty() && complete && authentic
    }
}

/// A broken link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ChainBreak {
    /// What was done.
    pub kind: BreakKind,
    /// The file.
    pub segment: String,
    /// The line in it, from 1.
    pub line: u64,
    /// The number of the record that should be there.
    pub sequence: u64,
    /// The evidence.
    pub detail: String,
}

impl ChainBreak {
    pub(super) fn new(kind: BreakKind, place: &LinePosition, sequence: u64, detail: String) -> Self {
        Self { kind, segment: place.segment.name(), line: place.line, sequence, detail }
    }

    /// A break behind the last line.
    pub(super) fn after(kind: BreakKind, last: Option<&LinePosition>, sequence: u64, detail: String) -> Self {
        let (segment, line) = last.map_or((String::new(), 0), |place| (place.segment.name(), place.line));
        Self { kind, segment, line: line + 1, sequence, detail }
    }
}

/// What was done to a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BreakKind {
    /// The content of a record was changed.
    Edited,
    /// Records are missing between others.
    Removed,
    /// A record was added that the chain doesn't know.
    Inserted,
    /// A record stands in another place.
    Reordered,
    /// Something was cut off: the last records, or the end of a line or segment.
    Truncated,
    /// A line is no JSON object.
    NotJson,
    /// A record is signed with another key.
    WrongKey,
}

/// A last line without an end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TornLine {
    /// The file.
    pub segment: String,
    /// The line in it, from 1.
    pub line: u64,
    /// How many bytes there are.
    pub bytes: u64,
}

/// Whether records are missing at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LogCompleteness {
    /// All that the head vouches for is there.
    Complete {
        /// How many records that is.
        vouched: u64,
        /// Records after those: sound links, but cutting them off would not be noticed. A crash
        /// between log and head leaves some, until the next writer comes.
        unvouched: u64,
    },
    /// Records that the head vouches for are gone.
    Cut {
        /// How many there were.
        vouched: u64,
        /// How many there are.
        found: u64,
    },
    /// The chain breaks before its end.
    NotReached {
        /// How many records the head vouches for.
        vouched: u64,
    },
    /// There is no head: a cut would not be noticed.
    NoHead,
    /// There is no head, and a log that is signed, or should be, always has one.
    HeadMissing,
    /// The head is damaged: a cut would not be noticed.
    HeadUnreadable,
    /// The head was not written by the holder of the key.
    HeadForged,
    /// The head is signed with another key.
    HeadOfOtherKey {
        /// The key that signed it.
        key_id: KeyId,
    },
}

/// Whether the holder of the key wrote the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LogAuthenticity {
    /// There are no signatures: whoever can write the files can also write them anew.
    Unsigned,
    /// There are no signatures, and a key was given to check them with: anybody may have put this
    /// in the place of a signed log.
    NotSigned {
        /// The key that was given.
        given: KeyId,
    },
    /// Every record from `from` on was signed with the key that was given, up to the first break.
    Signed {
        /// The key.
        key_id: KeyId,
        /// The first signed record. If it is not the very first, it tells that those before it
        /// were adopted, and vouches for them.
        from: u64,
    },
    /// Signed with the key that was given from `from` on, which does not tell of an adoption: the
    /// records before it may be anybody's.
    NotAdopted {
        /// The key.
        key_id: KeyId,
        /// The first signed record.
        from: u64,
    },
    /// The log is signed, and the key to check it was not given.
    NoKey {
        /// The key that is needed.
        key_id: KeyId,
    },
}

impl fmt::Display for BreakKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Edited => "edited",
            Self::Removed => "removed",
            Self::Inserted => "inserted",
            Self::Reordered => "reordered",
            Self::Truncated => "truncated",
            Self::NotJson => "not JSON",
            Self::WrongKey => "wrong key",
        })
    }
}

impl fmt::Display for ChainBreak {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, segment, line, sequence, detail } = self;
        write!(formatter, "broken at record {sequence} ({segment}, line {line}), {kind}: {detail}")
    }
}

impl fmt::Display for LogCompleteness {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Complete { vouched, unvouched: 0 } => {
                write!(formatter, "the head vouches for all {vouched} records")
            }
            Self::Complete { vouched, unvouched } => write!(
                formatter,
                "the head vouches for {vouched} records; nothing vouches for the {unvouched} after them"
            ),
            Self::Cut { vouched, found } => {
                write!(formatter, "the head vouches for {vouched} records, and there are {found}")
            }
            Self::NotReached { vouched } => {
                write!(formatter, "not judged behind the break; the head vouches for {vouched} records")
            }
            Self::NoHead => {
                formatter.write_str("unknown: there is no head, so that a cut end would not show")
            }
            Self::HeadMissing => formatter.write_str("the head is gone, and a signed log always has one"),
            Self::HeadUnreadable => {
                formatter.write_str("unknown: the head is damaged, so that a cut end would not show")
            }
            Self::HeadForged => formatter.write_str("the head was not written by the holder of the key"),
            Self::HeadOfOtherKey { key_id } => {
                write!(formatter, "the head is signed with another key, {key_id}")
            }
        }
    }
}

impl fmt::Display for LogAuthenticity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsigned => {
                formatter.write_str("not signed: whoever can write the files can rewrite all of it")
            }
            Self::NotSigned { given } => {
                write!(formatter, "not signed with key {given}: anybody may have written it")
            }
            Self::Signed { key_id, from: 1 } => write!(formatter, "signed with key {key_id}"),
            Self::Signed { key_id, from } => {
                write!(
                    formatter,
                    "signed with key {key_id} from record {from} on, which adopted those before it"
                )
            }
            Self::NotAdopted { key_id, from } => write!(
                formatter,
                "signed with key {key_id} from record {from} on, and nothing tells that those before it were adopted"
            ),
            Self::NoKey { key_id } => write!(formatter, "not checked: it needs key {key_id}"),
        }
    }
}

impl fmt::Display for VerificationReport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = |count: u64| if count == 1 { "" } else { "s" };
        let (records, segments) = (self.records, self.segments);
        writeln!(
            formatter,
            "{}: {records} sound record{} in {segments} segment{}",
            self.log.display(),
            plural(records),
            plural(segments)
        )?;
        match &self.broken {
            Some(broken) => writeln!(formatter, "integrity:    {broken}")?,
            None => writeln!(formatter, "integrity:    every link holds")?,
        }
        if let Some(TornLine { segment, line, bytes }) = &self.torn {
            writeln!(
                formatter,
                "torn end:     {bytes} bytes of an unfinished record ({segment}, line {line}), for the next writer to put aside"
            )?;
        }
        if !self.strays.is_empty() {
            let strays = self.strays.join(", ");
            writeln!(formatter, "strays:       {strays}, named like segments of this log; move them aside")?;
        }
        writeln!(formatter, "completeness: {}", self.completeness)?;
        writeln!(formatter, "authenticity: {}", self.authenticity)?;
        match self.last_hash {
            Some(hash) => write!(formatter, "last hash:    {hash}"),
            None => write!(formatter, "last hash:    none"),
        }
    }
}
