//! The sentence for a reason, and for an error of the daemon.

use jiff::Timestamp;
use shepherd_api::{ApiError, ErrorCode, Language, PolicyItem, QuotaKind, ReasonCode};

use crate::catalogue::SentenceCatalogue;

impl SentenceCatalogue {
    /// Returns the sentence for a reason, with times written by `format_time`, and entries and budgets named by the
    /// label that `label_of` returns. Without a label, the id is used.
    #[must_use]
    pub fn reason(
        &self,
        reason: &ReasonCode,
        format_time: impl Fn(Timestamp) -> String,
        label_of: impl Fn(PolicyItem<'_>) -> Option<String>,
    ) -> String {
        let entry_name =
            |entry_id| label_of(PolicyItem::Entry(entry_id)).unwrap_or_else(|| format!("`{entry_id}`"));
        let budget_name =
            |budget_id| label_of(PolicyItem::Budget(budget_id)).unwrap_or_else(|| budget_id.to_string());
        match reason {
            ReasonCode::UnknownEntry { entry_id } => self.reason_unknown_entry(entry_id.as_str()),
            ReasonCode::NotForProfile => self.reason_not_for_profile(),
            ReasonCode::Disabled { reason: Some(why) } => self.reason_disabled_because(why),
            ReasonCode::Disabled { reason: None } => self.reason_disabled(),
            ReasonCode::HostCannotRun { kind } => self.reason_host_cannot_run(kind),
            ReasonCode::AccountMissing => self.reason_account_missing(),
            ReasonCode::OutsideHours { next_opening: Some(at) } => {
                self.reason_outside_hours(&format_time(*at))
            }
            ReasonCode::OutsideHours { next_opening: None } => self.reason_outside_hours_without_opening(),
            ReasonCode::Bedtime { until: Some(at) } => self.reason_bedtime(&format_time(*at)),
            ReasonCode::Bedtime { until: None } => self.reason_bedtime_without_end(),
            ReasonCode::LoginEntry => self.reason_login_entry(),
            ReasonCode::LoginNotFound { login } => self.reason_login_not_found(login),
            ReasonCode::SessionActive { entry_id, .. } => self.reason_session_active(&entry_name(entry_id)),
            ReasonCode::Cooldown { until } => self.reason_cooldown(&format_time(*until)),
            ReasonCode::BreakNeeded { until } => self.reason_break_needed(&format_time(*until)),
            ReasonCode::QuotaExhausted { quota, used, limit, .. } => {
                let [used, limit] = [used, limit].map(|amount| self.duration((*amount).into()));
                match quota {
                    QuotaKind::EntryDaily => self.reason_quota_daily(&used, &limit),
                    QuotaKind::EntryWeekly => self.reason_quota_weekly(&used, &limit),
                    QuotaKind::BudgetDaily(budget) => {
                        self.reason_budget_daily(&budget_name(budget), &used, &limit)
                    }
                    QuotaKind::BudgetWeekly(budget) => {
                        self.reason_budget_weekly(&budget_name(budget), &used, &limit)
                    }
                }
            }
            ReasonCode::NotUnlocked { entry_id, done, needed } => {
                let done = if done.0 == 0 { self.nothing_done() } else { self.duration((*done).into()) };
                self.reason_not_unlocked(&self.duration((*needed).into()), &entry_name(entry_id), &done)
            }
            ReasonCode::ClockUntrusted { latest_seen } => {
                self.reason_clock_untrusted(&format_time(*latest_seen))
            }
            ReasonCode::StoreUnavailable { detail } => self.reason_store_unavailable(detail),
            ReasonCode::Unknown => self.reason_unknown(),
        }
    }

    /// Returns the sentence for a command that the daemon refused. The daemon's own sentence is in English, except for a
    /// denied launch.
    #[must_use]
    pub fn refusal(&self, error: &ApiError) -> String {
        if self.language() == Language::English {
            return error.sentence.clone();
        }
        match error.code {
            ErrorCode::NotPermitted | ErrorCode::UnknownProfile => self.error_not_permitted(),
            ErrorCode::PinRequired | ErrorCode::WrongPin => self.error_pin_required(),
            ErrorCode::RateLimited | ErrorCode::TooManyClients => self.error_rate_limited(),
            ErrorCode::AlreadyDecided | ErrorCode::UnknownRequest => self.error_already_decided(),
            ErrorCode::OverCeiling => self.error_over_ceiling(),
            ErrorCode::StoreUnavailable => self.error_store_unavailable(),
            ErrorCode::NoSession | ErrorCode::UnknownSession => self.error_not_running(),
            ErrorCode::UnknownEntry => self.error_unknown_entry(),
            ErrorCode::ShuttingDown | ErrorCode::TimedOut => self.unreachable(),
            // The sentence of a denied launch is in this language. No button leads to the others.
            ErrorCode::Denied
            | ErrorCode::MalformedMessage
            | ErrorCode::MessageTooLarge
            | ErrorCode::UnsupportedVersion
            | ErrorCode::HandshakeExpected
            | ErrorCode::UnknownCommand
            | ErrorCode::InvalidCommand
            | ErrorCode::UnknownBudget
            | ErrorCode::UnknownMode
            | ErrorCode::UnknownGrant
            | ErrorCode::SeveralSessions
            | ErrorCode::InvalidRange
            | ErrorCode::PolicyRejected
            | ErrorCode::LaunchFailed
            | ErrorCode::Internal
            | ErrorCode::Unknown => error.sentence.clone(),
        }
    }
}
