//! Forgeries that an attacker without the key makes from records and heads that the holder of the key wrote.

use std::fs;

use serde_json::json;
use ward_ledger::verify::{BreakKind, LogAuthenticity, LogCompleteness};
use ward_ledger::{Ledger, LedgerOpenError, Sha256Hash, parse_object, seal};

use crate::support::{TestLog, format, key, object, options, receipt};

#[test]
fn the_signed_head_of_an_empty_log_vouches_for_no_forgery() {
    let log = TestLog::signed();
    drop(log.open());
    let report = log.verify();
    assert!(report.is_sound(), "{report}");
    assert_eq!(report.authenticity, LogAuthenticity::Signed { key_id: key().id(), from: 1 });
    let head_of_nothing = fs::read(log.sibling_path(".head")).unwrap();
    log.append(2);

    fs::copy(&TestLog::with_records(4).path, &log.path).unwrap();
    fs::write(log.sibling_path(".head"), head_of_nothing).unwrap();
    let report = log.verify();
    assert_eq!(report.completeness, LogCompleteness::Complete { covered: 0, uncovered: 4 });
    assert_eq!(report.authenticity, LogAuthenticity::NotSigned { given: key().id() });
    assert!(!report.is_sound(), "{report}");
    assert!(report.to_string().contains("not signed with key"), "{report}");
    let error = Ledger::open(&log.path, log.options.clone()).unwrap_err();
    assert!(matches!(error, LedgerOpenError::HeadMismatch { .. }), "{error}");
}

#[test]
fn signatures_that_begin_without_an_adoption_vouch_for_nothing_before_them() {
    let log = TestLog::signed();
    drop(log.open());
    let unsigned = TestLog::with_records(2);
    let last = unsigned.verify().last_hash.unwrap();
    let mut lines = unsigned.lines();
    lines.push(seal(&format(), Some(&key()), (3, last), receipt(3)).unwrap().line);
    log.write_lines(&lines);
    let report = log.verify();
    assert_eq!(report.broken, None);
    assert_eq!(report.authenticity, LogAuthenticity::NotAdopted { key_id: key().id(), from: 3 });
    assert!(!report.is_sound(), "{report}");
    assert!(report.to_string().contains("doesn't adopt the records before it"), "{report}");
}

#[test]
fn a_log_that_was_adopted_unsigned_and_without_a_head_says_so_and_is_sound() {
    let mut log = TestLog::with_records(2);
    fs::remove_file(log.sibling_path(".head")).unwrap();
    log.key = Some(key());
    log.options = options().with_key(key()).adopt_unsigned().adopt_without_head();
    drop(log.open());
    assert_eq!(log.recovery_records(), [(3, json!({"head": "replaced"}))]);
    let report = log.verify();
    assert_eq!(report.authenticity, LogAuthenticity::Signed { key_id: key().id(), from: 3 });
    assert!(report.is_sound(), "{report}");
}

#[test]
fn a_record_does_not_pass_for_a_head() {
    let log = TestLog::signed_with_records(3);
    let third = log.verify().last_hash.unwrap();
    let looks_like_a_head = object(json!({"count": 3, "hash": third.to_string(), "segment": 1}));
    log.open().append(looks_like_a_head).unwrap();
    let lines = log.lines();
    let mut record = parse_object(lines[3].trim_ascii()).unwrap();
    record.remove("receipt_hash");
    log.write_lines(&lines[..3]);
    fs::write(log.sibling_path(".head"), serde_json::to_string(&record).unwrap()).unwrap();
    assert_eq!(
        log.verify().completeness,
        LogCompleteness::HeadUnreadable,
        "it has members that a head doesn't have"
    );
    assert!(!log.verify().is_sound());
    assert!(Ledger::open(&log.path, log.options.clone()).is_err());

    // A record that is reduced to the members of a head isn't accepted either.
    record.retain(|name, _| ["count", "hash", "segment", "key_id", "mac"].contains(&name.as_str()));
    fs::write(log.sibling_path(".head"), serde_json::to_string(&record).unwrap()).unwrap();
    assert_eq!(log.verify().completeness, LogCompleteness::HeadForged);
}

#[test]
fn a_head_with_extra_members_is_rejected() {
    for log in [TestLog::with_records(2), TestLog::signed_with_records(2)] {
        let head = log.sibling_path(".head");
        let good = fs::read_to_string(&head).unwrap();
        assert!(log.verify().is_sound());
        for member in ["\"more\":1,", "\"key_id\":7,", "\"mac\":null,", "\"key_id\":null,\"mac\":null,"] {
            fs::write(&head, good.replacen('{', &format!("{{{member}"), 1)).unwrap();
            assert_eq!(log.verify().completeness, LogCompleteness::HeadUnreadable, "{member}");
            let error = Ledger::open(&log.path, log.options.clone()).unwrap_err();
            assert!(matches!(error, LedgerOpenError::HeadMissing { .. }), "{error}");
        }
    }
}

#[test]
fn a_head_signature_is_not_valid_for_a_record() {
    // The MAC of a record and the MAC of a head start with different labels.
    let log = TestLog::signed_with_records(1);
    let mut record = parse_object(log.lines()[0].trim_ascii()).unwrap();
    let stated = record.remove("mac").unwrap();
    record.remove("receipt_hash");
    let message = ward_ledger::canonical_json(&record).unwrap();
    assert_eq!(stated, compute_hmac(&[b"record\0", &message]));

    let mut head = parse_object(fs::read(log.sibling_path(".head")).unwrap().trim_ascii()).unwrap();
    let stated = head.remove("mac").unwrap();
    let message = ward_ledger::canonical_json(&head).unwrap();
    assert_eq!(stated, compute_hmac(&[b"head\0", &message]));
}

/// Computes HMAC-SHA256 with the test key, following the definition in RFC 2104.
fn compute_hmac(pieces: &[&[u8]]) -> String {
    let (mut inner, mut outer) = ([0x36; 64], [0x5c; 64]);
    for at in 0..32 {
        inner[at] ^= 42;
        outer[at] ^= 42;
    }
    let inner = Sha256Hash::of(&[&[inner.as_slice()], pieces].concat());
    Sha256Hash::of(&[&outer, inner.as_bytes()]).to_string()
}

#[test]
fn a_line_that_is_not_canonical_is_edited() {
    type SpellingChange = (&'static str, &'static str);
    let respellings: [SpellingChange; 6] = [
        (",", " ,\t "),
        ("{", "{                    "),
        ("\"status\"", "\"\\u0073tatus\""),
        ("allowed", "\\u0061llowed"),
        ("é", "\\u00e9"),
        ("}\n", "}\r\n"),
    ];
    for new_log in [TestLog::with_records, TestLog::signed_with_records] {
        for number in [1, 2, 3_usize] {
            for (from, to) in respellings {
                let log = new_log(3);
                let mut ledger = log.open();
                let mut lines = log.lines();
                let text = String::from_utf8(lines[number - 1].clone()).unwrap();
                assert!(text.contains(from));
                lines[number - 1] = text.replacen(from, to, 1).into_bytes();
                log.write_lines(&lines);
                let found = log.verify().broken.unwrap_or_else(|| panic!("{from} as {to} is not noticed"));
                assert_eq!((found.kind, found.sequence), (BreakKind::Edited, number as u64));
                assert_eq!(found.detail, "it is not in canonical form");
                if number == 3 {
                    let error = Ledger::open(&log.path, log.options.clone()).unwrap_err();
                    assert!(matches!(error, LedgerOpenError::LastRecordDamaged { .. }), "{error}");
                    assert!(ledger.append(receipt(4)).is_err());
                }
            }
        }
    }
}

#[test]
fn a_respelled_line_in_another_place_is_classified_by_its_place() {
    type CopyPlacement = fn(&mut Vec<Vec<u8>>, Vec<u8>);
    let changes: [(CopyPlacement, (BreakKind, u64)); 4] = [
        (|lines, copy| lines.insert(2, copy), (BreakKind::Inserted, 3)),
        (|lines, copy| lines.insert(5, copy), (BreakKind::Inserted, 6)),
        (|lines, copy| drop(lines.splice(2..4, [copy])), (BreakKind::Removed, 3)),
        (|lines, copy| drop(lines.splice(2..4, [copy, lines[2].clone()])), (BreakKind::Reordered, 3)),
    ];
    for (change, expected) in changes {
        let log = TestLog::with_records(5);
        let mut lines = log.lines();
        let copy = String::from_utf8(lines[3].clone()).unwrap().replacen(',', ", ", 1).into_bytes();
        change(&mut lines, copy);
        log.write_lines(&lines);
        let found = log.verify().broken.unwrap();
        assert_eq!((found.kind, found.sequence), expected, "{found}");
    }
}

#[test]
fn names_with_escapes_or_beyond_ascii_are_canonical_too() {
    let fields = object(json!({"é": 1, "\u{1}": {"😀": [], "\u{ff5e}": {}}, "\"": "\u{7f}"}));
    for log in [TestLog::new(options()), TestLog::signed()] {
        log.open().append_all(vec![fields.clone(), fields.clone()]).unwrap();
        assert!(log.verify().is_sound(), "{}", log.verify());
    }
}
