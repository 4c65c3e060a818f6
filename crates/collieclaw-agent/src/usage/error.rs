//! What can go wrong with the accounts.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// Why the accounts can't be used.
#[derive(Debug, Error)]
pub enum UsageError {
    /// The file can't be made or reached.
    #[error("can't use {}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It is no database of ours.
    #[error("{} is not what CollieClaw keeps its usage in; move it away, and a new one is made", .path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// SQLite says no.
    #[error("can't use {}; if it is damaged, move it away, and a new one is made", .path.display())]
    Database {
        /// The file.
        path: PathBuf,
        /// What SQLite said.
        source: Box<rusqlite::Error>,
    },
}
