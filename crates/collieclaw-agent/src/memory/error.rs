//! Errors of the memory.

use std::io;
use std::path::{Path, PathBuf};

use rusqlite::Error;
use thiserror::Error;
use ward_sqlite::SqliteErrorKind;

/// An error of the memory.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum MemoryError {
    /// A symlink is refused, because its target could be exchanged.
    #[error("{} is a symbolic link; set `path` in `[memory]` to its target", .path.display())]
    Link { path: PathBuf },
    /// The path leads to a folder, a pipe or a device.
    #[error("{} is not a regular file; move it away, or choose another `path` in `[memory]`", .path.display())]
    NotAFile { path: PathBuf },
    /// An operation of the file system failed.
    #[error("could not {step} {}; check that its folder exists and that you may write to it", .path.display())]
    File {
        /// The failed operation, as a verb.
        step: &'static str,
        /// The file or its folder.
        path: PathBuf,
        source: io::Error,
    },
    #[error("{} is the database of another program; choose another `path` in `[memory]`", .path.display())]
    Foreign { path: PathBuf },
    #[error(
        "{} has version {found}, but this program supports versions up to {known} only; install a newer collieclaw",
        .path.display()
    )]
    Newer {
        path: PathBuf,
        /// The version of the file.
        found: i32,
        /// The latest version that this program supports.
        known: i32,
    },
    /// The content of the file is invalid.
    #[error(
        "{} is damaged ({fault}); move it and the files whose names start with its name away to start with a new one",
        .path.display()
    )]
    Damaged { path: PathBuf, fault: String },
    /// Another program holds a lock for too long.
    #[error("{} is locked by another program; close the programs that use it, such as `sqlite3`", .path.display())]
    Busy { path: PathBuf },
    #[error("could not write to {}: the disk is full; free some space and try again", .path.display())]
    Full { path: PathBuf },
    #[error("could not write to {}; check that you may write to it and to its folder", .path.display())]
    ReadOnly { path: PathBuf },
    /// All turns were deleted, but traces remain in the file.
    #[error(
        "{} is empty now, but traces remain because another program reads it; close that program and clear again",
        .path.display()
    )]
    TracesRemain { path: PathBuf },
    /// The exchange is empty or inconsistent.
    #[error("could not store the exchange: {fault}")]
    InvalidExchange { fault: &'static str },
    /// The conversation was started in another workspace.
    #[error("this conversation belongs to {}; go there to continue it, or start another one", workspace_name(.workspace))]
    OtherWorkspace { workspace: String },
    /// Any other SQLite error.
    #[error("could not {step} {}", .path.display())]
    Database {
        /// The failed operation, as a verb.
        step: &'static str,
        path: PathBuf,
        source: Box<Error>,
    },
}

/// An error without the path of the database, which [`MemoryFault::into_error`] adds.
#[derive(Debug)]
pub(super) enum MemoryFault {
    Sql(Error),
    Damage(String),
    InvalidExchange(&'static str),
    TracesRemain,
    Foreign,
    Newer(i32),
    /// A conversation belongs to this workspace.
    OtherWorkspace(String),
}

/// Returns the name of a workspace for people.
fn workspace_name(workspace: &str) -> String {
    match workspace {
        "" => "the workspace of the configuration".to_owned(),
        path => format!("the workspace {}", ward_terminal::escape_line(path)),
    }
}

impl From<Error> for MemoryFault {
    fn from(error: Error) -> Self {
        Self::Sql(error)
    }
}

impl From<serde_json::Error> for MemoryFault {
    fn from(error: serde_json::Error) -> Self {
        Self::Damage(format!("a column contains invalid JSON: {error}"))
    }
}

impl MemoryFault {
    /// Makes a [`MemoryError`] out of this fault, for the database at `path` and the operation `step`.
    pub(super) fn into_error(self, step: &'static str, path: &Path) -> MemoryError {
        let path = path.to_owned();
        match self {
            Self::Damage(fault) => MemoryError::Damaged { path, fault },
            Self::InvalidExchange(fault) => MemoryError::InvalidExchange { fault },
            Self::TracesRemain => MemoryError::TracesRemain { path },
            Self::Foreign => MemoryError::Foreign { path },
            Self::OtherWorkspace(workspace) => MemoryError::OtherWorkspace { workspace },
            Self::Newer(found) => MemoryError::Newer { path, found, known: super::schema::VERSION },
            Self::Sql(error) => match SqliteErrorKind::of(&error) {
                SqliteErrorKind::Damaged | SqliteErrorKind::NotADatabase => {
                    MemoryError::Damaged { path, fault: error.to_string() }
                }
                SqliteErrorKind::Busy => MemoryError::Busy { path },
                SqliteErrorKind::DiskFull => MemoryError::Full { path },
                SqliteErrorKind::NotWritable => MemoryError::ReadOnly { path },
                SqliteErrorKind::Other => MemoryError::Database { step, path, source: Box::new(error) },
            },
        }
    }
}
