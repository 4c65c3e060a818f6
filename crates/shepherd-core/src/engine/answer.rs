//! What was given, asked for and used, as clients see it.

use std::time::Duration;

use jiff::civil::Date;
use shepherd_api::{Gift, GrantView, RequestView, Scope, UsageView};
use shepherd_util::{GrantId, Now, ProfileId, RequestId};

use super::CoreEngine;
use super::refusal::AskError;
use crate::policy::{Cost, Day};
use crate::state::{Counter, UsageKey};
use crate::usage::on;

/// A quarter of a year is more than anyone looks at together.
const MAX_USAGE_DAYS: u16 = 92;

impl CoreEngine {
    /// The grants that hold or will hold, oldest first.
    #[must_use]
    pub fn grants(&self, now: Now) -> Vec<GrantView> {
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
    pub fn requests(&self) -> Vec<RequestView> {
        self.snapshot.requests.clone()
    }

    /// One request.
    #[must_use]
    pub fn find_request(&self, request_id: &RequestId) -> Option<RequestView> {
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
    ) -> Result<Vec<UsageView>, AskError> {
        let (first, last) = (Day::from_date(from), Day::from_date(to));
        if last < first {
            return Err(AskError::EmptyRange);
        }
        if last.0.abs_diff(first.0) >= u32::from(MAX_USAGE_DAYS) {
            return Err(AskError::RangeTooLong { days: MAX_USAGE_DAYS });
        }
        let asked = |key: &UsageKey| {
            first <= key.day && key.day <= last && profile.is_none_or(|whose| *whose == key.profile)
        };
        let mut used: Vec<(UsageKey, Duration)> = self.usage.iter().filter(|(key, _)| asked(key)).collect();
        used.sort_by(|(a, _), (b, _)| (a.day, &a.profile, &a.counter).cmp(&(b.day, &b.profile, &b.counter)));
        Ok(used.into_iter().map(|(key, used)| self.usage_view(key, used)).collect())
    }

    fn usage_view(&self, key: UsageKey, used: Duration) -> UsageView {
        let limit = self.limit_on(&key).map(Into::into);
        let of = match key.counter {
            Counter::Entry(entry_id) => Scope::Entry { entry_id },
            Counter::Budget(budget_id) => Scope::Budget { budget_id },
        };
        UsageView { day: key.day.date(), profile: key.profile, of, used: used.into(), limit }
    }

    /// What the policy gives on a day by the rules of today, with what was earned and with the grants that are still
    /// remembered; `None` is without limit.
    fn limit_on(&self, key: &UsageKey) -> Option<Duration> {
        let mode = self.mode_on(key.day);
        let (amount, earned) = match &key.counter {
            Counter::Entry(entry_id) => {
                let counted = self.policy.entry(entry_id).filter(|entry| entry.cost == Cost::Counts)?;
                (counted.limits.daily_quota.on(key.day, mode)?, Duration::ZERO)
            }
            Counter::Budget(budget_id) => {
                let usage = self.usage.of(&key.profile);
                let earned = self.policy.earners(budget_id).map(|(entry_id, earning)| {
                    earning.for_use(on(usage.and_then(|usage| usage.of_entry(entry_id)), key.day))
                });
                let budget = self.policy.rules().budgets.get(budget_id)?;
                (budget.daily.on(key.day, mode)?, earned.fold(Duration::ZERO, Duration::saturating_add))
            }
        };
        let extra = self.snapshot.grants.iter().filter_map(|grant| match grant.gift {
            Gift::Extra { amount } if self.stretches(grant, key) => Some(Duration::from(amount)),
            Gift::Extra { .. } | Gift::OpenUntil { .. } => None,
        });
        Some(extra.fold(amount.saturating_add(earned), Duration::saturating_add))
    }

    fn stretches(&self, grant: &GrantView, key: &UsageKey) -> bool {
        let in_scope = match (&grant.scope, &key.counter) {
            (Scope::Everything {}, _) => true,
            (Scope::Entry { entry_id }, Counter::Entry(used)) => entry_id == used,
            (Scope::Budget { budget_id }, Counter::Budget(used)) => budget_id == used,
            (Scope::Entry { .. }, Counter::Budget(_)) | (Scope::Budget { .. }, Counter::Entry(_)) => false,
        };
        in_scope
            && grant.is_for(&key.profile)
            && grant.revoked_at.is_none()
            && self.days_of(grant).contains(&key.day)
    }
}
