//! Full disks, read-only folders, locked files, file modes, and two daemons at once (S8.2, S8.4b).

use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use rusqlite::{Connection, TransactionBehavior};
use shepherd_store::{ExposedPath, ExposedTo, SqliteStore, Store, StoreError, StoreOpenError};

use crate::support::{TestStore, batch, copy_folder, fake_daemon, fake_daemon_command, key, now};

/// Runs a daemon whose files can't grow beyond `blocks` of 512 bytes. The signal that would kill it is ignored, so that
/// writes fail as on a full disk.
fn run_with_file_limit(place: &TestStore, blocks: u64) -> (u64, String) {
    let output = Command::new("sh")
        .args(["-c", r#"trap "" XFSZ; ulimit -f "$1"; exec "$2" "$3" 3000"#, "sh"])
        .arg(blocks.to_string())
        .arg(fake_daemon())
        .arg(&place.folder)
        .output()
        .unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    let acknowledged = stdout.lines().filter(|line| line.starts_with("ack")).count() as u64;
    assert!(!output.status.success());
    (acknowledged, String::from_utf8(output.stderr).unwrap())
}

#[test]
fn a_file_that_can_not_grow_is_an_error_and_loses_nothing() {
    // Too small for the write-ahead log, for the database, and for the audit log.
    for blocks in [100, 120, 300] {
        let place = TestStore::new();
        place.open().apply(&batch(1)).unwrap();
        let (acknowledged, message) = run_with_file_limit(&place, blocks);
        assert!(message.contains("could not "), "{message}");
        assert!(acknowledged > 0, "{blocks}: {message}");
        let found = place.load().usage[&key()].as_secs();
        assert!([1, 2].contains(&(found - acknowledged)), "{blocks}: {found}, {acknowledged}");
        place.open().apply(&batch(found + 1)).unwrap();
        assert!(place.verify().is_sound());
    }
}

#[test]
fn a_full_disk_is_an_error_and_loses_nothing() {
    let place = TestStore::new();
    fs::create_dir(&place.folder).unwrap();
    let script = r#"
        mount -t tmpfs -o size=400k,mode=0700 tmpfs "$1" || exit 99
        "$2" "$1" 3000; echo "code $?"
        "$2" "$1" 0; echo "code $?"
        rm "$1/ballast"; "$2" "$1" 1; echo "code $?"
    "#;
    let script = script.replace("|| exit 99", "|| exit 99; head -c 100k /dev/zero > \"$1/ballast\"");
    // In its own mount namespace, which an ordinary user can have inside a user namespace.
    let output = Command::new("unshare")
        .args(["--map-root-user", "--mount", "sh", "-c", &script, "sh"])
        .arg(&place.folder)
        .arg(fake_daemon())
        .output()
        .expect("unshare is missing: run `cargo xtask setup`");
    let stdout = String::from_utf8(output.stdout).unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    let acknowledged = stdout.lines().filter(|line| line.starts_with("ack")).count() as u64;
    let opened: Vec<u64> =
        stdout.lines().filter_map(|line| line.strip_prefix("opened ")?.parse().ok()).collect();
    assert!(stdout.contains("code 1"), "{stdout}{errors}");
    assert!(stdout.ends_with("code 0\n"), "there is space again: {stdout}{errors}");
    // The batch after there was space again counts, too; no other batch was acknowledged after the first run.
    let last = *opened.last().unwrap();
    assert!(last == acknowledged - 1 || last == acknowledged, "{opened:?} {acknowledged} {errors}");
    assert!(acknowledged > 10, "{stdout}{errors}");
}

/// Runs a daemon as an ordinary user if the test runs as root, because file modes don't restrict root.
fn run_as_ordinary_user(place: &TestStore, batches: &str) -> (bool, String) {
    let parent = place.folder.parent().unwrap();
    let program = parent.join("fake-daemon");
    fs::copy(fake_daemon(), &program).unwrap();
    for path in [program.as_path(), parent] {
        fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
    }
    let mut command = Command::new(&program);
    command.arg(&place.folder).arg(batches);
    if rustix::process::geteuid().is_root() {
        command.uid(65_534).gid(65_534);
    }
    let output = command.output().unwrap();
    (output.status.success(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn a_read_only_folder_is_an_error_and_unchanged() {
    let place = TestStore::new();
    place.open().apply(&batch(1)).unwrap();
    let before = place.file_names();
    fs::set_permissions(&place.folder, Permissions::from_mode(0o555)).unwrap();
    for name in &before {
        fs::set_permissions(place.file_path(name), Permissions::from_mode(0o444)).unwrap();
    }
    let (success, message) = run_as_ordinary_user(&place, "1");
    assert!(!success && message.contains("Permission denied"), "{message}");
    fs::set_permissions(&place.folder, Permissions::from_mode(0o700)).unwrap();
    for name in &before {
        fs::set_permissions(place.file_path(name), Permissions::from_mode(0o600)).unwrap();
    }
    assert_eq!(place.file_names(), before);
    assert_eq!(place.load().usage[&key()].as_secs(), 1);
}

#[test]
fn a_locked_database_is_an_error_and_the_batch_can_be_retried() {
    let place = TestStore::new();
    let mut store = place.open();
    store.apply(&batch(1)).unwrap();
    let mut other = Connection::open(place.file_path("shepherd.db")).unwrap();
    let lock = other.transaction_with_behavior(TransactionBehavior::Immediate).unwrap();
    let refused = store.apply(&batch(2)).unwrap_err();
    assert!(matches!(refused, StoreError::Busy { .. }), "{refused:?}");
    assert!(
        refused
            .to_string()
            .ends_with("is locked by another program; close the program that has it open, such as `sqlite3`")
    );
    // The store can be read meanwhile.
    assert_eq!(store.load().unwrap().usage[&key()].as_secs(), 1);
    drop(lock);
    store.apply(&batch(2)).unwrap();
    assert_eq!(store.load().unwrap().usage[&key()].as_secs(), 2);
}

#[test]
fn a_second_daemon_is_refused_while_one_runs() {
    let place = TestStore::new();
    let mut child = fake_daemon_command(&place.folder, "hold")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "opened 0\n");
    let refused = place.try_open().unwrap_err();
    assert!(matches!(refused, StoreOpenError::InUse { .. }), "{refused:?}");
    assert!(refused.to_string().ends_with("is in use by another daemon; stop that daemon first"));
    // A second process gets the same error, changes nothing, and reports by its exit code that it never had the store.
    let before = place.file_names();
    let second = fake_daemon_command(&place.folder, "1").output().unwrap();
    assert_eq!((second.status.code(), second.stdout.as_slice()), (Some(2), &b""[..]));
    assert_eq!(String::from_utf8(second.stderr).unwrap().trim_end(), refused.to_string());
    assert_eq!(place.file_names(), before);
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
    place.open().apply(&batch(1)).unwrap();
}

#[test]
fn a_missing_store_in_a_folder_that_others_can_write_is_not_a_first_run() {
    let place = TestStore::new();
    place.open().apply(&batch(1)).unwrap();
    let parent = place.folder.parent().unwrap();
    fs::set_permissions(parent, Permissions::from_mode(0o777)).unwrap();
    // As long as the file exists the store can be used, and opening it reports the problem.
    let (store, opened) = SqliteStore::open(&place.folder, now()).unwrap();
    assert_eq!(opened.exposed, [ExposedPath { path: parent.to_owned(), to: ExposedTo::Mode(0o777) }]);
    drop(store);
    let elsewhere = parent.join("elsewhere");
    fs::rename(&place.folder, &elsewhere).unwrap();
    let refused = place.try_open().unwrap_err();
    assert!(matches!(refused, StoreOpenError::Exposed { .. }), "{refused:?}");
    let text = refused.to_string();
    assert!(text.contains("another user may have moved it away: "), "{text}");
    assert!(!place.folder.exists(), "nothing was made in its place");
    fs::rename(&elsewhere, &place.folder).unwrap();
    assert_eq!(place.load().usage[&key()].as_secs(), 1);
    // Each of the two cures in the message helps where there has been no store.
    for cure in text.split('`').skip(1).step_by(2) {
        fs::set_permissions(parent, Permissions::from_mode(0o777)).unwrap();
        fs::remove_dir_all(&place.folder).unwrap();
        assert!(Command::new("sh").args(["-c", cure]).status().unwrap().success(), "{cure}");
        assert!(SqliteStore::open(&place.folder, now()).unwrap().1.created, "{cure}");
    }
}

#[test]
fn files_are_for_their_owner_alone() {
    let place = TestStore::new();
    let mut store = place.open();
    store.apply(&batch(1)).unwrap();
    let mode = |path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
    assert_eq!(mode(place.folder.clone()), 0o700);
    let names = place.file_names();
    assert_eq!(
        names,
        [
            "audit.log",
            "audit.log.head",
            "shepherd.db",
            "shepherd.db-shm",
            "shepherd.db-wal",
            "shepherd.db.head",
            "shepherd.lock"
        ]
    );
    for name in names {
        assert_eq!(mode(place.file_path(&name)), 0o600, "{name}");
    }
}

#[test]
fn a_folder_that_others_can_write_is_refused() {
    let place = TestStore::new();
    drop(place.open());
    fs::set_permissions(&place.folder, Permissions::from_mode(0o770)).unwrap();
    let refusal = place.open_error_text();
    assert!(refusal.contains("has mode 0770, so other users can change it; run `chmod go-w "), "{refusal}");
}

#[test]
fn a_file_that_others_can_write_is_refused() {
    let original = TestStore::killed_after(1);
    for (name, mode) in original.file_names().iter().flat_map(|name| [(name, 0o620), (name, 0o602)]) {
        let place = TestStore::new();
        copy_folder(&original.folder, &place.folder);
        fs::set_permissions(place.file_path(name), Permissions::from_mode(mode)).unwrap();
        let refused = place.try_open().unwrap_err();
        assert!(matches!(&refused, StoreOpenError::Mode { path, .. } if path.ends_with(name)), "{refused:?}");
        let text = refused.to_string();
        assert!(text.contains(&format!("has mode {mode:04o}, so other users can change")), "{text}");
        assert_eq!(place.file_names(), original.file_names(), "nothing is put aside");
        // The advice in the message helps.
        let cure = text.split('`').nth(1).unwrap();
        assert!(Command::new("sh").args(["-c", cure]).status().unwrap().success(), "{cure}");
        assert_eq!(place.load().usage[&key()].as_secs(), 1);
    }
}

#[test]
fn files_of_another_user_are_refused() {
    // Only root can give files away; for other users a unit test covers this check.
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let original = TestStore::killed_after(1);
    for name in original.file_names().iter().map(String::as_str).chain([""]) {
        let place = TestStore::new();
        copy_folder(&original.folder, &place.folder);
        std::os::unix::fs::chown(place.file_path(name), Some(65_534), None).unwrap();
        let refused = place.try_open().unwrap_err();
        assert!(
            matches!(refused, StoreOpenError::Owner { owner: 65_534, user: 0, .. }),
            "{name}: {refused:?}"
        );
        let text = refused.to_string();
        let cure = text.split('`').nth(1).unwrap();
        assert!(Command::new("sh").args(["-c", cure]).status().unwrap().success(), "{cure}");
        assert_eq!(place.load().usage[&key()].as_secs(), 1);
    }
}

#[test]
fn a_link_in_place_of_a_file_is_not_followed() {
    for name in ["shepherd.db", "shepherd.lock", "shepherd.db.head"] {
        let place = TestStore::new();
        place.open().apply(&batch(1)).unwrap();
        let elsewhere = place.folder.parent().unwrap().join("elsewhere");
        fs::rename(place.file_path(name), &elsewhere).unwrap();
        std::os::unix::fs::symlink(&elsewhere, place.file_path(name)).unwrap();
        assert!(SqliteStore::open(&place.folder, now()).is_err(), "{name}");
    }
}
