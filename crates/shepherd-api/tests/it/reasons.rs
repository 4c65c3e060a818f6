//! Every reason has a stable code and a sentence with its evidence (S3.8).

use std::collections::BTreeSet;

use jiff::tz::TimeZone;
use serde_json::Value;
use shepherd_api::{QuotaKind, ReasonCode};

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

/// The part of a reason that a person needs, as its sentence shows it to a family in Berlin.
fn evidence(reason: &ReasonCode) -> Vec<&'static str> {
    match reason {
        ReasonCode::UnknownEntry { .. } => vec!["tuxmath"],
        ReasonCode::NotForProfile | ReasonCode::Unknown => vec![],
        ReasonCode::Disabled { .. } => vec!["homework first"],
        ReasonCode::HostCannotRun { .. } => vec!["vm"],
        ReasonCode::LoginEntry => vec!["logs in"],
        ReasonCode::AccountMissing => vec!["root", "`user`", "`accounts`"],
        ReasonCode::LoginNotFound { .. } => vec!["`anna`", "`sudo adduser anna`", "reload"],
        ReasonCode::SessionActive { .. } => vec!["minecraft"],
        ReasonCode::OutsideHours { .. }
        | ReasonCode::Bedtime { .. }
        | ReasonCode::Cooldown { .. }
        | ReasonCode::BreakNeeded { .. }
        | ReasonCode::ClockUntrusted { .. } => vec!["Sat 14:00"],
        ReasonCode::QuotaExhausted { quota, .. } => match quota {
            QuotaKind::EntryDaily => vec!["today", "1 hour"],
            QuotaKind::EntryWeekly => vec!["week", "1 hour"],
            QuotaKind::BudgetDaily(_) => vec!["Today", "games", "1 hour"],
            QuotaKind::BudgetWeekly(_) => vec!["week", "games", "1 hour"],
        },
        ReasonCode::NotUnlocked { .. } => vec!["tuxmath", "5 minutes", "20 minutes"],
        ReasonCode::StoreUnavailable { .. } => vec!["read-only file system"],
    }
}

#[test]
fn every_sentence_shows_its_evidence() {
    let berlin = TimeZone::get("Europe/Berlin").unwrap();
    for line in fixtures::golden_lines("reasons") {
        let reason: ReasonCode = serde_json::from_str(&line).unwrap();
        let sentence = reason.sentence(&berlin);
        for piece in evidence(&reason) {
            assert!(sentence.contains(piece), "{piece:?} is missing in: {sentence}");
        }
    }
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
