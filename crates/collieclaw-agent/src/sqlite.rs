//! Settings with which CollieClaw opens its SQLite databases.

use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};

/// The longest time to wait for a lock that another process holds.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Opens an existing database file and treats its content as untrusted.
pub(crate) fn connect(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_NOFOLLOW
        | OpenFlags::SQLITE_OPEN_EXRESCODE;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    // A checkpoint at each close would make every message wait for three disk syncs.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    connection.pragma_update(None, "cell_size_check", true)?;
    Ok(connection)
}

/// Switches to a write-ahead log. SQLite's busy timeout doesn't cover this switch, so a busy database is
/// retried here.
pub(crate) fn enable_wal(connection: &Connection) -> rusqlite::Result<()> {
    let end = Instant::now() + BUSY_TIMEOUT;
    loop {
        match connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(())) {
            Err(error)
                if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) && Instant::now() < end =>
            {
                sleep(Duration::from_millis(5));
            }
            switched => return switched,
        }
    }
}

/// Returns true if the database has no tables yet.
pub(crate) fn is_empty_database(connection: &Connection) -> rusqlite::Result<bool> {
    connection.query_row("SELECT NOT EXISTS (SELECT 1 FROM sqlite_schema)", [], |row| row.get(0))
}
