//! Sorts SQLite's errors by what they mean for the store.

use std::path::Path;

use rusqlite::{Error, ErrorCode};
use shepherd_util::IdError;
use ward_sqlite::SqliteErrorKind;

use crate::error::StoreError;

/// The reason for a failure, before the place is known.
#[derive(Debug)]
pub(super) enum SqliteFault {
    /// The database is damaged.
    Damage(String),
    /// The database is of a newer version.
    NewerSchema(i32),
    /// The request can't be carried out.
    Refused(StoreError),
    /// Any other error.
    Sql(Error),
}

impl From<Error> for SqliteFault {
    fn from(error: Error) -> Self {
        match SqliteErrorKind::of(&error) {
            SqliteErrorKind::Damaged | SqliteErrorKind::NotADatabase => Self::Damage(error.to_string()),
            _ => Self::Sql(error),
        }
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
    /// Returns the error for a failed `step` on the database at `path`.
    pub(super) fn into_store_error(self, step: &'static str, path: &Path) -> StoreError {
        let path = path.to_owned();
        match self {
            Self::Damage(fault) => StoreError::Damaged { path, fault },
            Self::NewerSchema(found) => {
                StoreError::Damaged { path, fault: format!("its schema version changed to {found}") }
            }
            Self::Refused(error) => error,
            Self::Sql(error) => match SqliteErrorKind::of(&error) {
                SqliteErrorKind::Busy => StoreError::Busy { path },
                SqliteErrorKind::DiskFull => StoreError::DiskFull { path },
                _ => StoreError::Database { step, path, source: Box::new(error) },
            },
        }
    }
}

/// Returns whether the disk failed, so that it is unknown whether the write happened.
pub(super) fn is_disk_failure(error: &Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::SystemIoFailure)
}
