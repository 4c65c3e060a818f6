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

use super::entry::{Ended, Entry, Header};
use super::error::{JournalError, file_error};
use crate::receipts::hash_of_text;
use crate::security;

/// A run, as far as its journal tells.
#[derive(Debug)]
pub struct Run {
    /// What was begun.
    pub header: Header,
    steps: BTreeMap<String, Known>,
    cancelled: bool,
    origin: Origin,
    file: File,
    pub(super) path: PathBuf,
}

/// Where a run comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    Begun,
    Resumed,
}

/// What is known of a step.
#[derive(Debug, Default)]
struct Known {
    course: Course,
    begun: usize,
    approved: bool,
    ended: Option<Ended>,
}

/// How far a step came.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum Course {
    /// The journal does not know of it.
    #[default]
    Untouched,
    /// It began, and its end is not written down.
    Open,
    /// It has done nothing, or may do it once more.
    Free,
    /// It counts as done, and gives nothing.
    Skipped,
}

/// Of a journal. The outputs of all steps are in it.
const LONGEST: u64 = 1 << 30;

/// Whether a line has to be on disk before anything follows from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Durable {
    Now,
    /// With the next one. Meanwhile something else knows.
    Later,
}

impl Run {
    /// Begins one, and holds it.
    pub(super) fn create(path: PathBuf, header: Header) -> Result<Self, JournalError> {
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
        Ok(Self { origin: Origin::Begun, ..Self::with(header, file, path) })
    }

    /// Opens one, and holds it: nobody else carries it out meanwhile.
    pub(super) fn hold(path: &Path, run: &str) -> Result<Self, JournalError> {
        let file = OpenOptions::new().read(true).append(true).open(path).map_err(file_error("open", path))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(JournalError::Busy { run: run.to_owned() }),
            Err(TryLockError::Error(error)) => return Err(file_error("lock", path)(error)),
        }
        let (run, whole) = Self::read(path, file)?;
        // What a crash left of a line would spoil the next one.
        run.file.set_len(whole).map_err(file_error("cut the torn end of", &run.path))?;
        Ok(run)
    }

    /// Looks at one without holding it. The second value is whether somebody carries it out.
    pub(super) fn look(path: &Path) -> Result<(Self, bool), JournalError> {
        let file = File::open(path).map_err(file_error("open", path))?;
        let held = match file.try_lock_shared() {
            Ok(()) => false,
            Err(TryLockError::WouldBlock) => true,
            Err(TryLockError::Error(error)) => return Err(file_error("lock", path)(error)),
        };
        file.unlock().map_err(file_error("unlock", path))?;
        Self::read(path, file).map(|(run, _)| (run, held))
    }

    /// The run, and how many bytes of its journal are whole.
    fn read(path: &Path, mut file: File) -> Result<(Self, u64), JournalError> {
        is_ours(path, &file)?;
        is_readable(path, &file)?;
        let mut text = Vec::new();
        file.seek(SeekFrom::Start(0)).map_err(file_error("read", path))?;
        file.read_to_end(&mut text).map_err(file_error("read", path))?;
        let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        let mut lines = text.get(..whole).unwrap_or_default().split(|byte| *byte == b'\n');
        let damaged = |line| JournalError::Damaged { path: path.to_owned(), line };
        let first = lines.next().unwrap_or_default();
        let header: Header = serde_json::from_slice(first).map_err(|_| damaged(1))?;
        if hash_of_text(&header.text) != header.sop_hash {
            return Err(damaged(1));
        }
        // Two names for one run would be two locks.
        if path.file_stem().is_none_or(|name| name != header.run.as_str()) {
            return Err(JournalError::Renamed { path: path.to_owned(), run: header.run });
        }
        let mut run = Self::with(header, file, path.to_owned());
        for (number, line) in (2..).zip(lines).filter(|(_, line)| !line.is_empty()) {
            run.take(serde_json::from_slice(line).map_err(|_| damaged(number))?);
        }
        Ok((run, whole as u64))
    }

    fn with(header: Header, file: File, path: PathBuf) -> Self {
        Self { header, steps: BTreeMap::new(), cancelled: false, origin: Origin::Resumed, file, path }
    }

    fn take(&mut self, entry: Entry) {
        match entry {
            Entry::Began { step } => {
                let known = self.step(step);
                known.course = Course::Open;
                known.begun += 1;
            }
            Entry::Void { step } | Entry::Rerun { step } => self.step(step).course = Course::Free,
            Entry::Skipped { step } => self.step(step).course = Course::Skipped,
            Entry::Ended(ended) => {
                let known = self.step(ended.step.clone());
                known.ended = Some(ended);
            }
            Entry::Approved { step, .. } => self.step(step).approved = true,
            Entry::Cancelled { .. } => self.cancelled = true,
        }
    }

    fn step(&mut self, id: String) -> &mut Known {
        self.steps.entry(id).or_default()
    }

    pub(super) fn write(&mut self, entry: Entry, durable: Durable) -> Result<(), JournalError> {
        let written = write_line(&mut self.file, &entry);
        let synced = written.and_then(|()| match durable {
            Durable::Now => self.file.sync_data(),
            Durable::Later => Ok(()),
        });
        synced.map_err(file_error("write", &self.path))?;
        self.take(entry);
        Ok(())
    }

    pub(super) fn write_cancelled(&mut self) -> Result<(), JournalError> {
        self.write(Entry::Cancelled { at: Timestamp::now() }, Durable::Now)
    }

    pub(super) fn write_approved(&mut self, step: &str) -> Result<(), JournalError> {
        self.write(Entry::Approved { step: step.to_owned(), at: Timestamp::now() }, Durable::Now)
    }

    /// How a step ended, if it has.
    #[must_use]
    pub fn ended(&self, step: &str) -> Option<&Ended> {
        self.steps.get(step)?.ended.as_ref()
    }

    /// Whether this process has begun it.
    pub(super) fn is_new(&self) -> bool {
        self.origin == Origin::Begun
    }

    /// How often a step has begun.
    pub(super) fn begun(&self, step: &str) -> usize {
        self.steps.get(step).map_or(0, |known| known.begun)
    }

    pub(super) fn course(&self, step: &str) -> Course {
        self.steps.get(step).map_or(Course::Untouched, |known| known.course)
    }

    /// Whether somebody has taken a step as done.
    #[must_use]
    pub fn is_skipped(&self, step: &str) -> bool {
        self.course(step) == Course::Skipped
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
fn is_ours(path: &Path, file: &File) -> Result<(), JournalError> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    let known = |metadata: io::Result<Metadata>| metadata.map_err(file_error("look at", path));
    for (looked_at, metadata) in [(path, known(file.metadata())?), (folder, known(folder.metadata())?)] {
        if !security::is_ours(&metadata) {
            return Err(JournalError::NotOurs { path: looked_at.to_owned() });
        }
    }
    Ok(())
}

/// Whole or not at all: what is not read would seem not to have happened.
fn is_readable(path: &Path, file: &File) -> Result<(), JournalError> {
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
