//! Reading the records of a log, forward and from the end.

use std::fs;

use ward_ledger::{EntryReadError, LedgerReadError, read, read_records_reversed};

use crate::support::{TestLog, format, options, receipt};

#[test]
fn all_segments_are_read_in_order() {
    let log = TestLog::new(options().with_segment_bytes(1500));
    let mut ledger = log.open();
    let appended: Vec<_> = (1..=20).map(|number| ledger.append(receipt(number)).unwrap()).collect();
    let entries: Vec<_> = read(&log.path, &format()).unwrap().map(Result::unwrap).collect();
    let places: Vec<_> = entries.iter().map(|entry| (entry.sequence, entry.hash)).collect();
    assert_eq!(places, appended.iter().map(|one| (one.sequence, one.hash)).collect::<Vec<_>>());
    for (entry, number) in entries.iter().zip(1..) {
        let mut fields = entry.record.clone();
        fields.retain(|name, _| !["sequence", "previous_hash", "receipt_hash"].contains(&name.as_str()));
        assert_eq!(fields, receipt(number));
    }
    assert_eq!((entries[0].segment.as_str(), entries[0].line), ("receipts.jsonl.000001", 1));
    let last = entries.last().unwrap();
    assert_eq!(last.segment, "receipts.jsonl");
    assert_eq!(last.line, log.lines().len() as u64);
}

#[test]
fn bad_lines_are_reported_with_their_place_and_the_rest_is_read() {
    let log = TestLog::with_records(3);
    let mut lines = log.lines();
    lines.insert(1, b"garbage\n".to_vec());
    lines.insert(2, b"{\"sequence\":1}\n".to_vec());
    lines.insert(3, [vec![b'x'; 3 << 20], b"\n".to_vec()].concat());
    lines.push(b"{\"half\":".to_vec());
    log.write_lines(&lines);
    let found: Vec<String> = read(&log.path, &format())
        .unwrap()
        .map(|item| match item {
            Ok(entry) => format!("{} at {}", entry.sequence, entry.line),
            Err(EntryReadError::Line { line, source, .. }) => format!("{line}: {source}"),
            Err(fault) => fault.to_string(),
        })
        .collect();
    assert_eq!(
        found,
        [
            "1 at 1",
            "2: not a JSON object: expected value at line 1 column 1",
            "3: the member `receipt_hash` is missing or malformed",
            "4: the line is longer than 1048576 bytes, the limit for a record",
            "2 at 5",
            "3 at 6",
            "line 7 of receipts.jsonl ends in the middle of a record, after 8 bytes",
        ]
    );
}

#[test]
fn reverse_reading_starts_with_the_newest_record_or_at_any_number() {
    let log = TestLog::new(options().with_segment_bytes(1500));
    let mut ledger = log.open();
    for number in 1..=20 {
        ledger.append(receipt(number)).unwrap();
    }
    let forward: Vec<_> = read(&log.path, &format()).unwrap().map(Result::unwrap).collect();
    let check = |before: Option<u64>, what: &str| {
        let back: Vec<_> = read_records_reversed(&log.path, &format(), before)
            .unwrap()
            .map(Result::unwrap)
            .map(|(_, record)| record)
            .collect();
        let below = forward.iter().rev().filter(|entry| before.is_none_or(|before| entry.sequence < before));
        assert_eq!(back, below.map(|entry| entry.record.clone()).collect::<Vec<_>>(), "{before:?}, {what}");
    };
    check(None, "whole");
    (0..=22).for_each(|before| check(Some(before), "whole"));

    // Lines that are not records are skipped, including a torn line at the end.
    let mut lines = log.lines();
    lines.insert(0, b"garbage\n".to_vec());
    lines.insert(2, b"{\"sequence\":1}\n".to_vec());
    lines.push(b"{\"half\":".to_vec());
    log.write_lines(&lines);
    check(None, "damaged");
    (0..=22).for_each(|before| check(Some(before), "damaged"));
}

#[test]
fn reverse_reading_leaves_out_higher_numbers_in_a_log_that_is_out_of_order() {
    let log = TestLog::with_records(3);
    let [first, second, third] = log.lines().try_into().unwrap();
    log.write_lines(&[third, first, second]);
    let numbers = |before| {
        let records = read_records_reversed(&log.path, &format(), before).unwrap();
        records.map(|record| record.unwrap().0).collect::<Vec<_>>()
    };
    assert_eq!(numbers(Some(3)), [2, 1]);
    assert_eq!(numbers(None), [2, 1, 3]);
}

#[test]
fn a_log_that_can_not_be_opened_is_not_taken_for_an_empty_one() {
    let log = TestLog::with_records(2);
    let moved = log.sibling_path(".moved");
    fs::rename(&log.path, &moved).unwrap();
    std::os::unix::fs::symlink(&moved, &log.path).unwrap();
    let error = read(&log.path, &format()).map(|_| ()).unwrap_err();
    assert!(
        matches!(&error, LedgerReadError::File { step: "open", path, .. } if *path == log.path),
        "{error}"
    );
}

#[test]
fn reading_does_not_verify() {
    let log = TestLog::signed_with_records(2);
    let edited = fs::read_to_string(&log.path).unwrap().replace("allowed", "denied!");
    fs::write(&log.path, edited).unwrap();
    assert!(!log.verify().is_sound());
    assert_eq!(read(&log.path, &format()).unwrap().filter(Result::is_ok).count(), 2);
}

#[test]
fn a_log_that_is_not_there_and_a_segment_that_can_not_be_read_are_errors() {
    let log = TestLog::new(options().with_segment_bytes(600));
    assert!(matches!(read(&log.path, &format()), Err(LedgerReadError::NoLog { .. })));
    let mut ledger = log.open();
    for number in 1..=6 {
        ledger.append(receipt(number)).unwrap();
    }
    fs::remove_file(log.sibling_path(".000002")).unwrap();
    fs::create_dir(log.sibling_path(".000002")).unwrap();
    let items: Vec<_> = read(&log.path, &format()).unwrap().collect();
    assert!(
        matches!(items.last(), Some(Err(EntryReadError::Log(LedgerReadError::File { .. })))),
        "{items:?}"
    );
    assert_eq!(items.iter().filter(|item| item.is_err()).count(), 1);
}
