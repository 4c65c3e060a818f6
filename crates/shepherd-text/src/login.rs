//! The sentence for a person who may not log in now (S19.2).

use jiff::{Timestamp, Zoned};
use shepherd_api::{PolicyItem, QuotaKind, ReasonCode};

use crate::catalogue::SentenceCatalogue;

impl SentenceCatalogue {
    /// Returns the sentence for a person who may not log in now, such as "Not at this time. The computer opens at 15:00."
    /// Times are in the zone of `now`.
    #[must_use]
    pub fn login_refusal(
        &self,
        reasons: &[ReasonCode],
        opens: Option<Timestamp>,
        now: &Zoned,
        label_of: impl Fn(PolicyItem<'_>) -> Option<String>,
    ) -> String {
        // A person can do something about any other reason.
        let is_of_machine = |reason: &&ReasonCode| matches!(reason, ReasonCode::HostCannotRun { .. });
        let cause = match reasons.iter().find(|reason| !is_of_machine(reason)).or(reasons.first()) {
            None | Some(ReasonCode::OutsideHours { .. }) => self.login_closed(),
            Some(ReasonCode::Bedtime { .. }) => self.reason_bedtime_without_end(),
            Some(ReasonCode::Cooldown { .. } | ReasonCode::BreakNeeded { .. }) => self.login_needs_break(),
            Some(ReasonCode::QuotaExhausted { quota, .. }) => match quota {
                QuotaKind::EntryDaily | QuotaKind::BudgetDaily(_) => self.login_used_up_today(),
                QuotaKind::EntryWeekly | QuotaKind::BudgetWeekly(_) => self.login_used_up_this_week(),
            },
            Some(ReasonCode::StoreUnavailable { .. }) => self.login_not_recorded(),
            Some(ReasonCode::HostCannotRun { .. }) => self.login_not_seen(),
            Some(reason) => self.reason(reason, |at| self.time(at, now), label_of),
        };
        match opens {
            Some(at) => format!("{cause} {}", self.computer_opens(at, now)),
            None => cause,
        }
    }

    /// Says when the computer opens, as people say it on the day of `now`.
    fn computer_opens(&self, at: Timestamp, now: &Zoned) -> String {
        let local = at.to_zoned(now.time_zone().clone());
        let clock = local.strftime("%H:%M").to_string();
        match (local.date() - now.date()).get_days() {
            0 => self.computer_opens_today(&clock),
            1 => self.computer_opens_tomorrow(&clock),
            2..=6 => {
                let weekday = local.weekday().to_monday_one_offset().unsigned_abs();
                self.computer_opens_on_weekday(weekday.into(), &clock)
            }
            _ => {
                let (day, month) = (local.day().to_string(), local.month().unsigned_abs());
                self.computer_opens_on_date(&day, month.into(), &clock)
            }
        }
    }
}
