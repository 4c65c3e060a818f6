//! The canonical scanner and the parser never disagree about a line.

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use serde_json::{Map, Value};

use super::*;
use crate::canonical::{MAX_SAFE_INTEGER, canonical_json};
use crate::chain::{seal, seal_unrestricted};

fn readers() -> [RecordReader; 2] {
    let format = LedgerFormat::new("receipt_hash").unwrap();
    [RecordReader::new(&format, None), RecordReader::new(&format, Some(&LedgerKey::from_bytes(&[3; 32])))]
}

/// Generates member names that sort before, between and after the members of the chain.
fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z]{1,3}",
        Just("zz".to_owned()),
        Just("A".to_owned()),
        Just("n".to_owned()),
        any::<String>()
    ]
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-MAX_SAFE_INTEGER..=MAX_SAFE_INTEGER).prop_map(Value::from),
        (-3i64..3).prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        "[ -~]{0,20}".prop_map(Value::from),
        "[\\x00-\\x1f\"\\\\]{0,4}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            btree_map(name(), inner, 0..4).prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn fields() -> impl Strategy<Value = Map<String, Value>> {
    btree_map(name(), value(), 0..6).prop_map(|members| members.into_iter().collect())
}

/// Checks that the scanner and the parser return the same result, if the scanner accepts the line.
fn assert_readers_agree(line: &[u8]) -> Result<(), TestCaseError> {
    for reader in readers() {
        if let Some((record, length)) = reader.read_canonical(line) {
            let text = line.get(..length).unwrap();
            prop_assert_eq!(reader.read_by_parsing(text), Ok(record));
            let canonical = canonical_json(&canonical::parse_object(text).unwrap()).unwrap();
            prop_assert_eq!(canonical, text, "accepted, but not canonical");
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn a_sealed_record_is_read_the_same_both_ways(fields in fields(), signed: bool, changed: bool) {
        let key = LedgerKey::from_bytes(&[if changed { 4 } else { 3 }; 32]);
        let format = LedgerFormat::new("receipt_hash").unwrap();
        let sealed = seal(&format, signed.then_some(&key), (7, Sha256Hash::of(&[b"before"])), fields).unwrap();
        let line = sealed.line.strip_suffix(b"\n").unwrap();
        assert_readers_agree(line)?;
        let [without_key, with_key] = readers();
        let previous_hash = Sha256Hash::of(&[b"before"]);
        let expected = |own| Ok(CheckedRecord { sequence: 7, previous_hash, hash: sealed.hash, integrity: own, is_adoption: false });
        let (checked_without_key, checked_with_key) = match (signed, changed) {
            (false, _) => (RecordIntegrity::Unsigned, RecordIntegrity::Unsigned),
            (true, false) => (RecordIntegrity::Unchecked(key.id()), RecordIntegrity::Signed(key.id())),
            (true, true) => (RecordIntegrity::Unchecked(key.id()), RecordIntegrity::Unchecked(key.id())),
        };
        prop_assert_eq!(without_key.read(line), expected(checked_without_key));
        prop_assert_eq!(with_key.read(line), expected(checked_with_key));
    }

    #[test]
    fn a_damaged_record_is_read_the_same_both_ways(fields in fields(), at: usize, byte: u8, insert: bool) {
        let format = LedgerFormat::new("receipt_hash").unwrap();
        let mut line = seal(&format, None, (1, Sha256Hash::GENESIS), fields).unwrap().line;
        line.pop();
        let at = at % line.len();
        if insert { line.insert(at, byte) } else { line[at] = byte }
        assert_readers_agree(&line)?;
    }

    #[test]
    fn any_text_is_read_the_same_both_ways(line in "\\{(\"[a-c]\":[-0-9{}\\[\\],\"a-c]{0,6},?){0,4}\\}") {
        assert_readers_agree(line.as_bytes())?;
    }
}

#[test]
fn ordinary_records_use_the_canonical_scanner() {
    let format = LedgerFormat::new("receipt_hash").unwrap();
    for name in ["a", "m", "n", "r", "s", "zz"] {
        let fields: Map<String, Value> = [(name.to_owned(), Value::from("é \"x\" \n"))].into_iter().collect();
        for key in [None, Some(&LedgerKey::from_bytes(&[3; 32]))] {
            let line = seal(&format, key, (1, Sha256Hash::GENESIS), fields.clone()).unwrap().line;
            let [_, reader] = readers();
            let (record, length) = reader.read_canonical(&line).unwrap();
            assert_eq!(length + 1, line.len());
            assert!(matches!(record.integrity, RecordIntegrity::Unsigned | RecordIntegrity::Signed(_)));
        }
    }
}

#[test]
fn a_record_in_another_spelling_is_not_canonical() {
    let format = LedgerFormat::new("receipt_hash").unwrap();
    let nested = serde_json::json!({"x": 1, "y": [10, "\u{8}/é"]});
    let fields: Map<String, Value> =
        [("a".to_owned(), nested), ("b".to_owned(), Value::Null)].into_iter().collect();
    let line =
        String::from_utf8(seal(&format, None, (1, Sha256Hash::GENESIS), fields).unwrap().line).unwrap();
    let line = line.trim_end();
    let [reader, _] = readers();
    let (record, _) = reader.read_canonical(line.as_bytes()).unwrap();
    for (from, to) in [
        (r"\b", r"\u0008"),
        ("/", r"\/"),
        ("é", r"\u00e9"),
        (r#""a""#, r#""\u0061""#),
        (r#""x":1,"#, r#""x": 1,"#),
        (r#""x":1,"y":[10,"\b/é"]"#, r#""y":[10,"\b/é"],"x":1"#),
    ] {
        let other = line.replacen(from, to, 1);
        assert_ne!(other, line, "{from}");
        assert_eq!(reader.read_canonical(other.as_bytes()), None, "{other}");
        let respelled = CheckedRecord { integrity: RecordIntegrity::NotCanonical, ..record };
        assert_eq!(reader.read(other.as_bytes()), Ok(respelled), "{other}");
    }
    for (from, to) in [
        (r#""b":null"#, r#""b":null,"b":null"#),
        (r#""x":1"#, r#""x":1,"x":1"#),
        ("10", "010"),
        ("10", "10.0"),
        ("10", "-0"),
        ("10", "9007199254740992"),
        ("10", "[".repeat(40).as_str()),
    ] {
        let other = line.replacen(from, to, 1);
        assert_eq!(reader.read_canonical(other.as_bytes()), None, "{other}");
        assert!(reader.read(other.as_bytes()).is_err(), "{other}");
    }
}

#[test]
fn only_a_report_about_adopted_records_is_an_adoption() {
    let format = LedgerFormat::new("receipt_hash").unwrap();
    let is_adoption = |head: Value| {
        let fields = [(RECOVERY_FIELD.to_owned(), serde_json::json!({ "head": head }))].into_iter().collect();
        let line = seal_unrestricted(&format, None, (3, Sha256Hash::GENESIS), fields).unwrap().line;
        let line = line.strip_suffix(b"\n").unwrap();
        let [reader, _] = readers();
        let (scanned, _) = reader.read_canonical(line).unwrap();
        assert_eq!(reader.read_by_parsing(line), Ok(scanned));
        scanned.is_adoption
    };
    assert!(is_adoption("signed".into()) && is_adoption("replaced".into()));
    assert!(!is_adoption("in_order".into()) && !is_adoption("begun".into()) && !is_adoption(Value::Null));
    assert!(!is_adoption(serde_json::json!({"brought_forward": {"from": 1, "to": 2}})));
}

#[test]
fn half_a_signature_is_no_record() {
    let (format, key) = (LedgerFormat::new("receipt_hash").unwrap(), LedgerKey::from_bytes(&[3; 32]));
    let sealed = seal(&format, Some(&key), (7, Sha256Hash::of(&[b"before"])), Map::new()).unwrap();
    let whole = canonical::parse_object(sealed.line.strip_suffix(b"\n").unwrap()).unwrap();
    for missing in [KEY_ID, MAC] {
        let mut half = whole.clone();
        half.remove(missing).unwrap();
        let line = canonical_json(&half).unwrap();
        for reader in readers() {
            assert_eq!(reader.read(&line), Err(RecordParseError::missing_member(missing)));
        }
    }
}
