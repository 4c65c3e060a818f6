//! Every change to a log is detected and classified, however well it was covered up.

use std::fs;

use proptest::prelude::*;
use serde_json::json;
use ward_ledger::verify::{BreakKind, ChainBreak, LogAuthenticity, LogCompleteness, TornLine, verify};
use ward_ledger::{
    Ledger, LedgerFormat, LedgerKey, MAX_RECORD_BYTES, Sha256Hash, canonical_json, parse_object, seal,
};

use crate::support::{TestLog, format, key, options, receipt};

/// Returns the kind and record number of the first break.
fn first_break(log: &TestLog) -> Option<(BreakKind, u64)> {
    let report = log.verify();
    assert!(report.broken.is_none() || !report.is_sound());
    report.broken.map(|broken| (broken.kind, broken.sequence))
}

fn replace_text(line: &[u8], from: &str, to: &str) -> Vec<u8> {
    let text = String::from_utf8(line.to_vec()).unwrap();
    assert!(text.contains(from), "{text} has no {from}");
    text.replacen(from, to, 1).into_bytes()
}

/// Returns the line with a new hash that matches its content. The MAC, if any, stays as it is.
fn rehash(line: &[u8]) -> Vec<u8> {
    let mut record = parse_object(line.trim_ascii()).unwrap();
    record.remove("receipt_hash");
    let hash = Sha256Hash::of(&[&canonical_json(&record).unwrap()]);
    record.insert("receipt_hash".into(), hash.to_string().into());
    let mut line = canonical_json(&record).unwrap();
    line.push(b'\n');
    line
}

#[test]
fn an_untouched_log_is_sound() {
    let report = TestLog::with_records(3).verify();
    assert!(report.is_sound());
    assert_eq!((report.records, report.segments), (3, 1));
    assert_eq!(report.completeness, LogCompleteness::Complete { covered: 3, uncovered: 0 });
    assert_eq!(report.authenticity, LogAuthenticity::Unsigned);
    let report = TestLog::signed_with_records(3).verify();
    assert!(report.is_sound());
    assert_eq!(report.authenticity, LogAuthenticity::Signed { key_id: key().id(), from: 1 });
}

#[test]
fn an_edited_second_receipt_of_three_is_named() {
    for log in [TestLog::with_records(3), TestLog::signed_with_records(3)] {
        let mut lines = log.lines();
        lines[1] = replace_text(&lines[1], "allowed", "denied");
        log.write_lines(&lines);
        assert_eq!(first_break(&log), Some((BreakKind::Edited, 2)));
        let place = log.verify().broken.unwrap();
        assert_eq!((place.segment.as_str(), place.line), ("receipts.jsonl", 2));
    }
}

#[test]
fn an_edited_receipt_with_a_new_hash_is_named() {
    for log in [TestLog::with_records(3), TestLog::signed_with_records(3)] {
        let mut lines = log.lines();
        lines[1] = rehash(&replace_text(&lines[1], "allowed", "denied"));
        log.write_lines(&lines);
        assert_eq!(first_break(&log), Some((BreakKind::Edited, 2)));
    }
}

#[test]
fn a_chain_rewritten_from_an_edit_on_does_not_match_its_head() {
    let log = TestLog::with_records(5);
    let mut lines = log.lines();
    let mut previous = Sha256Hash::GENESIS;
    for (index, line) in lines.iter_mut().enumerate() {
        let mut fields = receipt(index as u64 + 1);
        if index == 2 {
            fields.insert("status".into(), "denied".into());
        }
        let sealed = seal(&format(), None, (index as u64 + 1, previous), fields).unwrap();
        (*line, previous) = (sealed.line, sealed.hash);
    }
    log.write_lines(&lines);
    assert_eq!(first_break(&log), Some((BreakKind::Edited, 5)));
}

#[test]
fn every_structural_change_is_classified() {
    type LineEdit = fn(&mut Vec<Vec<u8>>);
    let changes: [(&str, LineEdit, (BreakKind, u64)); 14] = [
        ("first removed", |lines| drop(lines.remove(0)), (BreakKind::Removed, 1)),
        ("fourth removed", |lines| drop(lines.remove(3)), (BreakKind::Removed, 4)),
        ("three removed", |lines| drop(lines.drain(2..5)), (BreakKind::Removed, 3)),
        ("last removed", |lines| drop(lines.pop()), (BreakKind::Truncated, 8)),
        ("all removed", Vec::clear, (BreakKind::Truncated, 1)),
        ("neighbours swapped", |lines| lines.swap(2, 3), (BreakKind::Reordered, 3)),
        ("far ones swapped", |lines| lines.swap(0, 7), (BreakKind::Reordered, 1)),
        (
            "moved up",
            |lines| {
                let line = lines.remove(6);
                lines.insert(1, line);
            },
            (BreakKind::Reordered, 2),
        ),
        (
            "moved down",
            |lines| {
                let line = lines.remove(1);
                lines.insert(6, line);
            },
            (BreakKind::Reordered, 2),
        ),
        ("repeated at once", |lines| lines.insert(3, lines[2].clone()), (BreakKind::Inserted, 4)),
        ("repeated later", |lines| lines.insert(7, lines[1].clone()), (BreakKind::Inserted, 8)),
        ("repeated before", |lines| lines.insert(1, lines[6].clone()), (BreakKind::Inserted, 2)),
        (
            "cut line",
            |lines| {
                lines[4].truncate(50);
                lines[4].push(b'\n');
            },
            (BreakKind::Truncated, 5),
        ),
        ("garbage", |lines| lines.insert(2, b"garbage\n".to_vec()), (BreakKind::NotJson, 3)),
    ];
    for new_log in [TestLog::with_records, TestLog::signed_with_records] {
        for (name, change, expected) in &changes {
            let log = new_log(8);
            let mut lines = log.lines();
            change(&mut lines);
            log.write_lines(&lines);
            assert_eq!(first_break(&log), Some(*expected), "{name}");
        }
    }
}

#[test]
fn a_forged_record_in_between_is_inserted() {
    for log in [TestLog::with_records(5), TestLog::signed_with_records(5)] {
        let mut lines = log.lines();
        let second = parse_object(lines[1].trim_ascii()).unwrap();
        let previous = Sha256Hash::from_hex(second["receipt_hash"].as_str().unwrap().as_bytes()).unwrap();
        let one = seal(&format(), None, (3, previous), receipt(77)).unwrap();
        let two = seal(&format(), None, (4, one.hash), receipt(78)).unwrap();
        lines.insert(2, one.line);
        lines.insert(3, two.line);
        log.write_lines(&lines);
        assert_eq!(first_break(&log), Some((BreakKind::Inserted, 3)));
        assert_eq!(log.verify().broken.unwrap().line, 3);
    }
}

#[test]
fn a_log_cut_at_its_end_is_truncated_and_not_torn() {
    for log in [TestLog::with_records(5), TestLog::signed_with_records(5)] {
        let bytes = fs::read(&log.path).unwrap();
        fs::write(&log.path, &bytes[..bytes.len() - 1]).unwrap();
        assert_eq!(first_break(&log), Some((BreakKind::Truncated, 5)));
        assert!(log.verify().torn.is_some());
        assert_eq!(log.verify().completeness, LogCompleteness::Cut { covered: 5, found: 4 });
        fs::remove_file(&log.path).unwrap();
        assert_eq!(first_break(&log), Some((BreakKind::Truncated, 1)));
    }
}

#[test]
fn a_torn_last_line_is_distinguished_from_a_cut() {
    let log = TestLog::with_records(2);
    let mut bytes = fs::read(&log.path).unwrap();
    bytes.extend_from_slice(b"{\"id\":\"rec");
    fs::write(&log.path, &bytes).unwrap();
    let report = log.verify();
    assert!(report.is_sound());
    assert_eq!(report.torn.unwrap().bytes, 10);
}

#[test]
fn a_signed_log_replaced_by_an_unsigned_one_is_detected() {
    let log = TestLog::signed_with_records(4);
    let unsigned = TestLog::with_records(4);
    fs::copy(&unsigned.path, &log.path).unwrap();
    assert_eq!(first_break(&log), Some((BreakKind::Edited, 4)));
    fs::copy(unsigned.sibling_path(".head"), log.sibling_path(".head")).unwrap();
    assert_eq!(log.verify().completeness, LogCompleteness::HeadForged);
    assert!(!log.verify().is_sound());
    fs::remove_file(log.sibling_path(".head")).unwrap();
    assert_eq!(log.verify().completeness, LogCompleteness::HeadMissing);
    assert!(!log.verify().is_sound());
}

#[test]
fn a_stripped_signature_is_an_edit_and_an_unsigned_record_at_the_end_an_insertion() {
    let log = TestLog::signed_with_records(4);
    let good = log.lines();
    let mut lines = good.clone();
    let mut record = parse_object(lines[2].trim_ascii()).unwrap();
    record.remove("mac");
    record.remove("key_id");
    lines[2] = rehash(&canonical_json(&record).unwrap());
    log.write_lines(&lines);
    assert_eq!(first_break(&log), Some((BreakKind::Edited, 3)));

    let last = parse_object(good[3].trim_ascii()).unwrap();
    let last = Sha256Hash::from_hex(last["receipt_hash"].as_str().unwrap().as_bytes()).unwrap();
    let mut lines = good;
    lines.push(seal(&format(), None, (5, last), receipt(5)).unwrap().line);
    log.write_lines(&lines);
    assert_eq!(first_break(&log), Some((BreakKind::Inserted, 5)));
}

#[test]
fn a_forged_head_is_detected() {
    let log = TestLog::signed_with_records(4);
    let head = log.sibling_path(".head");
    let text = fs::read_to_string(&head).unwrap();
    fs::write(&head, text.replace("\"count\":4", "\"count\":3")).unwrap();
    assert_eq!(log.verify().completeness, LogCompleteness::HeadForged);
    fs::write(&head, "nonsense").unwrap();
    assert_eq!(log.verify().completeness, LogCompleteness::HeadUnreadable);
}

#[test]
fn wrong_or_missing_key_is_reported() {
    let log = TestLog::signed_with_records(2);
    let other = LedgerKey::from_bytes(&[1; 32]);
    let report = verify(&log.path, &format(), Some(&other)).unwrap();
    assert_eq!(report.broken.map(|broken| broken.kind), Some(BreakKind::WrongKey));
    let report = verify(&log.path, &format(), None).unwrap();
    assert_eq!(report.broken, None);
    assert_eq!(report.authenticity, LogAuthenticity::NoKey { key_id: key().id() });
    assert!(!report.is_sound());
}

#[test]
fn a_change_of_keys_is_detected_without_any_key() {
    let log = TestLog::new(options());
    let one = seal(&format(), Some(&key()), (1, Sha256Hash::GENESIS), receipt(1)).unwrap();
    let two = seal(&format(), Some(&LedgerKey::from_bytes(&[1; 32])), (2, one.hash), receipt(2)).unwrap();
    log.write_lines(&[one.line, two.line]);
    assert_eq!(first_break(&log), Some((BreakKind::WrongKey, 2)));
}

#[test]
fn a_forged_record_that_does_not_even_link_is_inserted() {
    let log = TestLog::with_records(4);
    let mut lines = log.lines();
    lines.insert(2, seal(&format(), None, (3, Sha256Hash::GENESIS), receipt(3)).unwrap().line);
    log.write_lines(&lines);
    assert_eq!(first_break(&log), Some((BreakKind::Inserted, 3)));
    assert_eq!(log.verify().broken.unwrap().line, 3);
}

#[test]
fn records_of_another_format_are_rejected() {
    let log = TestLog::with_records(2);
    let audit = LedgerFormat::new("event_hash").unwrap();
    let report = verify(&log.path, &audit, None).unwrap();
    assert!(report.broken.unwrap().detail.contains("`event_hash`"));
    let error = Ledger::open(&log.path, ward_ledger::LedgerOptions::new(audit)).unwrap_err();
    assert!(error.to_string().contains("event_hash"), "{error}");
}

#[test]
fn a_missing_segment_is_named() {
    let log = TestLog::new(options().with_segment_bytes(1500));
    let mut ledger = log.open();
    for number in 1..=20 {
        ledger.append(receipt(number)).unwrap();
    }
    assert!(log.verify().is_sound());
    assert!(log.verify().segments >= 4, "{:?}", log.file_names());
    fs::rename(log.sibling_path(".000002"), log.folder.path().join("aside")).unwrap();
    let found = log.verify().broken.unwrap();
    assert_eq!(found.kind, BreakKind::Removed);
    assert!(found.detail.contains("segment 000002"), "{found}");
    assert_eq!(found.segment, "receipts.jsonl.000003");
    fs::rename(log.folder.path().join("aside"), log.sibling_path(".000002")).unwrap();
    assert!(log.verify().is_sound());

    let second = fs::read(log.sibling_path(".000002")).unwrap();
    fs::write(log.sibling_path(".000002"), &second[..second.len() - 9]).unwrap();
    assert_eq!(log.verify().broken.unwrap().kind, BreakKind::Truncated);
    fs::write(log.sibling_path(".000002"), &second).unwrap();
    fs::remove_file(&log.path).unwrap();
    assert_eq!(log.verify().broken.unwrap().kind, BreakKind::Truncated);
}

#[test]
fn a_duplicate_member_is_an_edit() {
    let log = TestLog::signed_with_records(3);
    let mut lines = log.lines();
    lines[1] = replace_text(&lines[1], "\"sequence\"", "\"status\":\"denied\",\"sequence\"");
    log.write_lines(&lines);
    assert_eq!(first_break(&log), Some((BreakKind::Edited, 2)));
}

#[test]
fn report_is_readable_as_text_and_json() {
    let log = TestLog::with_records(3);
    let mut lines = log.lines();
    lines[1] = replace_text(&lines[1], "allowed", "denied");
    log.write_lines(&lines);
    let report = log.verify();
    let hash = report.last_hash.unwrap();
    assert_eq!(
        report.to_string().replace(&log.path.display().to_string(), "LOG"),
        format!(
            "LOG: 1 sound record in 1 segment\n\
             integrity:    broken at record 2 (receipts.jsonl, line 2), edited: its hash doesn't match its content\n\
             completeness: not checked after the break; the head covers 3 records\n\
             authenticity: not signed: anybody who can write the files can rewrite the log\n\
             last hash:    {hash}"
        )
    );
    let report = serde_json::to_value(&report).unwrap();
    assert_eq!(report["broken"]["kind"], "edited");
    assert_eq!(report["completeness"], json!({"not_reached": {"covered": 3}}));
}

/// A change to the lines of a log.
#[derive(Clone, Debug)]
enum LogMutation {
    Flip(usize, u8),
    Delete(usize),
    Swap(usize, usize),
    Duplicate(usize, usize),
    Insert(usize, Vec<u8>),
    CutMiddle(usize, usize),
    CutTail(usize),
}

fn mutation_strategy() -> impl Strategy<Value = LogMutation> {
    let number = any::<usize>;
    prop_oneof![
        (number(), 1u8..).prop_map(|(at, by)| LogMutation::Flip(at, by)),
        number().prop_map(LogMutation::Delete),
        (number(), number()).prop_map(|(one, other)| LogMutation::Swap(one, other)),
        (number(), number()).prop_map(|(from, to)| LogMutation::Duplicate(from, to)),
        (number(), proptest::collection::vec(any::<u8>(), 0..80))
            .prop_map(|(at, line)| LogMutation::Insert(at, line)),
        (number(), 1usize..400).prop_map(|(at, length)| LogMutation::CutMiddle(at, length)),
        (1usize..2000).prop_map(LogMutation::CutTail),
    ]
}

/// Applies the change. Returns the kinds of break that may be reported for it, or none if the change has no
/// effect.
fn apply_mutation(change: &LogMutation, lines: &mut Vec<Vec<u8>>) -> Vec<BreakKind> {
    use BreakKind::{Edited, Inserted, NotJson, Removed, Reordered, Truncated};
    let count = lines.len();
    match change {
        LogMutation::Delete(at) => {
            lines.remove(at % count);
            vec![if at % count == count - 1 { Truncated } else { Removed }]
        }
        LogMutation::Swap(one, other) if one % count == other % count => Vec::new(),
        LogMutation::Swap(one, other) => {
            lines.swap(one % count, other % count);
            vec![Reordered]
        }
        LogMutation::Duplicate(from, to) => {
            lines.insert(to % (count + 1), lines[from % count].clone());
            vec![Inserted]
        }
        LogMutation::Insert(at, line) => {
            let mut line = line.clone();
            line.push(b'\n');
            lines.insert(at % (count + 1), line);
            vec![NotJson, Truncated, Inserted]
        }
        LogMutation::Flip(at, by) => {
            let mut bytes = lines.concat();
            let at = at % bytes.len();
            bytes[at] ^= by;
            *lines = vec![bytes];
            vec![Edited, NotJson, Truncated]
        }
        LogMutation::CutMiddle(at, length) => {
            let bytes = lines.concat();
            let at = at % bytes.len();
            let end = (at + length).min(bytes.len());
            *lines = vec![[&bytes[..at], &bytes[end..]].concat()];
            vec![Edited, NotJson, Truncated, Removed]
        }
        LogMutation::CutTail(length) => {
            let bytes = lines.concat();
            *lines = vec![bytes[..bytes.len().saturating_sub(*length)].to_vec()];
            vec![Truncated]
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn every_change_is_detected_and_classified(signed: bool, change in mutation_strategy()) {
        thread_local! {
            static LOGS: [TestLog; 2] = [TestLog::with_records(9), TestLog::signed_with_records(9)];
        }
        LOGS.with(|logs| {
            let log = &logs[usize::from(signed)];
            let good = log.lines();
            let mut lines = good.clone();
            let kinds = apply_mutation(&change, &mut lines);
            log.write_lines(&lines);
            let report = log.verify();
            log.write_lines(&good);
            let harmless = kinds.is_empty() || lines.concat() == good.concat();
            prop_assert_eq!(report.is_sound(), harmless, "{}", report);
            if let Some(broken) = report.broken {
                prop_assert!(kinds.contains(&broken.kind), "{} is none of {:?}", broken, kinds);
            }
            Ok(())
        })?;
    }

    #[test]
    fn no_bytes_make_the_verifier_panic(
        bytes in proptest::collection::vec(any::<u8>(), 0..600),
        head in proptest::collection::vec(any::<u8>(), 0..600),
    ) {
        let log = TestLog::new(options());
        fs::write(&log.path, &bytes).unwrap();
        fs::write(log.sibling_path(".head"), &head).unwrap();
        let report = log.verify();
        prop_assert!(report.records == 0);
        drop(Ledger::open(&log.path, options()));
    }
}

#[test]
fn a_line_longer_than_any_record_is_skipped_in_bounded_memory() {
    let log = TestLog::with_records(2);
    let mut lines = log.lines();
    lines.insert(1, [vec![b'x'; 9 << 20], b"\n".to_vec()].concat());
    log.write_lines(&lines);
    assert_eq!(first_break(&log), Some((BreakKind::Inserted, 2)));
    // The same line at the end, without its newline.
    let torn = lines.remove(1);
    lines.push(torn[..torn.len() - 1].to_vec());
    log.write_lines(&lines);
    let found = TornLine { segment: "receipts.jsonl".to_owned(), line: 3, bytes: 9 << 20 };
    assert_eq!(log.verify().torn, Some(found));
}

#[test]
fn a_line_as_long_as_a_record_is_still_parsed() {
    let log = TestLog::with_records(2);
    let mut lines = log.lines();
    lines.insert(0, [vec![b'x'; MAX_RECORD_BYTES], b"\n".to_vec()].concat());
    log.write_lines(&lines);
    assert_eq!(first_break(&log), Some((BreakKind::NotJson, 1)));
}

#[test]
fn a_missing_end_is_placed_after_the_last_line() {
    let log = TestLog::with_records(3);
    log.write_lines(&log.lines()[..2]);
    let expected = |segment: &str, line, found: u64| ChainBreak {
        kind: BreakKind::Truncated,
        segment: segment.to_owned(),
        line,
        sequence: found + 1,
        detail: format!("the head covers 3 records, but the log has {found}"),
    };
    assert_eq!(log.verify().broken, Some(expected("receipts.jsonl", 3, 2)));
    log.write_lines(&[]);
    assert_eq!(log.verify().broken, Some(expected("receipts.jsonl", 1, 0)));
}

#[test]
fn a_forged_branch_is_named_by_its_first_record() {
    let log = TestLog::with_records(140);
    let mut lines = log.lines();
    let before = parse_object(&lines[89]).unwrap();
    let mut hash = Sha256Hash::from_hex(before["receipt_hash"].as_str().unwrap().as_bytes()).unwrap();
    let mut forged = Vec::new();
    for number in 91..=140 {
        let sealed = seal(&format(), None, (number, hash), receipt(0)).unwrap();
        (hash, _) = (sealed.hash, forged.push(sealed.line));
    }
    lines.splice(90..90, forged);
    log.write_lines(&lines);
    // With the head, the last forged record would give the branch away.
    fs::remove_file(log.sibling_path(".head")).unwrap();
    let found = log.verify().broken.unwrap();
    assert_eq!((found.kind, found.line, found.sequence), (BreakKind::Inserted, 91, 91), "{found}");
}

#[test]
fn a_record_that_continues_the_chain_twice_still_shows_an_insertion() {
    let log = TestLog::with_records(3);
    let [first, second, third] = log.lines().try_into().unwrap();
    let inserted = String::from_utf8(second.clone()).unwrap().replace("allowed", "denied!").into_bytes();
    log.write_lines(&[first, inserted, second.clone(), second, third]);
    assert_eq!(first_break(&log), Some((BreakKind::Inserted, 2)));
}
