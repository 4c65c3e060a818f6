//! The facts about the machine that the gate needs: files, folders and installed programs.

use std::path::{Path, PathBuf};

/// Answers questions about the machine. The gate asks only about paths that a call names.
pub trait MachineFacts {
    /// Returns the kind of file at a path, with all links followed as the kernel follows them.
    fn inspect_path(&self, path: &Path) -> PathStatus;
    /// Returns the names in a folder, sorted by their bytes; `None` if the folder can't be read or a name is
    /// not UTF-8.
    fn names_in(&self, folder: &Path) -> Option<Vec<String>>;
    /// Returns the file of a command, searching only the folders of the system.
    fn find_program(&self, name: &str) -> Option<PathBuf>;

    /// Returns whether a real path still is an executable program that no other user can replace.
    fn is_trusted_program(&self, path: &Path) -> bool {
        let _ = path;
        false
    }

    /// Returns the SHA-256 of a regular file in hexadecimal digits; `None` if it can't be read.
    fn hash_file(&self, path: &Path) -> Option<String> {
        let _ = path;
        None
    }
}

/// The kind of file at a path. `leads_to` is the real path, with all links resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PathStatus {
    Missing {
        /// The path at which the file would be created: the real path of the last existing folder, and the
        /// missing names.
        leads_to: PathBuf,
    },
    /// A regular file.
    File {
        leads_to: PathBuf,
        /// The number of hard links.
        link_count: u64,
    },
    Folder {
        leads_to: PathBuf,
    },
    /// A device, a pipe or a socket.
    Special {
        leads_to: PathBuf,
    },
    /// The path could not be inspected: a folder on the way is closed to us, or links form a loop.
    Unreachable,
}
