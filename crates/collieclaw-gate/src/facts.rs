//! What the gate must be told about the world: what paths lead to, what folders hold, where programs are.

use std::path::{Path, PathBuf};

/// Answers about the real machine. The gate asks only these, and only about paths that a call names.
pub trait MachineFacts {
    /// What is at a path, with all links followed as the kernel would.
    fn inspect_path(&self, path: &Path) -> PathStatus;
    /// The names in a folder, sorted by their bytes; `None` if it can't be read or a name is not UTF-8.
    fn names_in(&self, folder: &Path) -> Option<Vec<String>>;
    /// Which file a command name stands for, in the folders of the system only.
    fn find_program(&self, name: &str) -> Option<PathBuf>;
}

/// What is at a path. `leads_to` is its place with all links followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PathStatus {
    /// Nothing.
    Missing {
        /// Where it would be made: the place of the last folder that is there, with the rest of the names.
        leads_to: PathBuf,
    },
    /// A regular file.
    File {
        /// Where it is.
        leads_to: PathBuf,
        /// How many names it has.
        link_count: u64,
    },
    /// A folder.
    Folder {
        /// Where it is.
        leads_to: PathBuf,
    },
    /// A device, a pipe, a socket.
    Special {
        /// Where it is.
        leads_to: PathBuf,
    },
    /// It could not be looked at: a folder on the way is closed to us, or links go round in a circle.
    Unreachable,
}
