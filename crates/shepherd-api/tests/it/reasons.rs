//! Every reason has a stable code and its evidence (S3.8).

use std::collections::BTreeSet;

use serde_json::Value;
use shepherd_api::ReasonCode;

use crate::{fixtures, schema};

#[test]
fn every_code_is_the_tag_on_the_wire_and_no_two_are_the_same() {
    let mut codes = BTreeSet::new();
    for line in fixtures::golden_lines("reasons") {
        let reason: ReasonCode = serde_json::from_str(&line).unwrap();
        let json: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(json["code"], reason.code());
        codes.insert(reason.code().to_owned());
    }
    let tags = schema::variant_tags("ReasonCode", "code");
    assert_eq!(codes.len(), tags.len());
    assert_eq!(codes, tags.into_iter().collect());
}

#[test]
fn a_reason_that_ends_by_itself_says_when() {
    for line in fixtures::golden_lines("reasons") {
        let json: Value = serde_json::from_str(&line).unwrap();
        let reason: ReasonCode = serde_json::from_str(&line).unwrap();
        let named = ["until", "next_opening"].iter().find_map(|key| json[key].as_str());
        assert_eq!(reason.until().map(|at| at.to_string()).as_deref(), named, "{line}");
    }
}
