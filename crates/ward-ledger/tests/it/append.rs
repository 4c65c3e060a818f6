//! Appending single records and batches, alongside other writers, and to logs that need a recovery.

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;

use serde_json::json;
use ward_ledger::verify::LogCompleteness;
use ward_ledger::{HeadRecovery, Ledger, LedgerAppendError, LedgerOpenError, SealError};

use crate::support::{TestLog, object, options, receipt};

#[test]
fn records_are_numbered_from_one_and_chained() {
    let log = TestLog::new(options());
    let (mut ledger, recovery) = Ledger::open(&log.path, options()).unwrap();
    assert!(recovery.is_clean());
    assert_eq!(recovery.head, HeadRecovery::Begun);
    let first = ledger.append(receipt(1)).unwrap();
    let rest = ledger.append_all(vec![receipt(2), receipt(3)]).unwrap();
    assert_eq!((first.sequence, rest[0].sequence, rest[1].sequence), (1, 2, 3));
    let report = log.verify();
    assert!(report.is_sound());
    assert_eq!(report.last_hash, Some(rest[1].hash));
    assert_eq!(log.file_names(), ["receipts.jsonl", "receipts.jsonl.head"]);
    for name in log.file_names() {
        assert_eq!(fs::metadata(log.folder.path().join(name)).unwrap().mode() & 0o777, 0o600);
    }
}

#[test]
fn two_writers_in_turn_continue_each_other() {
    let log = TestLog::new(options().with_segment_bytes(1200));
    let (mut one, mut other) = (log.open(), log.open());
    for number in 1..=20 {
        let ledger = if number % 3 == 0 { &mut one } else { &mut other };
        assert_eq!(ledger.append(receipt(number)).unwrap().sequence, number);
    }
    let report = log.verify();
    assert!(report.is_sound() && report.segments > 3, "{report}");
}

#[test]
fn a_bad_record_in_a_batch_keeps_all_of_it_out_of_the_log() {
    let log = TestLog::with_records(1);
    let mut ledger = log.open();
    let before = fs::read(&log.path).unwrap();
    let bad = vec![receipt(2), object(json!({"share": 0.5}))];
    assert!(matches!(ledger.append_all(bad), Err(LedgerAppendError::Record { index: 1, .. })));
    assert_eq!(fs::read(&log.path).unwrap(), before);
    assert_eq!(ledger.append_all(Vec::new()).unwrap(), []);
    assert_eq!(ledger.append(receipt(2)).unwrap().sequence, 2);
}

#[test]
fn a_torn_line_is_moved_aside_at_open_and_reported() {
    let log = TestLog::with_records(2);
    let mut bytes = fs::read(&log.path).unwrap();
    bytes.extend_from_slice(b"{\"half\":");
    fs::write(&log.path, &bytes).unwrap();
    let (mut ledger, recovery) = Ledger::open(&log.path, options()).unwrap();
    let [torn] = recovery.torn.as_slice() else { panic!("{recovery:?}") };
    assert_eq!((torn.sequence, torn.bytes), (3, 8));
    assert_eq!(fs::read(&torn.kept_in).unwrap(), b"{\"half\":");
    assert_eq!(torn.kept_in, log.sibling_path(".torn-3-1"));
    assert_eq!(
        log.recovery_records(),
        [(
            3,
            json!({"head": "in_order", "torn": [{"sequence": 3, "bytes": 8, "kept_in": "receipts.jsonl.torn-3-1"}]})
        )]
    );
    assert_eq!(ledger.append(receipt(3)).unwrap().sequence, 4);
    let (_, again) = Ledger::open(&log.path, options()).unwrap();
    assert_eq!(again.torn, [], "it is reported only once");
    assert!(log.verify().is_sound());
}

#[test]
fn a_torn_line_never_replaces_an_earlier_one() {
    // A crash while the first line was moved aside leaves both its file and the torn log.
    let log = TestLog::with_records(2);
    for counter in 1..=2 {
        fs::write(log.sibling_path(&format!(".torn-3-{counter}")), "earlier").unwrap();
    }
    fs::write(&log.path, [fs::read(&log.path).unwrap(), b"{".to_vec()].concat()).unwrap();
    let (_, recovery) = Ledger::open(&log.path, options()).unwrap();
    let torn: Vec<_> = recovery.torn.iter().map(|torn| (torn.bytes, torn.kept_in.clone())).collect();
    let kept = |counter: u64| log.sibling_path(&format!(".torn-3-{counter}"));
    assert_eq!(torn, [(7, kept(1)), (7, kept(2)), (1, kept(3))]);
    assert_eq!(
        [1, 2, 3].map(|counter| fs::read(kept(counter)).unwrap()),
        [&b"earlier"[..], b"earlier", b"{"]
    );
}

#[test]
fn a_torn_line_that_can_not_be_moved_aside_is_an_error() {
    // The longest name of a file has 255 bytes, so there's room for `.head`, but not for `.torn-3-1`.
    let mut log = TestLog::new(options());
    log.path = log.folder.path().join("x".repeat(250));
    log.append(2);
    fs::write(&log.path, [fs::read(&log.path).unwrap(), b"{".to_vec()].concat()).unwrap();
    let error = Ledger::open(&log.path, options()).unwrap_err();
    assert!(matches!(&error, LedgerOpenError::File { step: "move the torn end of", .. }), "{error:?}");
}

#[test]
fn a_line_torn_by_another_writer_is_moved_aside_at_the_next_append() {
    let log = TestLog::with_records(2);
    let mut ledger = log.open();
    for round in 1..=2 {
        let mut bytes = fs::read(&log.path).unwrap();
        bytes.extend_from_slice(b"{");
        fs::write(&log.path, &bytes).unwrap();
        assert_eq!(ledger.append(receipt(3)).unwrap().sequence, 2 + 2 * round);
        let recoveries = ledger.take_recoveries();
        assert_eq!(recoveries.len(), 1);
        assert_eq!(recoveries[0].torn.len(), 1);
    }
    assert_eq!(log.recovery_records().len(), 2);
    assert!(log.verify().is_sound());
}

#[test]
fn a_cut_log_is_not_continued() {
    for log in [TestLog::with_records(3), TestLog::signed_with_records(3)] {
        let mut lines = log.lines();
        lines.pop();
        log.write_lines(&lines);
        let error = Ledger::open(&log.path, log.options.clone()).unwrap_err();
        assert!(matches!(error, LedgerOpenError::Truncated { covered: 3, found: 2, .. }), "{error}");
        lines[1].pop();
        log.write_lines(&lines);
        let error = Ledger::open(&log.path, log.options.clone()).unwrap_err();
        assert!(matches!(error, LedgerOpenError::Truncated { covered: 3, found: 1, .. }), "{error}");
        assert_eq!(log.file_names().len(), 2, "nothing was moved aside");
    }
}

#[test]
fn a_log_cut_while_a_writer_has_it_open_is_not_continued() {
    let log = TestLog::with_records(3);
    let mut ledger = log.open();
    let mut lines = log.lines();
    lines.pop();
    log.write_lines(&lines);
    let error = ledger.append(receipt(4)).unwrap_err();
    assert!(matches!(error, LedgerAppendError::Log(LedgerOpenError::Truncated { .. })), "{error}");
}

#[test]
fn a_log_with_a_changed_last_record_or_another_head_is_not_continued() {
    let log = TestLog::with_records(3);
    let good = fs::read_to_string(&log.path).unwrap();
    fs::write(&log.path, good.replace("receipt-3", "receipt-4")).unwrap();
    assert!(matches!(
        Ledger::open(&log.path, options()).unwrap_err(),
        LedgerOpenError::LastRecordDamaged { .. }
    ));
    fs::write(&log.path, &good).unwrap();
    let other = TestLog::new(options());
    other.open().append_all(vec![receipt(7), receipt(8), receipt(9)]).unwrap();
    fs::copy(other.sibling_path(".head"), log.sibling_path(".head")).unwrap();
    assert!(matches!(Ledger::open(&log.path, options()).unwrap_err(), LedgerOpenError::HeadMismatch { .. }));
}

#[test]
fn records_behind_the_head_must_continue_what_it_vouches_for() {
    let log = TestLog::with_records(3);
    let other = TestLog::new(options());
    other.open().append(receipt(7)).unwrap();
    fs::copy(other.sibling_path(".head"), log.sibling_path(".head")).unwrap();
    assert!(matches!(Ledger::open(&log.path, options()).unwrap_err(), LedgerOpenError::HeadMismatch { .. }));
}

#[test]
fn a_signed_log_is_not_continued_with_a_head_that_is_not_signed_with_its_key() {
    let log = TestLog::signed_with_records(3);
    let head = log.sibling_path(".head");
    let signed = fs::read_to_string(&head).unwrap();
    let hash = log.verify().last_hash.unwrap();
    for forged in [
        format!(r#"{{"count":3,"hash":"{hash}","segment":1}}"#),
        format!(r#"{{"count":2,"hash":"{hash}","segment":1}}"#),
        signed.replace("\"count\":3", "\"count\":2"),
    ] {
        fs::write(&head, forged).unwrap();
        let error = Ledger::open(&log.path, log.options.clone()).unwrap_err();
        assert!(matches!(error, LedgerOpenError::HeadMismatch { .. }), "{error}");
    }
    fs::write(&head, signed).unwrap();
    log.append(1);
}

#[test]
fn the_head_always_fills_one_disk_sector() {
    for log in [TestLog::signed(), TestLog::new(options())] {
        let mut ledger = log.open();
        for number in 1..=12 {
            ledger.append(receipt(number)).unwrap();
            let head = fs::read(log.sibling_path(".head")).unwrap();
            assert_eq!((head.len(), head.last()), (512, Some(&b'\n')));
        }
    }
}

#[test]
fn a_head_that_is_behind_is_brought_forward() {
    let log = TestLog::signed_with_records(2);
    let old = fs::read(log.sibling_path(".head")).unwrap();
    log.append(3);
    fs::write(log.sibling_path(".head"), &old).unwrap();
    assert_eq!(log.verify().completeness, LogCompleteness::Complete { covered: 2, uncovered: 3 });
    assert!(log.verify().is_sound());
    let (_, recovery) = Ledger::open(&log.path, log.options.clone()).unwrap();
    assert_eq!(recovery.head, HeadRecovery::BroughtForward { from: 2, to: 5 });
    assert_eq!(log.verify().completeness, LogCompleteness::Complete { covered: 6, uncovered: 0 });
    assert_eq!(log.recovery_records(), [(6, json!({"head": {"brought_forward": {"from": 2, "to": 5}}}))]);
}

#[test]
fn only_the_ledger_can_write_recovery_records() {
    let log = TestLog::with_records(1);
    let error = log.open().append(object(json!({"ledger_recovery": {"head": "in_order"}}))).unwrap_err();
    assert!(matches!(error, LedgerAppendError::Record { source: SealError::Reserved(_), .. }), "{error}");
}

/// Returns true if no writer holds the lock on this head.
fn is_unlocked(head: &Path) -> bool {
    fs::File::open(head).unwrap().try_lock().is_ok()
}

#[test]
fn a_failure_to_inspect_the_head_releases_the_lock() {
    let outer = tempfile::tempdir().unwrap();
    let (folder, aside) = (outer.path().join("logs"), outer.path().join("aside"));
    fs::create_dir(&folder).unwrap();
    let (mut ledger, _) = Ledger::open(&folder.join("receipts.jsonl"), options()).unwrap();
    fs::rename(&folder, &aside).unwrap();
    fs::write(&folder, "not a folder").unwrap();
    assert!(matches!(ledger.append(receipt(1)), Err(LedgerAppendError::Log(LedgerOpenError::File { .. }))));
    assert!(is_unlocked(&aside.join("receipts.jsonl.head")));
}

#[test]
fn a_failure_to_open_a_replaced_head_releases_the_lock() {
    let log = TestLog::with_records(1);
    let mut ledger = log.open();
    let aside = log.folder.path().join("aside");
    fs::rename(log.sibling_path(".head"), &aside).unwrap();
    symlink(&aside, log.sibling_path(".head")).unwrap();
    assert!(matches!(ledger.append(receipt(1)), Err(LedgerAppendError::Log(LedgerOpenError::File { .. }))));
    assert!(is_unlocked(&aside));
}

#[test]
fn links_and_folders_at_the_path_are_refused() {
    let log = TestLog::new(options());
    let victim = log.folder.path().join("victim");
    fs::write(&victim, "precious\n").unwrap();
    symlink(&victim, &log.path).unwrap();
    assert!(matches!(Ledger::open(&log.path, options()).unwrap_err(), LedgerOpenError::File { .. }));
    fs::remove_file(&log.path).unwrap();
    fs::remove_file(log.sibling_path(".head")).unwrap();
    symlink(&victim, log.sibling_path(".head")).unwrap();
    assert!(matches!(Ledger::open(&log.path, options()).unwrap_err(), LedgerOpenError::File { .. }));
    assert_eq!(fs::read(&victim).unwrap(), b"precious\n");
    fs::remove_file(log.sibling_path(".head")).unwrap();
    fs::create_dir(&log.path).unwrap();
    assert!(matches!(Ledger::open(&log.path, options()).unwrap_err(), LedgerOpenError::File { .. }));
}
