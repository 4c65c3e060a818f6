//! Limits on usage over days: quotas and budgets, with earned and granted time.

use std::time::Duration;

use jiff::Timestamp;
use shepherd_api::{EntryScope, GrantKind, GrantView, QuotaKind, ReasonCode};
use shepherd_util::{BudgetId, EntryId, GrantId};

use super::RuleVerdict;
use super::entry_history::EntryHistory;
use super::rules::EntryEvaluation;
use crate::civil::ZoneClock;
use crate::policy::{DailyQuota, Day, PolicyEntry};
use crate::usage::{DailyUsage, used_in_week, used_on_day};

/// The number of days for which a quota is followed: a longer run counts as unlimited.
const PERIODS_AHEAD: u8 = 8;

/// The status of a limit.
#[derive(Clone)]
pub(super) struct LimitStatus {
    pub(super) rule: &'static str,
    pub(super) is_weekly: bool,
    pub(super) used: Duration,
    /// The rest of the day or week; `None` is no limit.
    pub(super) left: Option<Duration>,
    pub(super) verdict: RuleVerdict,
}

/// Granted extra time, with the days on which it is valid.
pub(super) struct ExtraTimeGrant<'a> {
    grant: &'a GrantView,
    amount: Duration,
    first: Day,
    last: Day,
}

impl<'a> ExtraTimeGrant<'a> {
    pub(super) fn from_grant(grant: &'a GrantView, wall: &ZoneClock<'_>) -> Option<Self> {
        let GrantKind::Extra { amount } = grant.gift else { return None };
        // A grant that was revoked before it began was never valid.
        let over = grant.revoked_at.map_or(grant.lapses_at, |revoked| revoked.min(grant.lapses_at));
        if over <= grant.valid_from {
            return None;
        }
        let last_instant = over.checked_sub(Duration::from_nanos(1)).ok()?;
        let (first, last) = (wall.local(grant.valid_from).day(), wall.local(last_instant).day());
        Some(Self { grant, amount: amount.into(), first, last })
    }
}

impl<'a> EntryEvaluation<'a> {
    /// Visits every limit on the usage of an entry over days: its own quotas first, then those of its budgets, each with
    /// the id of the budget.
    pub(super) fn for_each_limit(
        &mut self,
        entry: &PolicyEntry,
        record: EntryHistory<'_>,
        mut visit: impl FnMut(Option<&BudgetId>, &LimitStatus),
    ) {
        let whose = LimitOwner::Entry(&entry.entry_id);
        self.limits_of(whose, &entry.limits.daily_quota, entry.limits.weekly_quota, record.used)
            .for_each(|limit| visit(None, &self.limit_status(&limit)));
        // A grant for this entry also raises its budgets while the entry runs.
        let favoured = |extra: &ExtraTimeGrant<'_>| matches!(&extra.grant.scope, EntryScope::Entry { entry_id } if *entry_id == entry.entry_id);
        let favourite = self.extras.iter().any(favoured).then_some(&entry.entry_id);
        for id in &entry.budgets {
            // For all other entries a budget has the same status.
            match self.budgets.get(id).filter(|_| favourite.is_none()) {
                Some(known) => known.iter().for_each(|status| visit(Some(id), status)),
                None => {
                    let standings = self.budget_statuses(id, favourite);
                    standings.iter().for_each(|status| visit(Some(id), status));
                    if favourite.is_none() {
                        self.budgets.insert(id.clone(), standings);
                    }
                }
            }
        }
    }

    fn budget_statuses(&self, id: &BudgetId, favourite: Option<&EntryId>) -> Vec<LimitStatus> {
        let Some(budget) = self.facts.policy.rules().budgets.get(id) else { return Vec::new() };
        let whose = LimitOwner::Budget { id, favourite };
        let limits = self.limits_of(
            whose,
            &budget.daily,
            budget.weekly,
            self.usage.and_then(|usage| usage.budget_usage(id)),
        );
        limits.map(|limit| self.limit_status(&limit)).collect()
    }

    fn limits_of<'l>(
        &self,
        whose: LimitOwner<'l>,
        daily: &'l DailyQuota,
        weekly: Option<Duration>,
        used: Option<&'l DailyUsage>,
    ) -> impl Iterator<Item = UsageLimit<'l>> + use<'l> {
        let amounts = std::iter::once(LimitAmount::Daily(daily)).chain(weekly.map(LimitAmount::Weekly));
        amounts.map(move |amount| UsageLimit { owner: whose, amount, days: used })
    }

    fn limit_status(&self, limit: &UsageLimit<'_>) -> LimitStatus {
        let (amount, used) = (self.amount_on(limit, self.at.day), limit.used_on(self.at.day));
        let left = amount.map(|amount| amount.saturating_sub(used));
        let verdict = match amount {
            Some(amount) if used >= amount => RuleVerdict::Refuses(ReasonCode::QuotaExhausted {
                quota: limit.quota(),
                used: used.into(),
                limit: amount.into(),
                until: self.next_refill(limit),
            }),
            _ => self.run_before_limit(limit, left).map_or(RuleVerdict::Passes, RuleVerdict::Limits),
        };
        LimitStatus { rule: limit.rule_name(), is_weekly: limit.is_weekly(), used, left, verdict }
    }

    /// Returns how long a run may last before it reaches the limit. A run across midnight also has the next day's share,
    /// and its limit even if this day has none.
    fn run_before_limit(&self, limit: &UsageLimit<'_>, mut left: Option<Duration>) -> Option<Duration> {
        let (mut total, mut cursor, mut day) = (Duration::ZERO, self.at.wall, self.at.day);
        for _ in 0..PERIODS_AHEAD {
            let end = self.end_of_period(limit, cursor, day)?;
            let until_end = Duration::try_from(end.duration_since(cursor)).unwrap_or_default();
            if let Some(left) = left.filter(|left| *left < until_end) {
                return Some(total.saturating_add(left));
            }
            total = total.saturating_add(until_end);
            // A day that the time zone skipped is passed over.
            (cursor, day) = (end, self.facts.wall.local(end).day());
            left = self.amount_on(limit, day).map(|amount| amount.saturating_sub(limit.used_on(day)));
        }
        None
    }

    /// Returns when there is time again: on the first day or week with more than was used of it.
    fn next_refill(&self, limit: &UsageLimit<'_>) -> Option<Timestamp> {
        let (mut cursor, mut day) = (self.at.wall, self.at.day);
        for _ in 0..PERIODS_AHEAD {
            cursor = self.end_of_period(limit, cursor, day)?;
            day = self.facts.wall.local(cursor).day();
            if self.amount_on(limit, day).is_none_or(|amount| limit.used_on(day) < amount) {
                return Some(cursor);
            }
        }
        None
    }

    fn end_of_period(&self, limit: &UsageLimit<'_>, cursor: Timestamp, day: Day) -> Option<Timestamp> {
        if cursor == self.at.wall {
            return if limit.is_weekly() { self.week_ends } else { self.day_ends };
        }
        self.facts.wall.end_of_day(cursor, limit.last_day(day))
    }

    /// Returns the policy's amount plus earned and granted time; `None` is no limit.
    fn amount_on(&self, limit: &UsageLimit<'_>, day: Day) -> Option<Duration> {
        let given = match limit.amount {
            LimitAmount::Daily(quota) => quota.amount_on(day, self.facts.mode_on(day))?,
            LimitAmount::Weekly(amount) => amount,
        };
        let more = self.earned_on(limit, day).saturating_add(self.granted_on(limit, day));
        Some(given.saturating_add(more))
    }

    /// Earned time raises only the day's share: the week is the stricter limit.
    fn earned_on(&self, limit: &UsageLimit<'_>, day: Day) -> Duration {
        let (LimitOwner::Budget { id, .. }, LimitAmount::Daily(_)) = (limit.owner, limit.amount) else {
            return Duration::ZERO;
        };
        let earned = self.facts.policy.earning_entries(id).map(|(entry_id, earning)| {
            let used = self.usage.and_then(|usage| usage.entry_usage(entry_id));
            earning.earned_for(used_on_day(used, day))
        });
        earned.fold(Duration::ZERO, Duration::saturating_add)
    }

    /// Returns the grants that make a run longer at the evaluated moment, each with what is left of its extra time.
    pub(super) fn extra_runs<'s>(
        &'s self,
        entry: &'s PolicyEntry,
    ) -> impl Iterator<Item = (&'a GrantId, Duration)> + use<'s, 'a> {
        let valid = self.extras.iter().filter(move |extra| extra.grant.is_valid_at(self.at.wall));
        // More of a budget is not a longer run.
        let longer = valid.filter(move |extra| match &extra.grant.scope {
            EntryScope::Everything {} => true,
            EntryScope::Entry { entry_id } => *entry_id == entry.entry_id,
            EntryScope::Budget { .. } => false,
        });
        longer.map(move |extra| {
            let id = &extra.grant.grant_id;
            let mut uses = self.facts.extra_runs.iter();
            let known = uses.find(|known| known.grant_id == *id && known.profile == *self.profile);
            let used =
                known.filter(|known| self.at.day <= known.day).map_or(Duration::ZERO, |known| known.used);
            (id, extra.amount.saturating_sub(used))
        })
    }

    /// Returns the extra time of grants that are valid on that day.
    fn granted_on(&self, limit: &UsageLimit<'_>, day: Day) -> Duration {
        let (from, to) = limit.period(day);
        let extra = self.extras.iter().filter(|extra| {
            // On the evaluated day, a grant counts only while it is valid.
            let holds = if from <= self.at.day && self.at.day <= to {
                extra.grant.is_valid_at(self.at.wall)
            } else {
                extra.first <= to && from <= extra.last
            };
            holds && limit.is_raised_by(&extra.grant.scope)
        });
        extra.fold(Duration::ZERO, |sum, extra| sum.saturating_add(extra.amount))
    }
}

/// A limit on usage over days.
#[derive(Clone, Copy)]
struct UsageLimit<'a> {
    owner: LimitOwner<'a>,
    amount: LimitAmount<'a>,
    days: Option<&'a DailyUsage>,
}

#[derive(Clone, Copy)]
enum LimitOwner<'a> {
    Entry(&'a EntryId),
    Budget {
        id: &'a BudgetId,
        /// The entry that uses the limit, if it has a grant of its own.
        favourite: Option<&'a EntryId>,
    },
}

#[derive(Clone, Copy)]
enum LimitAmount<'a> {
    Daily(&'a DailyQuota),
    Weekly(Duration),
}

impl UsageLimit<'_> {
    fn rule_name(&self) -> &'static str {
        match (self.owner, self.amount) {
            (LimitOwner::Entry(_), LimitAmount::Daily(_)) => "daily-quota",
            (LimitOwner::Entry(_), LimitAmount::Weekly(_)) => "weekly-quota",
            (LimitOwner::Budget { .. }, LimitAmount::Daily(_)) => "budget-daily",
            (LimitOwner::Budget { .. }, LimitAmount::Weekly(_)) => "budget-weekly",
        }
    }

    fn quota(&self) -> QuotaKind {
        match (self.owner, self.amount) {
            (LimitOwner::Entry(_), LimitAmount::Daily(_)) => QuotaKind::EntryDaily,
            (LimitOwner::Entry(_), LimitAmount::Weekly(_)) => QuotaKind::EntryWeekly,
            (LimitOwner::Budget { id, .. }, LimitAmount::Daily(_)) => QuotaKind::BudgetDaily(id.clone()),
            (LimitOwner::Budget { id, .. }, LimitAmount::Weekly(_)) => QuotaKind::BudgetWeekly(id.clone()),
        }
    }

    fn is_weekly(&self) -> bool {
        matches!(self.amount, LimitAmount::Weekly(_))
    }

    /// Returns the first and the last day of the period that a day belongs to.
    fn period(&self, day: Day) -> (Day, Day) {
        let monday = day.week_start();
        if self.is_weekly() { (monday, monday.plus_days(6)) } else { (day, day) }
    }

    fn last_day(&self, day: Day) -> Day {
        self.period(day).1
    }

    fn used_on(&self, day: Day) -> Duration {
        if self.is_weekly() { used_in_week(self.days, day) } else { used_on_day(self.days, day) }
    }

    fn is_raised_by(&self, scope: &EntryScope) -> bool {
        match (scope, self.owner) {
            (EntryScope::Everything {}, _) => true,
            (EntryScope::Entry { entry_id }, LimitOwner::Entry(own)) => entry_id == own,
            (EntryScope::Entry { entry_id }, LimitOwner::Budget { favourite, .. }) => {
                favourite == Some(entry_id)
            }
            (EntryScope::Budget { budget_id }, LimitOwner::Budget { id, .. }) => budget_id == id,
            (EntryScope::Budget { .. }, LimitOwner::Entry(_)) => false,
        }
    }
}
