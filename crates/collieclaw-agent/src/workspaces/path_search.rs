//! Finds programs through the user's own `PATH`, at the moment the operator allows them.
//!
//! The first folder of `PATH` that has the program decides, as in the user's own shell. A folder counts only if no
//! other user and no tool could put a program there.

use std::path::{Path, PathBuf};

use super::allow::ProgramOrigin;
use super::rules::PinnedProgram;
use crate::security::{PROGRAM_FOLDERS, trusted_home_program};

/// The folders of a `PATH`, in order.
#[derive(Debug, Clone, Default)]
pub struct ProgramSearch {
    folders: Vec<PathBuf>,
    /// Folders that tools can write to.
    writable: Vec<PathBuf>,
}

/// A folder of `PATH` that has the program and doesn't count, with the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkippedFolder {
    pub folder: PathBuf,
    pub why: &'static str,
}

impl ProgramSearch {
    /// Creates a search in the folders of `path`. Programs in a folder of `writable` could be changed by tools, so
    /// these folders don't count.
    #[must_use]
    pub fn new(path: &str, writable: Vec<PathBuf>) -> Self {
        Self { folders: std::env::split_paths(path).collect(), writable }
    }

    /// Returns the place of a program.
    #[must_use]
    pub fn find(&self, name: &str) -> ProgramOrigin {
        let mut skipped = Vec::new();
        if name.is_empty() || name.contains(['/', '\0']) || matches!(name, "." | "..") {
            return ProgramOrigin::Missing { skipped };
        }
        for folder in &self.folders {
            let found = folder.join(name);
            if !found.is_file() {
                continue;
            }
            match self.judge_program(folder, &found) {
                Ok(origin) => return origin,
                Err(why) => skipped.push(SkippedFolder { folder: folder.clone(), why }),
            }
        }
        // A program of the system can run even if the user's `PATH` leaves its folder out.
        let system = PROGRAM_FOLDERS.iter().map(|folder| Path::new(folder).join(name));
        match system.into_iter().find(|path| path.is_file()) {
            Some(path) => ProgramOrigin::System(path),
            None => ProgramOrigin::Missing { skipped },
        }
    }

    fn judge_program(&self, folder: &Path, found: &Path) -> Result<ProgramOrigin, &'static str> {
        if !folder.is_absolute() {
            return Err("a relative folder in `PATH` leads somewhere else in every folder");
        }
        let real_folder = folder.canonicalize().map_err(|_| "it can't be read")?;
        if is_system_folder(folder) || is_system_folder(&real_folder) {
            return Ok(ProgramOrigin::System(found.to_owned()));
        }
        let real = trusted_home_program(found)
            .ok_or("other users could replace the program, or it can't be executed")?;
        let changeable = |path: &Path| self.writable.iter().any(|folder| path.starts_with(folder));
        if changeable(&real_folder) || changeable(&real) {
            return Err("tools can change this folder");
        }
        if found.to_str().is_none() || real.to_str().is_none() {
            return Err("its path is not UTF-8");
        }
        Ok(ProgramOrigin::Pinned(PinnedProgram { found: found.to_owned(), real }))
    }
}

fn is_system_folder(folder: &Path) -> bool {
    PROGRAM_FOLDERS.iter().any(|system| folder == Path::new(system))
}
