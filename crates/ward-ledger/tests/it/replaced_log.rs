//! A log that is replaced under a running writer, together with a matching head. Only the writer can detect
//! that.

use std::fs;
use std::ops::Range;
use std::path::PathBuf;

use ward_ledger::{Ledger, LedgerAppendError, LedgerOpenError};

use crate::support::{TestLog, options, receipt};

/// Returns the path and content of every file of the log.
fn read_files(log: &TestLog) -> Vec<(PathBuf, Vec<u8>)> {
    let paths = log.file_names().into_iter().map(|name| log.folder.path().join(name));
    paths.map(|path| (path.clone(), fs::read(path).unwrap())).collect()
}

fn remove_all(log: &TestLog) {
    for (path, _) in read_files(log) {
        fs::remove_file(path).unwrap();
    }
}

/// Restores the files of the log, either in place or, with `recreate`, as new files.
fn restore(log: &TestLog, files: &[(PathBuf, Vec<u8>)], recreate: bool) {
    if recreate {
        remove_all(log);
    }
    for (path, content) in files {
        fs::write(path, content).unwrap();
    }
    for name in log.file_names() {
        let path = log.folder.path().join(name);
        if !files.iter().any(|(kept, _)| *kept == path) {
            fs::remove_file(path).unwrap();
        }
    }
}

fn append_each(ledger: &mut Ledger, numbers: Range<u64>) {
    for number in numbers {
        ledger.append(receipt(number)).unwrap();
    }
}

fn assert_replaced(ledger: &mut Ledger, known: u64) {
    for _ in 0..3 {
        let error = ledger.append(receipt(99)).unwrap_err();
        let expected = |error: &LedgerAppendError| matches!(error, LedgerAppendError::Log(LedgerOpenError::Replaced { known: number, .. }) if *number == known);
        assert!(expected(&error), "{error}");
    }
}

fn log_variants() -> [TestLog; 4] {
    let in_segments = |log: TestLog| TestLog { options: log.options.clone().with_segment_bytes(1500), ..log };
    [
        TestLog::new(options()),
        TestLog::signed(),
        in_segments(TestLog::new(options())),
        in_segments(TestLog::signed()),
    ]
}

#[test]
fn an_older_log_with_its_head_is_not_continued_by_a_writer_that_has_seen_more() {
    for log in log_variants() {
        for recreate in [false, true] {
            let mut ledger = log.open();
            let before = ledger.append(receipt(1)).unwrap().sequence;
            append_each(&mut ledger, 2..4);
            let older = read_files(&log);
            append_each(&mut ledger, 4..11);
            let newer = read_files(&log);

            restore(&log, &older, recreate);
            assert_replaced(&mut ledger, before + 9);
            assert_eq!(read_files(&log), older, "nothing was written");

            restore(&log, &newer, recreate);
            assert_eq!(
                ledger.append(receipt(11)).unwrap().sequence,
                before + 10,
                "the restored log is continued"
            );
            assert!(log.verify().is_sound());
        }
    }
}

#[test]
fn a_writer_that_only_opened_the_log_detects_the_change_too() {
    for log in log_variants() {
        log.append(2);
        let older = read_files(&log);
        log.append(3);
        let mut ledger = log.open();
        restore(&log, &older, false);
        assert_replaced(&mut ledger, 5);
    }
}

#[test]
fn a_different_log_of_greater_length_is_not_continued() {
    for log in log_variants() {
        log.append(2);
        let older = read_files(&log);
        let mut ledger = log.open();
        append_each(&mut ledger, 3..6);
        restore(&log, &older, false);
        // Another writer continues the older log, and gets further than the first writer was.
        let mut other = log.open();
        append_each(&mut other, 13..19);
        assert!(log.verify().is_sound());
        assert_replaced(&mut ledger, 5);
    }
}

#[test]
fn a_removed_log_is_not_started_again_by_a_writer_that_has_seen_it() {
    for log in log_variants() {
        let mut ledger = log.open();
        append_each(&mut ledger, 1..10);
        remove_all(&log);
        assert_replaced(&mut ledger, 9);
        assert_eq!(log.file_names(), [""; 0], "nothing was created");

        // Another process may start a new log, but that isn't the log of the first writer.
        append_each(&mut log.open(), 21..33);
        assert_replaced(&mut ledger, 9);
    }
}

#[test]
fn a_writer_that_has_seen_no_record_starts_the_log_again() {
    let log = TestLog::signed();
    let mut ledger = log.open();
    remove_all(&log);
    assert_eq!(ledger.append(receipt(1)).unwrap().sequence, 1);
    assert!(log.verify().is_sound());
}

#[test]
fn a_writer_finds_its_last_record_in_a_segment_that_another_writer_closed() {
    for log in log_variants() {
        let (mut one, mut other) = (log.open(), log.open());
        one.append(receipt(1)).unwrap();
        append_each(&mut other, 2..30);
        assert_eq!(one.append(receipt(30)).unwrap().sequence, 30);
        assert!(log.verify().is_sound());
    }
}

#[test]
fn a_writer_remembers_the_last_record_of_a_closed_segment() {
    let log = TestLog::signed_with_records(3);
    // A crash right after the rename leaves the log in this state.
    fs::rename(&log.path, log.sibling_path(".000001")).unwrap();
    let mut ledger = log.open();
    let closed = fs::read(log.sibling_path(".000001")).unwrap();
    let head = fs::read(log.sibling_path(".head")).unwrap();
    assert_eq!(ledger.append(receipt(4)).unwrap().sequence, 4);

    fs::write(&log.path, "").unwrap();
    fs::write(log.sibling_path(".head"), &head).unwrap();
    let mut older_writer = log.open();
    assert_replaced(&mut ledger, 4);
    fs::remove_file(log.sibling_path(".000001")).unwrap();
    assert!(older_writer.append(receipt(4)).is_err());
    fs::write(log.sibling_path(".000001"), closed).unwrap();
    assert_eq!(older_writer.append(receipt(4)).unwrap().sequence, 4);
}

#[test]
fn a_different_log_with_lines_of_the_same_length_is_not_continued() {
    let log = TestLog::with_records(3);
    let mut ledger = log.open();
    let other = TestLog::new(options());
    let mut records: Vec<_> = (1..=4).map(receipt).collect();
    records[2].insert("status".to_owned(), "denied!".into());
    other.open().append_all(records).unwrap();
    for suffix in ["", ".head"] {
        fs::copy(other.sibling_path(suffix), log.sibling_path(suffix)).unwrap();
    }
    assert!(log.verify().is_sound());
    let error = ledger.append(receipt(4)).unwrap_err();
    assert!(matches!(error, LedgerAppendError::Log(LedgerOpenError::Replaced { known: 3, .. })), "{error:?}");
}
