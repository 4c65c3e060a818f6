//! The tables with their versions, and the settings of a connection.

use std::fs::{self, OpenOptions, Permissions};
use std::io::ErrorKind;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rusqlite::{Connection, TransactionBehavior};
use ward_sqlite::{ConnectionSettings, DatabaseHeader, SyncMode, enable_wal, is_empty_database};

use super::error::{MemoryError, MemoryFault};
use crate::sqlite::BUSY_TIMEOUT;

/// The header of the file: the application id "Coll", which marks the database as ours, and the version.
const HEADER: DatabaseHeader = DatabaseHeader { application_id: 0x436f_6c6c, version: VERSION };

/// The migrations from each version to the next. The first one creates the tables.
///
/// Both indexes store only the turns in which a word or a trigram occurs; excerpts and ranking use the turns
/// themselves. The indexed text is prepared by [`fold`](super::fold) and [`words`](super::words), and the
/// tokenizers don't change it: `ascii` splits at spaces, and `trigram` takes letters as they are. So a query
/// and a turn are always folded in the same way.
const MIGRATIONS: &[&str] = &[
    "
CREATE TABLE conversation (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    first_turn INTEGER NOT NULL,
    last_turn INTEGER NOT NULL UNIQUE,
    turns INTEGER NOT NULL
) STRICT;
CREATE TABLE turn (
    id INTEGER PRIMARY KEY,
    conversation INTEGER NOT NULL REFERENCES conversation (id),
    exchange INTEGER NOT NULL,
    turn_id TEXT NOT NULL,
    timestamp TEXT NOT NULL,
    role TEXT NOT NULL CHECK (role IN ('user', 'assistant', 'tool')),
    content TEXT NOT NULL,
    tool_calls TEXT,
    tool_results TEXT,
    provider TEXT NOT NULL,
    model TEXT NOT NULL,
    metadata TEXT,
    UNIQUE (conversation, turn_id)
) STRICT;
CREATE INDEX turn_of_conversation ON turn (conversation);
CREATE VIRTUAL TABLE turn_words USING fts5 (
    words, content = '', detail = none, columnsize = 0, prefix = '1 2', tokenize = 'ascii'
);
CREATE VIRTUAL TABLE turn_grams USING fts5 (
    folded, content = '', detail = none, columnsize = 0, tokenize = 'trigram case_sensitive 1'
);
",
    "
ALTER TABLE conversation ADD COLUMN workspace TEXT NOT NULL DEFAULT '';
",
];

pub(super) const VERSION: i32 = 2;

/// The length of the log, in pages of 4 KiB, at which a writer empties it. Every start reads the whole log,
/// so a longer log makes starts slower; with a shorter one, more turns wait for the disk twice.
const CHECKPOINT_PAGES: i32 = 256;

/// The size to which the log is truncated after a very large write.
const LOG_BYTES: i32 = 4 << 20;

/// The size of the page cache. Searches in a large memory read the same pages several times.
const CACHE_KIB: i32 = 8 << 10;

/// The smallest size of a database file. SQLite would treat a shorter fragment as an empty database.
const MIN_DATABASE_BYTES: u64 = 512;

/// Opens the database at `path`, or creates it.
pub(super) fn open(path: &Path) -> Result<Connection, MemoryError> {
    let real = prepare_file(path)?;
    let connect = || {
        let mut connection = connect(&real)?;
        // The transaction makes sure that both numbers of the version are read from the same state.
        let version = version(&*connection.transaction()?)?;
        if version != VERSION {
            migrate(&mut connection)?;
        }
        Ok(connection)
    };
    connect().map_err(|fault: MemoryFault| fault.into_error("open", path))
}

/// Makes sure that a private regular file exists, and returns its path without symlinks.
///
/// An existing file is not opened here: closing it would release the POSIX locks of other connections in this
/// process.
fn prepare_file(path: &Path) -> Result<PathBuf, MemoryError> {
    let fail = |step| {
        let path = path.to_owned();
        move |source| MemoryError::File { step, path, source }
    };
    let name = path.file_name().ok_or_else(|| MemoryError::NotAFile { path: path.to_owned() })?;
    let folder = match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    let real = folder.canonicalize().map_err(fail("reach"))?.join(name);
    match fs::symlink_metadata(&real) {
        Ok(found) if found.is_symlink() => Err(MemoryError::Link { path: path.to_owned() }),
        Ok(found) if !found.is_file() => Err(MemoryError::NotAFile { path: path.to_owned() }),
        Ok(found) if (1..MIN_DATABASE_BYTES).contains(&found.len()) => {
            let fault = format!("the file has only {} bytes", found.len());
            Err(MemoryError::Damaged { path: path.to_owned(), fault })
        }
        Ok(found) => {
            if found.permissions().mode() & 0o077 != 0 {
                fs::set_permissions(&real, Permissions::from_mode(0o600)).map_err(fail("protect"))?;
            }
            Ok(real)
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {
            match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&real) {
                Ok(_) => Ok(real),
                // Another process created the file in the meantime.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(real),
                Err(error) => Err(fail("create")(error)),
            }
        }
        Err(error) => Err(fail("look at")(error)),
    }
}

/// Opens an existing file and applies the settings of the connection.
fn connect(path: &Path) -> rusqlite::Result<Connection> {
    let settings = ConnectionSettings { busy_timeout: BUSY_TIMEOUT, sync: SyncMode::Full };
    let connection = settings.connect(path)?;
    connection.execute_batch(&format!(
        "PRAGMA temp_store = MEMORY; PRAGMA cache_size = -{CACHE_KIB};
         PRAGMA journal_size_limit = {LOG_BYTES}; PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES};"
    ))?;
    Ok(connection)
}

fn version(connection: &Connection) -> Result<i32, MemoryFault> {
    match DatabaseHeader::read(connection)? {
        DatabaseHeader { application_id, version } if application_id == HEADER.application_id => {
            if (1..=VERSION).contains(&version) { Ok(version) } else { Err(MemoryFault::Newer(version)) }
        }
        DatabaseHeader { application_id: 0, version: 0 } if is_empty_database(connection)? => Ok(0),
        _ => Err(MemoryFault::Foreign),
    }
}

/// Migrates a database to the current version in one transaction.
fn migrate(connection: &mut Connection) -> Result<(), MemoryFault> {
    enable_wal(connection)?;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Another process may have migrated the database in the meantime.
    let done = usize::try_from(version(&transaction)?).unwrap_or(0);
    for migration in MIGRATIONS.iter().skip(done) {
        transaction.execute_batch(migration)?;
    }
    HEADER.write(&transaction)?;
    transaction.commit()?;
    Ok(())
}
