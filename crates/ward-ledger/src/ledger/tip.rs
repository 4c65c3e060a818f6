//! Finds the end of the chain on disk, checks it against the head, and writes new lines after it.

use std::cmp::Ordering;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

use super::last_seen::LastSeenRecord;
use super::options::AdoptionOptions;
use super::{AppendedRecord, HeadRecovery, LedgerRecovery, torn_tail};
use crate::error::{LedgerAppendError, LedgerOpenError};
use crate::files::{self, FileIdentity, SiblingFiles};
use crate::hash::Sha256Hash;
use crate::head::{self, HeadSignature, LedgerHead, LedgerHeadState};
use crate::key::{KeyId, LedgerKey};
use crate::record::{CheckedRecord, RecordIntegrity, RecordReader};
use crate::tail::{LinesFromEnd, find_last_line_end};

/// The end of the chain, where the next record is written.
#[derive(Debug)]
pub(super) struct ChainTip {
    /// The current segment, at the path of the log.
    pub(super) file: File,
    pub(super) identity: FileIdentity,
    pub(super) length: u64,
    /// The number that the current segment will have once it is closed.
    pub(super) segment: u64,
    /// The number of the last record.
    pub(super) sequence: u64,
    pub(super) hash: Sha256Hash,
}

impl ChainTip {
    /// Closes the current segment and starts the next one.
    ///
    /// A crash after the rename leaves only closed segments and no log file. The next opener then creates the
    /// file and continues after the last closed segment. Other writers notice that the path leads to a
    /// different file, and read the end of the chain again.
    pub(super) fn rotate(&mut self, log: &Path) -> Result<(), LedgerOpenError> {
        let closed = files::segment_path(log, self.segment);
        let file_error = |path: &Path| {
            let path = path.to_owned();
            move |source| LedgerOpenError::File { step: "close the segment as", path, source }
        };
        if files::stat_path(&closed).map_err(file_error(&closed))?.is_some() {
            let taken =
                io::Error::new(io::ErrorKind::AlreadyExists, "another file is in the way; move it aside");
            return Err(file_error(&closed)(taken));
        }
        let rotate = || {
            fs::rename(log, &closed)?;
            let file = files::open_or_create_to_append(log)?;
            files::sync_parent_folder(log)?;
            let identity = FileIdentity::from_metadata(&file.metadata()?);
            Ok((file, identity))
        };
        let (file, identity) = rotate().map_err(file_error(&closed))?;
        *self = Self { file, identity, length: 0, segment: self.segment + 1, ..*self };
        Ok(())
    }

    /// Writes lines at the end of the log and syncs them to disk. If that fails, rolls the write back.
    pub(super) fn write(&mut self, log: &Path, lines: &[u8]) -> Result<(), LedgerAppendError> {
        self.file.write_all(lines).map_err(|source| self.roll_back(log, "write to", source))?;
        self.file.sync_data().map_err(|source| self.roll_back(log, "sync", source))
    }

    /// Moves the tip past lines that have been written.
    pub(super) fn advance(&mut self, bytes: u64, last: &AppendedRecord) {
        self.length += bytes;
        (self.sequence, self.hash) = (last.sequence, last.hash);
    }

    /// Cuts off the partial lines of a failed write, and returns the error to report.
    pub(super) fn roll_back(&self, log: &Path, step: &'static str, source: io::Error) -> LedgerAppendError {
        let path = log.to_owned();
        match self.file.set_len(self.length).and_then(|()| self.file.sync_data()) {
            Ok(()) => LedgerAppendError::Write { step, path, source },
            Err(rollback) => LedgerAppendError::Rollback { step, path, source, rollback },
        }
    }
}

/// The inputs for finding the end of the chain. The caller must hold the lock.
#[derive(Clone, Copy)]
pub(super) struct TipSearch<'a> {
    pub(super) log: &'a Path,
    pub(super) head_file: &'a File,
    pub(super) reader: &'a RecordReader,
    pub(super) key: Option<&'a LedgerKey>,
}

impl TipSearch<'_> {
    /// Returns true if the chain still ends at `tip`: the file and its length are the same, the last record
    /// is the same, and the head covers exactly that record.
    pub(super) fn is_current_tip(self, tip: &ChainTip) -> io::Result<bool> {
        if tip.length == 0 || files::stat_path(self.log)? != Some((tip.identity, tip.length)) {
            return Ok(false);
        }
        let Some(line) = LinesFromEnd::new(&tip.file, tip.length).next_line()? else { return Ok(false) };
        let Ok(record) = self.reader.read(&line) else { return Ok(false) };
        let head = head::read(self.head_file, self.key)?;
        let authentic = head.as_written().is_some_and(|head| match self.key {
            Some(_) => {
                matches!(
                    (head.signature, record.integrity),
                    (HeadSignature::Valid(_), RecordIntegrity::Signed(_))
                )
            }
            None => {
                (head.signature, record.integrity) == (HeadSignature::Unsigned, RecordIntegrity::Unsigned)
            }
        });
        let ends =
            [Some((record.sequence, record.hash)), head.as_written().map(|head| (head.count, head.hash))];
        Ok(authentic && ends.iter().all(|end| *end == Some((tip.sequence, tip.hash))))
    }

    /// Finds the end of the chain, and moves a torn line to a file of its own. The caller has to record that
    /// and update the head.
    pub(super) fn find_tip(
        self,
        adoption: AdoptionOptions,
        known: Option<LastSeenRecord>,
    ) -> Result<(ChainTip, LedgerRecovery), LedgerOpenError> {
        let log = self.log;
        let log_error = |step| move |source| LedgerOpenError::File { step, path: log.to_owned(), source };
        let head = head::read(self.head_file, self.key).map_err(log_error("read the head of"))?;
        let covered_segment = head.as_written().map(|head| head.segment);
        let siblings = files::list_siblings(log, covered_segment).map_err(log_error("list the files of"))?;
        if let Some(number) = siblings.missing {
            return Err(LedgerOpenError::SegmentMissing { path: files::segment_path(log, number) });
        }
        let SiblingFiles { closed, mut torn, .. } = siblings;
        let new = files::stat_path(log).map_err(log_error("inspect"))?.is_none();
        let file = files::open_or_create_to_append(log).map_err(log_error("open"))?;
        if new {
            files::sync_parent_folder(log).map_err(log_error("create"))?;
        }
        let metadata = file.metadata().map_err(log_error("inspect"))?;
        let length = find_last_line_end(&file, metadata.len()).map_err(log_error("read"))?;

        let last = self.last_record(&file, length, closed.last().copied())?;
        let (sequence, hash) = last.map_or((0, Sha256Hash::GENESIS), |record| (record.sequence, record.hash));
        let head = self.check_against_head(head, last, (&file, length), adoption)?;
        let segment = closed.last().map_or(1, |number| number + 1);
        if let Some(known) = known {
            let is_present = known.is_still_present(log, segment, self.reader).map_err(log_error("read"))?;
            if !is_present || sequence < known.sequence {
                return Err(LedgerOpenError::Replaced { path: log.to_owned(), known: known.sequence });
            }
        }

        if length < metadata.len() {
            let name = torn_tail::move_to_torn_file(log, &file, length, sequence + 1);
            torn.push(name.map_err(log_error("move the torn end of"))?);
        }
        let torn = torn_tail::unreported_tails(log, &torn, sequence + 1)
            .map_err(log_error("list the torn ends of"))?;
        let tip = ChainTip {
            file,
            identity: FileIdentity::from_metadata(&metadata),
            length,
            segment,
            sequence,
            hash,
        };
        Ok((tip, LedgerRecovery { torn, head }))
    }

    /// Returns the last record of the current segment or, if that is empty, of the last closed segment.
    fn last_record(
        &self,
        file: &File,
        end: u64,
        closed: Option<u64>,
    ) -> Result<Option<CheckedRecord>, LedgerOpenError> {
        if let Some(record) = self.read_record_before(&mut LinesFromEnd::new(file, end), self.log)? {
            return Ok(Some(record));
        }
        let Some(number) = closed else { return Ok(None) };
        let path = &files::segment_path(self.log, number);
        let file_error = |step| move |source| LedgerOpenError::File { step, path: path.clone(), source };
        let file = files::open_existing(path).map_err(file_error("open"))?;
        let length = file.metadata().map_err(file_error("inspect"))?.len();
        let end = find_last_line_end(&file, length).map_err(file_error("read"))?;
        if end < length || end == 0 {
            return Err(broken_record_error(
                path,
                "the closed segment ends in the middle of a record".to_owned(),
            ));
        }
        self.read_record_before(&mut LinesFromEnd::new(&file, end), path)
    }

    fn read_record_before(
        &self,
        lines: &mut LinesFromEnd<'_>,
        path: &Path,
    ) -> Result<Option<CheckedRecord>, LedgerOpenError> {
        let line = lines.next_line().map_err(|source| LedgerOpenError::File {
            step: "read",
            path: path.to_owned(),
            source,
        })?;
        let Some(line) = line else { return Ok(None) };
        let record = self.reader.read(&line).map_err(|error| broken_record_error(path, error.to_string()))?;
        match record.integrity {
            RecordIntegrity::Unsigned | RecordIntegrity::Signed(_) => Ok(Some(record)),
            RecordIntegrity::HashMismatch => {
                Err(broken_record_error(path, "its hash doesn't match its content".to_owned()))
            }
            RecordIntegrity::NotCanonical => {
                Err(broken_record_error(path, "it is not in canonical form".to_owned()))
            }
            RecordIntegrity::Forged(_) => {
                Err(broken_record_error(path, "its MAC was not made with this key".to_owned()))
            }
            RecordIntegrity::Unchecked(key_id) => Err(self.key_mismatch_error(key_id)),
        }
    }

    fn key_mismatch_error(&self, key_id: KeyId) -> LedgerOpenError {
        let path = self.log.to_owned();
        match self.key {
            None => LedgerOpenError::KeyNeeded { path, key_id },
            Some(key) => LedgerOpenError::WrongKey { path, key_id, given: key.id() },
        }
    }

    /// Checks that the head covers the chain that ends with `last`, and that the chain may be continued.
    /// Later signatures vouch for all earlier records. So if there is a key, records that can't be checked
    /// are rejected, unless somebody has decided to adopt them.
    fn check_against_head(
        &self,
        head: LedgerHeadState,
        last: Option<CheckedRecord>,
        (file, end): (&File, u64),
        adoption: AdoptionOptions,
    ) -> Result<HeadRecovery, LedgerOpenError> {
        let integrity = last.map(|record| record.integrity);
        let head = match head {
            LedgerHeadState::Written(head) => head,
            LedgerHeadState::Empty if last.is_none() => return Ok(HeadRecovery::Begun),
            LedgerHeadState::Unreadable if last.is_none() => return Ok(HeadRecovery::Replaced),
            LedgerHeadState::Empty | LedgerHeadState::Unreadable => {
                self.check_signed(integrity, adoption)?;
                if !adoption.without_head {
                    return Err(LedgerOpenError::HeadMissing { path: self.log.to_owned() });
                }
                return Ok(HeadRecovery::Replaced);
            }
        };
        match (head.signature, integrity) {
            (HeadSignature::Forged(_), _) => {
                return Err(self.head_mismatch_error("its signature was not made with this key"));
            }
            (HeadSignature::Unchecked(key_id), _) => return Err(self.key_mismatch_error(key_id)),
            (HeadSignature::Unsigned, Some(RecordIntegrity::Signed(_))) if !adoption.unsigned => {
                return Err(self.head_mismatch_error("it is not signed, but the last record is"));
            }
            (HeadSignature::Valid(_), Some(RecordIntegrity::Unsigned)) => {
                return Err(
                    self.head_mismatch_error("it is signed, but the last record was added without the key")
                );
            }
            (HeadSignature::Unsigned, _) => self.check_signed(integrity, adoption)?,
            (HeadSignature::Valid(_), _) => {}
        }
        let (found, hash) = last.map_or((0, Sha256Hash::GENESIS), |record| (record.sequence, record.hash));
        match found.cmp(&head.count) {
            Ordering::Less => {
                return Err(LedgerOpenError::Truncated {
                    path: self.log.to_owned(),
                    covered: head.count,
                    found,
                });
            }
            Ordering::Equal if hash != head.hash => {
                return Err(self.head_mismatch_error("it has the hash of a different last record"));
            }
            Ordering::Equal => {}
            Ordering::Greater => self.verify_back_to_head(&head, file, end)?,
        }
        Ok(match (head.signature, self.key) {
            (HeadSignature::Unsigned, Some(_)) if last.is_none() => HeadRecovery::Begun,
            (HeadSignature::Unsigned, Some(_)) => HeadRecovery::Signed,
            _ if found > head.count => HeadRecovery::BroughtForward { from: head.count, to: found },
            _ => HeadRecovery::InOrder,
        })
    }

    /// Rejects unsigned records if there is a key, unless somebody has decided to adopt them.
    fn check_signed(
        &self,
        integrity: Option<RecordIntegrity>,
        adoption: AdoptionOptions,
    ) -> Result<(), LedgerOpenError> {
        match self.key {
            Some(key) if integrity == Some(RecordIntegrity::Unsigned) && !adoption.unsigned => {
                Err(LedgerOpenError::NotSigned { path: self.log.to_owned(), given: key.id() })
            }
            _ => Ok(()),
        }
    }

    /// Checks every link from the end of the log back to the record that the head covers. All these
    /// records are in the current segment, because a writer updates the head before it starts another
    /// segment.
    fn verify_back_to_head(&self, head: &LedgerHead, file: &File, end: u64) -> Result<(), LedgerOpenError> {
        let mut lines = LinesFromEnd::new(file, end);
        let mut expected: Option<(u64, Sha256Hash)> = None;
        while let Some(record) = self.read_record_before(&mut lines, self.log)? {
            if expected.is_some_and(|expected| expected != (record.sequence, record.hash)) {
                break;
            }
            if record.sequence == head.count + 1 {
                if record.previous_hash == head.hash {
                    return Ok(());
                }
                break;
            }
            expected = Some((record.sequence.saturating_sub(1), record.previous_hash));
        }
        Err(self.head_mismatch_error("the newer records don't continue those that it covers"))
    }

    fn head_mismatch_error(&self, fault: &str) -> LedgerOpenError {
        LedgerOpenError::HeadMismatch { path: files::head_path(self.log), fault: fault.to_owned() }
    }
}

fn broken_record_error(path: &Path, fault: String) -> LedgerOpenError {
    LedgerOpenError::LastRecordDamaged { path: path.to_owned(), fault }
}
