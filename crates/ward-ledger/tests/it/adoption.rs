//! A log with unsigned records or without a head is continued only by an explicit decision, which the log
//! records.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;

use serde_json::json;
use ward_ledger::verify::{BreakKind, LogAuthenticity, LogCompleteness};
use ward_ledger::{
    HeadRecovery, Ledger, LedgerAppendError, LedgerKey, LedgerOpenError, LedgerOptions, parse_object, seal,
};

use crate::support::{TestLog, format, key, options, receipt};

fn open_ledger(
    log: &TestLog,
    options: LedgerOptions,
) -> Result<(Ledger, ward_ledger::LedgerRecovery), LedgerOpenError> {
    Ledger::open(&log.path, options)
}

/// Removes all but the first records from the log. The head stays as it is.
fn truncate_to(log: &TestLog, records: usize) {
    log.write_lines(&log.lines()[..records]);
}

#[test]
fn a_cut_log_without_its_head_is_not_signed_again() {
    for damaged in [false, true] {
        let log = TestLog::signed_with_records(10);
        truncate_to(&log, 5);
        fs::remove_file(log.sibling_path(".head")).unwrap();
        if damaged {
            fs::write(log.sibling_path(".head"), "nonsense").unwrap();
        }
        for _ in 0..2 {
            let error = open_ledger(&log, log.options.clone()).unwrap_err();
            assert!(matches!(error, LedgerOpenError::HeadMissing { .. }), "{error}");
            assert!(error.to_string().contains("restore the head, or adopt"), "{error}");
            assert!(!log.verify().is_sound());
        }

        let (mut ledger, recovery) = open_ledger(&log, log.options.clone().adopt_without_head()).unwrap();
        assert_eq!(recovery.head, HeadRecovery::Replaced);
        assert_eq!(log.recovery_records(), [(6, json!({"head": "replaced"}))]);
        assert_eq!(ledger.append(receipt(7)).unwrap().sequence, 7);
        assert!(log.verify().is_sound());
    }
}

#[test]
fn an_unsigned_log_without_its_head_is_not_continued_either() {
    let log = TestLog::with_records(3);
    fs::remove_file(log.sibling_path(".head")).unwrap();
    let error = open_ledger(&log, options()).unwrap_err();
    assert!(matches!(error, LedgerOpenError::HeadMissing { .. }), "{error}");
    let (_, recovery) = open_ledger(&log, options().adopt_without_head()).unwrap();
    assert_eq!(recovery.head, HeadRecovery::Replaced);
    assert_eq!(log.recovery_records(), [(4, json!({"head": "replaced"}))]);
}

#[test]
fn an_unsigned_forgery_is_not_signed() {
    let log = TestLog::signed_with_records(3);
    let forgery = TestLog::with_records(4);
    fs::copy(&forgery.path, &log.path).unwrap();
    fs::copy(forgery.sibling_path(".head"), log.sibling_path(".head")).unwrap();
    let error = open_ledger(&log, log.options.clone()).unwrap_err();
    assert!(matches!(error, LedgerOpenError::NotSigned { given, .. } if given == key().id()), "{error}");
    assert!(error.to_string().contains("then adopt"), "{error}");
    let error = open_ledger(&log, log.options.clone().adopt_without_head()).unwrap_err();
    assert!(matches!(error, LedgerOpenError::NotSigned { .. }), "{error}");
    fs::remove_file(log.sibling_path(".head")).unwrap();
    for (adoption, wanted) in [
        (log.options.clone().adopt_without_head(), "not signed"),
        (log.options.clone().adopt_unsigned(), "no readable head"),
    ] {
        let error = open_ledger(&log, adoption).unwrap_err();
        assert!(error.to_string().contains(wanted), "{error}");
    }
    assert!(!log.verify().is_sound());
}

#[test]
fn a_signed_head_does_not_cover_an_unsigned_record_behind_it() {
    let log = TestLog::signed_with_records(3);
    let last = log.verify().last_hash.unwrap();
    let mut lines = log.lines();
    lines.push(seal(&format(), None, (4, last), receipt(4)).unwrap().line);
    log.write_lines(&lines);
    for options in [log.options.clone(), log.options.clone().adopt_unsigned()] {
        let error = open_ledger(&log, options).unwrap_err();
        assert!(matches!(error, LedgerOpenError::HeadMismatch { .. }), "{error}");
    }
}

#[test]
fn an_unsigned_log_can_be_adopted_with_a_key_but_never_goes_back() {
    let mut log = TestLog::with_records(2);
    let signed = TestLog::signed();
    (log.options, log.key) = (signed.options.clone(), signed.key.clone());
    let (mut ledger, recovery) = open_ledger(&log, log.options.clone().adopt_unsigned()).unwrap();
    assert_eq!(recovery.head, HeadRecovery::Signed);
    assert_eq!(log.recovery_records(), [(3, json!({"head": "signed"}))]);
    ledger.append(receipt(4)).unwrap();
    let report = log.verify();
    assert!(report.is_sound(), "{report}");
    assert_eq!(report.authenticity, LogAuthenticity::Signed { key_id: key().id(), from: 3 });
    let (_, recovery) = open_ledger(&log, log.options.clone()).unwrap();
    assert!(recovery.is_clean(), "the adoption is needed only once");

    let error = open_ledger(&log, options()).unwrap_err();
    assert!(matches!(error, LedgerOpenError::KeyNeeded { .. }), "{error}");
    let error = open_ledger(&log, options().with_key(LedgerKey::from_bytes(&[9; 32]))).unwrap_err();
    assert!(matches!(error, LedgerOpenError::WrongKey { .. }), "{error}");
}

#[test]
fn an_adoption_that_a_crash_interrupted_is_repeated_by_decision() {
    let mut log = TestLog::with_records(2);
    let signed = TestLog::signed();
    let unsigned_head = fs::read(log.sibling_path(".head")).unwrap();
    (log.options, log.key) = (signed.options.clone(), signed.key.clone());
    drop(open_ledger(&log, log.options.clone().adopt_unsigned()).unwrap());
    fs::write(log.sibling_path(".head"), unsigned_head).unwrap();
    let error = open_ledger(&log, log.options.clone()).unwrap_err();
    assert!(matches!(error, LedgerOpenError::HeadMismatch { .. }), "{error}");
    drop(open_ledger(&log, log.options.clone().adopt_unsigned()).unwrap());
    assert_eq!(log.recovery_records().len(), 2);
    assert!(log.verify().is_sound());
}

#[test]
fn an_unsigned_log_without_records_needs_no_adoption() {
    let log = TestLog::signed();
    drop(open_ledger(&log, options()).unwrap());
    let (_, recovery) = open_ledger(&log, log.options.clone()).unwrap();
    assert!(recovery.is_clean());
    log.append(2);
    assert_eq!(log.verify().authenticity, LogAuthenticity::Signed { key_id: key().id(), from: 1 });
}

#[test]
fn a_damaged_head_without_records_is_replaced_and_reported() {
    let log = TestLog::signed();
    fs::write(log.sibling_path(".head"), "nonsense").unwrap();
    drop(log.open());
    assert_eq!(log.recovery_records(), [(1, json!({"head": "replaced"}))]);
}

#[test]
fn a_decision_to_adopt_holds_only_for_the_opening() {
    let log = TestLog::signed_with_records(2);
    let (mut ledger, _) =
        open_ledger(&log, log.options.clone().adopt_without_head().adopt_unsigned()).unwrap();
    fs::remove_file(log.sibling_path(".head")).unwrap();
    let error = ledger.append(receipt(3)).unwrap_err();
    assert!(matches!(error, LedgerAppendError::Log(LedgerOpenError::HeadMissing { .. })), "{error}");
    assert_eq!(log.verify().completeness, LogCompleteness::HeadMissing);
}

#[test]
fn a_last_record_edited_in_place_between_two_appends_is_not_continued() {
    for log in [TestLog::with_records(2), TestLog::signed_with_records(2)] {
        let mut ledger = log.open();
        ledger.append(receipt(3)).unwrap();
        let lines = log.lines();
        let text = String::from_utf8(lines[2].clone()).unwrap();
        let edited = text.replace("receipt-3", "receipt-9");
        let file = OpenOptions::new().write(true).open(&log.path).unwrap();
        let at = lines[..2].concat().len() as u64;
        file.write_all_at(edited.as_bytes(), at).unwrap();
        let error = ledger.append(receipt(4)).unwrap_err();
        assert!(
            matches!(error, LedgerAppendError::Log(LedgerOpenError::LastRecordDamaged { .. })),
            "{error}"
        );
        assert_eq!(log.verify().broken.unwrap().kind, BreakKind::Edited);

        let previous = parse_object(lines[1].trim_ascii()).unwrap();
        let previous = previous["receipt_hash"].as_str().unwrap().as_bytes();
        let previous = ward_ledger::Sha256Hash::from_hex(previous).unwrap();
        let mut other = receipt(3);
        other.insert("id".into(), "receipt-9".into());
        let forged = seal(&format(), log.key.as_ref(), (3, previous), other).unwrap().line;
        assert_eq!(forged.len(), lines[2].len());
        file.write_all_at(&forged, at).unwrap();
        let error = ledger.append(receipt(4)).unwrap_err();
        assert!(matches!(error, LedgerAppendError::Log(LedgerOpenError::HeadMismatch { .. })), "{error}");
    }
}

#[test]
fn a_writer_notices_that_records_of_another_writer_were_cut() {
    let log = TestLog::signed_with_records(1);
    let (mut one, mut other) = (log.open(), log.open());
    one.append(receipt(2)).unwrap();
    other.append_all(vec![receipt(3), receipt(4)]).unwrap();
    let length = log.lines()[..2].concat().len() as u64;
    OpenOptions::new().write(true).open(&log.path).unwrap().set_len(length).unwrap();
    let error = one.append(receipt(3)).unwrap_err();
    assert!(
        matches!(error, LedgerAppendError::Log(LedgerOpenError::Truncated { covered: 4, found: 2, .. })),
        "{error}"
    );
}
