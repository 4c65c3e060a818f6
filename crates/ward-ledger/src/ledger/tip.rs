//! The end of a chain, found on disk and checked against the head.

use std::fs::{self, File};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::{HeadRecovery, Recovery, TornTail};
use crate::error::{AppendError, OpenError};
use crate::files::{self, Identity};
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
        let rotate = || {
            if files::look_at(&closed)?.is_some() {
                return Err(io::Error::new(io::ErrorKind::AlreadyExists, "the name of the segment is taken"));
            }
            fs::rename(log, &closed)?;
            let file = files::open_or_create_to_append(log)?;
            files::sync_folder_of(log)?;
            let identity = Identity::of(&file.metadata()?);
            Ok((file, identity))
        };
        let (file, identity) = rotate().map_err(|source| OpenError::File {
            step: "begin a new segment of",
            path: log.to_owned(),
            source,
        })?;
        *self = Self { file, identity, length: 0, segment: self.segment + 1, ..*self };
        Ok(())
    }

    /// Writes lines behind the last and makes them durable, or takes back what came of it.
    pub(super) fn write(&mut self, log: &Path, lines: &[u8]) -> Result<(), AppendError> {
        self.file.write_all(lines).map_err(|source| self.take_back(log, "write to", source))?;
        self.file.sync_data().map_err(|source| self.take_back(log, "make durable", source))
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

/// Finds the end of the chain, puts a torn line aside and the head in order. Needs the lock.
pub(super) fn load(
    log: &Path,
    head_file: &File,
    reader: &RecordReader,
    key: Option<&Key>,
) -> Result<(Tip, Recovery), OpenError> {
    let log_error = |step| move |source| OpenError::File { step, path: log.to_owned(), source };
    let new = files::look_at(log).map_err(log_error("look at"))?.is_none();
    let file = files::open_or_create_to_append(log).map_err(log_error("open"))?;
    if new {
        files::sync_folder_of(log).map_err(log_error("create"))?;
    }
    let metadata = file.metadata().map_err(log_error("look at"))?;
    let closed = files::closed_segments(log).map_err(log_error("list the segments of"))?;
    let end = end_of_last_line(&file, metadata.len()).map_err(log_error("read"))?;

    let search = Search { log, reader, key };
    let last = search.last_record(&file, end, closed.last().copied())?;
    let (sequence, hash) = last.map_or((0, Hash::GENESIS), |record| (record.sequence, record.hash));
    let head = head::read(head_file, key).map_err(log_error("read the head of"))?;
    let head_recovery = search.compare(head, last, &file, end)?;

    let torn = if end < metadata.len() {
        Some(set_aside(log, &file, end, sequence + 1).map_err(log_error("put aside the torn end of"))?)
    } else {
        None
    };
    let segment = closed.last().map_or(1, |number| number + 1);
    if head_recovery != HeadRecovery::InOrder {
        head::write(head_file, (sequence, hash), segment, key).map_err(log_error("write the head of"))?;
    }
    let identity = Identity::of(&metadata);
    let tip = Tip { file, identity, length: end, segment, sequence, hash };
    Ok((tip, Recovery { torn, head: head_recovery }))
}

struct Search<'a> {
    log: &'a Path,
    reader: &'a RecordReader,
    key: Option<&'a Key>,
}

impl Search<'_> {
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

    /// Whether the chain that ends with `last` is the one that the head vouches for.
    fn compare(
        &self,
        head: HeadFile,
        last: Option<Record>,
        file: &File,
        end: u64,
    ) -> Result<HeadRecovery, OpenError> {
        let head = match (head, last) {
            (HeadFile::Written(head), _) => head,
            (HeadFile::Empty, None) => return Ok(HeadRecovery::Begun),
            (HeadFile::Empty | HeadFile::Unreadable, _) => return Ok(HeadRecovery::Replaced),
        };
        let signed_log = last.is_some_and(|record| matches!(record.own, Own::Signed(_)));
        let unsigned_head = match head.signature {
            Signature::Valid(_) => false,
            Signature::Unsigned if signed_log => return Err(self.mismatch("it lost its signature")),
            Signature::Unsigned => true,
            Signature::Forged(_) => return Err(self.mismatch("its signature was not made with the key")),
            Signature::Unchecked(key_id) => return Err(self.other_key(key_id)),
        };
        let (found, hash) = last.map_or((0, Hash::GENESIS), |record| (record.sequence, record.hash));
        if found < head.count {
            return Err(OpenError::Truncated { path: self.log.to_owned(), vouched: head.count, found });
        }
        if found > head.count {
            self.walk_back(&head, file, end)?;
            return Ok(HeadRecovery::BroughtForward { from: head.count, to: found });
        }
        if hash != head.hash {
            return Err(self.mismatch("the last record is another one"));
        }
        if unsigned_head && self.key.is_some() {
            return Ok(HeadRecovery::Signed);
        }
        Ok(HeadRecovery::InOrder)
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

/// Copies what follows `end` to a new file, and then cuts it off. A crash in between leaves both;
/// the next opener makes a second copy.
fn set_aside(log: &Path, file: &File, end: u64, sequence: u64) -> io::Result<TornTail> {
    let (kept_in, mut kept) = create_torn_file(log, sequence)?;
    let mut copy = || {
        let mut source = file.try_clone()?;
        source.seek(SeekFrom::Start(end))?;
        let bytes = io::copy(&mut source, &mut kept)?;
        kept.sync_all()?;
        files::sync_folder_of(&kept_in)?;
        Ok(bytes)
    };
    let bytes = copy().inspect_err(|_: &io::Error| {
        // Half a copy is of no use, and the log still has the whole; a failure here changes nothing.
        drop(fs::remove_file(&kept_in));
    })?;
    file.set_len(end)?;
    file.sync_data()?;
    Ok(TornTail { sequence, bytes, kept_in })
}

fn create_torn_file(log: &Path, sequence: u64) -> io::Result<(PathBuf, File)> {
    let mut counter = 1;
    loop {
        let path = files::beside(log, &format!("torn-{sequence}-{counter}"));
        match files::create_new(&path) {
            Ok(file) => return Ok((path, file)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => counter += 1,
            Err(error) => return Err(error),
        }
    }
}
