//! What SQLite says, sorted by what it means to us.

use std::path::Path;

use rusqlite::{Error, ErrorCode, ffi};
use shepherd_util::IdError;

use crate::error::StoreError;

/// Why something did not work, before anybody has said where.
#[derive(Debug)]
pub(super) enum SqliteFault {
    /// What was read is not what was written.
    Damage(String),
    /// A version of the future.
    NewerSchema(i32),
    /// What was asked for can't be done.
    Refused(StoreError),
    /// Anything else.
    Sql(Error),
}

impl From<Error> for SqliteFault {
    fn from(error: Error) -> Self {
        if is_damage(&error) { Self::Damage(error.to_string()) } else { Self::Sql(error) }
    }
}

impl From<StoreError> for SqliteFault {
    fn from(error: StoreError) -> Self {
        Self::Refused(error)
    }
}

impl From<IdError> for SqliteFault {
    fn from(error: IdError) -> Self {
        Self::Damage(error.to_string())
    }
}

impl SqliteFault {
    /// The error to return: this happened to the database at `path` while we wanted to `step` it.
    pub(super) fn into_store_error(self, step: &'static str, path: &Path) -> StoreError {
        let path = path.to_owned();
        match self {
            Self::Damage(fault) => StoreError::Damaged { path, fault },
            Self::NewerSchema(found) => {
                StoreError::Damaged { path, fault: format!("its version turned into {found}") }
            }
            Self::Refused(error) => error,
            Self::Sql(error) => match error.sqlite_error_code() {
                Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => StoreError::Busy { path },
                Some(ErrorCode::DiskFull) => StoreError::DiskFull { path },
                _ => StoreError::Database { step, path, source: Box::new(error) },
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

/// Whether the disk failed, so that what it was given may have reached it or not.
pub(super) fn is_disk_failure(error: &Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::SystemIoFailure)
}
