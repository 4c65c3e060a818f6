//! Appending to a disk that is full, or to files that can't be written.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

use crate::support::{TestLog, options, writer};

/// Runs a writer whose files may not grow beyond `blocks` of 512 bytes. SIGXFSZ, which would kill the writer,
/// is ignored, so that a write fails after its first part, as on a full disk.
fn write_with_size_limit(log: &TestLog, blocks: u64) -> (bool, u64, String) {
    let output = Command::new("sh")
        .args(["-c", r#"trap "" XFSZ; ulimit -f "$1"; exec "$2" "$3" limited 1000"#, "sh"])
        .arg(blocks.to_string())
        .arg(writer())
        .arg(&log.path)
        .output()
        .unwrap();
    let acknowledged = String::from_utf8(output.stdout).unwrap().lines().count() as u64;
    (output.status.success(), acknowledged, String::from_utf8(output.stderr).unwrap())
}

#[test]
fn a_full_disk_is_an_error_and_the_log_stays_valid() {
    for blocks in [2, 3, 5] {
        let log = TestLog::new(options());
        let (success, acknowledged, message) = write_with_size_limit(&log, blocks);
        assert!(!success && message.contains("could not write to"), "{message}");
        let report = log.verify();
        assert!(report.is_sound(), "{report}");
        assert_eq!(report.torn, None, "the partial write was rolled back");
        assert_eq!(report.records, acknowledged);
        log.append(2);
        assert_eq!(log.verify().records, acknowledged + 2);
    }
}

#[test]
fn a_read_only_log_is_an_error_and_unchanged() {
    let log = TestLog::with_records(2);
    let before = fs::read(&log.path).unwrap();
    // Root ignores file modes, so run the writer as an ordinary user.
    let program = log.folder.path().join("writer");
    fs::copy(writer(), &program).unwrap();
    for path in [&program, &log.folder.path().to_owned()] {
        fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
    }
    fs::set_permissions(&log.path, Permissions::from_mode(0o444)).unwrap();
    let mut command = Command::new(&program);
    command.arg(&log.path).args(["reader", "1"]);
    if rustix::process::geteuid().is_root() {
        command.uid(65_534).gid(65_534);
        fs::set_permissions(log.sibling_path(".head"), Permissions::from_mode(0o666)).unwrap();
    }
    let output = command.output().unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success());
    assert!(
        message.contains(&format!("could not open {}: Permission denied", log.path.display())),
        "{message}"
    );
    assert_eq!(fs::read(&log.path).unwrap(), before);
    assert!(log.verify().is_sound());
}

#[test]
fn a_torn_line_that_can_not_be_kept_is_not_dropped() {
    let log = TestLog::with_records(1);
    let mut bytes = fs::read(&log.path).unwrap();
    bytes.extend_from_slice(&vec![b'x'; 4096]);
    fs::write(&log.path, &bytes).unwrap();
    let (success, acknowledged, message) = write_with_size_limit(&log, 4);
    assert!(!success && acknowledged == 0);
    assert!(message.contains("could not move the torn end of"), "{message}");
    assert_eq!(fs::read(&log.path).unwrap(), bytes);
    assert_eq!(log.file_names().len(), 2, "the partial copy was removed");
}
