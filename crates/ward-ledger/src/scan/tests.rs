//! The scanner accepts the canonical form of a record, and nothing else.

use super::*;

/// Checks the scanner's answer for a record with one more value.
fn check(value: &str, is_canonical: bool) {
    let text = format!(r#"{{"a":{value},"previous_hash":"p","receipt_hash":"h","sequence":7}}"#);
    let start = text.find(r#""receipt_hash""#).unwrap();
    let expected = ScannedRecord {
        text: text.as_bytes(),
        sequence: 7,
        previous_hash: b"p",
        hash: b"h",
        key_id: None,
        mac: None,
        recovery: None,
        hash_member: start..start + r#""receipt_hash":"h","#.len(),
        mac_member: None,
    };
    let scanned = scan_record(text.as_bytes(), "receipt_hash");
    assert_eq!(scanned, is_canonical.then_some(expected), "{value}");
}

fn nested(levels: usize) -> [String; 2] {
    let objects = (0..levels).fold("1".to_owned(), |inner, _| format!(r#"{{"a":{inner}}}"#));
    [format!("{}1{}", "[".repeat(levels), "]".repeat(levels)), objects]
}

#[test]
fn canonical_values_are_scanned() {
    for value in ["true", "false", "null", "0", "1", "-1", "10", "9007199254740991", "-9007199254740991"] {
        check(value, true);
    }
    for value in ["{}", "[]", "[[],{}]", "[1,true,\"\"]", r#"{"":1,"A":[2],"a":{"b":3}}"#] {
        check(value, true);
    }
    for value in nested(MAX_DEPTH - 1) {
        check(&value, true);
    }
}

#[test]
fn other_values_are_left_to_the_parser() {
    for value in ["tru", "truE", "nul", "fals", "-", "-0", "00", "01", "-01", "+1", "1.5", "1e3", ""] {
        check(value, false);
    }
    for value in ["9007199254740992", "-9007199254740992", "99999999999999999999"] {
        check(value, false);
    }
    for value in ["[1,]", "[,1]", "[1 ,2]", "[1", "{", r#"{"a"}"#, r#"{"a":1,}"#, r#"{"a" :1}"#] {
        check(value, false);
    }
    for value in [r#"{"b":1,"a":1}"#, r#"{"a":1,"a":1}"#, r#"{"é":1}"#, r#"{"\n":1}"#] {
        check(value, false);
    }
    for value in nested(MAX_DEPTH) {
        check(&value, false);
    }
}

#[test]
fn a_character_is_found_at_every_place_of_a_string() {
    for length in 0..20 {
        let before = "x".repeat(length);
        for accepted in ["", "\u{7f}", "é", "😀", r#"\""#, r"\\", r"\b", r"\f", r"\n", r"\r", r"\t"] {
            check(&format!("\"{before}{accepted}{before}\""), true);
        }
        for rejected in ["\u{0}", "\n", "\u{1f}", r"\/", r"\x", r"\u", "\"", "\\"] {
            check(&format!("\"{before}{rejected}{before}x\""), false);
        }
    }
}

#[test]
fn only_control_characters_without_a_short_form_are_escaped_by_number() {
    for code in 0..=0x30 {
        let has_number = code < 0x20 && ![0x08, 0x09, 0x0a, 0x0c, 0x0d].contains(&code);
        check(&format!(r#""\u{code:04x}""#), has_number);
    }
    for value in [r#""\u000B""#, r#""\u00g0""#, r#""\u000g""#, r#""\u0101""#, r#""\u000""#] {
        check(value, false);
    }
}

#[test]
fn bytes_that_are_not_utf_8_are_left_to_the_parser() {
    let mut text = br#"{"a":"xx","previous_hash":"p","receipt_hash":"h","sequence":7}"#.to_vec();
    assert!(scan_record(&text, "receipt_hash").is_some());
    text[6] = 0xff;
    assert_eq!(scan_record(&text, "receipt_hash"), None);
}

#[test]
fn names_are_in_order_and_the_first_may_be_empty() {
    let scan =
        |text: &'static str| scan_record(text.as_bytes(), "receipt_hash").map(|record| record.sequence);
    assert_eq!(scan(r#"{"":1,"previous_hash":"p","receipt_hash":"h","sequence":7}"#), Some(7));
    assert_eq!(scan(r#"{"previous_hash":"p","previous_hash":"p","receipt_hash":"h","sequence":7}"#), None);
    assert_eq!(scan(r#"{"receipt_hash":"h","previous_hash":"p","sequence":7}"#), None);
    assert_eq!(scan(r#"{"previous_hash":"p","receipt_hash":"h","sequence":-7}"#), None);
    assert_eq!(scan("{}"), None);
}

#[test]
fn the_members_of_the_chain_are_cut_out_with_one_comma_each() {
    let check = |text: &str, hash_field: &str, without_hash: &str, without_both: &str| {
        let record = scan_record(text.as_bytes(), hash_field).unwrap();
        assert_eq!(String::from_utf8(record.without_hash().concat()).unwrap(), without_hash);
        assert_eq!(String::from_utf8(record.without_hash_and_mac().concat()).unwrap(), without_both);
    };
    // The hash after the MAC, before the MAC, first and last.
    check(
        r#"{"key_id":"k","mac":"m","previous_hash":"p","receipt_hash":"h","sequence":7}"#,
        "receipt_hash",
        r#"{"key_id":"k","mac":"m","previous_hash":"p","sequence":7}"#,
        r#"{"key_id":"k","previous_hash":"p","sequence":7}"#,
    );
    check(
        r#"{"key_id":"k","l_hash":"h","mac":"m","previous_hash":"p","sequence":7}"#,
        "l_hash",
        r#"{"key_id":"k","mac":"m","previous_hash":"p","sequence":7}"#,
        r#"{"key_id":"k","previous_hash":"p","sequence":7}"#,
    );
    check(
        r#"{"a_hash":"h","previous_hash":"p","sequence":7}"#,
        "a_hash",
        r#"{"previous_hash":"p","sequence":7}"#,
        r#"{"previous_hash":"p","sequence":7}"#,
    );
    check(
        r#"{"key_id":"k","mac":"m","previous_hash":"p","sequence":7,"z_hash":"h"}"#,
        "z_hash",
        r#"{"key_id":"k","mac":"m","previous_hash":"p","sequence":7}"#,
        r#"{"key_id":"k","previous_hash":"p","sequence":7}"#,
    );
}
