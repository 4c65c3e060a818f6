//! What was used, in memory: loaded once, written through, never asked of the store again.

use std::collections::BTreeMap;
use std::time::Duration;

use shepherd_util::{BudgetId, EntryId, ProfileId};

use crate::policy::Day;
use crate::state::{Counter, UsageKey};

/// Use by day.
pub(crate) type Days = BTreeMap<Day, Duration>;

/// Use by profile.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct UsageBook(BTreeMap<ProfileId, ProfileUsage>);

/// Use of one profile.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ProfileUsage {
    entries: BTreeMap<EntryId, Days>,
    budgets: BTreeMap<BudgetId, Days>,
}

impl UsageBook {
    pub(crate) fn new(usage: BTreeMap<UsageKey, Duration>) -> Self {
        let mut book = Self::default();
        for (key, amount) in usage {
            book.add(&key, amount);
        }
        book
    }

    pub(crate) fn add(&mut self, key: &UsageKey, amount: Duration) {
        let profile = self.0.entry(key.profile.clone()).or_default();
        let days = match &key.counter {
            Counter::Entry(entry) => profile.entries.entry(entry.clone()).or_default(),
            Counter::Budget(budget) => profile.budgets.entry(budget.clone()).or_default(),
        };
        let used = days.entry(key.day).or_default();
        *used = used.saturating_add(amount);
    }

    pub(crate) fn of(&self, profile: &ProfileId) -> Option<&ProfileUsage> {
        self.0.get(profile)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (UsageKey, Duration)> {
        self.0.iter().flat_map(|(profile, usage)| {
            let key = |counter: Counter, day: Day| UsageKey { profile: profile.clone(), counter, day };
            let entries = usage.entries.iter().flat_map(move |(entry, days)| {
                days.iter().map(move |(day, used)| (key(Counter::Entry(entry.clone()), *day), *used))
            });
            let budgets = usage.budgets.iter().flat_map(move |(budget, days)| {
                days.iter().map(move |(day, used)| (key(Counter::Budget(budget.clone()), *day), *used))
            });
            entries.chain(budgets)
        })
    }
}

impl ProfileUsage {
    pub(crate) fn of_entry(&self, entry: &EntryId) -> Option<&Days> {
        self.entries.get(entry)
    }

    pub(crate) fn of_budget(&self, budget: &BudgetId) -> Option<&Days> {
        self.budgets.get(budget)
    }
}

/// What was used on a day.
pub(crate) fn on(days: Option<&Days>, day: Day) -> Duration {
    days.and_then(|days| days.get(&day)).copied().unwrap_or_default()
}

/// The whole week: what was borrowed from a later day of it is gone, too.
pub(crate) fn in_week(days: Option<&Days>, day: Day) -> Duration {
    let monday = day.week_start();
    let used = days.into_iter().flat_map(|days| days.range(monday..monday.plus(7)));
    used.map(|(_, used)| *used).fold(Duration::ZERO, Duration::saturating_add)
}
