//! Detects damage before any data is trusted (S8.4).

use rusqlite::Connection;
use ward_sqlite::DatabaseHeader;

use super::digest::{RowHasher, RowSetDigest};
use super::fault::SqliteFault;
use super::head::StoreHeadState;
use super::schema::{self, APPLICATION_ID};
use super::state::{self, DatabaseState};

/// Checks everything: application id, version and schema, the structure of the pages, every row, and whether the
/// database is as new as its head says. Nothing is written.
pub(super) fn check_database(
    connection: &Connection,
    head: StoreHeadState,
    migrations: &[&str],
) -> Result<DatabaseState, SqliteFault> {
    let DatabaseHeader { application_id, version } = DatabaseHeader::read(connection)?;
    if application_id != APPLICATION_ID {
        return damage_error("it is not a database of Shepherd");
    }
    if usize::try_from(version).is_ok_and(|version| version > migrations.len()) {
        return Err(SqliteFault::NewerSchema(version));
    }
    let journal: String = connection.pragma_query_value(None, "journal_mode", |row| row.get(0))?;
    if journal != "wal" {
        return damage_error("its header has been changed");
    }
    if version < 1 || schema::read_schema(connection)? != schema::expected_schema(version, migrations)? {
        return damage_error("its tables have been changed");
    }
    let mut structure = connection.prepare("PRAGMA quick_check(1)")?;
    let verdict: String = structure.query_row([], |row| row.get(0))?;
    if verdict != "ok" {
        return damage_error(&verdict.replace('\n', " "));
    }
    let state = state::read_state(connection)?;
    if digest_all_rows(connection)? != state.digest {
        return damage_error("its content differs from what was written");
    }
    compare_with_head(&state, head)?;
    Ok(state)
}

fn compare_with_head(state: &DatabaseState, head: StoreHeadState) -> Result<(), SqliteFault> {
    let found = state.head_content();
    match head {
        // A new database has no head until the first write, and a crash may leave half of the first head.
        StoreHeadState::Missing | StoreHeadState::Unreadable if found.generation == 0 => Ok(()),
        StoreHeadState::Missing => damage_error("its head is missing"),
        StoreHeadState::Unreadable => damage_error("its head is damaged"),
        StoreHeadState::Valid(recorded) if recorded.generation > found.generation => {
            let missing = match recorded.generation - found.generation {
                1 => "batch is".to_owned(),
                count => format!("{count} batches are"),
            };
            damage_error(&format!(
                "its last {missing} missing: its write-ahead log is gone, or it is an older copy"
            ))
        }
        StoreHeadState::Valid(recorded) if recorded.generation == found.generation && recorded != found => {
            damage_error("its head belongs to another database")
        }
        StoreHeadState::Valid(_) => Ok(()),
    }
}

/// Returns the checksum over all rows of all tables except the one with the checksum, for any version.
pub(super) fn digest_all_rows(connection: &Connection) -> Result<RowSetDigest, SqliteFault> {
    let sql = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name <> 'state' ORDER BY name";
    let tables: Vec<String> =
        connection.prepare(sql)?.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
    let mut hasher = RowHasher::default();
    let mut digest = RowSetDigest::default();
    for table in tables {
        let quoted = table.replace('"', "\"\"");
        let mut statement = connection.prepare(&format!("SELECT * FROM \"{quoted}\""))?;
        let columns = statement.column_count();
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            hasher.begin(&table);
            for column in 0..columns {
                hasher.put(row.get_ref(column)?);
            }
            digest.add(hasher.finish());
        }
    }
    Ok(digest)
}

fn damage_error<T>(fault: &str) -> Result<T, SqliteFault> {
    Err(SqliteFault::Damage(fault.to_owned()))
}
