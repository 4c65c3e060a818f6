//! The SQLite set-up that both products share.
//!
//! [`ConnectionSettings::connect`] opens a database file whose content nobody has checked yet.
//! [`SqliteErrorKind`] sorts SQLite's errors by what the caller can do about them. [`DatabaseHeader`] is the
//! application id and the version of the tables in the header of the file, and [`enable_wal`] switches to a
//! write-ahead log.
//!
//! The crate knows no table. It never creates a file, never migrates a database and never repairs one: its
//! users run their own statements on the [`rusqlite::Connection`] that they get.
//!
//! ```
//! use std::time::Duration;
//! use ward_sqlite::{ConnectionSettings, DatabaseHeader, SqliteErrorKind, SyncMode, enable_wal};
//!
//! let folder = tempfile::tempdir()?;
//! let path = folder.path().join("notes.db");
//! let settings = ConnectionSettings { busy_timeout: Duration::from_secs(5), sync: SyncMode::Full };
//!
//! let missing = settings.connect(&path).unwrap_err();
//! assert_eq!(SqliteErrorKind::of(&missing), SqliteErrorKind::NotWritable);
//!
//! std::fs::File::create(&path)?;
//! let connection = settings.connect(&path)?;
//! enable_wal(&connection)?;
//! connection.execute_batch("CREATE TABLE note (text TEXT NOT NULL) STRICT")?;
//! DatabaseHeader { application_id: 0x4e6f_7465, version: 1 }.write(&connection)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![warn(missing_docs)]

mod connection;
mod error_kind;
mod header;

pub use connection::{ConnectionSettings, SyncMode, checkpoint_on_close, enable_wal};
pub use error_kind::SqliteErrorKind;
pub use header::{DatabaseHeader, is_empty_database};
