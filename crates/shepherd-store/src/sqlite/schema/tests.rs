//! Migrations (S8.5), from today's version to versions that only these tests have.

use std::path::Path;
use std::time::Duration;

use rusqlite::Connection;
use shepherd_api::{SessionCounting, SessionSlot};
use shepherd_core::StoredState;
use shepherd_util::MonotonicInstant;
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
    MIGRATIONS[1],
    "ALTER TABLE usage ADD COLUMN place TEXT NOT NULL DEFAULT 'home'",
    "CREATE TABLE device (name TEXT PRIMARY KEY) STRICT, WITHOUT ROWID; INSERT INTO device VALUES ('desk')",
];

/// A store of today's version with some content.
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
    assert_eq!(migrate(&mut connection, LATER_MIGRATIONS).unwrap(), SCHEMA_VERSION);
    let state = check_database(&connection, head, LATER_MIGRATIONS).unwrap();
    assert!(matches!(head, StoreHeadState::Valid(recorded) if recorded.generation + 2 == state.generation));
    assert_eq!(rows::read_all(&connection).unwrap(), before);
    assert_eq!(before.usage.values().sum::<Duration>(), Duration::from_secs(50));
    assert_eq!(migrate(&mut connection, LATER_MIGRATIONS).unwrap(), 4, "there is nothing left to do");
}

#[test]
fn an_older_program_refuses_the_database_of_a_newer_one() {
    let (folder, _) = older_store();
    let (mut connection, head) = connect_with_head(folder.path());
    migrate(&mut connection, LATER_MIGRATIONS).unwrap();
    assert!(matches!(check_database(&connection, head, MIGRATIONS), Err(SqliteFault::NewerSchema(4))));
}

#[test]
fn a_migration_that_fails_leaves_the_version_before_it() {
    let (folder, before) = older_store();
    let (mut connection, head) = connect_with_head(folder.path());
    let failing = [MIGRATIONS[0], MIGRATIONS[1], "DELETE FROM usage; INSERT INTO nowhere VALUES (1)"];
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

/// The snapshot of a daemon of version 1 while a session ran, as it was written.
const SNAPSHOT_OF_VERSION_1: &str = r#"{"session":{"session_id":"session-00000000000000000000000000000007","entry_id":"chess","label":"Chess “for” Anna","profile":"anna","started_at":"2027-01-15T08:00:00Z","judged_at":"2027-01-15T08:00:00Z","boot":"3f1c1e9a-5d0b-4c57-9f0e-0a8a5c1d2b3e","started":{"total_us":1060000000,"awake_us":1000000000},"ends":{"run":{"counting":"awake","at_us":2800000001},"window":{"counting":"total","at_us":18446744073709551615}},"warnings":[{"before":{"secs":60,"nanos":0},"severity":"critical","message_template":"{remaining} left","armed":true,"repeated":false}],"given":[{"secs":300,"nanos":0}],"extensions":[],"charged_to":{"total_us":1660000000,"awake_us":1600000000},"charged_day":20833,"charged":{"secs":600,"nanos":1000},"in_a_row":{"secs":300,"nanos":0},"stage":{"type":"running","host_session_handle":"{\"pid\":4711}","warned":null},"stop_grace":{"secs":10,"nanos":0},"budgets":["games"],"free":false,"cooldown":{"secs":600,"nanos":0},"crash_within":{"secs":10,"nanos":0}},"clock":{"latest_seen":"2027-01-15T08:10:00Z","seen_at":null,"accounting_day":20833,"synchronised":null,"synchronised_at":null},"mode":"holiday","grants":[],"requests":[],"streaks":{},"extra_runs":[],"crashes":{},"clock_correction":null}"#;

/// Creates a database of version 1 with a snapshot.
fn create_version_1(folder: &Path, snapshot: &str) {
    drop(SqliteStore::open(folder, sample::timestamp(0)).unwrap());
    for name in ["shepherd.db", "shepherd.db-wal", "shepherd.db-shm", "shepherd.db.head"] {
        std::fs::remove_file(folder.join(name)).ok();
    }
    std::fs::File::create(folder.join("shepherd.db")).unwrap();
    let mut connection = connect(&folder.join("shepherd.db")).unwrap();
    migrate(&mut connection, &MIGRATIONS[..1]).unwrap();
    connection.execute("UPDATE snapshot SET content = ?1", [snapshot]).unwrap();
    let digest = super::super::check::digest_all_rows(&connection).unwrap();
    let state = DatabaseState { digest, ..state::read_state(&connection).unwrap() };
    state::write_state(&connection, &state).unwrap();
    ward_sqlite::enable_wal(&connection).unwrap();
}

#[test]
fn the_session_of_a_store_of_version_1_goes_on() {
    // S8.5, S19.1: the daemon was upgraded while a session ran.
    let folder = tempfile::tempdir().unwrap();
    create_version_1(folder.path(), SNAPSHOT_OF_VERSION_1);
    let (store, opened) = SqliteStore::open(folder.path(), sample::timestamp(0)).unwrap();
    assert_eq!(opened.migrated_from, Some(1));
    let stored = store.load().unwrap();
    assert_eq!(stored.snapshot.mode.as_deref(), Some("holiday"));
    let [session] = stored.sessions.values().collect::<Vec<_>>()[..] else { panic!("{stored:?}") };
    assert_eq!((session.label.as_str(), session.profile.as_str()), ("Chess “for” Anna", "anna"));
    assert_eq!((&session.slot, session.counting), (&SessionSlot::Foreground, SessionCounting::Active));
    let at = MonotonicInstant::new(Duration::from_secs(1_660), Duration::from_secs(1_600));
    let (run, window) = (session.ends.run.unwrap(), session.ends.window.unwrap());
    assert_eq!(run.remaining(at), Duration::from_micros(1_200_000_001));
    assert_eq!(window.remaining(at), Duration::from_micros(u64::MAX - 1_660_000_000), "it never closes");
    assert_eq!(session.charged, Duration::from_micros(600_000_001));
    assert_eq!(session.stage.host_session_handle(), Some("{\"pid\":4711}"));
    let text: String =
        store.connection.query_row("SELECT content FROM snapshot", [], |row| row.get(0)).unwrap();
    assert!(!text.contains("chess"), "nothing is stored twice: {text}");
}

#[test]
fn a_store_of_version_1_without_a_session_has_none_afterwards() {
    for snapshot in ["{}", r#"{"session":null,"mode":"holiday"}"#] {
        let folder = tempfile::tempdir().unwrap();
        create_version_1(folder.path(), snapshot);
        let (store, _) = SqliteStore::open(folder.path(), sample::timestamp(0)).unwrap();
        assert_eq!(store.load().unwrap().sessions.len(), 0, "{snapshot}");
    }
}

#[test]
fn a_daemon_of_version_1_does_not_forget_sessions_that_it_does_not_know() {
    // S19.1: it knows a single session, so it must not open a store with several.
    let (folder, _) = older_store();
    let (connection, head) = connect_with_head(folder.path());
    let refused = check_database(&connection, head, &MIGRATIONS[..1]);
    assert!(matches!(refused, Err(SqliteFault::NewerSchema(2))), "{refused:?}");
}
