//! The sentence for a person who may not log in (S19.2).

use jiff::Timestamp;
use jiff::tz::TimeZone;
use shepherd_api::{Language, Millis, QuotaKind, ReasonCode};
use shepherd_text::SentenceCatalogue;

fn sentence(language: Language, reason: ReasonCode, opens: Option<&str>) -> String {
    let berlin = TimeZone::get("Europe/Berlin").unwrap();
    // A Monday morning in Berlin.
    let now: Timestamp = "2026-11-16T08:00:00Z".parse().unwrap();
    let opens = opens.map(|at| at.parse().unwrap());
    SentenceCatalogue::of(language).login_refusal(&[reason], opens, &now.to_zoned(berlin), |_| None)
}

fn used_up(quota: QuotaKind) -> ReasonCode {
    ReasonCode::QuotaExhausted { quota, used: Millis(3_600_000), limit: Millis(3_600_000), until: None }
}

// S19.2
#[test]
fn the_sentence_says_why_and_when_the_computer_opens() {
    let outside = || ReasonCode::OutsideHours { next_opening: None };
    for (reason, opens, expected) in [
        (outside(), Some("2026-11-16T14:00:00Z"), "Not at this time. The computer opens at 15:00."),
        (outside(), Some("2026-11-17T14:00:00Z"), "Not at this time. The computer opens tomorrow at 15:00."),
        // Midnight in Berlin is still Monday in UTC.
        (outside(), Some("2026-11-16T23:30:00Z"), "Not at this time. The computer opens tomorrow at 00:30."),
        (outside(), Some("2026-11-20T14:00:00Z"), "Not at this time. The computer opens on Friday at 15:00."),
        (
            outside(),
            Some("2026-11-23T14:00:00Z"),
            "Not at this time. The computer opens on 23 November at 15:00.",
        ),
        (outside(), None, "Not at this time."),
        (
            used_up(QuotaKind::EntryDaily),
            Some("2026-11-17T14:00:00Z"),
            "The time for today is used up. The computer opens tomorrow at 15:00.",
        ),
        (
            used_up(QuotaKind::BudgetWeekly("screen".parse().unwrap())),
            Some("2026-11-23T14:00:00Z"),
            "The time for this week is used up. The computer opens on 23 November at 15:00.",
        ),
        (
            ReasonCode::Cooldown { until: "2026-11-16T09:00:00Z".parse().unwrap() },
            Some("2026-11-16T09:00:00Z"),
            "Time for a break. The computer opens at 10:00.",
        ),
        (
            ReasonCode::Disabled { reason: Some("until Sunday".to_owned()) },
            None,
            "Switched off: until Sunday",
        ),
        (
            ReasonCode::StoreUnavailable { detail: "disk full".to_owned() },
            None,
            "Not now, because used time can't be recorded. Ask a parent.",
        ),
    ] {
        assert_eq!(sentence(Language::English, reason, opens), expected);
    }
}

// S19.2, S19.3
#[test]
fn the_sentence_is_in_the_language_of_the_policy() {
    let closed = || ReasonCode::OutsideHours { next_opening: None };
    for (reason, opens, expected) in [
        (closed(), "2026-11-16T14:00:00Z", "Jetzt nicht. Du darfst ab 15:00 Uhr an den Computer."),
        (
            ReasonCode::Bedtime { until: None },
            "2026-11-17T06:00:00Z",
            "Es ist Schlafenszeit. Du darfst morgen ab 07:00 Uhr an den Computer.",
        ),
        (
            closed(),
            "2026-11-23T14:00:00Z",
            "Jetzt nicht. Du darfst am 23. November ab 15:00 Uhr an den Computer.",
        ),
    ] {
        assert_eq!(sentence(Language::German, reason, Some(opens)), expected);
    }
}
