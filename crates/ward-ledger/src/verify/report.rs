//! The report of a verification, for people and for programs.

use std::fmt;
use std::path::PathBuf;

use serde::Serialize;

use crate::hash::Sha256Hash;
use crate::key::KeyId;
use crate::lines::LinePosition;
use crate::plural::{plural_suffix, record_count};

/// The result of verifying a log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct VerificationReport {
    /// The path of the log that was verified.
    pub log: PathBuf,
    /// The number of sound records, counted from the first record to the first break.
    pub records: u64,
    /// The number of segments of the log, including the current segment.
    pub segments: u64,
    /// The hash of the last sound record. If you keep it somewhere else, nobody can rewrite the log
    /// unnoticed, not even with the key.
    pub last_hash: Option<Sha256Hash>,
    /// The first broken link, if any.
    pub broken: Option<ChainBreak>,
    /// A half-written line that a crash left at the end. The next writer moves it to a file of its own.
    pub torn: Option<TornLine>,
    /// The names of files that are named like segments of this log but are not part of it. They were not
    /// read.
    pub strays: Vec<String>,
    /// The result of checking for missing records at the end.
    pub completeness: LogCompleteness,
    /// The result of checking the signatures.
    pub authenticity: LogAuthenticity,
}

impl VerificationReport {
    /// Returns true if the verification found nothing wrong.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        let complete = match self.completeness {
            // A copy of an unsigned log may be verified without its head.
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

/// The place and kind of a broken link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ChainBreak {
    /// The kind of change that broke the link.
    pub kind: BreakKind,
    /// The name of the file that contains the line.
    pub segment: String,
    /// The line number in the file, starting at 1.
    pub line: u64,
    /// The number of the record that belongs here.
    pub sequence: u64,
    /// The evidence, as a sentence for people.
    pub detail: String,
}

impl ChainBreak {
    pub(super) fn new(kind: BreakKind, position: &LinePosition, sequence: u64, detail: String) -> Self {
        Self { kind, segment: position.segment.name(), line: position.line, sequence, detail }
    }

    /// Creates a break after the last line.
    pub(super) fn after(kind: BreakKind, last: Option<&LinePosition>, sequence: u64, detail: String) -> Self {
        let (segment, line) =
            last.map_or((String::new(), 0), |position| (position.segment.name(), position.line));
        Self { kind, segment, line: line + 1, sequence, detail }
    }
}

/// The kind of change that broke a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BreakKind {
    /// The content of a record was changed.
    Edited,
    /// Records are missing between others.
    Removed,
    /// A record was added that is not part of the chain.
    Inserted,
    /// A record was moved to another place.
    Reordered,
    /// The last records, or the end of a line or segment, were cut off.
    Truncated,
    /// A line is not a JSON object.
    NotJson,
    /// A record is signed with a different key.
    WrongKey,
}

/// A last line without a newline.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TornLine {
    /// The name of the file that contains the line.
    pub segment: String,
    /// The line number in the file, starting at 1.
    pub line: u64,
    /// The length of the line in bytes.
    pub bytes: u64,
}

/// The result of checking for missing records at the end of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LogCompleteness {
    /// All records that the head covers are present.
    Complete {
        /// The number of records that the head covers.
        covered: u64,
        /// The number of records after those. Their links are intact, but removing them would go unnoticed. A
        /// crash between writing the log and the head leaves such records until the next writer updates the
        /// head.
        uncovered: u64,
    },
    /// Records that the head covers are missing.
    Cut {
        /// The number of records that the head covers.
        covered: u64,
        /// The number of records that are left.
        found: u64,
    },
    /// The chain breaks before its end, so the end was not checked.
    NotReached {
        /// The number of records that the head covers.
        covered: u64,
    },
    /// There is no head, so missing records would go unnoticed.
    NoHead,
    /// There is no head, although a log that is or should be signed always has one.
    HeadMissing,
    /// The head is damaged, so missing records would go unnoticed.
    HeadUnreadable,
    /// The head was not written by the holder of the key.
    HeadForged,
    /// The head is signed with a different key.
    HeadOfOtherKey {
        /// The key that signed the head.
        key_id: KeyId,
    },
}

/// The result of checking the signatures of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LogAuthenticity {
    /// The log is not signed, so anybody who can write the files can rewrite the log.
    Unsigned,
    /// The log is not signed, although a key was given. Anybody may have put this log in the place of a
    /// signed one.
    NotSigned {
        /// The key that was given.
        given: KeyId,
    },
    /// Every record from `from` up to the first break is signed with the given key.
    Signed {
        /// The id of the key.
        key_id: KeyId,
        /// The number of the first signed record. If it is not 1, this record adopts the records before it,
        /// and so covers them.
        from: u64,
    },
    /// Every record from `from` on is signed with the given key, but that record doesn't adopt the records
    /// before it, so anybody may have written those.
    NotAdopted {
        /// The id of the key.
        key_id: KeyId,
        /// The number of the first signed record.
        from: u64,
    },
    /// The log is signed, but no key was given to check it.
    NoKey {
        /// The id of the key that is needed.
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
            Self::Complete { covered, uncovered: 0 } => {
                write!(formatter, "the head covers the whole log, {}", record_count(*covered))
            }
            Self::Complete { covered, uncovered } => write!(
                formatter,
                "the head covers the first {}, but not the last {uncovered}",
                record_count(*covered)
            ),
            Self::Cut { covered, found } => {
                write!(formatter, "the head covers {}, but the log has {found}", record_count(*covered))
            }
            Self::NotReached { covered } => {
                write!(formatter, "not checked after the break; the head covers {}", record_count(*covered))
            }
            Self::NoHead => {
                formatter.write_str("unknown: there is no head, so missing records would go unnoticed")
            }
            Self::HeadMissing => formatter.write_str("the head is missing, but a signed log always has one"),
            Self::HeadUnreadable => {
                formatter.write_str("unknown: the head is damaged, so missing records would go unnoticed")
            }
            Self::HeadForged => formatter.write_str("the head was not written by the holder of the key"),
            Self::HeadOfOtherKey { key_id } => {
                write!(formatter, "the head is signed with a different key, {key_id}")
            }
        }
    }
}

impl fmt::Display for LogAuthenticity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsigned => {
                formatter.write_str("not signed: anybody who can write the files can rewrite the log")
            }
            Self::NotSigned { given } => {
                write!(formatter, "not signed with key {given}: anybody may have written it")
            }
            Self::Signed { key_id, from: 1 } => write!(formatter, "signed with key {key_id}"),
            Self::Signed { key_id, from } => {
                write!(
                    formatter,
                    "signed with key {key_id} from record {from} on, which adopts the records before it"
                )
            }
            Self::NotAdopted { key_id, from } => write!(
                formatter,
                "signed with key {key_id} from record {from} on, which doesn't adopt the records before it"
            ),
            Self::NoKey { key_id } => write!(formatter, "not checked: key {key_id} is needed"),
        }
    }
}

impl fmt::Display for VerificationReport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (records, segments) = (self.records, self.segments);
        writeln!(
            formatter,
            "{}: {records} sound record{} in {segments} segment{}",
            self.log.display(),
            plural_suffix(records),
            plural_suffix(segments)
        )?;
        match &self.broken {
            Some(broken) => writeln!(formatter, "integrity:    {broken}")?,
            None => writeln!(formatter, "integrity:    every link is intact")?,
        }
        if let Some(TornLine { segment, line, bytes }) = &self.torn {
            writeln!(
                formatter,
                "torn end:     {bytes} byte{} of an unfinished record ({segment}, line {line}); the next writer moves this line aside",
                plural_suffix(*bytes)
            )?;
        }
        if !self.strays.is_empty() {
            let strays = self.strays.join(", ");
            writeln!(
                formatter,
                "strays:       {strays} (named like segments, but not part of this log; move them aside)"
            )?;
        }
        writeln!(formatter, "completeness: {}", self.completeness)?;
        writeln!(formatter, "authenticity: {}", self.authenticity)?;
        match self.last_hash {
            Some(hash) => write!(formatter, "last hash:    {hash}"),
            None => write!(formatter, "last hash:    none"),
        }
    }
}
