//! Closed segments are numbered from 1 without gaps. Other files that are named like segments are strays.

use std::fs;

use ward_ledger::verify::{BreakKind, LogCompleteness};
use ward_ledger::{Ledger, LedgerAppendError, LedgerOpenError, read};

use crate::support::{TestLog, format, options, receipt};

/// Creates a log with five closed segments.
fn segmented_log() -> TestLog {
    let log = TestLog::new(options().with_segment_bytes(1500));
    let mut ledger = log.open();
    for first in (1..=18).step_by(3) {
        ledger.append_all((first..first + 3).map(receipt).collect()).unwrap();
    }
    assert!(
        log.sibling_path(".000005").exists() && !log.sibling_path(".000006").exists(),
        "{:?}",
        log.file_names()
    );
    log
}

#[test]
fn a_stray_does_not_keep_a_log_from_being_opened_and_is_reported() {
    for name in [".999999", ".1000000", ".000009", ".0000001", ".000000", ".99999999999999999999999"] {
        for content in [Vec::new(), b"forged\n".to_vec(), TestLog::with_records(1).lines().concat()] {
            for log in [TestLog::signed(), TestLog::new(options()), segmented_log()] {
                drop(log.open());
                let strays = vec![format!("receipts.jsonl{name}")];
                let before = log.verify();
                assert!(before.is_sound() && before.strays.is_empty(), "{before}");
                fs::write(log.sibling_path(name), &content).unwrap();
                let report = log.verify();
                assert_eq!((&report.strays, &report.broken), (&strays, &None), "{report}");
                assert_eq!((report.records, report.segments), (before.records, before.segments));
                assert!(!report.is_sound());
                assert!(report.to_string().contains(&format!("strays:       {}", strays[0])), "{report}");

                let (mut ledger, recovery) = Ledger::open(&log.path, log.options.clone()).unwrap();
                assert!(recovery.is_clean());
                assert_eq!(ledger.append(receipt(9)).unwrap().sequence, before.records + 1);
                assert_eq!(log.verify().strays, strays);
                let entries = read(&log.path, &format()).unwrap().map(Result::unwrap);
                assert_eq!(entries.count() as u64, before.records + 1);
                fs::remove_file(log.sibling_path(name)).unwrap();
                assert!(log.verify().is_sound());
            }
        }
    }
}

#[test]
fn an_empty_file_with_the_name_of_the_next_segment_blocks_rotation() {
    let log = TestLog::new(options().with_segment_bytes(600));
    let mut ledger = log.open();
    ledger.append(receipt(1)).unwrap();
    fs::write(log.sibling_path(".000001"), "").unwrap();
    assert_eq!(log.verify().strays, ["receipts.jsonl.000001"]);
    let mut ledger_after = log.open();
    for ledger in [&mut ledger, &mut ledger_after] {
        let error = ledger.append_all(vec![receipt(2), receipt(3)]).unwrap_err();
        let LedgerAppendError::Log(LedgerOpenError::File { path, source, .. }) = &error else {
            panic!("{error}")
        };
        assert_eq!(*path, log.sibling_path(".000001"));
        assert!(source.to_string().contains("in the way"), "{source}");
    }
    fs::remove_file(log.sibling_path(".000001")).unwrap();
    ledger.append_all(vec![receipt(2), receipt(3)]).unwrap();
    assert!(log.verify().is_sound());
}

#[test]
fn a_missing_segment_keeps_a_log_from_being_continued() {
    for gone in [".000001", ".000003"] {
        let log = segmented_log();
        let content = fs::read(log.sibling_path(gone)).unwrap();
        for emptied in [false, true] {
            fs::remove_file(log.sibling_path(gone)).unwrap();
            if emptied {
                fs::write(log.sibling_path(gone), "").unwrap();
            }
            let error = Ledger::open(&log.path, log.options.clone()).unwrap_err();
            let LedgerOpenError::SegmentMissing { path } = &error else { panic!("{error}") };
            assert_eq!(*path, log.sibling_path(gone));
            assert!(error.to_string().contains("restore it"), "{error}");
            assert_eq!(log.verify().broken.unwrap().kind, BreakKind::Removed);
            fs::write(log.sibling_path(gone), &content).unwrap();
        }
        assert!(log.verify().is_sound());
    }
}

#[test]
fn a_missing_last_closed_segment_is_detected() {
    let log = segmented_log();
    let last = log.file_names().into_iter().rfind(|name| name.contains("jsonl.0")).unwrap();
    fs::remove_file(log.folder.path().join(&last)).unwrap();
    let error = Ledger::open(&log.path, log.options.clone()).unwrap_err();
    assert!(matches!(&error, LedgerOpenError::SegmentMissing { path } if path.ends_with(&last)), "{error}");
}

#[test]
fn renumbered_segments_are_detected() {
    let log = segmented_log();
    for number in (2..=5).rev() {
        let (from, to) = (format!(".00000{number}"), format!(".00000{}", number + 4));
        fs::rename(log.sibling_path(&from), log.sibling_path(&to)).unwrap();
    }
    assert!(!log.verify().is_sound());
    // Without the head, only the gap in the numbers shows the change, since the links are intact.
    fs::remove_file(log.sibling_path(".head")).unwrap();
    let report = log.verify();
    assert_eq!((report.records, report.completeness), (18, LogCompleteness::NoHead), "{report}");
    let found = report.broken.unwrap();
    assert_eq!(found.kind, BreakKind::Removed);
    assert!(found.detail.contains("segment 000002 is missing, but every link is intact"), "{found}");
    let error = Ledger::open(&log.path, log.options.clone().adopt_without_head()).unwrap_err();
    assert!(matches!(error, LedgerOpenError::SegmentMissing { .. }), "{error}");
}

#[test]
fn joined_segments_are_detected() {
    let log = segmented_log();
    let joined = [".000004", ".000005"].map(|name| fs::read(log.sibling_path(name)).unwrap()).concat();
    fs::write(log.sibling_path(".000004"), joined).unwrap();
    fs::remove_file(log.sibling_path(".000005")).unwrap();
    let found = log.verify().broken.unwrap();
    assert_eq!(found.kind, BreakKind::Removed);
    assert!(found.detail.contains("segment 000005"), "{found}");
}

#[test]
fn a_segment_is_closed_when_the_next_records_do_not_fit() {
    let record_bytes = u64::try_from(TestLog::with_records(1).lines()[0].len()).unwrap();
    for (limit, closed) in [(2 * record_bytes, 1), (2 * record_bytes - 1, 2), (1, 2)] {
        let log = TestLog::new(options().with_segment_bytes(limit));
        let mut ledger = log.open();
        for number in 1..=3 {
            ledger.append(receipt(number)).unwrap();
        }
        let names = ["", ".000001", ".000002"].map(|suffix| format!("receipts.jsonl{suffix}"));
        let mut expected =
            names.into_iter().take(closed + 1).chain(["receipts.jsonl.head".to_owned()]).collect::<Vec<_>>();
        expected.sort();
        assert_eq!(log.file_names(), expected, "segments of {limit} bytes");
        assert!(log.verify().is_sound());
    }
}

#[test]
fn a_log_is_not_continued_after_a_closed_segment_that_is_torn() {
    let log = TestLog::with_records(2);
    let [first, second] = log.lines().try_into().unwrap();
    // A crash after the rename of a rotation leaves only the closed segment.
    fs::remove_file(&log.path).unwrap();
    for kept in [&[first.as_slice(), &second[..9]].concat()[..], &first[..9]] {
        fs::write(log.sibling_path(".000001"), kept).unwrap();
        let error = Ledger::open(&log.path, log.options.clone()).unwrap_err();
        let LedgerOpenError::LastRecordDamaged { path, fault } = &error else { panic!("{error}") };
        assert_eq!(*path, log.sibling_path(".000001"));
        assert_eq!(fault, "the closed segment ends in the middle of a record");
    }
    fs::write(log.sibling_path(".000001"), [first, second].concat()).unwrap();
    assert_eq!(log.open().append(receipt(3)).unwrap().sequence, 3);
    assert!(log.verify().is_sound());
}
