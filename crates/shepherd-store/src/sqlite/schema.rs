//! The tables, their versions, and the set-up of a connection.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, TransactionBehavior};
use ward_sqlite::{ConnectionSettings, DatabaseHeader, SyncMode};

use super::fault::SqliteFault;
use super::state::{self, DatabaseState};

/// The application id "Shep" in the header of the file.
pub(super) const APPLICATION_ID: i32 = 0x5368_6570;

/// The migrations from each version to the next; the first creates a database.
///
/// Usage is most of the data, and all of it is read at the start: its rows are three numbers. No table has a second
/// index, because the checksum covers rows, and a damaged index would hide one.
///
/// Version 2 has a row for each session, so that a change writes only the sessions that it concerns. A program of version 1
/// knows a single session, and would forget the time of the others, so it must not open the database.
pub(super) const MIGRATIONS: &[&str] = &[
    "
CREATE TABLE counter (
    profile TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('entry', 'budget')),
    name TEXT NOT NULL,
    id INTEGER NOT NULL,
    PRIMARY KEY (profile, kind, name)
) STRICT, WITHOUT ROWID;
CREATE TABLE usage (
    counter INTEGER NOT NULL,
    day INTEGER NOT NULL,
    used_us INTEGER NOT NULL,
    PRIMARY KEY (counter, day)
) STRICT, WITHOUT ROWID;
CREATE TABLE cooldown (
    profile TEXT NOT NULL,
    entry_id TEXT NOT NULL,
    until TEXT NOT NULL,
    PRIMARY KEY (profile, entry_id)
) STRICT, WITHOUT ROWID;
CREATE TABLE snapshot (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    content TEXT NOT NULL
) STRICT;
CREATE TABLE outbox (
    position INTEGER PRIMARY KEY,
    record TEXT NOT NULL
) STRICT;
CREATE TABLE state (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    generation INTEGER NOT NULL,
    audit_sequence INTEGER NOT NULL,
    audit_hash TEXT NOT NULL,
    content_digest BLOB NOT NULL,
    checksum TEXT NOT NULL
) STRICT;
INSERT INTO snapshot VALUES (1, '{}');
",
    "
CREATE TABLE session (
    session_id TEXT NOT NULL PRIMARY KEY,
    record TEXT NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO session
    SELECT json_extract(content, '$.session.session_id'), json_extract(content, '$.session')
    FROM snapshot WHERE json_type(content, '$.session') = 'object';
UPDATE snapshot SET content = json_remove(content, '$.session');
",
];

/// The version that this program reads and writes.
pub const SCHEMA_VERSION: i32 = 2;

/// The time for which another process may hold the database before we give up.
const BUSY_TIMEOUT: Duration = Duration::from_secs(2);

/// Opens an existing database.
pub(super) fn connect(path: &Path) -> rusqlite::Result<Connection> {
    ConnectionSettings { busy_timeout: BUSY_TIMEOUT, sync: SyncMode::Full }.connect(path)
}

/// Migrates a database to the newest version, each step in its own transaction. Returns the version before.
pub(super) fn migrate(connection: &mut Connection, migrations: &[&str]) -> Result<i32, SqliteFault> {
    let from = DatabaseHeader::read(connection)?.version;
    let done = usize::try_from(from).map_err(|_| SqliteFault::NewerSchema(from))?;
    for (number, migration) in (1..).zip(migrations).skip(done) {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        transaction.execute_batch(migration)?;
        DatabaseHeader { application_id: APPLICATION_ID, version: number }.write(&transaction)?;
        // The rows have other columns now. Their old content was checked before.
        let digest = super::check::digest_all_rows(&transaction)?;
        let before = if number == 1 { DatabaseState::default() } else { state::read_state(&transaction)? };
        // A database that is being created has no head yet, which shows in its generation.
        let generation = before.generation + i64::from(from > 0);
        let after = DatabaseState { generation, digest, ..before };
        state::write_state(&transaction, &after)?;
        transaction.commit()?;
    }
    Ok(from)
}

/// Returns the schema of a version: the name and text of every object.
pub(super) fn expected_schema(
    version: i32,
    migrations: &[&str],
) -> Result<Vec<(String, String)>, SqliteFault> {
    let connection = Connection::open_in_memory()?;
    let count = usize::try_from(version).unwrap_or(0);
    for migration in migrations.iter().take(count) {
        connection.execute_batch(migration)?;
    }
    Ok(read_schema(&connection)?)
}

/// Returns the schema of a database.
pub(super) fn read_schema(connection: &Connection) -> rusqlite::Result<Vec<(String, String)>> {
    let sql = "SELECT type || ' ' || name, coalesce(sql, '') FROM sqlite_schema ORDER BY 1";
    connection.prepare(sql)?.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
}

#[cfg(test)]
mod tests;
