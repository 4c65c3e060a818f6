//! Real database files: sound, damaged, locked and foreign ones.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::{Connection, Error, ffi};
use tempfile::TempDir;
use ward_sqlite::{
    ConnectionSettings, DatabaseHeader, SqliteErrorKind, SyncMode, checkpoint_on_close, enable_wal,
    is_empty_database,
};

const SETTINGS: ConnectionSettings =
    ConnectionSettings { busy_timeout: Duration::from_secs(5), sync: SyncMode::Full };

const HEADER: DatabaseHeader = DatabaseHeader { application_id: 0x4e6f_7465, version: 3 };

/// A database with a table of many pages.
fn database() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notes.db");
    File::create(&path).unwrap();
    let connection = SETTINGS.connect(&path).unwrap();
    connection
        .execute_batch(
            "CREATE TABLE note (text TEXT NOT NULL) STRICT;
             WITH RECURSIVE number (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number LIMIT 1000)
             INSERT INTO note SELECT 'note number ' || n FROM number;",
        )
        .unwrap();
    HEADER.write(&connection).unwrap();
    (folder, path)
}

fn count_notes(connection: &Connection) -> rusqlite::Result<i64> {
    connection.query_row("SELECT count(*) FROM note WHERE text LIKE 'note number %'", [], |row| row.get(0))
}

fn kind_of_reading(path: &Path) -> SqliteErrorKind {
    let error = SETTINGS.connect(path).and_then(|connection| count_notes(&connection)).unwrap_err();
    SqliteErrorKind::of(&error)
}

#[test]
fn a_connection_is_defensive_and_as_durable_as_asked() {
    let (_folder, path) = database();
    let check = |sync, level| {
        let connection = ConnectionSettings { sync, ..SETTINGS }.connect(&path).unwrap();
        let number = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0)).unwrap();
        assert_eq!(number("synchronous"), level);
        assert_eq!(number("busy_timeout"), 5000);
        assert_eq!([number("trusted_schema"), number("cell_size_check"), number("foreign_keys")], [0, 1, 1]);
        let rewritten = connection.execute_batch(
            "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = 'CREATE TABLE note (other)'",
        );
        assert!(rewritten.is_err(), "the schema can't be rewritten");
    };
    check(SyncMode::Normal, 1);
    check(SyncMode::Full, 2);
}

#[test]
fn a_missing_file_is_not_created_and_a_symlink_is_refused() {
    let (folder, path) = database();
    let missing = folder.path().join("missing.db");
    assert_eq!(kind_of_reading(&missing), SqliteErrorKind::NotWritable);
    assert!(!missing.exists());
    let link = folder.path().join("link.db");
    symlink(&path, &link).unwrap();
    assert_eq!(kind_of_reading(&link), SqliteErrorKind::NotWritable);
}

#[test]
fn damage_and_foreign_files_are_distinguished() {
    let (folder, path) = database();
    let bytes = fs::read(&path).unwrap();
    let check = |content: &[u8], kind: SqliteErrorKind| {
        let copy = folder.path().join("copy.db");
        fs::write(&copy, content).unwrap();
        assert_eq!(kind_of_reading(&copy), kind);
    };
    check(&[b'x'; 4096], SqliteErrorKind::NotADatabase);
    check(&bytes[..bytes.len() / 2], SqliteErrorKind::Damaged);
    let mut overwritten = bytes.clone();
    overwritten[4096..8192].fill(0xff);
    check(&overwritten, SqliteErrorKind::Damaged);
}

#[test]
fn a_foreign_value_in_the_database_is_damage() {
    let (_folder, path) = database();
    let connection = SETTINGS.connect(&path).unwrap();
    let check = |sql: &str| {
        let error = connection.query_row(sql, [], |row| row.get::<_, i32>(0)).unwrap_err();
        assert_eq!(SqliteErrorKind::of(&error), SqliteErrorKind::Damaged, "{error}");
    };
    check("SELECT text FROM note");
    check("SELECT NULL FROM note");
    check("SELECT 1 << 40 FROM note");
    check("SELECT 1 FROM note WHERE false");
    check("SELECT other FROM note");
}

#[test]
fn a_locked_database_is_busy_after_the_timeout_of_its_settings() {
    let (_folder, path) = database();
    let holder = SETTINGS.connect(&path).unwrap();
    holder.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let timeout = Duration::from_millis(100);
    let begun = Instant::now();
    let refused = ConnectionSettings { busy_timeout: timeout, ..SETTINGS }.connect(&path).unwrap_err();
    assert_eq!(SqliteErrorKind::of(&refused), SqliteErrorKind::Busy);
    assert!(begun.elapsed() >= timeout);
}

#[test]
fn every_code_has_one_meaning() {
    let check = |code, kind| {
        assert_eq!(SqliteErrorKind::of(&Error::SqliteFailure(ffi::Error::new(code), None)), kind, "{code}");
    };
    check(ffi::SQLITE_CORRUPT_VTAB, SqliteErrorKind::Damaged);
    check(ffi::SQLITE_IOERR_SHORT_READ, SqliteErrorKind::Damaged);
    check(ffi::SQLITE_IOERR_CORRUPTFS, SqliteErrorKind::Damaged);
    check(ffi::SQLITE_NOTADB, SqliteErrorKind::NotADatabase);
    check(ffi::SQLITE_BUSY, SqliteErrorKind::Busy);
    check(ffi::SQLITE_BUSY_SNAPSHOT, SqliteErrorKind::Busy);
    check(ffi::SQLITE_LOCKED, SqliteErrorKind::Busy);
    check(ffi::SQLITE_FULL, SqliteErrorKind::DiskFull);
    check(ffi::SQLITE_READONLY_DIRECTORY, SqliteErrorKind::NotWritable);
    check(ffi::SQLITE_CANTOPEN, SqliteErrorKind::NotWritable);
    check(ffi::SQLITE_PERM, SqliteErrorKind::NotWritable);
    check(ffi::SQLITE_IOERR_FSYNC, SqliteErrorKind::Other);
    check(ffi::SQLITE_CONSTRAINT_UNIQUE, SqliteErrorKind::Other);
}

#[test]
fn the_switch_to_a_write_ahead_log_waits_for_a_reader() {
    let (_folder, path) = database();
    let reader = SETTINGS.connect(&path).unwrap();
    reader.execute_batch("BEGIN").unwrap();
    count_notes(&reader).unwrap();
    let timeout = Duration::from_millis(50);
    let connection = ConnectionSettings { busy_timeout: timeout, ..SETTINGS }.connect(&path).unwrap();
    let begun = Instant::now();
    let refused = enable_wal(&connection).unwrap_err();
    assert_eq!(SqliteErrorKind::of(&refused), SqliteErrorKind::Busy);
    assert!(begun.elapsed() >= timeout);
    connection.busy_timeout(Duration::from_secs(60)).unwrap();
    thread::scope(|scope| {
        let switch = scope.spawn(move || enable_wal(&connection));
        reader.execute_batch("COMMIT").unwrap();
        switch.join().unwrap().unwrap();
    });
    // A connection learns of the switch when it reads.
    count_notes(&reader).unwrap();
    let mode: String = reader.pragma_query_value(None, "journal_mode", |row| row.get(0)).unwrap();
    assert_eq!(mode, "wal");
}

#[test]
fn closing_keeps_the_write_ahead_log_by_default() {
    let (folder, path) = database();
    let log = folder.path().join("notes.db-wal");
    let write = |finish: fn(&Connection)| {
        let connection = SETTINGS.connect(&path).unwrap();
        enable_wal(&connection).unwrap();
        connection.execute("INSERT INTO note VALUES ('note number 0')", []).unwrap();
        finish(&connection);
    };
    write(|_| {});
    assert!(fs::metadata(&log).unwrap().len() > 0);
    write(|connection| checkpoint_on_close(connection).unwrap());
    assert!(!log.exists());
    assert_eq!(count_notes(&SETTINGS.connect(&path).unwrap()).unwrap(), 1002);
}

#[test]
fn the_header_is_written_with_its_transaction() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new.db");
    File::create(&path).unwrap();
    let mut connection = SETTINGS.connect(&path).unwrap();
    let new = DatabaseHeader { application_id: 0, version: 0 };
    assert!(is_empty_database(&connection).unwrap());
    let transaction = connection.transaction().unwrap();
    HEADER.write(&transaction).unwrap();
    transaction.rollback().unwrap();
    assert_eq!(DatabaseHeader::read(&connection).unwrap(), new);
    HEADER.write(&connection).unwrap();
    connection.execute_batch("CREATE TABLE note (text TEXT)").unwrap();
    let again = SETTINGS.connect(&path).unwrap();
    assert_eq!(DatabaseHeader::read(&again).unwrap(), HEADER);
    assert!(!is_empty_database(&again).unwrap());
}
