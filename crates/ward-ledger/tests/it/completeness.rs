//! The completeness of a log: the head must be there, and be written by the holder of the key.

use std::fs;

use ward_ledger::verify::{LogCompleteness, verify};
use ward_ledger::{LedgerKey, VerificationReport};

use crate::support::{TestLog, format, key};

fn completeness_with(log: &TestLog, key: Option<&LedgerKey>) -> LogCompleteness {
    verify(&log.path, &format(), key).unwrap().completeness
}

#[test]
fn a_signed_log_without_a_head_is_incomplete_even_if_no_key_is_given() {
    let signed = TestLog::signed_with_records(2);
    fs::remove_file(signed.sibling_path(".head")).unwrap();
    assert_eq!(completeness_with(&signed, Some(&key())), LogCompleteness::HeadMissing);
    assert_eq!(completeness_with(&signed, None), LogCompleteness::HeadMissing);
    let unsigned = TestLog::with_records(2);
    fs::remove_file(unsigned.sibling_path(".head")).unwrap();
    assert_eq!(completeness_with(&unsigned, Some(&key())), LogCompleteness::HeadMissing);
    assert_eq!(completeness_with(&unsigned, None), LogCompleteness::NoHead);
}

#[test]
fn an_unsigned_head_is_forged_if_the_log_is_signed() {
    let signed = TestLog::signed_with_records(2);
    fs::copy(TestLog::with_records(2).sibling_path(".head"), signed.sibling_path(".head")).unwrap();
    assert_eq!(completeness_with(&signed, Some(&key())), LogCompleteness::HeadForged);
}

#[test]
fn the_head_of_another_key_counts_only_if_no_key_is_given() {
    let log = TestLog::signed_with_records(2);
    let complete = LogCompleteness::Complete { covered: 2, uncovered: 0 };
    assert_eq!(completeness_with(&log, Some(&key())), complete);
    assert_eq!(completeness_with(&log, None), complete);
    let other = LedgerKey::from_bytes(&[7; 32]);
    assert_eq!(completeness_with(&log, Some(&other)), LogCompleteness::HeadOfOtherKey { key_id: key().id() });
}

#[test]
fn a_log_without_records_has_no_last_hash() {
    let log = TestLog::with_records(0);
    let VerificationReport { records, last_hash, completeness, .. } = log.verify();
    assert_eq!((records, last_hash), (0, None));
    assert_eq!(completeness, LogCompleteness::Complete { covered: 0, uncovered: 0 });
}
