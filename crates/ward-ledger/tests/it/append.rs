//! Appending: one at a time, in batches, in segments, with and after other writers.

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};

use serde_json::json;
use ward_ledger::verify::Completeness;
use ward_ledger::{AppendError, HeadRecovery, Ledger, OpenError};

use crate::support::{Log, object, options, receipt};

#[test]
fn records_are_numbered_from_one_and_chained() {
    let log = Log::new(options());
    let (mut ledger, recovery) = Ledger::open(&log.path, options()).unwrap();
    assert!(recovery.is_clean());
    assert_eq!(recovery.head, HeadRecovery::Begun);
    let first = ledger.append(receipt(1)).unwrap();
    let rest = ledger.append_all(vec![receipt(2), receipt(3)]).unwrap();
    assert_eq!((first.sequence, rest[0].sequence, rest[1].sequence), (1, 2, 3));
    let report = log.verify();
    assert!(report.is_sound());
    assert_eq!(report.last_hash, Some(rest[1].hash));
    assert_eq!(log.names(), ["receipts.jsonl", "receipts.jsonl.head"]);
    for name in log.names() {
        assert_eq!(fs::metadata(log.folder.path().join(name)).unwrap().mode() & 0o777, 0o600);
    }
}

#[test]
fn two_writers_in_turn_continue_each_other() {
    let log = Log::new(options().with_segment_bytes(1200));
    let (mut one, mut other) = (log.open(), log.open());
    for number in 1..=20 {
        let ledger = if number % 3 == 0 { &mut one } else { &mut other };
        assert_eq!(ledger.append(receipt(number)).unwrap().sequence, number);
    }
    let report = log.verify();
    assert!(report.is_sound() && report.segments > 3, "{report}");
}

#[test]
fn a_bad_record_in_a_batch_leaves_nothing_of_it() {
    let log = Log::with(1);
    let mut ledger = log.open();
    let before = fs::read(&log.path).unwrap();
    let bad = vec![receipt(2), object(json!({"share": 0.5}))];
    assert!(matches!(ledger.append_all(bad), Err(AppendError::Record { index: 1, .. })));
    assert_eq!(fs::read(&log.path).unwrap(), before);
    assert_eq!(ledger.append_all(Vec::new()).unwrap(), []);
    assert_eq!(ledger.append(receipt(2)).unwrap().sequence, 2);
}

#[test]
fn a_torn_line_is_put_aside_at_open_and_reported() {
    let log = Log::with(2);
    let mut bytes = fs::read(&log.path).unwrap();
    bytes.extend_from_slice(b"{\"half\":");
    fs::write(&log.path, &bytes).unwrap();
    let (mut ledger, recovery) = Ledger::open(&log.path, options()).unwrap();
    let torn = recovery.torn.unwrap();
    assert_eq!((torn.sequence, torn.bytes), (3, 8));
    assert_eq!(fs::read(&torn.kept_in).unwrap(), b"{\"half\":");
    assert_eq!(torn.kept_in, log.sibling(".torn-3-1"));
    assert_eq!(ledger.append(receipt(3)).unwrap().sequence, 3);
    assert!(log.verify().is_sound());
}

#[test]
fn a_line_torn_by_another_writer_is_put_aside_at_the_next_append() {
    let log = Log::with(2);
    let mut ledger = log.open();
    for round in 1..=2 {
        let mut bytes = fs::read(&log.path).unwrap();
        bytes.extend_from_slice(b"{");
        fs::write(&log.path, &bytes).unwrap();
        assert_eq!(ledger.append(receipt(3)).unwrap().sequence, 2 + round);
        let recoveries = ledger.take_recoveries();
        assert_eq!(recoveries.len(), 1);
        assert!(recoveries[0].torn.is_some());
    }
    assert!(log.verify().is_sound());
}

#[test]
fn a_cut_log_is_not_continued() {
    for log in [Log::with(3), Log::signed_with(3)] {
        let mut lines = log.lines();
        lines.pop();
        log.write_lines(&lines);
        let error = Ledger::open(&log.path, log.options.clone()).unwrap_err();
        assert!(matches!(error, OpenError::Truncated { vouched: 3, found: 2, .. }), "{error}");
        lines[1].pop();
        log.write_lines(&lines);
        let error = Ledger::open(&log.path, log.options.clone()).unwrap_err();
        assert!(matches!(error, OpenError::Truncated { vouched: 3, found: 1, .. }), "{error}");
        assert_eq!(log.names().len(), 2, "nothing was put aside");
    }
}

#[test]
fn a_log_cut_while_a_writer_has_it_open_is_not_continued() {
    let log = Log::with(3);
    let mut ledger = log.open();
    let mut lines = log.lines();
    lines.pop();
    log.write_lines(&lines);
    let error = ledger.append(receipt(4)).unwrap_err();
    assert!(matches!(error, AppendError::Log(OpenError::Truncated { .. })), "{error}");
}

#[test]
fn a_changed_last_record_or_another_head_is_not_continued() {
    let log = Log::with(3);
    let good = fs::read_to_string(&log.path).unwrap();
    fs::write(&log.path, good.replace("receipt-3", "receipt-4")).unwrap();
    assert!(matches!(Ledger::open(&log.path, options()).unwrap_err(), OpenError::Broken { .. }));
    fs::write(&log.path, &good).unwrap();
    let other = Log::new(options());
    other.open().append_all(vec![receipt(7), receipt(8), receipt(9)]).unwrap();
    fs::copy(other.sibling(".head"), log.sibling(".head")).unwrap();
    assert!(matches!(Ledger::open(&log.path, options()).unwrap_err(), OpenError::HeadMismatch { .. }));
}

#[test]
fn records_behind_the_head_must_continue_what_it_vouches_for() {
    let log = Log::with(3);
    let other = Log::new(options());
    other.open().append(receipt(7)).unwrap();
    fs::copy(other.sibling(".head"), log.sibling(".head")).unwrap();
    assert!(matches!(Ledger::open(&log.path, options()).unwrap_err(), OpenError::HeadMismatch { .. }));
}

#[test]
fn a_signed_log_is_not_continued_with_a_head_that_is_not_signed_with_its_key() {
    let log = Log::signed_with(3);
    let head = log.sibling(".head");
    let signed = fs::read_to_string(&head).unwrap();
    let hash = log.verify().last_hash.unwrap();
    for forged in [
        format!(r#"{{"count":3,"hash":"{hash}","segment":1}}"#),
        format!(r#"{{"count":2,"hash":"{hash}","segment":1}}"#),
        signed.replace("\"count\":3", "\"count\":2"),
    ] {
        fs::write(&head, forged).unwrap();
        let error = Ledger::open(&log.path, log.options.clone()).unwrap_err();
        assert!(matches!(error, OpenError::HeadMismatch { .. }), "{error}");
    }
    fs::write(&head, signed).unwrap();
    log.append(1);
}

#[test]
fn a_head_that_is_behind_is_brought_forward_and_a_missing_one_replaced() {
    let log = Log::signed_with(2);
    let old = fs::read(log.sibling(".head")).unwrap();
    log.append(3);
    fs::write(log.sibling(".head"), &old).unwrap();
    assert_eq!(log.verify().completeness, Completeness::Complete { vouched: 2, unvouched: 3 });
    assert!(log.verify().is_sound());
    let (_, recovery) = Ledger::open(&log.path, log.options.clone()).unwrap();
    assert_eq!(recovery.head, HeadRecovery::BroughtForward { from: 2, to: 5 });
    assert_eq!(log.verify().completeness, Completeness::Complete { vouched: 5, unvouched: 0 });

    fs::remove_file(log.sibling(".head")).unwrap();
    let (_, recovery) = Ledger::open(&log.path, log.options.clone()).unwrap();
    assert_eq!(recovery.head, HeadRecovery::Replaced);
    assert!(!recovery.is_clean());
    assert!(log.verify().is_sound());
}

#[test]
fn a_head_removed_under_an_open_writer_is_made_again() {
    let log = Log::with(2);
    let mut ledger = log.open();
    fs::remove_file(log.sibling(".head")).unwrap();
    ledger.append(receipt(3)).unwrap();
    assert_eq!(ledger.take_recoveries()[0].head, HeadRecovery::Replaced);
    assert!(log.verify().is_sound());
}

#[test]
fn a_log_begun_without_a_key_goes_on_with_one_and_never_back() {
    let mut log = Log::with(2);
    let signed = Log::signed();
    (log.options, log.key) = (signed.options, signed.key);
    let (mut ledger, recovery) = Ledger::open(&log.path, log.options.clone()).unwrap();
    assert_eq!(recovery.head, HeadRecovery::Signed);
    assert!(log.verify().is_sound(), "the signed head vouches for the records before");
    let error = Ledger::open(&log.path, options()).unwrap_err();
    assert!(matches!(error, OpenError::KeyNeeded { .. }), "{error}");
    ledger.append(receipt(3)).unwrap();
    let report = log.verify();
    assert!(report.is_sound() && report.to_string().contains("from record 3 on"), "{report}");
    let error = Ledger::open(&log.path, options()).unwrap_err();
    assert!(matches!(error, OpenError::KeyNeeded { .. }), "{error}");
    let other = ward_ledger::Key::from_bytes([9; 32]);
    let error = Ledger::open(&log.path, options().with_key(other)).unwrap_err();
    assert!(matches!(error, OpenError::WrongKey { .. }), "{error}");
}

#[test]
fn links_and_folders_at_the_path_are_refused() {
    let log = Log::new(options());
    let victim = log.folder.path().join("victim");
    fs::write(&victim, "precious\n").unwrap();
    symlink(&victim, &log.path).unwrap();
    assert!(matches!(Ledger::open(&log.path, options()).unwrap_err(), OpenError::File { .. }));
    fs::remove_file(&log.path).unwrap();
    fs::remove_file(log.sibling(".head")).unwrap();
    symlink(&victim, log.sibling(".head")).unwrap();
    assert!(matches!(Ledger::open(&log.path, options()).unwrap_err(), OpenError::File { .. }));
    assert_eq!(fs::read(&victim).unwrap(), b"precious\n");
    fs::remove_file(log.sibling(".head")).unwrap();
    fs::create_dir(&log.path).unwrap();
    assert!(matches!(Ledger::open(&log.path, options()).unwrap_err(), OpenError::File { .. }));
}
