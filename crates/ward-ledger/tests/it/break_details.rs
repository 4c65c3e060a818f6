//! The evidence for a broken link: its kind, place and sentence.

use std::fs;

use ward_ledger::verify::{BreakKind, ChainBreak, verify};
use ward_ledger::{LedgerFormat, LedgerKey, Sha256Hash, parse_object, seal};

use crate::support::{TestLog, format, key, receipt};

/// Returns the record number `sequence` with other content, after the record in `previous`.
fn forge(sequence: u64, previous: Option<&[u8]>, key: Option<&LedgerKey>) -> Vec<u8> {
    let hash = previous.map_or(Sha256Hash::GENESIS, |line| {
        let record = parse_object(line.trim_ascii()).unwrap();
        Sha256Hash::from_hex(record["receipt_hash"].as_str().unwrap().as_bytes()).unwrap()
    });
    seal(&format(), key, (sequence, hash), receipt(99)).unwrap().line
}

/// Checks the first break of a log with these lines.
fn check(log: &TestLog, lines: &[&[u8]], (kind, line, sequence): (BreakKind, u64, u64), detail: &str) {
    fs::write(&log.path, lines.concat()).unwrap();
    let segment = "receipts.jsonl".to_owned();
    let expected = ChainBreak { kind, segment, line, sequence, detail: detail.to_owned() };
    assert_eq!(log.verify().broken, Some(expected));
}

#[test]
fn missing_records_are_counted() {
    let log = TestLog::with_records(5);
    let lines = log.lines();
    let without = |missing: std::ops::Range<usize>| {
        let kept = lines.iter().enumerate().filter(move |(index, _)| !missing.contains(index));
        kept.map(|(_, line)| line.as_slice()).collect::<Vec<_>>()
    };
    check(&log, &without(1..2), (BreakKind::Removed, 2, 2), "record 2 is missing");
    check(&log, &without(1..3), (BreakKind::Removed, 2, 2), "records 2 to 3 are missing");
    check(&log, &without(0..4), (BreakKind::Removed, 1, 1), "records 1 to 4 are missing");
}

#[test]
fn copies_are_told_apart_from_other_records_with_the_same_number() {
    let log = TestLog::with_records(3);
    let lines = log.lines();
    let [first, second, third] = [&*lines[0], &*lines[1], &*lines[2]];
    let copy = "a copy of record 1";
    check(&log, &[first, second, first, third], (BreakKind::Inserted, 3, 3), copy);
    let other = forge(1, None, None);
    let taken = "there already is a record 1";
    check(&log, &[first, second, &other, third], (BreakKind::Inserted, 3, 3), taken);
    let later = "a copy of record 3, which comes later";
    check(&log, &[first, third, second, third], (BreakKind::Inserted, 2, 2), later);
    check(&log, &[first, third, second, third, third], (BreakKind::Inserted, 2, 2), later);
    check(
        &log,
        &[first, third, second],
        (BreakKind::Reordered, 2, 2),
        "record 3 is in the place of record 2",
    );
}

#[test]
fn of_two_records_with_one_number_the_one_that_the_chain_leaves_out_is_inserted() {
    let log = TestLog::with_records(3);
    fs::remove_file(log.sibling_path(".head")).unwrap();
    let lines = log.lines();
    let [first, second, third] = [&*lines[0], &*lines[1], &*lines[2]];
    let forged = forge(2, Some(first), None);
    let left_out = "the chain continues after it as if it didn't exist";
    check(&log, &[first, &forged, second, third], (BreakKind::Inserted, 2, 2), left_out);
    check(&log, &[first, &forged, second, third, third], (BreakKind::Inserted, 2, 2), left_out);
    let taken = "there already is a record 2";
    check(&log, &[first, &forged, second, first], (BreakKind::Inserted, 3, 3), taken);
}

#[test]
fn a_last_record_without_its_mac_was_edited_if_the_head_counts_it() {
    let log = TestLog::signed_with_records(2);
    let lines = log.lines();
    let unsigned = forge(2, Some(&lines[0]), None);
    let edited = "it has no MAC, but the records before it do";
    check(&log, &[&lines[0], &unsigned], (BreakKind::Edited, 2, 2), edited);
    let unsigned = forge(3, Some(&lines[1]), None);
    let inserted = "it was added without the key that signed the records before it";
    check(&log, &[&lines[0], &lines[1], &unsigned], (BreakKind::Inserted, 3, 3), inserted);
}

#[test]
fn a_record_with_missing_members_asks_for_the_hash_member_only_at_the_start() {
    let log = TestLog::with_records(3);
    let lines = log.lines();
    let missing = "the member `receipt_hash` is missing or malformed";
    check(&log, &[&lines[0], b"{\"a\":1}\n", &lines[2]], (BreakKind::Edited, 2, 2), missing);
    fs::write(&log.path, lines.concat()).unwrap();
    let found = verify(&log.path, &LedgerFormat::new("event_hash").unwrap(), None).unwrap().broken.unwrap();
    assert_eq!(
        found.detail,
        "the member `event_hash` is missing or malformed; is `event_hash` the hash member of this log?"
    );
}

#[test]
fn a_wrong_key_is_named_with_the_expected_one() {
    let log = TestLog::signed_with_records(2);
    let lines = log.lines();
    let other = LedgerKey::from_bytes(&[7; 32]);
    let found = verify(&log.path, &format(), Some(&other)).unwrap().broken.unwrap();
    assert_eq!(found.detail, format!("signed with key {}, but checked with key {}", key().id(), other.id()));
    let forged = forge(2, Some(&lines[0]), Some(&other));
    fs::write(&log.path, [&lines[0], &forged].map(Vec::as_slice).concat()).unwrap();
    let found = verify(&log.path, &format(), None).unwrap().broken.unwrap();
    assert_eq!((found.kind, found.sequence), (BreakKind::WrongKey, 2));
    assert_eq!(found.detail, format!("signed with key {}, but checked with key {}", other.id(), key().id()));
}
