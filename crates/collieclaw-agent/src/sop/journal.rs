//! The journal of one run: a header with a copy of the procedure, and a line for everything that happened since.
//!
//! Lines are only appended, and each is on disk before the engine acts on it. A process that executes the run holds a
//! lock on the file. A last line without a newline was cut off by a crash, so nothing depends on it.

use std::collections::BTreeMap;
use std::fs::{self, File, Metadata, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::Serialize;

use super::error::{JournalError, file_error};
use super::journal_entry::{EndedStep, JournalEntry, JournalHeader};
use crate::receipts::hash_text;
use crate::security;

/// A run of a procedure, as recorded in its journal.
#[derive(Debug)]
pub struct SopRun {
    pub header: JournalHeader,
    steps: BTreeMap<String, JournaledStep>,
    cancelled: bool,
    origin: RunOrigin,
    file: File,
    pub(super) path: PathBuf,
}

/// The origin of a run in memory: begun by this process, or read from its journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RunOrigin {
    Begun,
    Resumed,
}

/// The state of a step in the journal.
#[derive(Debug, Default)]
struct JournaledStep {
    phase: StepPhase,
    begin_count: usize,
    approved: bool,
    ended: Option<EndedStep>,
}

/// The progress of a step.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum StepPhase {
    #[default]
    NotStarted,
    /// The step began, and the journal has no end for it yet.
    Started,
    /// The step did nothing, or the operator decided to run it again.
    Repeatable,
    /// The operator decided to treat the step as done. It has no output.
    Skipped,
}

/// The limit for the size of a journal, which holds the output of all steps.
const MAX_JOURNAL_BYTES: u64 = 1 << 30;

/// The time by which a line must be on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SyncMode {
    Now,
    /// The line can wait for the next one, because an intent on disk says the same.
    Later,
}

impl SopRun {
    /// Creates the journal of a new run and locks it.
    pub(super) fn create(path: PathBuf, header: JournalHeader) -> Result<Self, JournalError> {
        let failed = |step| file_error(step, &path);
        // The file gets its final name when the header is complete, so that a crash leaves no half journal.
        let unfinished = path.with_extension("new");
        let made = OpenOptions::new().read(true).append(true).create_new(true).mode(0o600).open(&unfinished);
        let mut file = made.map_err(failed("create"))?;
        file.lock().map_err(failed("lock"))?;
        write_line(&mut file, &header).map_err(failed("write"))?;
        file.sync_all().map_err(failed("sync"))?;
        fs::rename(&unfinished, &path).map_err(failed("rename"))?;
        let folder = path.parent().unwrap_or(Path::new("/"));
        File::open(folder).and_then(|folder| folder.sync_all()).map_err(failed("sync"))?;
        Ok(Self { origin: RunOrigin::Begun, ..Self::from_parts(header, file, path) })
    }

    /// Opens a journal and locks it, so that no other process executes the run.
    pub(super) fn open_locked(path: &Path, run: &str) -> Result<Self, JournalError> {
        let file = OpenOptions::new().read(true).append(true).open(path).map_err(file_error("open", path))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(JournalError::Busy { run: run.to_owned() }),
            Err(TryLockError::Error(error)) => return Err(file_error("lock", path)(error)),
        }
        let (run, whole) = Self::read_journal(path, file)?;
        // Without this, the next line would be appended to the line that a crash cut off.
        run.file.set_len(whole).map_err(file_error("truncate", &run.path))?;
        Ok(run)
    }

    /// Reads a journal without locking it. The second value is true if another process executes the run.
    pub(super) fn inspect(path: &Path) -> Result<(Self, bool), JournalError> {
        let file = File::open(path).map_err(file_error("open", path))?;
        let held = match file.try_lock_shared() {
            Ok(()) => false,
            Err(TryLockError::WouldBlock) => true,
            Err(TryLockError::Error(error)) => return Err(file_error("lock", path)(error)),
        };
        file.unlock().map_err(file_error("unlock", path))?;
        Self::read_journal(path, file).map(|(run, _)| (run, held))
    }

    /// Reads a journal. The second value is the length of its complete lines, in bytes.
    fn read_journal(path: &Path, mut file: File) -> Result<(Self, u64), JournalError> {
        check_ownership(path, &file)?;
        check_length(path, &file)?;
        let mut text = Vec::new();
        file.seek(SeekFrom::Start(0)).map_err(file_error("read", path))?;
        file.read_to_end(&mut text).map_err(file_error("read", path))?;
        let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        let mut lines = text.get(..whole).unwrap_or_default().split(|byte| *byte == b'\n');
        let damaged = |line| JournalError::Damaged { path: path.to_owned(), line };
        let first = lines.next().unwrap_or_default();
        let header: JournalHeader = serde_json::from_slice(first).map_err(|_| damaged(1))?;
        if hash_text(&header.text) != header.sop_hash {
            return Err(damaged(1));
        }
        // With two names for one run, two processes could each lock one of them.
        if path.file_stem().is_none_or(|name| name != header.run.as_str()) {
            return Err(JournalError::Renamed { path: path.to_owned(), run: header.run });
        }
        let mut run = Self::from_parts(header, file, path.to_owned());
        for (number, line) in (2..).zip(lines).filter(|(_, line)| !line.is_empty()) {
            run.apply_entry(serde_json::from_slice(line).map_err(|_| damaged(number))?);
        }
        Ok((run, whole as u64))
    }

    fn from_parts(header: JournalHeader, file: File, path: PathBuf) -> Self {
        Self { header, steps: BTreeMap::new(), cancelled: false, origin: RunOrigin::Resumed, file, path }
    }

    fn apply_entry(&mut self, entry: JournalEntry) {
        match entry {
            JournalEntry::Began { step } => {
                let known = self.step_mut(step);
                known.phase = StepPhase::Started;
                known.begin_count += 1;
            }
            JournalEntry::Void { step } | JournalEntry::Rerun { step } => {
                self.step_mut(step).phase = StepPhase::Repeatable;
            }
            JournalEntry::Skipped { step } => self.step_mut(step).phase = StepPhase::Skipped,
            JournalEntry::Ended(ended) => {
                let known = self.step_mut(ended.step.clone());
                known.ended = Some(ended);
            }
            JournalEntry::Approved { step, .. } => self.step_mut(step).approved = true,
            JournalEntry::Cancelled { .. } => self.cancelled = true,
        }
    }

    fn step_mut(&mut self, id: String) -> &mut JournaledStep {
        self.steps.entry(id).or_default()
    }

    pub(super) fn append_entry(&mut self, entry: JournalEntry, sync: SyncMode) -> Result<(), JournalError> {
        let written = write_line(&mut self.file, &entry);
        let synced = written.and_then(|()| match sync {
            SyncMode::Now => self.file.sync_data(),
            SyncMode::Later => Ok(()),
        });
        synced.map_err(file_error("write", &self.path))?;
        self.apply_entry(entry);
        Ok(())
    }

    pub(super) fn append_cancelled(&mut self) -> Result<(), JournalError> {
        self.append_entry(JournalEntry::Cancelled { at: Timestamp::now() }, SyncMode::Now)
    }

    pub(super) fn append_approved(&mut self, step: &str) -> Result<(), JournalError> {
        self.append_entry(
            JournalEntry::Approved { step: step.to_owned(), at: Timestamp::now() },
            SyncMode::Now,
        )
    }

    /// Returns the end of a step, if the step has ended.
    #[must_use]
    pub fn ended_step(&self, step: &str) -> Option<&EndedStep> {
        self.steps.get(step)?.ended.as_ref()
    }

    /// Returns whether this process began the run.
    pub(super) fn is_new(&self) -> bool {
        self.origin == RunOrigin::Begun
    }

    /// Returns how often a step has begun.
    pub(super) fn begin_count(&self, step: &str) -> usize {
        self.steps.get(step).map_or(0, |known| known.begin_count)
    }

    pub(super) fn phase(&self, step: &str) -> StepPhase {
        self.steps.get(step).map_or(StepPhase::NotStarted, |known| known.phase)
    }

    /// Returns whether the operator decided to treat a step as done.
    #[must_use]
    pub fn is_skipped(&self, step: &str) -> bool {
        self.phase(step) == StepPhase::Skipped
    }

    /// Returns whether the operator approved a step.
    #[must_use]
    pub fn is_approved(&self, step: &str) -> bool {
        self.steps.get(step).is_some_and(|known| known.approved)
    }

    /// Returns whether the operator ended the run.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.cancelled
    }
}

/// Checks that only this user can write the journal, because the journal holds the procedure that runs.
fn check_ownership(path: &Path, file: &File) -> Result<(), JournalError> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    let known = |metadata: io::Result<Metadata>| metadata.map_err(file_error("inspect", path));
    for (looked_at, metadata) in [(path, known(file.metadata())?), (folder, known(folder.metadata())?)] {
        if !security::is_securely_owned(&metadata) {
            return Err(JournalError::UntrustedOwner { path: looked_at.to_owned() });
        }
    }
    Ok(())
}

/// Checks that the journal can be read as a whole: with a part missing, steps would seem not to have happened.
fn check_length(path: &Path, file: &File) -> Result<(), JournalError> {
    let length = file.metadata().map_err(file_error("inspect", path))?.len();
    if length <= MAX_JOURNAL_BYTES {
        return Ok(());
    }
    let why = format!("it has {length} bytes, more than the limit of {MAX_JOURNAL_BYTES}");
    Err(file_error("read", path)(io::Error::new(io::ErrorKind::FileTooLarge, why)))
}

fn write_line(file: &mut File, value: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    file.write_all(&line)
}
