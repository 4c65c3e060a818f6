//! The folder of journals.

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

/// Where journals are kept, in the home.
#[derive(Debug, Clone)]
pub struct SopRunStore {
    folder: PathBuf,
}

const JOURNAL_EXTENSION: &str = "jsonl";

/// How names of runs begin.
const RUN_PREFIX: &str = "run-";

/// Whether this is kept for runs: whatever is called in a conversation of such a name would seem to be a part of one.
#[must_use]
pub fn is_run_name(text: &str) -> bool {
    text.starts_with(RUN_PREFIX)
}

impl SopRunStore {
    /// In a folder that need not be there.
    #[must_use]
    pub fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// Begins a run of a procedure with this text.
    ///
    /// # Errors
    /// When its journal can't be made.
    pub fn begin(&self, sop: &str, text: &str) -> Result<SopRun, JournalError> {
        match DirBuilder::new().mode(0o700).create(&self.folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(file_error("make", &self.folder)(error));
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

    /// Takes a run into hand: nobody else carries it out meanwhile. The beginning of its name is enough.
    ///
    /// # Errors
    /// When there is none, somebody else has it, or its journal can't be used.
    pub fn open_locked(&self, name: &str) -> Result<SopRun, JournalError> {
        let run = self.find_by_prefix(name)?;
        SopRun::open_locked(&self.folder.join(&run).with_extension(JOURNAL_EXTENSION), &run)
    }

    /// Looks at a run, and whether somebody carries it out.
    ///
    /// # Errors
    /// When there is none, or its journal can't be used.
    pub fn inspect(&self, name: &str) -> Result<(SopRun, bool), JournalError> {
        let run = self.find_by_prefix(name)?;
        SopRun::inspect(&self.folder.join(run).with_extension(JOURNAL_EXTENSION))
    }

    /// Removes a run that somebody holds, with all that its steps gave.
    ///
    /// # Errors
    /// When its journal can't be removed.
    pub fn remove(&self, run: &SopRun) -> Result<(), JournalError> {
        fs::remove_file(&run.path).map_err(file_error("remove", &run.path))?;
        let synced = File::open(&self.folder).and_then(|folder| folder.sync_all());
        synced.map_err(file_error("make durable", &self.folder))
    }

    /// The names of all runs.
    ///
    /// # Errors
    /// When the folder can't be read.
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
        // What is no word is no name, and leads nowhere else.
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
