//! Every reason has a sentence with its evidence (S3.8).

use std::path::Path;

use jiff::tz::TimeZone;
use shepherd_api::{ApiError, ErrorCode, PolicyItem, QuotaKind, ReasonCode};
use shepherd_text::{Language, SentenceCatalogue};

/// Returns every reason, from the examples of the protocol.
fn reasons() -> Vec<ReasonCode> {
    let folder = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    let file = Path::new(&folder).join("../shepherd-api/tests/it/golden/reasons.jsonl");
    let text = std::fs::read_to_string(file).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Returns the sentence as a family in Berlin reads it.
fn sentence(language: Language, reason: &ReasonCode) -> String {
    let catalogue = SentenceCatalogue::of(language);
    let berlin = TimeZone::get("Europe/Berlin").unwrap();
    let label = |item: PolicyItem<'_>| match item {
        PolicyItem::Entry(entry_id) if entry_id.as_str() == "minecraft" => Some("Minecraft".to_owned()),
        PolicyItem::Entry(_) | PolicyItem::Budget(_) => None,
    };
    catalogue.reason(reason, |at| catalogue.time_on_weekday_of(&at.to_zoned(berlin.clone())), label)
}

/// The parts of a reason that a person needs, in English and in German.
fn evidence(reason: &ReasonCode) -> Vec<[&'static str; 2]> {
    let same = |texts: &[&'static str]| texts.iter().map(|text| [*text, *text]).collect();
    match reason {
        ReasonCode::UnknownEntry { .. } => same(&["tuxmath"]),
        ReasonCode::NotForProfile | ReasonCode::Unknown => Vec::new(),
        ReasonCode::Disabled { .. } => same(&["homework first"]),
        ReasonCode::HostCannotRun { .. } => same(&["vm"]),
        ReasonCode::AccountMissing => same(&["root", "`user`", "`accounts`"]),
        ReasonCode::LoginEntry => vec![["logs in", "anmeldet"]],
        ReasonCode::LoginNotFound { .. } => same(&["`anna`", "`sudo adduser anna`", "reload"]),
        ReasonCode::SessionActive { .. } => same(&["Minecraft"]),
        ReasonCode::OutsideHours { .. }
        | ReasonCode::Bedtime { .. }
        | ReasonCode::Cooldown { .. }
        | ReasonCode::BreakNeeded { .. }
        | ReasonCode::ClockUntrusted { .. } => vec![["Sat 14:00", "Samstag, 14:00 Uhr"]],
        ReasonCode::QuotaExhausted { quota, .. } => {
            let mut pieces = vec![["1 hour", "1 Stunde"]];
            pieces.push(match quota {
                QuotaKind::EntryDaily | QuotaKind::BudgetDaily(_) => ["oday", "heute"],
                QuotaKind::EntryWeekly | QuotaKind::BudgetWeekly(_) => ["week", "Woche"],
            });
            if let QuotaKind::BudgetDaily(_) | QuotaKind::BudgetWeekly(_) = quota {
                pieces.push(["games", "games"]);
            }
            pieces
        }
        ReasonCode::NotUnlocked { .. } => {
            vec![["tuxmath", "tuxmath"], ["5 minutes", "5 Minuten"], ["20 minutes", "20 Minuten"]]
        }
        ReasonCode::StoreUnavailable { .. } => same(&["read-only file system"]),
    }
}

// S3.8, S19.3
#[test]
fn every_sentence_shows_its_evidence_in_every_language() {
    let reasons = reasons();
    assert!(reasons.len() > 12, "{}", reasons.len());
    for reason in reasons {
        for (position, language) in Language::ALL.into_iter().enumerate() {
            let sentence = sentence(language, &reason);
            for piece in evidence(&reason) {
                assert!(sentence.contains(piece[position]), "{piece:?} is missing in: {sentence}");
            }
        }
    }
}

#[test]
fn a_refused_button_is_explained_in_the_language_of_the_policy() {
    let refused = ApiError::new(ErrorCode::RateLimited, "Too many requests are open; wait for an answer.");
    let refusal = |language| SentenceCatalogue::of(language).refusal(&refused);
    assert_eq!(refusal(Language::English), refused.sentence, "the daemon knows more");
    assert_eq!(refusal(Language::German), "Das war zu oft. Warte einen Moment und versuch es noch einmal.");
}
