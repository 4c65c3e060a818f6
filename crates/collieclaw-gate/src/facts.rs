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
    fn is_trusted_program(&self, _path: &Path) -> bool {
        false
    }

    /// Returns true if this machine can judge every program of a line when it is executed (C17). Otherwise lines that
    /// need a real shell have high risk.
    fn judges_executions(&self) -> bool {
        false
    }

    /// Returns true if two paths lead to the same file or to files with the same content.
    fn is_same_program(&self, _file: &Path, _program: &Path) -> bool {
        false
    }

    /// Reads a file that is about to run: a script, or a program of the workspace.
    fn read_script(&self, _path: &Path) -> Option<ScriptContent> {
        None
    }
}

/// The content of a script, as far as the gate needs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptContent {
    /// The SHA-256 in hexadecimal digits.
    pub sha256: String,
    /// The text after `#!` in the first line: an interpreter and perhaps an argument.
    pub interpreter_line: Option<String>,
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
