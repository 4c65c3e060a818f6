//! The appender: the only way that lines get into a log.

use std::fs::File;
use std::io;
use std::mem;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::{Map, Value};

use crate::chain::{Format, Sealed, seal};
use crate::error::{AppendError, OpenError};
use crate::files::{self, Identity};
use crate::hash::Hash;
use crate::head;
use crate::key::Key;
use crate::record::RecordReader;

mod tip;

use tip::Tip;

/// A segment of this size opens in any editor and holds some 150,000 records.
const DEFAULT_SEGMENT_BYTES: u64 = 64 << 20;

/// How a log is written.
#[derive(Clone, Debug)]
pub struct Options {
    format: Format,
    key: Option<Key>,
    max_segment_bytes: u64,
}

impl Options {
    /// A log of this format, without a key, in segments of 64 MiB.
    #[must_use]
    pub fn new(format: Format) -> Self {
        Self { format, key: None, max_segment_bytes: DEFAULT_SEGMENT_BYTES }
    }

    /// Signs every record and the head. A log that was signed once can't be continued without.
    #[must_use]
    pub fn with_key(self, key: Key) -> Self {
        Self { key: Some(key), ..self }
    }

    /// Begins a new segment before the present one grows over this size.
    #[must_use]
    pub fn with_segment_bytes(self, max_segment_bytes: u64) -> Self {
        Self { max_segment_bytes, ..self }
    }
}

/// A record that is in the log for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appended {
    /// Its number, from 1.
    pub sequence: u64,
    /// Its hash.
    pub hash: Hash,
}

/// What had to be put right before the log could be continued. A product should append it as a
/// record of its own, so that the log tells its whole story.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Recovery {
    /// What a crash left half-written.
    pub torn: Option<TornTail>,
    /// What happened to the head.
    pub head: HeadRecovery,
}

impl Recovery {
    const NOTHING: Self = Self { torn: None, head: HeadRecovery::InOrder };

    /// Whether there was nothing to put right.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.torn.is_none() && matches!(self.head, HeadRecovery::InOrder | HeadRecovery::Begun)
    }
}

/// The half-written end of a log, now in a file of its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TornTail {
    /// The number that the record would have had.
    pub sequence: u64,
    /// How many bytes there were.
    pub bytes: u64,
    /// Where they are now.
    pub kept_in: PathBuf,
}

/// What happened to the head when the log was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum HeadRecovery {
    /// It fits the log.
    InOrder,
    /// There were no records yet, and no head.
    Begun,
    /// A writer died between log and head: the records up to `to` have been checked back to the
    /// head, which vouches for them now.
    BroughtForward {
        /// What the head had vouched for.
        from: u64,
        /// What it vouches for now.
        to: u64,
    },
    /// The log had been written without a key and is signed from here on.
    Signed,
    /// There were records and no readable head: nothing shows whether the log has been cut before.
    Replaced,
}

/// A log, open for appending. Any number of processes may have the same log open.
#[derive(Debug)]
pub struct Ledger {
    path: PathBuf,
    options: Options,
    head: File,
    head_identity: Identity,
    /// The end of the chain as this process last saw it; `None` when it must look again.
    tip: Option<Tip>,
    recoveries: Vec<Recovery>,
}

impl Ledger {
    /// Opens the log at `path` and makes it where there is none; its folder must be there. Puts
    /// aside what a crash left half-written, and checks the last records against the head.
    ///
    /// # Errors
    /// When the files can't be used, and when the log is not fit to be continued.
    pub fn open(path: &Path, options: Options) -> Result<(Self, Recovery), OpenError> {
        let (head, head_identity) = open_head(path)?;
        let mut ledger =
            Self { path: path.to_owned(), options, head, head_identity, tip: None, recoveries: Vec::new() };
        ledger.lock()?;
        let looked = ledger.look();
        ledger.unlock();
        ledger.tip = Some(looked?);
        let recovery = ledger.recoveries.pop().unwrap_or(Recovery::NOTHING);
        Ok((ledger, recovery))
    }

    /// Where the log is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What appends since the last call had to put right after other processes.
    pub fn take_recoveries(&mut self) -> Vec<Recovery> {
        mem::take(&mut self.recoveries)
    }

    /// Appends one record; when this returns, it is on disk.
    ///
    /// # Errors
    /// When the record is not fit, or can't be written.
    pub fn append(&mut self, record: Map<String, Value>) -> Result<Appended, AppendError> {
        let appended = self.append_all(vec![record])?;
        Ok(*appended.first().expect("one record was given"))
    }

    /// Appends records in their order with one wait for the disk; on an error, none of them.
    /// A crash in the middle may leave the first few.
    ///
    /// # Errors
    /// When a record is not fit, or they can't be written.
    pub fn append_all(&mut self, records: Vec<Map<String, Value>>) -> Result<Vec<Appended>, AppendError> {
        if records.is_empty() {
            return Ok(Vec::new());
        }
        self.lock()?;
        let appended = self.append_locked(records);
        self.unlock();
        appended
    }

    fn append_locked(&mut self, records: Vec<Map<String, Value>>) -> Result<Vec<Appended>, AppendError> {
        // Until all has gone well this process doesn't claim to know the end of the chain.
        let mut tip = self.look()?;
        let (lines, appended) = seal_all(&self.options, &tip, records)?;
        if tip.length > 0 && tip.length + lines.len() as u64 > self.options.max_segment_bytes {
            tip.rotate(&self.path)?;
        }
        tip.write(&self.path, &lines)?;
        let last = appended.last().expect("at least one record was given");
        self.write_head(&tip, last)?;
        tip.length += lines.len() as u64;
        (tip.sequence, tip.hash) = (last.sequence, last.hash);
        self.tip = Some(tip);
        Ok(appended)
    }

    fn write_head(&self, tip: &Tip, last: &Appended) -> Result<(), AppendError> {
        let key = self.options.key.as_ref();
        let Err(source) = head::write(&self.head, (last.sequence, last.hash), tip.segment, key) else {
            return Ok(());
        };
        let error = tip.take_back(&self.path, "write the head of", source);
        // The new head may have reached the disk, and would promise a record that is gone.
        Err(match head::write(&self.head, (tip.sequence, tip.hash), tip.segment, key) {
            Ok(()) => error,
            Err(rollback) => error.not_taken_back(rollback),
        })
    }

    /// The end of the chain as it is on disk now. Needs the lock.
    fn look(&mut self) -> Result<Tip, OpenError> {
        let now = files::look_at(&self.path).map_err(|source| self.file_error("look at", source))?;
        if let Some(tip) = self.tip.take()
            && now == Some((tip.identity, tip.length))
        {
            return Ok(tip);
        }
        let key = self.options.key.as_ref();
        let reader = RecordReader::new(&self.options.format, key);
        let (tip, recovery) = tip::load(&self.path, &self.head, &reader, key)?;
        if recovery != Recovery::NOTHING {
            self.recoveries.push(recovery);
        }
        Ok(tip)
    }

    fn lock(&mut self) -> Result<(), OpenError> {
        loop {
            self.head.lock().map_err(|source| self.file_error("lock the head of", source))?;
            let now = files::look_at(&files::head_path(&self.path))
                .map_err(|source| self.file_error("look at the head of", source))?;
            if now.is_some_and(|(identity, _)| identity == self.head_identity) {
                return Ok(());
            }
            // Somebody removed or exchanged the head; a lock on the old one keeps nobody out.
            self.tip = None;
            (self.head, self.head_identity) = open_head(&self.path)?;
        }
    }

    fn unlock(&mut self) {
        // Closing the file gives the lock back in any case; there is nothing to do about an error.
        if self.head.unlock().is_err() {
            self.tip = None;
        }
    }

    fn file_error(&self, step: &'static str, source: io::Error) -> OpenError {
        OpenError::File { step, path: self.path.clone(), source }
    }
}

fn open_head(log: &Path) -> Result<(File, Identity), OpenError> {
    let path = files::head_path(log);
    let open = || {
        let new = files::look_at(&path)?.is_none();
        let file = files::open_or_create(&path)?;
        if new {
            files::sync_folder_of(&path)?;
        }
        let identity = Identity::of(&file.metadata()?);
        Ok((file, identity))
    };
    open().map_err(|source| OpenError::File { step: "open", path: path.clone(), source })
}

/// The lines of all records, chained on to the tip.
fn seal_all(
    options: &Options,
    tip: &Tip,
    records: Vec<Map<String, Value>>,
) -> Result<(Vec<u8>, Vec<Appended>), AppendError> {
    let mut lines = Vec::new();
    let mut appended = Vec::with_capacity(records.len());
    let (mut sequence, mut previous) = (tip.sequence, tip.hash);
    for (index, record) in records.into_iter().enumerate() {
        sequence += 1;
        let Sealed { line, hash } = seal(&options.format, options.key.as_ref(), (sequence, previous), record)
            .map_err(|source| AppendError::Record { index, source })?;
        lines.extend_from_slice(&line);
        appended.push(Appended { sequence, hash });
        previous = hash;
    }
    Ok((lines, appended))
}
