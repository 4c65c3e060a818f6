//! Canonical JSON, checked with the test vectors of RFC 8785.

use serde_json::{Map, Value, json};
use ward_ledger::{
    JsonValueError, LedgerFormat, MAX_RECORD_BYTES, RecordParseError, SealError, Sha256Hash, canonical_json,
    parse_object, seal,
};

use crate::support::{format, key, object};

fn canonicalize(text: &str) -> String {
    String::from_utf8(canonical_json(&parse_object(text.as_bytes()).unwrap()).unwrap()).unwrap()
}

#[test]
fn the_canonicalizer_writes_the_numbers_of_appendix_b() {
    let table: [(u64, &str); 24] = [
        (0x0000_0000_0000_0000, "0"),
        (0x8000_0000_0000_0000, "0"),
        (0x0000_0000_0000_0001, "5e-324"),
        (0x8000_0000_0000_0001, "-5e-324"),
        (0x7fef_ffff_ffff_ffff, "1.7976931348623157e+308"),
        (0xffef_ffff_ffff_ffff, "-1.7976931348623157e+308"),
        (0x4340_0000_0000_0000, "9007199254740992"),
        (0xc340_0000_0000_0000, "-9007199254740992"),
        (0x4430_0000_0000_0000, "295147905179352830000"),
        (0x44b5_2d02_c7e1_4af5, "9.999999999999997e+22"),
        (0x44b5_2d02_c7e1_4af6, "1e+23"),
        (0x44b5_2d02_c7e1_4af7, "1.0000000000000001e+23"),
        (0x444b_1ae4_d6e2_ef4e, "999999999999999700000"),
        (0x444b_1ae4_d6e2_ef4f, "999999999999999900000"),
        (0x444b_1ae4_d6e2_ef50, "1e+21"),
        (0x3eb0_c6f7_a0b5_ed8c, "9.999999999999997e-7"),
        (0x3eb0_c6f7_a0b5_ed8d, "0.000001"),
        (0x41b3_de43_5555_5553, "333333333.3333332"),
        (0x41b3_de43_5555_5554, "333333333.33333325"),
        (0x41b3_de43_5555_5555, "333333333.3333333"),
        (0x41b3_de43_5555_5556, "333333333.3333334"),
        (0x41b3_de43_5555_5557, "333333333.33333343"),
        (0xbecb_f647_612f_3696, "-0.0000033333333333333333"),
        (0x4314_3ff3_c1cb_0959, "1424953923781206.2"),
    ];
    for (bits, text) in table {
        let written = serde_json_canonicalizer::to_string(&f64::from_bits(bits)).unwrap();
        assert_eq!(written, text, "{bits:016x}");
    }
    assert!(serde_json_canonicalizer::to_string(&f64::NAN).is_err());
    assert!(serde_json_canonicalizer::to_string(&f64::INFINITY).is_err());
}

#[test]
fn the_example_of_the_rfc_comes_out_byte_for_byte() {
    let text = r#"{
        "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
        "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
        "literals": [null, true, false]
    }"#;
    let numbers = "333333333.3333333,1e+30,4.5,0.002,1e-27";
    let expected = |numbers: &str| {
        let string = r#""€$\u000f\nA'B\"\\\\\"/""#;
        format!(r#"{{"literals":[null,true,false],"numbers":[{numbers}],"string":{string}}}"#)
    };
    assert_eq!(serde_json_canonicalizer::pipe(text).unwrap(), expected(numbers));
    // A record can't contain fractions.
    assert!(matches!(parse_object(text.as_bytes()), Err(RecordParseError::NotRecord(_))));
    let (before, after) = (text.find('[').unwrap(), text.find(']').unwrap());
    let whole = format!("{}[4, -5, 0{}", &text[..before], &text[after..]);
    assert_eq!(canonicalize(&whole), expected("4,-5,0"));
}

#[test]
fn names_are_sorted_by_their_utf_16_units() {
    let text = r#"{"\u20ac":"Euro Sign","\r":"Carriage Return","\ufb33":"Hebrew Letter Dalet With Dagesh",
        "1":"One","\ud83d\ude00":"Emoji: Grinning Face","\u0080":"Control",
        "\u00f6":"Latin Small Letter O With Diaeresis"}"#;
    let written = canonicalize(text);
    let order = ["Carriage", "One", "Control", "Latin", "Euro", "Emoji", "Hebrew"];
    let places: Vec<usize> = order.iter().map(|name| written.find(name).unwrap()).collect();
    assert!(places.is_sorted(), "{written}");
    assert!(written.starts_with(r#"{"\r":"Carriage Return","1":"One","#));
}

#[test]
fn control_characters_have_one_form_each() {
    assert_eq!(
        canonicalize(r#"{"a":"\u0000\u0007\u0008\u0009\u000a\u000b\u000c\u000d\u001f\u007f\u0020\/"}"#),
        "{\"a\":\"\\u0000\\u0007\\b\\t\\n\\u000b\\f\\r\\u001f\u{7f} /\"}"
    );
}

#[test]
fn values_that_readers_disagree_about_are_rejected() {
    let rejected = |text: &str| parse_object(text.as_bytes()).unwrap_err();
    for text in [
        r#"{"a":1,"a":1}"#,
        r#"{"x":{"a":1,"a":2}}"#,
        r#"{"a":1.5}"#,
        r#"{"a":1e2}"#,
        r#"{"a":-0}"#,
        r#"{"a":9007199254740992}"#,
        r#"{"a":-9007199254740992}"#,
        r#"{"a":18446744073709551616}"#,
    ] {
        assert!(matches!(rejected(text), RecordParseError::NotRecord(_)), "{text}");
    }
    for text in
        [r#"{"a":"\ud83d"}"#, r#"{"a":01}"#, r#"{"a":1}x"#, "", "[]", "7", "{\"a\":\"\n\"}", "\u{feff}{}"]
    {
        assert!(matches!(rejected(text), RecordParseError::NotJson(_)), "{text}: {:?}", rejected(text));
    }
    assert_eq!(rejected(r#"{"a":1"#), RecordParseError::UnexpectedEnd);
    assert_eq!(
        canonicalize(r#"{"a":9007199254740991,"b":-9007199254740991}"#),
        r#"{"a":9007199254740991,"b":-9007199254740991}"#
    );
}

fn try_seal(fields: Value) -> Result<(), SealError> {
    seal(&format(), None, (1, Sha256Hash::GENESIS), object(fields)).map(|_| ())
}

#[test]
fn sealing_rejects_values_that_could_not_be_read_back() {
    assert_eq!(try_seal(json!({"a": 1.5})), Err(JsonValueError::Fraction.into()));
    assert_eq!(try_seal(json!({"a": [u64::MAX]})), Err(JsonValueError::TooLarge.into()));
    assert_eq!(try_seal(json!({"a": {"b": i64::MIN}})), Err(JsonValueError::TooLarge.into()));
    let deep = (0..40).fold(json!(1), |inner, _| json!([inner]));
    assert_eq!(try_seal(json!({"a": deep})), Err(JsonValueError::TooDeep.into()));
    assert!(matches!(try_seal(json!({"a": "x".repeat(1 << 20)})), Err(SealError::TooLong(_))));
}

#[test]
fn a_record_is_at_most_32_levels_deep() {
    let arrays = |levels| (0..levels).fold(json!(1), |inner, _| json!([inner]));
    let objects = |levels| (0..levels).fold(json!(1), |inner, _| json!({"a": inner}));
    for value in [arrays(31), objects(31)] {
        let record = object(json!({"a": value}));
        let text = canonical_json(&record).unwrap();
        assert_eq!(parse_object(&text), Ok(record));
    }
    let too_deep = JsonValueError::TooDeep;
    for value in [arrays(32), objects(32), arrays(33), objects(33)] {
        let record = object(json!({"a": value}));
        assert_eq!(canonical_json(&record), Err(too_deep));
        let text = serde_json::to_vec(&record).unwrap();
        let error = parse_object(&text).unwrap_err();
        assert!(
            matches!(&error, RecordParseError::NotRecord(reason) if reason.starts_with(&too_deep.to_string()))
        );
    }
}

#[test]
fn a_record_has_at_most_a_mebibyte() {
    let seal_text = |length: usize| {
        let fields = object(json!({"a": "x".repeat(length)}));
        seal(&format(), None, (1, Sha256Hash::GENESIS), fields).map(|sealed| sealed.line.len())
    };
    let others = seal_text(0).unwrap();
    let longest = MAX_RECORD_BYTES - others;
    assert_eq!(seal_text(longest), Ok(MAX_RECORD_BYTES));
    assert_eq!(seal_text(longest + 1), Err(SealError::TooLong(MAX_RECORD_BYTES + 1)));
}

#[test]
fn callers_can_not_set_the_members_of_the_chain() {
    for name in ["sequence", "previous_hash", "key_id", "mac", "receipt_hash"] {
        let mut fields = Map::new();
        fields.insert(name.to_owned(), json!("x"));
        assert_eq!(try_seal(Value::Object(fields)), Err(SealError::Reserved(name.to_owned())));
    }
}

#[test]
fn a_sealed_record_follows_the_format() {
    let sealed = seal(&format(), None, (1, Sha256Hash::GENESIS), object(json!({"z": 1}))).unwrap();
    let zeros = "0".repeat(64);
    let content = format!(r#"{{"previous_hash":"{zeros}","sequence":1,"z":1}}"#);
    let hash = Sha256Hash::of(&[content.as_bytes()]);
    let line = format!(r#"{{"previous_hash":"{zeros}","receipt_hash":"{hash}","sequence":1,"z":1}}"#);
    assert_eq!(String::from_utf8(sealed.line).unwrap(), line + "\n");
    assert_eq!(sealed.hash, hash);
    let signed = seal(&format(), Some(&key()), (1, Sha256Hash::GENESIS), object(json!({"z": 1}))).unwrap();
    assert_ne!(signed.hash, hash);
}

#[test]
fn the_hash_member_must_have_a_valid_name() {
    for name in ["_hash", "__hash", "", "hash", "previous_hash", "Event_hash", "event_hash_"] {
        assert!(LedgerFormat::new(name).is_err(), "{name}");
    }
    for name in ["event_hash", "a_hash", "a__hash"] {
        assert!(LedgerFormat::new(name).is_ok(), "{name}");
    }
}
