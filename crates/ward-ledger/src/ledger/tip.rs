//! The end of a chain, found on disk and checked against the head.

use std::cmp::Ordering;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

use super::known::Known;
use super::options::Adoption;
use super::{Appended, HeadRecovery, Recovery, torn};
use crate::error::{AppendError, OpenError};
use crate::files::{self, Identity, Siblings};
use crate::hash::Hash;
use crate::head::{self, Head, HeadFile, Signature};
use crate::key::{Key, KeyId};
use crate::record::{Own, Record, RecordReader};
use crate::tail::{LinesFromEnd, end_of_last_line};

/// Where the next record goes.
#[derive(Debug)]
pub(super) struct Tip {
    /// The segment that is being written, at the path of the log.
    pub(super) file: File,
    pub(super) identity: Identity,
    pub(super) length: u64,
    /// The number that the segment will have once it is closed.
    pub(super) segment: u64,
    /// Number and hash of the last record.
    pub(super) sequence: u64,
    pub(super) hash: Hash,
}

impl Tip {
    /// Closes the segment that is being written and begins the next one.
    ///
    /// A crash after the renaming leaves no log file, only closed segments: the next opener makes
    /// the file and goes on from the last of them. Other processes notice that the file at the
    /// path is another one and look again.
    pub(super) fn rotate(&mut self, log: &Path) -> Result<(), OpenError> {
        let closed = files::segment_path(log, self.segment);
        let file_error = |path: &Path| {
            let path = path.to_owned();
            move |source| OpenError::File { step: "close the segment to", path, source }
        };
        if files::look_at(&closed).map_err(file_error(&closed))?.is_some() {
            let taken = io::Error::new(io::ErrorKind::AlreadyExists, "a file is in the way: move it aside");
            return Err(file_error(&closed)(taken));
        }
        let rotate = || {
            fs::rename(log, &closed)?;
            let file = files::open_or_create_to_append(log)?;
            files::sync_folder_of(log)?;
            let identity = Identity::of(&file.metadata()?);
            Ok((file, identity))
        };
        let (file, identity) = rotate().map_err(file_error(&closed))?;
        *self = Self { file, identity, length: 0, segment: self.segment + 1, ..*self };
        Ok(())
    }

    /// Writes lines behind the last and makes them durable, or takes back what came of it.
    pub(super) fn write(&mut self, log: &Path, lines: &[u8]) -> Result<(), AppendError> {
        self.file.write_all(lines).map_err(|source| self.take_back(log, "write to", source))?;
        self.file.sync_data().map_err(|source| self.take_back(log, "make durable", source))
    }

    /// Moves on behind lines that have been written.
    pub(super) fn advance(&mut self, bytes: u64, last: &Appended) {
        self.length += bytes;
        (self.sequence, self.hash) = (last.sequence, last.hash);
    }

    /// Cuts off what a failed write left behind.
    pub(super) fn take_back(&self, log: &Path, step: &'static str, source: io::Error) -> AppendError {
        let path = log.to_owned();
        match self.file.set_len(self.length).and_then(|()| self.file.sync_data()) {
            Ok(()) => AppendError::Write { step, path, source },
            Err(rollback) => AppendError::Rollback { step, path, source, rollback },
        }
    }
}

/// Everything that the end of a chain is found with. Needs the lock.
#[derive(Clone, Copy)]
pub(super) struct Search<'a> {
    pub(super) log: &'a Path,
    pub(super) head_file: &'a File,
    pub(super) reader: &'a RecordReader,
    pub(super) key: Option<&'a Key>,
}

impl Search<'_> {
    /// Whether the chain still ends where this process remembers it to: the same file, no longer,
    /// with the same last record, and a head that vouches for just that.
    pub(super) fn is_still_the_end(self, tip: &Tip) -> io::Result<bool> {
        if tip.length == 0 || files::look_at(self.log)? != Some((tip.identity, tip.length)) {
            return Ok(false);
        }
        let Some(line) = LinesFromEnd::new(&tip.file, tip.length).next_line()? else { return Ok(false) };
        let Ok(record) = self.reader.read(&line) else { return Ok(false) };
        let head = head::read(self.head_file, self.key)?;
        let authentic = head.written().is_some_and(|head| match self.key {
            Some(_) => {
                matches!((head.signature, record.own), (Signature::Valid(_), Own::Signed(_)))
            }
            None => (head.signature, record.own) == (Signature::Unsigned, Own::Plain),
        });
        let ends = [Some((record.sequence, record.hash)), head.written().map(|head| (head.count, head.hash))];
        Ok(authentic && ends.iter().all(|end| *end == Some((tip.sequence, tip.hash))))
    }

    /// Finds the end of the chain and puts a torn line aside. Telling of it, and bringing the head
    /// in order, is left to the caller.
    pub(super) fn load(self, adoption: Adoption, known: Option<Known>) -> Result<(Tip, Recovery), OpenError> {
        let log = self.log;
        let log_error = |step| move |source| OpenError::File { step, path: log.to_owned(), source };
        let head = head::read(self.head_file, self.key).map_err(log_error("read the head of"))?;
        let vouched_segment = head.written().map(|head| head.segment);
        let siblings = files::siblings(log, vouched_segment).map_err(log_error("list the files of"))?;
        if let Some(number) = siblings.missing {
            return Err(OpenError::SegmentMissing { path: files::segment_path(log, number) });
        }
        let Siblings { closed, mut torn, .. } = siblings;
        let new = files::look_at(log).map_err(log_error("look at"))?.is_none();
        let file = files::open_or_create_to_append(log).map_err(log_error("open"))?;
        if new {
            files::sync_folder_of(log).map_err(log_error("create"))?;
        }
        let metadata = file.metadata().map_err(log_error("look at"))?;
        let length = end_of_last_line(&file, metadata.len()).map_err(log_error("read"))?;

        let last = self.last_record(&file, length, closed.last().copied())?;
        let (sequence, hash) = last.map_or((0, Hash::GENESIS), |record| (record.sequence, record.hash));
        let head = self.compare(head, last, (&file, length), adoption)?;
        let segment = closed.last().map_or(1, |number| number + 1);
        if let Some(known) = known {
            let is_there = known.is_still_there(log, segment, self.reader).map_err(log_error("read"))?;
            if !is_there || sequence < known.sequence {
                return Err(OpenError::Exchanged { path: log.to_owned(), known: known.sequence });
            }
        }

        if length < metadata.len() {
            let name = torn::set_aside(log, &file, length, sequence + 1);
            torn.push(name.map_err(log_error("put aside the torn end of"))?);
        }
        let torn = torn::untold(log, &torn, sequence + 1).map_err(log_error("list the torn ends of"))?;
        let tip = Tip { file, identity: Identity::of(&metadata), length, segment, sequence, hash };
        Ok((tip, Recovery { torn, head }))
    }

    /// The last record of the segment that is being written or, while that is empty, of the last
    /// closed one.
    fn last_record(&self, file: &File, end: u64, closed: Option<u64>) -> Result<Option<Record>, OpenError> {
        if let Some(record) = self.record_before(&mut LinesFromEnd::new(file, end), self.log)? {
            return Ok(Some(record));
        }
        let Some(number) = closed else { return Ok(None) };
        let path = &files::segment_path(self.log, number);
        let file_error = |step| move |source| OpenError::File { step, path: path.clone(), source };
        let file = files::open_existing(path).map_err(file_error("open"))?;
        let length = file.metadata().map_err(file_error("look at"))?.len();
        let end = end_of_last_line(&file, length).map_err(file_error("read"))?;
        if end < length || end == 0 {
            return Err(broken(path, "the closed segment ends in the middle of a record".to_owned()));
        }
        self.record_before(&mut LinesFromEnd::new(&file, end), path)
    }

    fn record_before(&self, lines: &mut LinesFromEnd<'_>, path: &Path) -> Result<Option<Record>, OpenError> {
        let line = lines.next_line().map_err(|source| OpenError::File {
            step: "read",
            path: path.to_owned(),
            source,
        })?;
        let Some(line) = line else { return Ok(None) };
        let record = self.reader.read(&line).map_err(|error| broken(path, error.to_string()))?;
        match record.own {
            Own::Plain | Own::Signed(_) => Ok(Some(record)),
            Own::Changed => Err(broken(path, "its hash does not fit its content".to_owned())),
            Own::Respelled => Err(broken(path, "it is not in canonical form".to_owned())),
            Own::Forged(_) => Err(broken(path, "its MAC was not made with the key".to_owned())),
            Own::Unchecked(key_id) => Err(self.other_key(key_id)),
        }
    }

    fn other_key(&self, key_id: KeyId) -> OpenError {
        let path = self.log.to_owned();
        match self.key {
            None => OpenError::KeyNeeded { path, key_id },
            Some(key) => OpenError::WrongKey { path, key_id, given: key.id() },
        }
    }

    /// Whether the chain that ends with `last` is the one that the head vouches for, and may be
    /// continued. What follows is signed with the key, and vouches for all that was before; so
    /// with a key, nothing is taken on trust unless somebody has decided to adopt it.
    fn compare(
        &self,
        head: HeadFile,
        last: Option<Record>,
        (file, end): (&File, u64),
        adoption: Adoption,
    ) -> Result<HeadRecovery, OpenError> {
        let own = last.map(|record| record.own);
        let head = match head {
            HeadFile::Written(head) => head,
            HeadFile::Empty if last.is_none() => return Ok(HeadRecovery::Begun),
            HeadFile::Unreadable if last.is_none() => return Ok(HeadRecovery::Replaced),
            HeadFile::Empty | HeadFile::Unreadable => {
                self.check_signed(own, adoption)?;
                if !adoption.without_head {
                    return Err(OpenError::HeadMissing { path: self.log.to_owned() });
                }
                return Ok(HeadRecovery::Replaced);
            }
        };
        match (head.signature, own) {
            (Signature::Forged(_), _) => return Err(self.mismatch("its signature was not made with the key")),
            (Signature::Unchecked(key_id), _) => return Err(self.other_key(key_id)),
            (Signature::Unsigned, Some(Own::Signed(_))) if !adoption.unsigned => {
                return Err(self.mismatch("it lost its signature"));
            }
            (Signature::Valid(_), Some(Own::Plain)) => {
                return Err(self.mismatch("it is signed, and the last record was added without the key"));
            }
            (Signature::Unsigned, _) => self.check_signed(own, adoption)?,
            (Signature::Valid(_), _) => {}
        }
        let (found, hash) = last.map_or((0, Hash::GENESIS), |record| (record.sequence, record.hash));
        match found.cmp(&head.count) {
            Ordering::Less => {
                return Err(OpenError::Truncated { path: self.log.to_owned(), vouched: head.count, found });
            }
            Ordering::Equal if hash != head.hash => {
                return Err(self.mismatch("the last record is another one"));
            }
            Ordering::Equal => {}
            Ordering::Greater => self.walk_back(&head, file, end)?,
        }
        Ok(match (head.signature, self.key) {
            (Signature::Unsigned, Some(_)) if last.is_none() => HeadRecovery::Begun,
            (Signature::Unsigned, Some(_)) => HeadRecovery::Signed,
            _ if found > head.count => HeadRecovery::BroughtForward { from: head.count, to: found },
            _ => HeadRecovery::InOrder,
        })
    }

    /// With a key, records that nobody signed are continued only by somebody's decision.
    fn check_signed(&self, own: Option<Own>, adoption: Adoption) -> Result<(), OpenError> {
        match self.key {
            Some(key) if own == Some(Own::Plain) && !adoption.unsigned => {
                Err(OpenError::NotSigned { path: self.log.to_owned(), given: key.id() })
            }
            _ => Ok(()),
        }
    }

    /// Checks every link from the end of the log back to the record that the head vouches for.
    /// They are all in one segment: a writer brings the head forward before it begins another.
    fn walk_back(&self, head: &Head, file: &File, end: u64) -> Result<(), OpenError> {
        let mut lines = LinesFromEnd::new(file, end);
        let mut wanted: Option<(u64, Hash)> = None;
        while let Some(record) = self.record_before(&mut lines, self.log)? {
            if wanted.is_some_and(|wanted| wanted != (record.sequence, record.hash)) {
                break;
            }
            if record.sequence == head.count + 1 {
                if record.previous_hash == head.hash {
                    return Ok(());
                }
                break;
            }
            wanted = Some((record.sequence.saturating_sub(1), record.previous_hash));
        }
        Err(self.mismatch("the records after those it vouches for do not continue them"))
    }

    fn mismatch(&self, fault: &str) -> OpenError {
        OpenError::HeadMismatch { path: files::head_path(self.log), fault: fault.to_owned() }
    }
}

fn broken(path: &Path, fault: String) -> OpenError {
    OpenError::Broken { path: path.to_owned(), fault }
}
