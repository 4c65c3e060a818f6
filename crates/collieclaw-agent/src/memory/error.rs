//! What can go wrong with the memory, in words.

use std::io;
use std::path::{Path, PathBuf};

use rusqlite::{Error, ErrorCode, ffi};
use thiserror::Error;

/// Why the memory can't be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum MemoryError {
    /// Somebody could swap what it leads to.
    #[error("{} is a symbolic link; give the place that it leads to as `path` in `[memory]`", .path.display())]
    Link {
        /// The file.
        path: PathBuf,
    },
    /// A folder, a pipe, a device.
    #[error("{} is not a regular file; move it away, or choose another `path` in `[memory]`", .path.display())]
    NotAFile {
        /// The file.
        path: PathBuf,
    },
    /// The file system said no.
    #[error("can't {step} {}; see that its folder exists and that you may write there", .path.display())]
    File {
        /// What was tried.
        step: &'static str,
        /// The file or its folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A database of another program.
    #[error("{} is a database of another program; choose another `path` in `[memory]`", .path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// A database of a later version of this program.
    #[error(
        "{} has version {found}, and this program knows versions up to {known}; use a newer collieclaw",
        .path.display()
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: i32,
        /// Ours.
        known: i32,
    },
    /// What was read is not what was written.
    #[error(
        "{} is damaged ({fault}); move it and the files that begin with its name away, and a new one is made",
        .path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What was found.
        fault: String,
    },
    /// Somebody holds the database for too long.
    #[error("{} is locked by another program; end whatever has it open, such as `sqlite3`", .path.display())]
    Busy {
        /// The file.
        path: PathBuf,
    },
    /// No room.
    #[error("{} can't grow because the disk is full; make room and try again", .path.display())]
    Full {
        /// The file.
        path: PathBuf,
    },
    /// May be read only.
    #[error("can't write to {}; see that you may write to it and to its folder", .path.display())]
    ReadOnly {
        /// The file.
        path: PathBuf,
    },
    /// It was emptied, but traces of what it held remain.
    #[error(
        "{} is empty now, but traces remain while another program reads it; end that one and clear again",
        .path.display()
    )]
    TracesRemain {
        /// The file.
        path: PathBuf,
    },
    /// What was to be kept is not one exchange.
    #[error("an exchange can't be kept: {fault}")]
    InvalidExchange {
        /// What is wrong with it.
        fault: &'static str,
    },
    /// Anything else that SQLite says.
    #[error("can't {step} {}", .path.display())]
    Database {
        /// What was tried.
        step: &'static str,
        /// The file.
        path: PathBuf,
        /// What SQLite said.
        source: Box<Error>,
    },
}

/// Why something did not work, before anybody has said where.
#[derive(Debug)]
pub(super) enum MemoryFault {
    Sql(Error),
    Damage(String),
    InvalidExchange(&'static str),
    TracesRemain,
    Foreign,
    Newer(i32),
}

impl From<Error> for MemoryFault {
    fn from(error: Error) -> Self {
        if is_damage(&error) { Self::Damage(error.to_string()) } else { Self::Sql(error) }
    }
}

impl From<serde_json::Error> for MemoryFault {
    fn from(error: serde_json::Error) -> Self {
        Self::Damage(format!("a row has no JSON where it should have: {error}"))
    }
}

impl MemoryFault {
    /// The error to return: this happened to the database at `path` while we wanted to `step` it.
    pub(super) fn into_error(self, step: &'static str, path: &Path) -> MemoryError {
        let path = path.to_owned();
        match self {
            Self::Damage(fault) => MemoryError::Damaged { path, fault },
            Self::InvalidExchange(fault) => MemoryError::InvalidExchange { fault },
            Self::TracesRemain => MemoryError::TracesRemain { path },
            Self::Foreign => MemoryError::Foreign { path },
            Self::Newer(found) => MemoryError::Newer { path, found, known: super::schema::VERSION },
            Self::Sql(error) => match error.sqlite_error_code() {
                Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => MemoryError::Busy { path },
                Some(ErrorCode::DiskFull) => MemoryError::Full { path },
                Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => {
                    MemoryError::ReadOnly { path }
                }
                _ => MemoryError::Database { step, path, source: Box::new(error) },
            },
        }
    }
}

fn is_damage(error: &Error) -> bool {
    match error {
        Error::SqliteFailure(failure, _) => {
            // A file that ends before its pages do has been cut.
            let cut = [ffi::SQLITE_IOERR_SHORT_READ, ffi::SQLITE_IOERR_CORRUPTFS];
            matches!(failure.code, ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase)
                || cut.contains(&failure.extended_code)
        }
        // Columns, types and tables are ours; when they are others, somebody or something has changed them.
        Error::SqlInputError { .. }
        | Error::FromSqlConversionFailure(..)
        | Error::IntegralValueOutOfRange(..)
        | Error::Utf8Error(..)
        | Error::InvalidColumnIndex(_)
        | Error::InvalidColumnName(_)
        | Error::InvalidColumnType(..)
        | Error::QueryReturnedNoRows => true,
        _ => false,
    }
}
