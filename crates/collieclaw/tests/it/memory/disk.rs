//! Disks that are full, folders that can't be written, and a file that somebody holds.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Output};

use collieclaw::memory::{Memory, MemoryError};
use rusqlite::{Connection, TransactionBehavior};

use super::support::{Place, rememberer, rememberer_on, said_once, whole_exchanges};

fn kept(output: &Output) -> usize {
    String::from_utf8_lossy(&output.stdout).lines().filter(|line| line.starts_with("kept")).count()
}

fn complaint(output: &Output) -> String {
    assert!(!output.status.success());
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// The signal that would kill it is ignored, so that writes fail as they do on a full disk.
#[test]
fn a_file_that_can_not_grow_is_an_error_and_loses_nothing() {
    let mut told = 0;
    // In blocks of 512 bytes: too small for the log, for the log a little later, and for the database.
    for blocks in [260, 700, 1_400] {
        let place = Place::new();
        place.open();
        let output = Command::new("sh")
            .args(["-c", r#"trap "" XFSZ; ulimit -f "$1"; exec "$2" "$3" c 5000"#, "sh"])
            .arg(blocks.to_string())
            .arg(rememberer())
            .arg(place.file())
            .output()
            .unwrap();
        let complaint = complaint(&output);
        assert!(complaint.contains("memory.db"), "{complaint}");
        let memory = place.open();
        assert_eq!(whole_exchanges(&memory, "c"), kept(&output), "{blocks}");
        memory.persist(&said_once("after", 0, "there is room again")).unwrap();
        assert_eq!(memory.search("room again", 5).unwrap().len(), 1);
        told += kept(&output);
    }
    assert!(told > 20, "{told}");
}

#[test]
fn a_full_disk_is_an_error_and_loses_nothing() {
    let place = Place::new();
    // In a mount namespace of its own, which an ordinary user may have within a user namespace.
    let script = r#"
        mount -t tmpfs -o size=1m,mode=0700 tmpfs "$1" || exit 99
        head -c 300k /dev/zero > "$1/ballast"
        "$2" "$1/memory.db" c 5000; echo "code $?"
        rm "$1/ballast"; "$2" "$1/memory.db" c 1; echo "code $?"
    "#;
    let output = Command::new("unshare")
        .args(["--map-root-user", "--mount", "sh", "-c", script, "sh"])
        .arg(place.folder())
        .arg(rememberer())
        .output()
        .expect("unshare is missing: run `cargo xtask setup`");
    let told = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(told.contains("code 1"), "{told}{errors}");
    assert!(errors.contains("memory.db"), "{errors}");
    assert!(told.ends_with("code 0\n"), "there is room again: {told}{errors}");
    // Numbers go on where they ended, so that nothing was lost and nothing is there that was not told of.
    let numbers: Vec<usize> =
        told.lines().filter_map(|line| line.strip_prefix("kept ")?.parse().ok()).collect();
    assert_eq!(numbers, (0..numbers.len()).collect::<Vec<_>>());
    assert!(numbers.len() > 10, "{told}{errors}");
}

/// Runs the helper as an ordinary user where we are root, whom no mode stops.
fn ordinary(place: &Place) -> Output {
    let programs = Place::new();
    let program = programs.folder().join("rememberer");
    fs::copy(rememberer(), &program).unwrap();
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
fn a_folder_that_can_not_be_written_is_an_error_in_words() {
    let place = Place::new();
    let close = |mode| fs::set_permissions(place.folder(), Permissions::from_mode(mode)).unwrap();
    close(0o555);
    let complaint_new = complaint(&ordinary(&place));
    assert!(complaint_new.contains("can't create "), "{complaint_new}");
    assert!(complaint_new.contains("see that its folder exists and that you may write there"));
    close(0o755);
    place.open().persist(&said_once("c", 0, "hello")).unwrap();
    // The same for one that is there: neither the file nor its folder may be changed.
    for name in ["memory.db", "memory.db-wal", "memory.db-shm"] {
        fs::set_permissions(place.folder().join(name), Permissions::from_mode(0o400)).unwrap();
    }
    close(0o555);
    let complaint_old = complaint(&ordinary(&place));
    assert!(complaint_old.contains("can't write to "), "{complaint_old}");
    close(0o755);
    for name in ["memory.db", "memory.db-wal", "memory.db-shm"] {
        fs::set_permissions(place.folder().join(name), Permissions::from_mode(0o600)).unwrap();
    }
    assert_eq!(place.open().turn_count().unwrap(), 1);
}

#[test]
fn a_folder_that_is_not_there_is_named() {
    let place = Place::new();
    let path = place.folder().join("missing/memory.db");
    let refused = Memory::open(&path).unwrap_err();
    assert!(matches!(refused, MemoryError::File { step: "reach", .. }), "{refused:?}");
    assert!(refused.to_string().starts_with(&format!("can't reach {}", path.display())));
}

#[test]
fn a_locked_memory_is_an_error_and_can_be_read_meanwhile() {
    let place = Place::new();
    let memory = place.open();
    memory.persist(&said_once("c", 0, "hello")).unwrap();
    let mut other = Connection::open(place.file()).unwrap();
    let lock = other.transaction_with_behavior(TransactionBehavior::Immediate).unwrap();
    let refused = memory.persist(&said_once("c", 1, "again")).unwrap_err();
    assert!(matches!(refused, MemoryError::Busy { .. }), "{refused:?}");
    assert!(refused.to_string().ends_with("end whatever has it open, such as `sqlite3`"));
    assert_eq!(memory.search("hello", 5).unwrap().len(), 1);
    assert_eq!(place.open().turn_count().unwrap(), 1);
    drop(lock);
    memory.persist(&said_once("c", 1, "again")).unwrap();
    assert!(rememberer_on(&place.file(), "d", "1").status().unwrap().success());
}
