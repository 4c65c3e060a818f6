//! Queries about grants, requests and usage, in the form that clients see.

use std::time::Duration;

use jiff::civil::Date;
use shepherd_api::{EntryScope, GrantKind, GrantView, TimeRequestView, UsageView};
use shepherd_util::{ClockReading, GrantId, ProfileId, RequestId};

use super::CoreEngine;
use super::errors::QueryError;
use crate::policy::{Day, TimeCost};
use crate::state::{UsageCounter, UsageKey};
use crate::usage::used_on_day;

/// The most days of usage in one answer: a quarter of a year.
const MAX_USAGE_DAYS: u16 = 92;

impl CoreEngine {
    /// Returns the grants that are valid or will be, oldest first.
    #[must_use]
    pub fn active_grants(&self, now: ClockReading) -> Vec<GrantView> {
        let is_active = |grant: &&GrantView| grant.revoked_at.is_none() && now.wall < grant.lapses_at;
        self.snapshot.grants.iter().filter(is_active).cloned().collect()
    }

    /// Returns a grant, also one that lapsed or was revoked recently.
    #[must_use]
    pub fn find_grant(&self, grant_id: &GrantId) -> Option<GrantView> {
        self.snapshot.grants.iter().find(|grant| grant.grant_id == *grant_id).cloned()
    }

    /// Returns the time requests and their answers, oldest first.
    #[must_use]
    pub fn requests(&self) -> Vec<TimeRequestView> {
        self.snapshot.requests.clone()
    }

    #[must_use]
    pub fn find_request(&self, request_id: &RequestId) -> Option<TimeRequestView> {
        self.snapshot.requests.iter().find(|request| request.request_id == *request_id).cloned()
    }

    /// Returns the usage from one day to another, both included, sorted by day, profile, and entry or budget.
    ///
    /// # Errors
    /// Fails if the range ends before it begins, or is longer than a quarter of a year.
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
        let matches = |key: &UsageKey| {
            first <= key.day && key.day <= last && profile.is_none_or(|profile| *profile == key.profile)
        };
        let mut used: Vec<(UsageKey, Duration)> = self.usage.iter().filter(|(key, _)| matches(key)).collect();
        used.sort_by(|(a, _), (b, _)| (a.day, &a.profile, &a.counter).cmp(&(b.day, &b.profile, &b.counter)));
        Ok(used.into_iter().map(|(key, used)| self.usage_view(key, used)).collect())
    }

    /// Returns the day to which usage is charged now, in the policy's time zone.
    #[must_use]
    pub fn today(&self, now: ClockReading) -> Date {
        self.evaluation_time(now).day.date()
    }

    fn usage_view(&self, key: UsageKey, used: Duration) -> UsageView {
        let limit = self.daily_limit(&key).map(Into::into);
        let of = match key.counter {
            UsageCounter::Entry(entry_id) => EntryScope::Entry { entry_id },
            UsageCounter::Budget(budget_id) => EntryScope::Budget { budget_id },
        };
        UsageView { day: key.day.date(), profile: key.profile, of, used: used.into(), limit }
    }

    /// Returns the limit of a counter on a day by today's rules, with earned time and the grants that are still stored;
    /// `None` if there is no limit.
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
