//! Opening a database, and the write-ahead log.

use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};

/// The pause between two attempts to switch a busy database to a write-ahead log.
const WAL_RETRY_PAUSE: Duration = Duration::from_millis(5);

/// The settings of a connection in which the databases of the products differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionSettings {
    /// The longest time to wait for a lock that another connection holds.
    pub busy_timeout: Duration,
    /// The losses that a power cut may cause.
    pub sync: SyncMode,
}

/// The time at which SQLite syncs a commit to the disk, for a database with a write-ahead log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncMode {
    /// Commits survive a killed process, but a power cut may lose the last ones.
    Normal,
    /// A commit is on the disk when it returns.
    Full,
}

impl ConnectionSettings {
    /// Opens an existing database file for reading and writing, and treats its content as untrusted: SQL can't
    /// corrupt the file, the schema can't call functions with side effects, and the cells of a page are checked
    /// when the page is read. Foreign keys are enforced. A symlink in place of the file is refused.
    ///
    /// Closing the connection leaves the write-ahead log as it is, until [`checkpoint_on_close`] is called: a
    /// checkpoint syncs three times, and would write to a database that may turn out to be damaged.
    ///
    /// # Errors
    /// The file is missing, can't be opened, or has a damaged header or schema. Damage elsewhere shows when it
    /// is read.
    pub fn connect(&self, path: &Path) -> rusqlite::Result<Connection> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX
            | OpenFlags::SQLITE_OPEN_NOFOLLOW
            | OpenFlags::SQLITE_OPEN_EXRESCODE;
        let connection = Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(self.busy_timeout)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
        connection.pragma_update(None, "foreign_keys", true)?;
        connection.pragma_update(None, "cell_size_check", true)?;
        let sync = match self.sync {
            SyncMode::Normal => "NORMAL",
            SyncMode::Full => "FULL",
        };
        connection.pragma_update(None, "synchronous", sync)?;
        Ok(connection)
    }
}

/// Switches a database to a write-ahead log. If other connections keep it busy, tries again for as long as the
/// busy timeout of the connection, which SQLite itself doesn't apply to this switch.
///
/// # Errors
/// The database is still busy after the timeout, or can't be written to.
pub fn enable_wal(connection: &Connection) -> rusqlite::Result<()> {
    let timeout = connection.pragma_query_value(None, "busy_timeout", |row| row.get::<_, u32>(0))?;
    let end = Instant::now() + Duration::from_millis(timeout.into());
    loop {
        match connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(())) {
            Err(error)
                if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) && Instant::now() < end =>
            {
                sleep(WAL_RETRY_PAUSE);
            }
            switched => return switched,
        }
    }
}

/// Makes the last connection that closes move the write-ahead log into the database file and remove the log.
///
/// # Errors
/// SQLite refuses the setting.
pub fn checkpoint_on_close(connection: &Connection) -> rusqlite::Result<()> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false).map(drop)
}
