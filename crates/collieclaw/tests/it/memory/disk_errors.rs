//! Full disks, folders that can't be written, and locked files.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Output};

use collieclaw_agent::memory::{ConversationMemory, MemoryError};
use rusqlite::{Connection, TransactionBehavior};

use super::support::{
    MemoryFolder, rememberer_command, rememberer_program, single_turn_exchange, whole_exchanges,
};

fn exchanges_kept(output: &Output) -> usize {
    String::from_utf8_lossy(&output.stdout).lines().filter(|line| line.starts_with("kept")).count()
}

fn error_message(output: &Output) -> String {
    assert!(!output.status.success());
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// The signal that would kill the process is ignored, so that writes fail as on a full disk.
#[test]
fn a_file_that_can_not_grow_is_an_error_and_loses_nothing() {
    let mut actual = 0;
    // In blocks of 512 bytes: too small for the log, for the log a little later, and for the database.
    for blocks in [260, 700, 1_400] {
        let place = MemoryFolder::new();
        place.open();
        let output = Command::new("sh")
            .args(["-c", r#"trap "" XFSZ; ulimit -f "$1"; exec "$2" "$3" c 5000"#, "sh"])
            .arg(blocks.to_string())
            .arg(rememberer_program())
            .arg(place.file())
            .output()
            .unwrap();
        let complaint = error_message(&output);
        assert!(complaint.contains("memory.db"), "{complaint}");
        let memory = place.open();
        assert_eq!(whole_exchanges(&memory, "c"), exchanges_kept(&output), "{blocks}");
        memory.persist(&single_turn_exchange("after", 0, "there is room again")).unwrap();
        assert_eq!(memory.search("room again", 5).unwrap().len(), 1);
        actual += exchanges_kept(&output);
    }
    assert!(actual > 20, "{actual}");
}

#[test]
fn a_full_disk_is_an_error_and_loses_nothing() {
    let place = MemoryFolder::new();
    // Uses its own mount namespace, which an ordinary user may create within a user namespace.
    let script = r#"
        mount -t tmpfs -o size=1m,mode=0700 tmpfs "$1" || exit 99
        head -c 300k /dev/zero > "$1/ballast"
        "$2" "$1/memory.db" c 5000; echo "code $?"
        rm "$1/ballast"; "$2" "$1/memory.db" c 1; echo "code $?"
    "#;
    let output = Command::new("unshare")
        .args(["--map-root-user", "--mount", "sh", "-c", script, "sh"])
        .arg(place.folder())
        .arg(rememberer_program())
        .output()
        .expect("unshare is missing: run `cargo xtask setup`");
    let actual = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(actual.contains("code 1"), "{actual}{errors}");
    assert!(errors.contains("memory.db"), "{errors}");
    assert!(actual.ends_with("code 0\n"), "there is room again: {actual}{errors}");
    // The numbers continue without a gap, so nothing was lost and nothing unreported was stored.
    let numbers: Vec<usize> =
        actual.lines().filter_map(|line| line.strip_prefix("kept ")?.parse().ok()).collect();
    assert_eq!(numbers, (0..numbers.len()).collect::<Vec<_>>());
    assert!(numbers.len() > 10, "{actual}{errors}");
}

/// Runs the helper as an ordinary user if we are root, because permissions don't stop root.
fn run_as_ordinary_user(place: &MemoryFolder) -> Output {
    let programs = MemoryFolder::new();
    let program = programs.folder().join("rememberer");
    fs::copy(rememberer_program(), &program).unwrap();
    for path in [program.as_path(), programs.folder()] {
        fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
    }
    let mut command = Command::new(&program);
    command.arg(place.file()).args(["c", "1"]);
    if rustix::process::geteuid().is_root() {
        command.uid(65_534).gid(65_534);
    }
    command.output().unwrap()
}

#[test]
fn a_read_only_folder_is_a_clear_error() {
    let place = MemoryFolder::new();
    let close = |mode| fs::set_permissions(place.folder(), Permissions::from_mode(mode)).unwrap();
    close(0o555);
    let complaint_new = error_message(&run_as_ordinary_user(&place));
    assert!(complaint_new.contains("could not create "), "{complaint_new}");
    assert!(complaint_new.contains("check that its folder exists and that you may write to it"));
    close(0o755);
    place.open().persist(&single_turn_exchange("c", 0, "hello")).unwrap();
    // The same for an existing file: neither the file nor its folder may be changed.
    for name in ["memory.db", "memory.db-wal", "memory.db-shm"] {
        fs::set_permissions(place.folder().join(name), Permissions::from_mode(0o400)).unwrap();
    }
    close(0o555);
    let complaint_old = error_message(&run_as_ordinary_user(&place));
    assert!(complaint_old.contains("could not write to "), "{complaint_old}");
    close(0o755);
    for name in ["memory.db", "memory.db-wal", "memory.db-shm"] {
        fs::set_permissions(place.folder().join(name), Permissions::from_mode(0o600)).unwrap();
    }
    assert_eq!(place.open().turn_count().unwrap(), 1);
}

#[test]
fn a_folder_that_is_not_there_is_named() {
    let place = MemoryFolder::new();
    let path = place.folder().join("missing/memory.db");
    let refused = ConversationMemory::open(&path).unwrap_err();
    assert!(matches!(refused, MemoryError::File { step: "reach", .. }), "{refused:?}");
    assert!(refused.to_string().starts_with(&format!("could not reach {}", path.display())));
}

#[test]
fn a_locked_memory_is_an_error_and_can_be_read_meanwhile() {
    let place = MemoryFolder::new();
    let memory = place.open();
    memory.persist(&single_turn_exchange("c", 0, "hello")).unwrap();
    let mut other = Connection::open(place.file()).unwrap();
    let lock = other.transaction_with_behavior(TransactionBehavior::Immediate).unwrap();
    let refused = memory.persist(&single_turn_exchange("c", 1, "again")).unwrap_err();
    assert!(matches!(refused, MemoryError::Busy { .. }), "{refused:?}");
    assert!(refused.to_string().ends_with("close the programs that use it, such as `sqlite3`"));
    assert_eq!(memory.search("hello", 5).unwrap().len(), 1);
    assert_eq!(place.open().turn_count().unwrap(), 1);
    drop(lock);
    memory.persist(&single_turn_exchange("c", 1, "again")).unwrap();
    assert!(rememberer_command(&place.file(), "d", "1").status().unwrap().success());
}
