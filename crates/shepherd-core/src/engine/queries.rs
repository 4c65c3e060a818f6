//! What was given, asked for and used, as clients see it.

use std::time::Duration;

use jiff::civil::Date;
use shepherd_api::{EntryScope, GrantKind, GrantView, TimeRequestView, UsageView};
use shepherd_util::{ClockReading, GrantId, ProfileId, RequestId};

use super::CoreEngine;
use super::errors::QueryError;
use crate::policy::{Day, TimeCost};
use crate::state::{UsageCounter, UsageKey};
use crate::usage::used_on_day;

/// A quarter of a year is more than anyone looks at together.
const MAX_USAGE_DAYS: u16 = 92;

impl CoreEngine {
    /// The grants that hold or will hold, oldest first.
    #[must_use]
    pub fn active_grants(&self, now: ClockReading) -> Vec<GrantView> {
        let stands = |grant: &&GrantView| grant.revoked_at.is_none() && now.wall < grant.lapses_at;
        self.snapshot.grants.iter().filter(stands).cloned().collect()
    }

    /// One grant, also one that has lapsed or was taken back, while it is remembered.
    #[must_use]
    pub fn find_grant(&self, grant_id: &GrantId) -> Option<GrantView> {
        self.snapshot.grants.iter().find(|grant| grant.grant_id == *grant_id).cloned()
    }

    /// What children asked for and what became of it, oldest first.
    #[must_use]
    pub fn requests(&self) -> Vec<TimeRequestView> {
        self.snapshot.requests.clone()
    }

    /// One request.
    #[must_use]
    pub fn find_request(&self, request_id: &RequestId) -> Option<TimeRequestView> {
        self.snapshot.requests.iter().find(|request| request.request_id == *request_id).cloned()
    }

    /// What was used from one day to another, both included: by day, then by profile, then by entry and budget.
    ///
    /// # Errors
    /// When the span is turned round or longer than a quarter of a year.
    pub fn usage(
        &self,
        from: Date,
        to: Date,
        profile: Option<&ProfileId>,
    ) -> Result<Vec<UsageView>, QueryError> {
        let (first, last) = (Day::from_date(from), Day::from_date(to));
        if last < first {
            return Err(QueryError::EmptyRange);
        }
        if last.0.abs_diff(first.0) >= u32::from(MAX_USAGE_DAYS) {
            return Err(QueryError::RangeTooLong { days: MAX_USAGE_DAYS });
        }
        let asked = |key: &UsageKey| {
            first <= key.day && key.day <= last && profile.is_none_or(|whose| *whose == key.profile)
        };
        let mut used: Vec<(UsageKey, Duration)> = self.usage.iter().filter(|(key, _)| asked(key)).collect();
        used.sort_by(|(a, _), (b, _)| (a.day, &a.profile, &a.counter).cmp(&(b.day, &b.profile, &b.counter)));
        Ok(used.into_iter().map(|(key, used)| self.usage_view(key, used)).collect())
    }

    fn usage_view(&self, key: UsageKey, used: Duration) -> UsageView {
        let limit = self.daily_limit(&key).map(Into::into);
        let of = match key.counter {
            UsageCounter::Entry(entry_id) => EntryScope::Entry { entry_id },
            UsageCounter::Budget(budget_id) => EntryScope::Budget { budget_id },
        };
        UsageView { day: key.day.date(), profile: key.profile, of, used: used.into(), limit }
    }

    /// What the policy gives on a day by the rules of today, with what was earned and with the grants that are still
    /// remembered; `NotRequested` is without limit.
    fn daily_limit(&self, key: &UsageKey) -> Option<Duration> {
        let mode = self.mode_on(key.day);
        let (amount, earned) = match &key.counter {
            UsageCounter::Entry(entry_id) => {
                let counted = self.policy.entry(entry_id).filter(|entry| entry.cost == TimeCost::Counts)?;
                (counted.limits.daily_quota.amount_on(key.day, mode)?, Duration::ZERO)
            }
            UsageCounter::Budget(budget_id) => {
                let usage = self.usage.profile_usage(&key.profile);
                let earned = self.policy.earning_entries(budget_id).map(|(entry_id, earning)| {
                    earning
                        .earned_for(used_on_day(usage.and_then(|usage| usage.entry_usage(entry_id)), key.day))
                });
                let budget = self.policy.rules().budgets.get(budget_id)?;
                (
                    budget.daily.amount_on(key.day, mode)?,
                    earned.fold(Duration::ZERO, Duration::saturating_add),
                )
            }
        };
        let extra = self.snapshot.grants.iter().filter_map(|grant| match grant.gift {
            GrantKind::Extra { amount } if self.raises_limit(grant, key) => Some(Duration::from(amount)),
            GrantKind::Extra { .. } | GrantKind::OpenUntil { .. } => None,
        });
        Some(extra.fold(amount.saturating_add(earned), Duration::saturating_add))
    }

    fn raises_limit(&self, grant: &GrantView, key: &UsageKey) -> bool {
        let in_scope = match (&grant.scope, &key.counter) {
            (EntryScope::Everything {}, _) => true,
            (EntryScope::Entry { entry_id }, UsageCounter::Entry(used)) => entry_id == used,
            (EntryScope::Budget { budget_id }, UsageCounter::Budget(used)) => budget_id == used,
            (EntryScope::Entry { .. }, UsageCounter::Budget(_))
            | (EntryScope::Budget { .. }, UsageCounter::Entry(_)) => false,
        };
        in_scope
            && grant.is_for(&key.profile)
            && grant.revoked_at.is_none()
            && self.grant_days(grant).contains(&key.day)
    }
}
