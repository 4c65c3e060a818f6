//! Damaged databases (S8.4, S8.4b): usage is never lost silently.

use std::fs::{self, OpenOptions};
use std::path::Path;
use std::time::Duration;

use rusqlite::Connection;
use shepherd_core::policy::Day;
use shepherd_store::{Store, StoreError, StoreOpenError};

use crate::support::{TestStore, XorshiftRng, batch, copy_folder, error_chain, file_names, key};

const FLIPS: u64 = 200;

fn flip_bit(path: &Path, bit: u64) {
    let mut bytes = fs::read(path).unwrap();
    bytes[usize::try_from(bit / 8).unwrap()] ^= 1 << (bit % 8);
    fs::write(path, bytes).unwrap();
}

/// A store with many rows, all in the database and none in the write-ahead log.
fn closed_store() -> TestStore {
    let place = TestStore::new();
    let mut store = place.open();
    for number in 1..=30 {
        store.apply(&batch(number)).unwrap();
        let (amount, day) = (Duration::from_secs(number), Day(number.try_into().unwrap()));
        store.add_usage(&key().profile, &key().counter, day, amount).unwrap();
    }
    place
}

/// Flips random bits of one file in copies of a store.
fn check_flips(original: &TestStore, file: &str, seed: u64) {
    let before = {
        let copy = TestStore::in_memory();
        copy_folder(&original.folder, &copy.folder);
        copy.load()
    };
    let bits = fs::metadata(original.file_path(file)).unwrap().len() * 8;
    let mut dice = XorshiftRng::new(seed);
    let mut noticed = 0;
    for round in 0..FLIPS {
        let copy = TestStore::in_memory();
        copy_folder(&original.folder, &copy.folder);
        for _ in 0..=round % 3 {
            flip_bit(&copy.file_path(file), dice.below(bits));
        }
        match copy.try_open() {
            Ok(store) => assert_eq!(store.load().unwrap(), before, "round {round}"),
            Err(_) => noticed += 1,
        }
    }
    assert!(noticed > FLIPS / 20, "only {noticed} flips were noticed in {file}");
}

#[test]
fn a_flipped_bit_in_the_database_is_detected_or_harmless() {
    check_flips(&closed_store(), "shepherd.db", 1);
}

#[test]
fn a_flipped_bit_in_the_write_ahead_log_is_detected_or_harmless() {
    check_flips(&TestStore::killed_after(6), "shepherd.db-wal", 2);
}

#[test]
fn a_flipped_bit_in_the_head_is_detected_or_harmless() {
    check_flips(&TestStore::killed_after(3), "shepherd.db.head", 3);
}

/// Damages a store, and checks that it is moved aside and stays refused.
fn assert_quarantined(place: &TestStore, fault: &str) {
    let before = file_names(&place.folder);
    let error = place.try_open().unwrap_err();
    let StoreOpenError::Damaged(damage) = error else { panic!("{}", error_chain(&error)) };
    assert!(damage.fault.contains(fault), "{fault}: {}", damage.fault);
    let kept_in = damage.kept.folder().unwrap().to_owned();
    assert!(kept_in.file_name().unwrap().to_str().unwrap().starts_with("damaged-20270115T080000Z-"));
    let text = damage.to_string();
    assert!(text.contains("nothing is granted until an administrator resets it"), "{text}");
    // No file is removed, except SQLite's index of its write-ahead log, which SQLite creates again each time.
    let mut after = file_names(&place.folder);
    after.retain(|name| !name.starts_with("damaged-"));
    after.extend(file_names(&kept_in));
    let database = |name: &&String| *name != "shepherd.db-shm";
    for name in before.iter().filter(database) {
        assert!(after.contains(name), "{name} is gone");
    }
    // The next start must not treat the missing database as a new store.
    let StoreOpenError::Damaged(again) = place.try_open().unwrap_err() else { panic!("opened") };
    assert_eq!(again.kept.folder(), Some(kept_in.as_path()));
}

#[test]
fn a_truncated_database_is_moved_aside() {
    for (part, fault) in [(0, "not a database of Shepherd"), (3, ""), (2, "")] {
        let place = closed_store();
        let file = OpenOptions::new().write(true).open(place.file_path("shepherd.db")).unwrap();
        let length = file.metadata().unwrap().len();
        file.set_len(length * part / 4).unwrap();
        assert_quarantined(&place, fault);
    }
}

#[test]
fn a_file_that_is_no_database_is_moved_aside() {
    let place = closed_store();
    fs::write(place.file_path("shepherd.db"), "nothing used yet\n".repeat(1000)).unwrap();
    assert_quarantined(&place, "not a database");
    assert!(
        fs::read(place.folder.join("damaged-20270115T080000Z-1/shepherd.db"))
            .unwrap()
            .starts_with(b"nothing")
    );
}

#[test]
fn a_database_of_another_program_is_moved_aside() {
    let place = closed_store();
    fs::remove_file(place.file_path("shepherd.db")).unwrap();
    Connection::open(place.file_path("shepherd.db")).unwrap().execute_batch("CREATE TABLE t (x)").unwrap();
    assert_quarantined(&place, "it is not a database of Shepherd");
}

#[test]
fn edited_usage_is_detected() {
    let place = closed_store();
    let connection = Connection::open(place.file_path("shepherd.db")).unwrap();
    assert!(connection.execute("UPDATE usage SET used_us = 0", []).unwrap() > 0);
    drop(connection);
    assert_quarantined(&place, "its content differs from what was written");
}

#[test]
fn an_edited_schema_is_detected() {
    let place = closed_store();
    let connection = Connection::open(place.file_path("shepherd.db")).unwrap();
    connection
        .execute_batch("CREATE TRIGGER forget AFTER UPDATE ON usage BEGIN DELETE FROM usage; END")
        .unwrap();
    drop(connection);
    assert_quarantined(&place, "its tables have been changed");
}

#[test]
fn a_foreign_write_during_a_running_daemon_is_detected() {
    let place = TestStore::new();
    let mut store = place.open();
    store.apply(&batch(1)).unwrap();
    let connection = Connection::open(place.file_path("shepherd.db")).unwrap();
    connection.execute("UPDATE state SET generation = generation + 1", []).unwrap();
    assert!(matches!(store.apply(&batch(2)), Err(StoreError::Damaged { .. })));
}

#[test]
fn a_lost_write_ahead_log_is_detected() {
    let place = TestStore::killed_after(5);
    fs::remove_file(place.file_path("shepherd.db-wal")).unwrap();
    assert_quarantined(&place, "its last 5 batches are missing");
}

#[test]
fn a_truncated_write_ahead_log_is_detected() {
    let length = fs::metadata(TestStore::killed_after(5).file_path("shepherd.db-wal")).unwrap().len();
    for part in [0, 1, 50, 99] {
        let place = TestStore::killed_after(5);
        let wal = OpenOptions::new().write(true).open(place.file_path("shepherd.db-wal")).unwrap();
        wal.set_len(length * part / 100).unwrap();
        assert_quarantined(&place, "missing: its write-ahead log is gone");
    }
}

#[test]
fn an_older_copy_of_the_database_is_detected() {
    let place = closed_store();
    let older = fs::read(place.file_path("shepherd.db")).unwrap();
    place.open().apply(&batch(31)).unwrap();
    fs::write(place.file_path("shepherd.db"), older).unwrap();
    assert_quarantined(&place, "its last batch is missing");
}

/// The mark is made before the first batch is written, so there is nothing yet that it could prove.
#[test]
fn a_head_that_a_crash_left_incomplete_is_no_damage() {
    for left in [&b""[..], &[0; 512], b"shepherd store head 1\ngener"] {
        let place = TestStore::new();
        drop(place.open());
        fs::write(place.file_path("shepherd.db.head"), left).unwrap();
        place.open().apply(&batch(1)).unwrap();
        assert_eq!(place.load().usage[&key()].as_secs(), 1);
    }
}

#[test]
fn a_lost_head_is_detected() {
    let place = closed_store();
    fs::remove_file(place.file_path("shepherd.db.head")).unwrap();
    assert_quarantined(&place, "its head is missing");
}

#[test]
fn a_removed_database_is_not_a_new_one() {
    let place = closed_store();
    for name in file_names(&place.folder).iter().filter(|name| name.starts_with("shepherd.db")) {
        fs::remove_file(place.file_path(name)).unwrap();
    }
    let refusal = place.open_error_text();
    assert!(refusal.contains("its database is gone; its files are gone"), "{refusal}");
    assert!(place.try_open().is_err());
}

#[test]
fn a_folder_with_nothing_but_the_lock_of_a_store_is_not_a_new_one() {
    let place = closed_store();
    for name in file_names(&place.folder).iter().filter(|name| *name != "shepherd.lock") {
        fs::remove_file(place.file_path(name)).unwrap();
    }
    for _ in 0..2 {
        let error = place.try_open().unwrap_err();
        assert!(matches!(error, StoreOpenError::Damaged(_)), "{}", error_chain(&error));
        assert!(error.to_string().contains("its database is gone; its files are gone"), "{error}");
    }
}

#[test]
fn a_lock_from_before_there_was_a_store_is_no_damage() {
    let place = TestStore::new();
    drop(place.open());
    for name in file_names(&place.folder).iter().filter(|name| *name != "shepherd.lock") {
        fs::remove_file(place.file_path(name)).unwrap();
    }
    fs::write(place.file_path("shepherd.lock"), "").unwrap();
    place.open().apply(&batch(1)).unwrap();
    // A store whose lock was lost, or was never marked, is marked when it is opened.
    fs::remove_file(place.file_path("shepherd.lock")).unwrap();
    drop(place.open());
    assert!(fs::metadata(place.file_path("shepherd.lock")).unwrap().len() > 0);
}

#[test]
fn an_unfinished_database_is_made_again() {
    let place = TestStore::new();
    fs::create_dir(&place.folder).unwrap();
    fs::write(place.file_path("new-shepherd.db"), "half").unwrap();
    fs::write(place.file_path("new-shepherd.db-journal"), "half").unwrap();
    place.open().apply(&batch(1)).unwrap();
    assert!(!place.file_names().iter().any(|name| name.starts_with("new-")));
}

/// S8.5: an older daemon refuses a newer database, and leaves it unchanged.
#[test]
fn a_newer_database_is_refused_and_stays() {
    let place = closed_store();
    let connection = Connection::open(place.file_path("shepherd.db")).unwrap();
    connection.pragma_update(None, "user_version", 7).unwrap();
    drop(connection);
    let refusal = place.open_error_text();
    let expected = "shepherd.db has schema version 7, but this program supports only versions up to 2; \
                    install a newer Shepherd";
    assert!(refusal.ends_with(expected), "{refusal}");
    assert!(place.file_names().contains(&"shepherd.db".to_owned()));
    assert!(!place.file_names().iter().any(|name| name.starts_with("damaged-")));
}
