//! The journal of one run: a header with a copy of the procedure, and a line for whatever has happened since.
//!
//! Lines are only added, and are durable before anything follows from them. While a process carries the run out, it
//! holds a lock on the file. A last line without an end is one that a crash cut off: nobody has relied on it.

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

/// A run, as far as its journal tells.
#[derive(Debug)]
pub struct SopRun {
    /// What was begun.
    pub header: JournalHeader,
    steps: BTreeMap<String, JournaledStep>,
    cancelled: bool,
    origin: RunOrigin,
    file: File,
    pub(super) path: PathBuf,
}

/// Where a run comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RunOrigin {
    Begun,
    Resumed,
}

/// What is known of a step.
#[derive(Debug, Default)]
struct JournaledStep {
    phase: StepPhase,
    begin_count: usize,
    approved: bool,
    ended: Option<EndedStep>,
}

/// How far a step came.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum StepPhase {
    /// The journal does not know of it.
    #[default]
    NotStarted,
    /// It began, and its end is not written down.
    Started,
    /// It has done nothing, or may do it once more.
    Repeatable,
    /// It counts as done, and gives nothing.
    Skipped,
}

/// Of a journal. The outputs of all steps are in it.
const LONGEST: u64 = 1 << 30;

/// Whether a line has to be on disk before anything follows from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SyncMode {
    Now,
    /// With the next one. Meanwhile something else knows.
    Later,
}

impl SopRun {
    /// Begins one, and holds it.
    pub(super) fn create(path: PathBuf, header: JournalHeader) -> Result<Self, JournalError> {
        let failed = |step| file_error(step, &path);
        // It gets its name when it is whole: half a journal is no run.
        let unfinished = path.with_extension("new");
        let made = OpenOptions::new().read(true).append(true).create_new(true).mode(0o600).open(&unfinished);
        let mut file = made.map_err(failed("make"))?;
        file.lock().map_err(failed("lock"))?;
        write_line(&mut file, &header).map_err(failed("write"))?;
        file.sync_all().map_err(failed("make durable"))?;
        fs::rename(&unfinished, &path).map_err(failed("name"))?;
        let folder = path.parent().unwrap_or(Path::new("/"));
        File::open(folder).and_then(|folder| folder.sync_all()).map_err(failed("make durable"))?;
        Ok(Self { origin: RunOrigin::Begun, ..Self::from_parts(header, file, path) })
    }

    /// Opens one, and holds it: nobody else carries it out meanwhile.
    pub(super) fn open_locked(path: &Path, run: &str) -> Result<Self, JournalError> {
        let file = OpenOptions::new().read(true).append(true).open(path).map_err(file_error("open", path))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(JournalError::Busy { run: run.to_owned() }),
            Err(TryLockError::Error(error)) => return Err(file_error("lock", path)(error)),
        }
        let (run, whole) = Self::read_journal(path, file)?;
        // What a crash left of a line would spoil the next one.
        run.file.set_len(whole).map_err(file_error("cut the torn end of", &run.path))?;
        Ok(run)
    }

    /// Looks at one without holding it. The second value is whether somebody carries it out.
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

    /// The run, and how many bytes of its journal are whole.
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
        // Two names for one run would be two locks.
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

    pub(super) fn append_entry(
        &mut self,
        entry: JournalEntry,
        durable: SyncMode,
    ) -> Result<(), JournalError> {
        let written = write_line(&mut self.file, &entry);
        let synced = written.and_then(|()| match durable {
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

    /// How a step ended, if it has.
    #[must_use]
    pub fn ended_step(&self, step: &str) -> Option<&EndedStep> {
        self.steps.get(step)?.ended.as_ref()
    }

    /// Whether this process has begun it.
    pub(super) fn is_new(&self) -> bool {
        self.origin == RunOrigin::Begun
    }

    /// How often a step has begun.
    pub(super) fn begin_count(&self, step: &str) -> usize {
        self.steps.get(step).map_or(0, |known| known.begin_count)
    }

    pub(super) fn phase(&self, step: &str) -> StepPhase {
        self.steps.get(step).map_or(StepPhase::NotStarted, |known| known.phase)
    }

    /// Whether somebody has taken a step as done.
    #[must_use]
    pub fn is_skipped(&self, step: &str) -> bool {
        self.phase(step) == StepPhase::Skipped
    }

    /// Whether somebody has approved a step.
    #[must_use]
    pub fn is_approved(&self, step: &str) -> bool {
        self.steps.get(step).is_some_and(|known| known.approved)
    }

    /// Whether somebody ended it.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.cancelled
    }
}

/// The journal has a copy of the procedure, and that is what runs.
fn check_ownership(path: &Path, file: &File) -> Result<(), JournalError> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    let known = |metadata: io::Result<Metadata>| metadata.map_err(file_error("look at", path));
    for (looked_at, metadata) in [(path, known(file.metadata())?), (folder, known(folder.metadata())?)] {
        if !security::is_securely_owned(&metadata) {
            return Err(JournalError::UntrustedOwner { path: looked_at.to_owned() });
        }
    }
    Ok(())
}

/// Whole or not at all: what is not read would seem not to have happened.
fn check_length(path: &Path, file: &File) -> Result<(), JournalError> {
    let length = file.metadata().map_err(file_error("look at", path))?.len();
    if length <= LONGEST {
        return Ok(());
    }
    let why = format!("it has {length} bytes, and more than {LONGEST} are not read");
    Err(file_error("read", path)(io::Error::new(io::ErrorKind::FileTooLarge, why)))
}

fn write_line(file: &mut File, value: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    file.write_all(&line)
}
