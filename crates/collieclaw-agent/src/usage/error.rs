//! Errors of the usage records.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// An error of the usage records.
#[derive(Debug, Error)]
pub enum UsageError {
    /// The file can't be created or reached.
    #[error("could not open {}", .path.display())]
    File { path: PathBuf, source: io::Error },
    /// The file belongs to another program.
    #[error("{} is not a usage database of CollieClaw; move it away to start with a new one", .path.display())]
    Foreign { path: PathBuf },
    #[error("could not use {}; if it is damaged, move it away to start with a new one", .path.display())]
    Database { path: PathBuf, source: Box<rusqlite::Error> },
}
