//! What bounds use over days: quotas and budgets, with what was earned and granted.

use std::time::Duration;

use jiff::Timestamp;
use shepherd_api::{Gift, Quota, ReasonCode, Scope};
use shepherd_util::{BudgetId, ProfileId};

use super::{Facts, Moment, Saying};
use crate::policy::{DailyQuota, Day, Entry};
use crate::usage::{Days, ProfileUsage, in_week, on};

/// How many days ahead a quota is followed: a run that long is without end for all purposes.
const PERIODS_AHEAD: u8 = 8;

impl Facts<'_> {
    pub(super) fn ask_limit(&self, limit: &Limit<'_>, at: Moment) -> Saying {
        let (amount, used) = (limit.amount_on(at.day, at), limit.used_on(at.day));
        if let Some(amount) = amount.filter(|amount| used >= *amount) {
            return Saying::No(ReasonCode::QuotaExhausted {
                quota: limit.quota(),
                used: used.into(),
                limit: amount.into(),
                until: self.refill(limit, at),
            });
        }
        let left = amount.map(|amount| amount.saturating_sub(used));
        self.leaves(limit, left, at).map_or(Saying::Nothing, Saying::AtMost)
    }

    /// How long a run may last before it hits the limit, with so much left now. A run across midnight has the next
    /// day's share, too, and its limit even where this day has none.
    fn leaves(&self, limit: &Limit<'_>, mut left: Option<Duration>, at: Moment) -> Option<Duration> {
        let (mut total, mut cursor, mut day) = (Duration::ZERO, at.wall, at.day);
        for _ in 0..PERIODS_AHEAD {
            let end = self.wall.end_of_day(cursor, limit.last_day(day))?;
            let until_end = Duration::try_from(end.duration_since(cursor)).unwrap_or_default();
            if let Some(left) = left.filter(|left| *left < until_end) {
                return Some(total.saturating_add(left));
            }
            total = total.saturating_add(until_end);
            // A day that did not take place is passed over.
            (cursor, day) = (end, self.wall.local(end).day());
            left = limit.amount_on(day, at).map(|amount| amount.saturating_sub(limit.used_on(day)));
        }
        None
    }

    /// When there will be some again: with the first day or week that has more than was used of it.
    fn refill(&self, limit: &Limit<'_>, at: Moment) -> Option<Timestamp> {
        let (mut cursor, mut day) = (at.wall, at.day);
        for _ in 0..PERIODS_AHEAD {
            cursor = self.wall.end_of_day(cursor, limit.last_day(day))?;
            day = self.wall.local(cursor).day();
            if limit.amount_on(day, at).is_none_or(|amount| limit.used_on(day) < amount) {
                return Some(cursor);
            }
        }
        None
    }

    /// Everything that bounds the use of an entry over days.
    pub(super) fn each_limit<'s>(
        &'s self,
        profile: &'s ProfileId,
        entry: &'s Entry,
        usage: &'s ProfileUsage,
        mut visit: impl FnMut(&Limit<'s>),
    ) {
        let own = Limit {
            facts: self,
            profile,
            entry,
            whose: Whose::Entry,
            amount: Amount::Daily(&entry.limits.daily_quota),
            usage,
            days: usage.of_entry(&entry.entry_id),
        };
        visit(&own);
        if let Some(weekly) = entry.limits.weekly_quota {
            visit(&Limit { amount: Amount::Weekly(weekly), ..own });
        }
        for id in &entry.budgets {
            let Some(budget) = self.policy.rules().budgets.get(id) else { continue };
            let (whose, days) = (Whose::Budget(id), usage.of_budget(id));
            visit(&Limit { whose, amount: Amount::Daily(&budget.daily), days, ..own });
            if let Some(weekly) = budget.weekly {
                visit(&Limit { whose, amount: Amount::Weekly(weekly), days, ..own });
            }
        }
    }
}

/// Something that bounds use over days.
#[derive(Clone, Copy)]
pub(super) struct Limit<'a> {
    facts: &'a Facts<'a>,
    profile: &'a ProfileId,
    entry: &'a Entry,
    whose: Whose<'a>,
    amount: Amount<'a>,
    usage: &'a ProfileUsage,
    days: Option<&'a Days>,
}

#[derive(Clone, Copy)]
enum Whose<'a> {
    Entry,
    Budget(&'a BudgetId),
}

#[derive(Clone, Copy)]
enum Amount<'a> {
    Daily(&'a DailyQuota),
    Weekly(Duration),
}

impl Limit<'_> {
    pub(super) fn rule(&self) -> &'static str {
        match (self.whose, self.amount) {
            (Whose::Entry, Amount::Daily(_)) => "daily-quota",
            (Whose::Entry, Amount::Weekly(_)) => "weekly-quota",
            (Whose::Budget(_), Amount::Daily(_)) => "budget-daily",
            (Whose::Budget(_), Amount::Weekly(_)) => "budget-weekly",
        }
    }

    fn quota(&self) -> Quota {
        match (self.whose, self.amount) {
            (Whose::Entry, Amount::Daily(_)) => Quota::EntryDaily,
            (Whose::Entry, Amount::Weekly(_)) => Quota::EntryWeekly,
            (Whose::Budget(id), Amount::Daily(_)) => Quota::BudgetDaily(id.clone()),
            (Whose::Budget(id), Amount::Weekly(_)) => Quota::BudgetWeekly(id.clone()),
        }
    }

    fn is_weekly(&self) -> bool {
        matches!(self.amount, Amount::Weekly(_))
    }

    /// The last day of the period that a day belongs to.
    fn last_day(&self, day: Day) -> Day {
        if self.is_weekly() { day.week_start().plus(6) } else { day }
    }

    pub(super) fn used_on(&self, day: Day) -> Duration {
        if self.is_weekly() { in_week(self.days, day) } else { on(self.days, day) }
    }

    /// The policy's amount, with what was earned and granted; `None` is without limit.
    fn amount_on(&self, day: Day, at: Moment) -> Option<Duration> {
        let given = match self.amount {
            Amount::Daily(quota) => quota.on(day, self.facts.hours(self.entry).mode_on(day))?,
            Amount::Weekly(amount) => amount,
        };
        let more = self.earned_on(day).saturating_add(self.granted_on(day, at));
        Some(given.saturating_add(more))
    }

    fn earned_on(&self, day: Day) -> Duration {
        let Whose::Budget(budget) = self.whose else { return Duration::ZERO };
        let first = if self.is_weekly() { day.week_start() } else { day };
        let earned = self.facts.policy.earners(budget).flat_map(|(entry_id, earning)| {
            let used = self.usage.of_entry(entry_id);
            (first.0..=self.last_day(day).0).map(move |day| {
                let for_each = earning.for_each.as_millis().max(1);
                // Only whole portions count: twenty minutes unlock ten, nineteen unlock none.
                let portions = u32::try_from(on(used, Day(day)).as_millis() / for_each).unwrap_or(u32::MAX);
                earning.earned.saturating_mul(portions).min(earning.ceiling)
            })
        });
        earned.fold(Duration::ZERO, Duration::saturating_add)
    }

    /// Extra time whose grant holds on that day.
    fn granted_on(&self, day: Day, at: Moment) -> Duration {
        let extra = self.facts.grants.iter().filter_map(|grant| {
            let Gift::Extra { amount } = grant.gift else { return None };
            let first = self.facts.wall.local(grant.valid_from).day();
            let last_instant =
                grant.lapses_at.checked_sub(Duration::from_nanos(1)).unwrap_or(grant.lapses_at);
            let last = self.facts.wall.local(last_instant).day();
            let (from, to) =
                if self.is_weekly() { (day.week_start(), day.week_start().plus(6)) } else { (day, day) };
            let concerned = match (&grant.scope, self.whose) {
                (Scope::Budget { budget_id }, Whose::Budget(own)) => budget_id == own,
                (Scope::Budget { .. }, Whose::Entry) => false,
                (Scope::Everything {} | Scope::Entry { .. }, _) => {
                    self.facts.concerns(grant, self.profile, self.entry)
                }
            };
            let revoked = grant.revoked_at.is_some();
            // On the day that the question is about, only while it holds.
            let holds = if from <= at.day && at.day <= to {
                grant.holds_at(at.wall)
            } else {
                first <= to && from <= last
            };
            (concerned && grant.is_for(self.profile) && !revoked && holds).then_some(amount.into())
        });
        extra.fold(Duration::ZERO, Duration::saturating_add)
    }
}
