//! The folder that holds the journals of all runs.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

use jiff::Timestamp;

use super::error::{JournalError, file_error};
use super::journal::SopRun;
use super::journal_entry::JournalHeader;
use crate::ids;
use crate::receipts::hash_text;

/// The store of runs: a folder in the agent's home with one journal for each run.
#[derive(Debug, Clone)]
pub struct SopRunStore {
    folder: PathBuf,
}

const JOURNAL_EXTENSION: &str = "jsonl";

/// The beginning of every run's name.
const RUN_PREFIX: &str = "run-";

/// Returns whether a name is reserved for runs. No conversation may have such a name, because the receipts of its calls
/// would look like receipts of a run.
#[must_use]
pub fn is_run_name(text: &str) -> bool {
    text.starts_with(RUN_PREFIX)
}

impl SopRunStore {
    /// Creates a store for a folder that may not exist yet.
    #[must_use]
    pub fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// Begins a run of the procedure with this name and text.
    ///
    /// # Errors
    /// Fails if the journal can't be created.
    pub fn begin(&self, sop: &str, text: &str) -> Result<SopRun, JournalError> {
        match DirBuilder::new().mode(0o700).create(&self.folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(file_error("create", &self.folder)(error));
            }
            _ => {}
        }
        let run = ids::random_id("run");
        let path = self.folder.join(&run).with_extension(JOURNAL_EXTENSION);
        let header = JournalHeader {
            run,
            sop: sop.to_owned(),
            sop_hash: hash_text(text),
            text: text.to_owned(),
            started: Timestamp::now(),
        };
        SopRun::create(path, header)
    }

    /// Opens and locks a run, so that no other process executes it. A unique prefix of the run's name is enough.
    ///
    /// # Errors
    /// Fails if there is no such run, another process holds it, or its journal can't be used.
    pub fn open_locked(&self, name: &str) -> Result<SopRun, JournalError> {
        let run = self.find_by_prefix(name)?;
        SopRun::open_locked(&self.folder.join(&run).with_extension(JOURNAL_EXTENSION), &run)
    }

    /// Reads a run without locking it, and returns whether another process executes it.
    ///
    /// # Errors
    /// Fails if there is no such run, or its journal can't be used.
    pub fn inspect(&self, name: &str) -> Result<(SopRun, bool), JournalError> {
        let run = self.find_by_prefix(name)?;
        SopRun::inspect(&self.folder.join(run).with_extension(JOURNAL_EXTENSION))
    }

    /// Removes a run with the output of its steps.
    ///
    /// # Errors
    /// Fails if the journal can't be removed.
    pub fn remove(&self, run: &SopRun) -> Result<(), JournalError> {
        fs::remove_file(&run.path).map_err(file_error("remove", &run.path))?;
        let synced = File::open(&self.folder).and_then(|folder| folder.sync_all());
        synced.map_err(file_error("sync", &self.folder))
    }

    /// Returns the names of all runs.
    ///
    /// # Errors
    /// Fails if the folder can't be read.
    pub fn names(&self) -> Result<Vec<String>, JournalError> {
        let entries = match fs::read_dir(&self.folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(file_error("list", &self.folder))?,
        };
        let mut names = Vec::new();
        for entry in entries {
            let path = entry.map_err(file_error("list", &self.folder))?.path();
            if path.extension().is_some_and(|ending| ending == JOURNAL_EXTENSION) {
                names.extend(path.file_stem().and_then(|name| name.to_str()).map(str::to_owned));
            }
        }
        Ok(names)
    }

    fn find_by_prefix(&self, name: &str) -> Result<String, JournalError> {
        let unknown = || JournalError::Unknown { run: name.to_owned() };
        // The prefix alone would match every run.
        if name.len() <= RUN_PREFIX.len() {
            return Err(unknown());
        }
        let mut found = self.names()?.into_iter().filter(|run| run.starts_with(name));
        match (found.next(), found.next()) {
            (Some(run), None) => Ok(run),
            (None, _) => Err(unknown()),
            (Some(_), Some(_)) => Err(JournalError::Ambiguous { run: name.to_owned() }),
        }
    }
}
