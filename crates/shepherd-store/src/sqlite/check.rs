//! Finding damage before anything is believed (S8.4).

use rusqlite::Connection;

use super::digest::{Digest, RowHasher};
use super::head::Reading;
use super::schema::{self, APPLICATION_ID};
use super::state::{self, State};
use super::trouble::Trouble;

/// Looks at everything: whose file it is, its version and schema, the structure of its pages, every row, and whether
/// it is as new as the head says. Nothing is written.
pub(super) fn inspect(connection: &Connection, head: Reading, migrations: &[&str]) -> Result<State, Trouble> {
    let application: i32 = connection.pragma_query_value(None, "application_id", |row| row.get(0))?;
    if application != APPLICATION_ID {
        return damage("it is not a database of Shepherd");
    }
    let version = schema::version(connection)?;
    if usize::try_from(version).is_ok_and(|version| version > migrations.len()) {
        return Err(Trouble::Newer(version));
    }
    let journal: String = connection.pragma_query_value(None, "journal_mode", |row| row.get(0))?;
    if journal != "wal" {
        return damage("its header has been changed");
    }
    if version < 1 || schema::found(connection)? != schema::expected(version, migrations)? {
        return damage("its tables have been changed");
    }
    let mut structure = connection.prepare("PRAGMA quick_check(1)")?;
    let verdict: String = structure.query_row([], |row| row.get(0))?;
    if verdict != "ok" {
        return damage(&verdict.replace('\n', " "));
    }
    let state = state::read(connection)?;
    if digest_of_all(connection)? != state.digest {
        return damage("what it holds is not what was written");
    }
    compare(&state, head)?;
    Ok(state)
}

fn compare(state: &State, head: Reading) -> Result<(), Trouble> {
    let found = state.vouched();
    match head {
        // A new database has no head until something is about to be written, and a crash may leave half of the first.
        Reading::Missing | Reading::Unreadable if found.generation == 0 => Ok(()),
        Reading::Missing => damage("the head that vouches for it is gone"),
        Reading::Unreadable => damage("the head that vouches for it is damaged"),
        Reading::Vouched(vouched) if vouched.generation > found.generation => damage(&format!(
            "its last {} batches are gone, with its write-ahead log or because it is an older copy",
            vouched.generation - found.generation
        )),
        Reading::Vouched(vouched) if vouched.generation == found.generation && vouched != found => {
            damage("its head belongs to another one")
        }
        Reading::Vouched(_) => Ok(()),
    }
}

/// The sum over all rows of all tables but the one that holds the sum, whatever the version.
pub(super) fn digest_of_all(connection: &Connection) -> Result<Digest, Trouble> {
    let sql = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name <> 'state' ORDER BY name";
    let tables: Vec<String> =
        connection.prepare(sql)?.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
    let mut hasher = RowHasher::default();
    let mut digest = Digest::default();
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

fn damage<T>(fault: &str) -> Result<T, Trouble> {
    Err(Trouble::Damage(fault.to_owned()))
}
