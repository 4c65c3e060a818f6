//! What bounds use over days: quotas and budgets, with what was earned and granted.

use std::time::Duration;

use jiff::Timestamp;
use shepherd_api::{Gift, GrantView, Quota, ReasonCode, Scope};
use shepherd_util::{BudgetId, EntryId};

use super::Saying;
use super::hearing::Hearing;
use super::record::Record;
use crate::civil::Wall;
use crate::policy::{DailyQuota, Day, Entry};
use crate::usage::{Days, in_week, on};

/// How many days ahead a quota is followed: a run that long is without end for all purposes.
const PERIODS_AHEAD: u8 = 8;

/// How it stands with a limit.
#[derive(Clone)]
pub(super) struct Standing {
    pub(super) rule: &'static str,
    pub(super) used: Duration,
    pub(super) saying: Saying,
}

/// Extra time that somebody may use, and the days on which it holds.
pub(super) struct Extra<'a> {
    grant: &'a GrantView,
    amount: Duration,
    first: Day,
    last: Day,
}

impl<'a> Extra<'a> {
    pub(super) fn of(grant: &'a GrantView, wall: &Wall<'_>) -> Option<Self> {
        let Gift::Extra { amount } = grant.gift else { return None };
        // What was taken back before it began has never held.
        let over = grant.revoked_at.map_or(grant.lapses_at, |revoked| revoked.min(grant.lapses_at));
        let last_instant =
            over.checked_sub(Duration::from_nanos(1)).ok().filter(|last| *last >= grant.valid_from)?;
        let (first, last) = (wall.local(grant.valid_from).day(), wall.local(last_instant).day());
        Some(Self { grant, amount: amount.into(), first, last })
    }
}

impl<'a> Hearing<'a> {
    /// Everything that bounds the use of an entry over days: its own quotas, and its budgets.
    pub(super) fn each_limit(&mut self, entry: &Entry, record: Record<'_>, mut visit: impl FnMut(&Standing)) {
        let whose = Whose::Entry(&entry.entry_id);
        self.limits_of(whose, &entry.limits.daily_quota, entry.limits.weekly_quota, record.used)
            .for_each(|limit| visit(&self.stands(&limit)));
        // A gift for this very entry works on its budgets, too, while it is the one that runs.
        let favoured = |extra: &Extra<'_>| matches!(&extra.grant.scope, Scope::Entry { entry_id } if *entry_id == entry.entry_id);
        let favourite = self.extras.iter().any(favoured).then_some(&entry.entry_id);
        for id in &entry.budgets {
            // To all others a budget says the same.
            match self.budgets.get(id).filter(|_| favourite.is_none()) {
                Some(known) => known.iter().for_each(&mut visit),
                None => {
                    let standings = self.budget(id, favourite);
                    standings.iter().for_each(&mut visit);
                    if favourite.is_none() {
                        self.budgets.insert(id.clone(), standings);
                    }
                }
            }
        }
    }

    fn budget(&self, id: &BudgetId, favourite: Option<&EntryId>) -> Vec<Standing> {
        let Some(budget) = self.facts.policy.rules().budgets.get(id) else { return Vec::new() };
        let whose = Whose::Budget { id, favourite };
        let limits = self.limits_of(
            whose,
            &budget.daily,
            budget.weekly,
            self.usage.and_then(|usage| usage.of_budget(id)),
        );
        limits.map(|limit| self.stands(&limit)).collect()
    }

    fn limits_of<'l>(
        &self,
        whose: Whose<'l>,
        daily: &'l DailyQuota,
        weekly: Option<Duration>,
        used: Option<&'l Days>,
    ) -> impl Iterator<Item = Limit<'l>> + use<'l> {
        let amounts = std::iter::once(Amount::Daily(daily)).chain(weekly.map(Amount::Weekly));
        amounts.map(move |amount| Limit { whose, amount, days: used })
    }

    fn stands(&self, limit: &Limit<'_>) -> Standing {
        let (amount, used) = (self.amount_on(limit, self.at.day), limit.used_on(self.at.day));
        let saying = match amount {
            Some(amount) if used >= amount => Saying::No(ReasonCode::QuotaExhausted {
                quota: limit.quota(),
                used: used.into(),
                limit: amount.into(),
                until: self.refill(limit),
            }),
            _ => {
                let left = amount.map(|amount| amount.saturating_sub(used));
                self.leaves(limit, left).map_or(Saying::Nothing, Saying::AtMost)
            }
        };
        Standing { rule: limit.rule(), used, saying }
    }

    /// How long a run may last before it hits the limit, with so much left now. A run across midnight has the next
    /// day's share, too, and its limit even where this day has none.
    fn leaves(&self, limit: &Limit<'_>, mut left: Option<Duration>) -> Option<Duration> {
        let (mut total, mut cursor, mut day) = (Duration::ZERO, self.at.wall, self.at.day);
        for _ in 0..PERIODS_AHEAD {
            let end = self.end_of_period(limit, cursor, day)?;
            let until_end = Duration::try_from(end.duration_since(cursor)).unwrap_or_default();
            if let Some(left) = left.filter(|left| *left < until_end) {
                return Some(total.saturating_add(left));
            }
            total = total.saturating_add(until_end);
            // A day that did not take place is passed over.
            (cursor, day) = (end, self.facts.wall.local(end).day());
            left = self.amount_on(limit, day).map(|amount| amount.saturating_sub(limit.used_on(day)));
        }
        None
    }

    /// When there will be some again: with the first day or week that has more than was used of it.
    fn refill(&self, limit: &Limit<'_>) -> Option<Timestamp> {
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

    fn end_of_period(&self, limit: &Limit<'_>, cursor: Timestamp, day: Day) -> Option<Timestamp> {
        if cursor == self.at.wall {
            return if limit.is_weekly() { self.week_ends } else { self.day_ends };
        }
        self.facts.wall.end_of_day(cursor, limit.last_day(day))
    }

    /// The policy's amount, with what was earned and granted; `None` is without limit.
    fn amount_on(&self, limit: &Limit<'_>, day: Day) -> Option<Duration> {
        let given = match limit.amount {
            Amount::Daily(quota) => quota.on(day, self.facts.mode_on(day))?,
            Amount::Weekly(amount) => amount,
        };
        let more = self.earned_on(limit, day).saturating_add(self.granted_on(limit, day));
        Some(given.saturating_add(more))
    }

    /// What was earned raises the day's share only: the week is the harder bound.
    fn earned_on(&self, limit: &Limit<'_>, day: Day) -> Duration {
        let (Whose::Budget { id, .. }, Amount::Daily(_)) = (limit.whose, limit.amount) else {
            return Duration::ZERO;
        };
        let earned = self.facts.policy.earners(id).map(|(entry_id, earning)| {
            let used = self.usage.and_then(|usage| usage.of_entry(entry_id));
            earning.for_use(on(used, day))
        });
        earned.fold(Duration::ZERO, Duration::saturating_add)
    }

    /// Extra time whose grant holds on that day.
    fn granted_on(&self, limit: &Limit<'_>, day: Day) -> Duration {
        let (from, to) = limit.period(day);
        let extra = self.extras.iter().filter(|extra| {
            // On the day that the question is about, only while it holds.
            let holds = if from <= self.at.day && self.at.day <= to {
                extra.grant.holds_at(self.at.wall)
            } else {
                extra.first <= to && from <= extra.last
            };
            holds && limit.is_stretched_by(&extra.grant.scope)
        });
        extra.fold(Duration::ZERO, |sum, extra| sum.saturating_add(extra.amount))
    }
}

/// Something that bounds use over days.
#[derive(Clone, Copy)]
struct Limit<'a> {
    whose: Whose<'a>,
    amount: Amount<'a>,
    days: Option<&'a Days>,
}

#[derive(Clone, Copy)]
enum Whose<'a> {
    Entry(&'a EntryId),
    Budget {
        id: &'a BudgetId,
        /// The entry that draws on it, if it has a gift of its own.
        favourite: Option<&'a EntryId>,
    },
}

#[derive(Clone, Copy)]
enum Amount<'a> {
    Daily(&'a DailyQuota),
    Weekly(Duration),
}

impl Limit<'_> {
    fn rule(&self) -> &'static str {
        match (self.whose, self.amount) {
            (Whose::Entry(_), Amount::Daily(_)) => "daily-quota",
            (Whose::Entry(_), Amount::Weekly(_)) => "weekly-quota",
            (Whose::Budget { .. }, Amount::Daily(_)) => "budget-daily",
            (Whose::Budget { .. }, Amount::Weekly(_)) => "budget-weekly",
        }
    }

    fn quota(&self) -> Quota {
        match (self.whose, self.amount) {
            (Whose::Entry(_), Amount::Daily(_)) => Quota::EntryDaily,
            (Whose::Entry(_), Amount::Weekly(_)) => Quota::EntryWeekly,
            (Whose::Budget { id, .. }, Amount::Daily(_)) => Quota::BudgetDaily(id.clone()),
            (Whose::Budget { id, .. }, Amount::Weekly(_)) => Quota::BudgetWeekly(id.clone()),
        }
    }

    fn is_weekly(&self) -> bool {
        matches!(self.amount, Amount::Weekly(_))
    }

    /// The first and the last day of the period that a day belongs to.
    fn period(&self, day: Day) -> (Day, Day) {
        let monday = day.week_start();
        if self.is_weekly() { (monday, monday.plus(6)) } else { (day, day) }
    }

    fn last_day(&self, day: Day) -> Day {
        self.period(day).1
    }

    fn used_on(&self, day: Day) -> Duration {
        if self.is_weekly() { in_week(self.days, day) } else { on(self.days, day) }
    }

    fn is_stretched_by(&self, scope: &Scope) -> bool {
        match (scope, self.whose) {
            (Scope::Everything {}, _) => true,
            (Scope::Entry { entry_id }, Whose::Entry(own)) => entry_id == own,
            (Scope::Entry { entry_id }, Whose::Budget { favourite, .. }) => favourite == Some(entry_id),
            (Scope::Budget { budget_id }, Whose::Budget { id, .. }) => budget_id == id,
            (Scope::Budget { .. }, Whose::Entry(_)) => false,
        }
    }
}
