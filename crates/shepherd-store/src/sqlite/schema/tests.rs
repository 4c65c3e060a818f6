//! Migrations (S8.5), from today's version to versions that only these tests have.

use std::path::Path;
use std::time::Duration;

use rusqlite::Connection;
use shepherd_core::StoredState;
use tempfile::TempDir;

use super::super::check::check_database;
use super::super::fault::SqliteFault;
use super::super::head::{StoreHeadFile, StoreHeadState};
use super::super::rows;
use super::*;
use crate::conformance::sample;
use crate::sqlite::SqliteStore;
use crate::store::Store;

/// The versions of a future program.
const LATER_MIGRATIONS: &[&str] = &[
    MIGRATIONS[0],
    "ALTER TABLE usage ADD COLUMN place TEXT NOT NULL DEFAULT 'home'",
    "CREATE TABLE device (name TEXT PRIMARY KEY) STRICT, WITHOUT ROWID; INSERT INTO device VALUES ('desk')",
];

/// A store of version 1 with some content.
fn older_store() -> (TempDir, StoredState) {
    let folder = tempfile::tempdir().unwrap();
    let (mut store, _) = SqliteStore::open(folder.path(), sample::timestamp(0)).unwrap();
    for day in 0..50 {
        let key = sample::usage_key("ada", sample::entry_counter("chess"), day);
        store.apply(&sample::batch(1, &key)).unwrap();
    }
    let state = store.load().unwrap();
    (folder, state)
}

fn connect_with_head(folder: &Path) -> (Connection, StoreHeadState) {
    let connection = connect(&folder.join("shepherd.db")).unwrap();
    (connection, StoreHeadFile::new(folder.join("shepherd.db.head")).read().unwrap())
}

#[test]
fn the_version_is_the_number_of_migrations() {
    assert_eq!(usize::try_from(SCHEMA_VERSION).unwrap(), MIGRATIONS.len());
}

#[test]
fn an_older_database_is_brought_up_to_date_and_keeps_everything() {
    let (folder, before) = older_store();
    let (mut connection, head) = connect_with_head(folder.path());
    check_database(&connection, head, LATER_MIGRATIONS).unwrap();
    assert_eq!(migrate(&mut connection, LATER_MIGRATIONS).unwrap(), 1);
    let state = check_database(&connection, head, LATER_MIGRATIONS).unwrap();
    assert!(matches!(head, StoreHeadState::Valid(recorded) if recorded.generation + 2 == state.generation));
    assert_eq!(rows::read_all(&connection).unwrap(), before);
    assert_eq!(before.usage.values().sum::<Duration>(), Duration::from_secs(50));
    assert_eq!(migrate(&mut connection, LATER_MIGRATIONS).unwrap(), 3, "there is nothing left to do");
}

#[test]
fn an_older_program_refuses_the_database_of_a_newer_one() {
    let (folder, _) = older_store();
    let (mut connection, head) = connect_with_head(folder.path());
    migrate(&mut connection, LATER_MIGRATIONS).unwrap();
    assert!(matches!(check_database(&connection, head, MIGRATIONS), Err(SqliteFault::NewerSchema(3))));
}

#[test]
fn a_migration_that_fails_leaves_the_version_before_it() {
    let (folder, before) = older_store();
    let (mut connection, head) = connect_with_head(folder.path());
    let failing = [MIGRATIONS[0], "DELETE FROM usage; INSERT INTO nowhere VALUES (1)"];
    migrate(&mut connection, &failing).unwrap_err();
    check_database(&connection, head, MIGRATIONS).unwrap();
    assert_eq!(rows::read_all(&connection).unwrap(), before);
}

#[test]
fn damage_is_found_before_a_migration_would_hide_it() {
    let (folder, _) = older_store();
    let (connection, head) = connect_with_head(folder.path());
    connection.execute("UPDATE usage SET used_us = used_us - 1 WHERE day = 7 AND counter = 1", []).unwrap();
    assert!(matches!(check_database(&connection, head, LATER_MIGRATIONS), Err(SqliteFault::Damage(_))));
}
