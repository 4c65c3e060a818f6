//! Usage in memory: loaded once, written through, never read from the store again.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use shepherd_util::{BudgetId, EntryId, ProfileId};

use crate::policy::Day;
use crate::state::{UsageCounter, UsageKey};

/// Usage by profile. A clone shares the usage of each profile until one of the two changes it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct UsageTable(BTreeMap<ProfileId, Arc<ProfileUsage>>);

/// Usage of one profile.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ProfileUsage {
    entries: BTreeMap<EntryId, DailyUsage>,
    budgets: BTreeMap<BudgetId, DailyUsage>,
}

/// Usage by day, in order. Nearly all questions are about the last few days, which are adjacent.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct DailyUsage(Vec<(Day, Duration)>);

impl UsageTable {
    pub(crate) fn new(usage: BTreeMap<UsageKey, Duration>) -> Self {
        let mut book = Self::default();
        for (UsageKey { profile, counter, day }, amount) in usage {
            book.daily_usage_mut(profile, counter).add(day, amount);
        }
        book
    }

    pub(crate) fn add(&mut self, key: &UsageKey, amount: Duration) {
        self.daily_usage_mut(key.profile.clone(), key.counter.clone()).add(key.day, amount);
    }

    fn daily_usage_mut(&mut self, profile: ProfileId, counter: UsageCounter) -> &mut DailyUsage {
        let usage = Arc::make_mut(self.0.entry(profile).or_default());
        match counter {
            UsageCounter::Entry(entry) => usage.entries.entry(entry).or_default(),
            UsageCounter::Budget(budget) => usage.budgets.entry(budget).or_default(),
        }
    }

    pub(crate) fn profile_usage(&self, profile: &ProfileId) -> Option<&ProfileUsage> {
        self.0.get(profile).map(Arc::as_ref)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (UsageKey, Duration)> {
        self.0.iter().flat_map(|(profile, usage)| {
            let key = |counter: UsageCounter, day: Day| UsageKey { profile: profile.clone(), counter, day };
            let entries = usage.entries.iter().flat_map(move |(entry, days)| {
                days.0.iter().map(move |(day, used)| (key(UsageCounter::Entry(entry.clone()), *day), *used))
            });
            let budgets = usage.budgets.iter().flat_map(move |(budget, days)| {
                days.0.iter().map(move |(day, used)| (key(UsageCounter::Budget(budget.clone()), *day), *used))
            });
            entries.chain(budgets)
        })
    }
}

impl ProfileUsage {
    pub(crate) fn entry_usage(&self, entry: &EntryId) -> Option<&DailyUsage> {
        self.entries.get(entry)
    }

    /// Returns the usage of each entry, in the order of their names.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (&EntryId, &DailyUsage)> {
        self.entries.iter()
    }

    pub(crate) fn budget_usage(&self, budget: &BudgetId) -> Option<&DailyUsage> {
        self.budgets.get(budget)
    }
}

impl DailyUsage {
    fn add(&mut self, day: Day, amount: Duration) {
        let at = self.0.partition_point(|(other, _)| *other < day);
        match self.0.get_mut(at) {
            Some((other, used)) if *other == day => *used = used.saturating_add(amount),
            _ => self.0.insert(at, (day, amount)),
        }
    }

    fn days_since(&self, day: Day) -> &[(Day, Duration)] {
        // There is at most one element a day, so the days since `day` are among this many last elements.
        let last = self.0.last().map_or(day, |(last, _)| *last);
        let most = usize::try_from(last.0.saturating_sub(day.0).saturating_add(1)).unwrap_or(0);
        let near = self.0.get(self.0.len().saturating_sub(most)..).unwrap_or_default();
        near.get(near.partition_point(|(other, _)| *other < day)..).unwrap_or_default()
    }
}

/// Returns the usage of a day.
pub(crate) fn used_on_day(days: Option<&DailyUsage>, day: Day) -> Duration {
    let first = days.and_then(|days| days.days_since(day).first());
    first.filter(|(other, _)| *other == day).map_or(Duration::ZERO, |(_, used)| *used)
}

/// Returns the usage of the whole week, including days after `day`, which a clock that was set back may have left.
pub(crate) fn used_in_week(days: Option<&DailyUsage>, day: Day) -> Duration {
    let monday = day.week_start();
    let since = days.into_iter().flat_map(|days| days.days_since(monday));
    let week = since.take_while(|(other, _)| *other < monday.plus_days(7));
    week.fold(Duration::ZERO, |sum, (_, used)| sum.saturating_add(*used))
}
