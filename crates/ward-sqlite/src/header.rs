//! The numbers in the header of a database file that belong to its application.

use rusqlite::Connection;

/// The application id and the version in the header of a database file. Both are 0 in a new database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DatabaseHeader {
    /// The number that tells the databases of an application from those of others (`PRAGMA application_id`).
    pub application_id: i32,
    /// The version of the tables, which the application counts (`PRAGMA user_version`).
    pub version: i32,
}

impl DatabaseHeader {
    /// Reads the header. Outside a transaction, another process may change it between the two numbers.
    ///
    /// # Errors
    /// The file is damaged or can't be read.
    pub fn read(connection: &Connection) -> rusqlite::Result<Self> {
        let number = |name| connection.pragma_query_value(None, name, |row| row.get(0));
        Ok(Self { application_id: number("application_id")?, version: number("user_version")? })
    }

    /// Writes the header, as a part of the current transaction if there is one.
    ///
    /// # Errors
    /// The file can't be written to.
    pub fn write(self, connection: &Connection) -> rusqlite::Result<()> {
        connection.pragma_update(None, "application_id", self.application_id)?;
        connection.pragma_update(None, "user_version", self.version)
    }
}

/// Returns true if the database has no tables yet.
///
/// # Errors
/// The file is damaged or can't be read.
pub fn is_empty_database(connection: &Connection) -> rusqlite::Result<bool> {
    connection.query_row("SELECT NOT EXISTS (SELECT 1 FROM sqlite_schema)", [], |row| row.get(0))
}
