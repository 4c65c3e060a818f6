//! What bounds use over days: quotas and budgets, with what was earned and granted.

use std::time::Duration;

use jiff::Timestamp;
use shepherd_api::{Quota, ReasonCode};
use shepherd_util::{BudgetId, EntryId, ProfileId};

use super::{Facts, Moment, Saying};
use crate::civil::{Local, end_of_day};
use crate::grant::{Gift, GrantScope};
use crate::policy::{DailyQuota, Day, Entry};
use crate::usage::ProfileUsage;

/// How many days ahead a quota is followed: a run that long is without end for all purposes.
const DAYS_AHEAD: u8 = 8;

impl Facts<'_> {
    pub(super) fn ask_limit(&self, limit: &Limit<'_>, at: Moment) -> Saying {
        let Some(amount) = limit.amount_on(at.day) else { return Saying::Nothing };
        let used = limit.used_on(at.day);
        if used >= amount {
            let until = self.refill(limit, at);
            return Saying::No(ReasonCode::QuotaExhausted {
                quota: limit.quota.clone(),
                used: used.into(),
                limit: amount.into(),
                until,
            });
        }
        self.leaves(limit, at).map_or(Saying::Nothing, Saying::AtMost)
    }

    /// How long a run may last before it hits the limit. A run across midnight has the next day's share, too.
    fn leaves(&self, limit: &Limit<'_>, at: Moment) -> Option<Duration> {
        let (mut total, mut cursor, mut day) = (Duration::ZERO, at.wall, at.day);
        for _ in 0..DAYS_AHEAD {
            let left = limit.amount_on(day)?.saturating_sub(limit.used_on(day));
            let end = end_of_day(self.zone, cursor, day)?;
            let until_end = Duration::try_from(end.duration_since(cursor)).unwrap_or_default();
            // A week's share goes on over midnight, unless the week ends there.
            let same_share = limit.is_weekly() && day.plus(1).week_start() == day.week_start();
            if same_share || left < until_end {
                return Some(total.saturating_add(left));
            }
            total = total.saturating_add(until_end);
            (cursor, day) = (end, day.plus(1));
        }
        None
    }

    /// When there will be some again.
    fn refill(&self, limit: &Limit<'_>, at: Moment) -> Option<Timestamp> {
        let last = if limit.is_weekly() { at.day.week_start().plus(6) } else { at.day };
        end_of_day(self.zone, at.wall, last)
    }

    /// Everything that bounds the use of an entry over days.
    pub(super) fn limits_of<'s>(
        &'s self,
        profile: &'s ProfileId,
        entry: &'s Entry,
        usage: &'s ProfileUsage,
    ) -> Vec<Limit<'s>> {
        let limit = |quota, amount, used| Limit { facts: self, profile, entry, quota, amount, used };
        let id = &entry.entry_id;
        let mut limits =
            vec![limit(Quota::EntryDaily, Amount::Daily(&entry.limits.daily_quota), Used::Entry(usage, id))];
        if let Some(weekly) = entry.limits.weekly_quota {
            limits.push(limit(Quota::EntryWeekly, Amount::Weekly(weekly), Used::Entry(usage, id)));
        }
        for id in &entry.budgets {
            let Some(budget) = self.policy.rules().budgets.get(id) else { continue };
            let used = Used::Budget(usage, id);
            limits.push(limit(Quota::BudgetDaily(id.clone()), Amount::Daily(&budget.daily), used));
            if let Some(weekly) = budget.weekly {
                limits.push(limit(Quota::BudgetWeekly(id.clone()), Amount::Weekly(weekly), used));
            }
        }
        limits
    }
}

/// Something that bounds use over days.
pub(super) struct Limit<'a> {
    facts: &'a Facts<'a>,
    profile: &'a ProfileId,
    entry: &'a Entry,
    quota: Quota,
    amount: Amount<'a>,
    used: Used<'a>,
}

#[derive(Clone, Copy)]
enum Amount<'a> {
    Daily(&'a DailyQuota),
    Weekly(Duration),
}

#[derive(Clone, Copy)]
enum Used<'a> {
    Entry(&'a ProfileUsage, &'a EntryId),
    Budget(&'a ProfileUsage, &'a BudgetId),
}

impl Limit<'_> {
    pub(super) fn rule(&self) -> &'static str {
        match self.quota {
            Quota::EntryDaily => "daily-quota",
            Quota::EntryWeekly => "weekly-quota",
            Quota::BudgetDaily(_) => "budget-daily",
            Quota::BudgetWeekly(_) => "budget-weekly",
        }
    }

    fn is_weekly(&self) -> bool {
        matches!(self.amount, Amount::Weekly(_))
    }

    pub(super) fn used_on(&self, day: Day) -> Duration {
        match (self.used, self.amount) {
            (Used::Entry(usage, id), Amount::Daily(_)) => usage.entry_on(id, day),
            (Used::Entry(usage, id), Amount::Weekly(_)) => usage.entry_in_week(id, day),
            (Used::Budget(usage, id), Amount::Daily(_)) => usage.budget_on(id, day),
            (Used::Budget(usage, id), Amount::Weekly(_)) => usage.budget_in_week(id, day),
        }
    }

    /// The policy's amount, with what was earned and granted; `None` is without limit.
    fn amount_on(&self, day: Day) -> Option<Duration> {
        let given = match self.amount {
            Amount::Daily(quota) => quota.on(day, self.facts.hours(self.entry).mode_on(day))?,
            Amount::Weekly(amount) => amount,
        };
        let more = self.earned_on(day).saturating_add(self.granted_on(day));
        Some(given.saturating_add(more))
    }

    fn earned_on(&self, day: Day) -> Duration {
        let Used::Budget(usage, budget) = self.used else { return Duration::ZERO };
        let days = if self.is_weekly() {
            (day.week_start().0..=day.week_start().plus(6).0).map(Day)
        } else {
            (day.0..=day.0).map(Day)
        };
        let earned = days.flat_map(|day| {
            self.facts.policy.entries().iter().filter_map(move |entry| {
                let earning = entry.earns.as_ref().filter(|earning| earning.budget == *budget)?;
                let used = usage.entry_on(&entry.entry_id, day).as_millis();
                let for_each = earning.for_each.as_millis().max(1);
                // Only whole portions count: twenty minutes unlock ten, nineteen unlock none.
                let portions = u32::try_from(used / for_each).unwrap_or(u32::MAX);
                Some(earning.earned.saturating_mul(portions).min(earning.ceiling))
            })
        });
        earned.fold(Duration::ZERO, Duration::saturating_add)
    }

    /// Extra time whose grant holds on that day.
    fn granted_on(&self, day: Day) -> Duration {
        let extra = self.facts.grants.iter().filter_map(|grant| {
            let Gift::Extra(extra) = grant.gift else { return None };
            let first = Local::at(self.facts.zone, grant.valid_from).day();
            let last_instant =
                grant.lapses_at.checked_sub(Duration::from_nanos(1)).unwrap_or(grant.lapses_at);
            let last = Local::at(self.facts.zone, last_instant).day();
            let (from, to) =
                if self.is_weekly() { (day.week_start(), day.week_start().plus(6)) } else { (day, day) };
            let concerned = match (&grant.scope, &self.quota) {
                (GrantScope::Budget(id), Quota::BudgetDaily(own) | Quota::BudgetWeekly(own)) => id == own,
                (GrantScope::Budget(_), Quota::EntryDaily | Quota::EntryWeekly) => false,
                (GrantScope::All | GrantScope::Entry(_), _) => {
                    self.facts.concerns(grant, self.profile, self.entry)
                }
            };
            let revoked = grant.revoked_at.is_some();
            (concerned && grant.is_for(self.profile) && !revoked && first <= to && from <= last)
                .then_some(extra)
        });
        extra.fold(Duration::ZERO, Duration::saturating_add)
    }
}
