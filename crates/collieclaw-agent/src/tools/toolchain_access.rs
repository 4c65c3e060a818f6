//! The parts of the user's home that the programs of a workspace need in the sandbox.

use std::ffi::OsString;
use std::path::PathBuf;

/// Folders and variables that toolchains in the user's home need, such as `~/.rustup` and `CARGO_HOME` (C16).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolchainAccess {
    /// Folders whose files may be read and executed.
    pub read: Vec<PathBuf>,
    /// Secrets inside of the readable folders, which stay closed.
    pub closed: Vec<PathBuf>,
    /// Cache folders of the workspace, which programs may write to.
    pub write: Vec<PathBuf>,
    /// Folders that are searched for programs before the folders of the system.
    pub program_folders: Vec<PathBuf>,
    /// Variables that tell the programs where their files are.
    pub environment: Vec<(String, OsString)>,
}

impl ToolchainAccess {
    /// Returns the home of the programs; `None` if they have only temporary files.
    pub(super) fn home(&self) -> Option<PathBuf> {
        self.environment.iter().find(|(name, _)| name == "HOME").map(|(_, folder)| folder.into())
    }
}
