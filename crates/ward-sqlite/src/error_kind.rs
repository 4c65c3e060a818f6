//! The meaning of SQLite's errors.

use rusqlite::{Error, ErrorCode, ffi};

/// The meaning of an SQLite error for an application that owns the database and its tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SqliteErrorKind {
    /// The content of the file is damaged or was changed from outside: a page is corrupt, the file is cut
    /// short, a column is missing, or a value is of another type than the application wrote.
    Damaged,
    /// The file isn't an SQLite database: it belongs to another program, or its header is damaged.
    NotADatabase,
    /// Another connection holds a lock for longer than the busy timeout.
    Busy,
    /// The disk is full.
    DiskFull,
    /// The file or its folder can't be opened or written to.
    NotWritable,
    /// Any other error, such as a failure of the disk.
    Other,
}

impl SqliteErrorKind {
    /// Returns the kind of an error.
    #[must_use]
    pub fn of(error: &Error) -> Self {
        match error {
            Error::SqliteFailure(failure, _) => Self::of_failure(*failure),
            // The application made the columns and wrote the values, so a statement that doesn't fit them
            // means that the file was changed from outside.
            Error::SqlInputError { .. }
            | Error::FromSqlConversionFailure(..)
            | Error::IntegralValueOutOfRange(..)
            | Error::Utf8Error(..)
            | Error::InvalidColumnIndex(_)
            | Error::InvalidColumnName(_)
            | Error::InvalidColumnType(..)
            | Error::QueryReturnedNoRows => Self::Damaged,
            _ => Self::Other,
        }
    }

    fn of_failure(failure: ffi::Error) -> Self {
        // SQLite files these under failures of the disk, but the file is cut short or its file system is damaged.
        if [ffi::SQLITE_IOERR_SHORT_READ, ffi::SQLITE_IOERR_CORRUPTFS].contains(&failure.extended_code) {
            return Self::Damaged;
        }
        match failure.code {
            ErrorCode::DatabaseCorrupt => Self::Damaged,
            ErrorCode::NotADatabase => Self::NotADatabase,
            ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => Self::Busy,
            ErrorCode::DiskFull => Self::DiskFull,
            ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied => Self::NotWritable,
            _ => Self::Other,
        }
    }
}
