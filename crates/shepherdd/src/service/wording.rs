//! Puts the engine's results into the language of the policy.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use shepherd_api::{ApiError, EventKind, ReasonCode};
use shepherd_core::CoreEvent;
use shepherd_core::policy::Policy;
use shepherd_text::{SentenceCatalogue, WarningWords};
use shepherd_util::ClockReading;

use super::DaemonService;

impl DaemonService {
    /// Returns an event in the form of the protocol. Call this right after the change that announced the event.
    pub(super) fn event_kind(&self, event: &CoreEvent, now: ClockReading) -> EventKind {
        let catalogue = SentenceCatalogue::of(self.engine.policy().rules().language);
        self.engine.event_kind(event, now, |message, remaining| {
            catalogue.warning(&WarningWords {
                template: message.template.as_deref(),
                label: &message.label,
                profile: &message.profile,
                remaining,
            })
        })
    }

    /// Returns a denied launch in the form of the protocol.
    pub(super) fn denial_error(&self, reasons: Vec<ReasonCode>) -> ApiError {
        let zones = ReaderZones { policy: self.engine.zone(), system: self.engine.system_zone() };
        ApiError::denied(denial_sentence(self.engine.policy(), &zones, &reasons), reasons)
    }
}

/// The time zones that matter to a reader at this machine.
struct ReaderZones<'a> {
    policy: &'a TimeZone,
    system: &'a TimeZone,
}

/// Returns the sentence for the first reason. It names entries and budgets by their label, and has times of day in the
/// system's zone, which is the zone of the people at this machine.
fn denial_sentence(policy: &Policy, zones: &ReaderZones<'_>, reasons: &[ReasonCode]) -> String {
    let catalogue = SentenceCatalogue::of(policy.rules().language);
    let sentence = reasons.first().map(|reason| {
        let label_of = |item: shepherd_api::PolicyItem<'_>| policy.label_of(item).map(str::to_owned);
        catalogue.reason(reason, |at| zones.format_time(catalogue, at), label_of)
    });
    sentence.unwrap_or_default()
}

impl ReaderZones<'_> {
    /// Formats a time of day in the system's zone. The zone is named if the clock of the policy's zone shows another time,
    /// because the reader may have the hours of the policy in mind.
    fn format_time(&self, catalogue: &SentenceCatalogue, at: Timestamp) -> String {
        let local = at.to_zoned(self.system.clone());
        let time = catalogue.time_on_weekday_of(&local);
        if self.policy.to_offset(at) == self.system.to_offset(at) {
            return time;
        }
        // A zone that was copied to /etc/localtime has no name that people know.
        match self.system.iana_name().filter(|name| name.contains('/')) {
            Some(name) => catalogue.time_in_zone(&time, name),
            None => catalogue.time_in_zone(&time, &local.strftime("UTC%:z").to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use shepherd_api::{Language, Millis, QuotaKind};
    use shepherd_core::policy::{DailyQuota, PolicyRules, TimeBudget};

    use super::*;

    const BERLIN: &str = "Europe/Berlin";

    /// Returns the sentence that a family reads whose policy is for Berlin.
    fn denial(language: Language, system_zone: &str, reason: ReasonCode) -> String {
        let games = TimeBudget {
            label: "all games".to_owned(),
            daily: DailyQuota::every_day(Duration::from_hours(1)),
            weekly: None,
        };
        let rules = PolicyRules {
            language,
            budgets: [("games".parse().unwrap(), games)].into(),
            ..PolicyRules::default()
        };
        let (policy_zone, system_zone) =
            (TimeZone::get(BERLIN).unwrap(), TimeZone::get(system_zone).unwrap());
        let zones = ReaderZones { policy: &policy_zone, system: &system_zone };
        denial_sentence(&Policy::new(rules).unwrap(), &zones, &[reason])
    }

    fn closed() -> ReasonCode {
        // 15:00 in Berlin.
        ReasonCode::OutsideHours { next_opening: Some("2026-11-16T14:00:00Z".parse().unwrap()) }
    }

    // S3.8
    #[test]
    fn a_denial_names_the_zone_if_the_policy_has_another() {
        let check = |system_zone, expected: &str| {
            assert_eq!(denial(Language::English, system_zone, closed()), expected);
        };
        check(BERLIN, "Not allowed at this time. Opens Mon 15:00.");
        check("Europe/Paris", "Not allowed at this time. Opens Mon 15:00.");
        check("Asia/Tokyo", "Not allowed at this time. Opens Mon 23:00 (Asia/Tokyo).");
    }

    // S3.8, S19.3
    #[test]
    fn a_denial_has_labels_and_is_in_the_language_of_the_policy() {
        let quota = QuotaKind::BudgetDaily("games".parse().unwrap());
        let (used, limit) = (Millis(60_000), Millis(60_000));
        let used_up = ReasonCode::QuotaExhausted { quota, used, limit, until: None };
        assert_eq!(
            denial(Language::English, BERLIN, used_up.clone()),
            "Today's time for all games is used up: 1 minute of 1 minute."
        );
        assert_eq!(
            denial(Language::German, BERLIN, used_up),
            "Deine Zeit für all games ist für heute um (verbraucht: 1 Minute, erlaubt: 1 Minute)."
        );
        assert_eq!(denial(Language::German, BERLIN, closed()), "Jetzt nicht. Wieder ab Montag, 15:00 Uhr.");
    }
}
