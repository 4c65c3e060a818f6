//! The time that was really played, by child, counter and day, and the limits of a policy.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use shepherd_api::{EntryScope, GrantKind, GrantView};
use shepherd_core::policy::{DailyQuota, Day, Policy, PolicyEntry, TimeCost};

use super::household::{BUDGETS, CHILDREN, ENTRIES};
use super::reference_clock::day_of;

/// The counter of an entry or budget, as an index into `ENTRIES` or `BUDGETS`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum CounterIndex {
    Entry(usize),
    Budget(usize),
}

/// Played time by child, counter and day.
#[derive(Clone, Default)]
pub(super) struct UsageModel {
    played: BTreeMap<(usize, CounterIndex, Day), Duration>,
    /// Time that may have been charged without being played, by child, entry and day.
    paid: BTreeMap<(usize, usize, Day), Duration>,
    /// The part of `played` that was charged to a second day.
    played_twice: BTreeMap<(usize, CounterIndex, Day), Duration>,
    /// The part of `paid` that may have been charged to a second day.
    paid_twice: BTreeMap<(usize, usize, Day), Duration>,
    /// The days before the clock was corrected to an earlier one.
    last_days: BTreeSet<Day>,
    /// Time that may have been charged since then, by child and entry.
    used_since: Vec<(usize, usize, Duration)>,
    /// The most time that was charged to entries for a second time.
    pub(super) charged_again: Duration,
}

impl UsageModel {
    pub(super) fn add(&mut self, child: usize, what: CounterIndex, day: Day, amount: Duration) {
        *self.played.entry((child, what, day)).or_default() += amount;
    }

    pub(super) fn get(&self, child: usize, what: CounterIndex, day: Day) -> Duration {
        self.played.get(&(child, what, day)).copied().unwrap_or_default()
    }

    pub(super) fn add_overcharge(&mut self, child: usize, entry: usize, day: Day, amount: Duration) {
        *self.paid.entry((child, entry, day)).or_default() += amount;
    }

    /// Returns the time that may count as use of an entry. Rules of a later policy may let it earn time.
    fn used(&self, child: usize, entry: usize, day: Day) -> Duration {
        let paid = self.paid.get(&(child, entry, day)).copied().unwrap_or_default();
        self.get(child, CounterIndex::Entry(entry), day) + paid
    }

    /// Records time that was charged to an entry, in case a corrected clock turns out to be behind.
    pub(super) fn record_charge(&mut self, child: usize, entry: usize, day: Day, amount: Duration) {
        if self.last_days.last().is_some_and(|last_day| day < *last_day) {
            self.used_since.push((child, entry, amount));
        }
    }

    /// Charges time on days more than a week after today again. Time of the last day was really used today. Earlier time
    /// was used today or before, which the model doesn't know. Entries that are rewarded aren't charged again.
    pub(super) fn correct_to_earlier_day(&mut self, today: Day, last: Day, terms: &PolicyTerms) {
        let near = today.plus_days(7);
        for ((child, what, day), amount) in self.played.clone() {
            if matches!(what, CounterIndex::Entry(entry) if terms.is_rewarded(entry)) {
                continue;
            }
            let charged = self.played_twice.insert((child, what, day), amount).unwrap_or_default();
            let new = amount.saturating_sub(charged);
            match what {
                _ if day <= near => {}
                CounterIndex::Budget(_) if day < last => {}
                CounterIndex::Budget(_) => self.add(child, what, today, new),
                CounterIndex::Entry(_) if day >= last => {
                    self.charged_again += new;
                    self.add(child, what, today, new);
                }
                CounterIndex::Entry(entry) => {
                    self.charge_again(child, entry, [today, today.plus_days(day.0 - last.0)], new);
                }
            }
        }
        for ((child, entry, day), amount) in self.paid.clone() {
            if terms.is_rewarded(entry) {
                continue;
            }
            let charged = self.paid_twice.insert((child, entry, day), amount).unwrap_or_default();
            if near < day {
                let days = [today, today.plus_days((day.0 - last.0).min(0))];
                self.charge_again(child, entry, days, amount.saturating_sub(charged));
            }
        }
        // The next days pay back what was borrowed from them, unless the clock is corrected again.
        self.played_twice.retain(|(_, _, day), _| near < *day);
        self.paid_twice.retain(|(_, _, day), _| near < *day);
        if near < last || self.last_days.is_empty() {
            self.last_days.insert(last);
        }
    }

    /// Charges usage since a correction again, if the clock may have been behind since then. The model doesn't know the
    /// days.
    pub(super) fn charge_use_since_correction_again(&mut self, today: Day) {
        let known = self.last_days.len();
        self.last_days.retain(|last_day| today < *last_day);
        self.played_twice.retain(|(_, _, day), _| today <= day.plus_days(28));
        self.paid_twice.retain(|(_, _, day), _| today <= day.plus_days(28));
        if self.last_days.len() < known {
            for (child, entry, amount) in self.used_since.clone() {
                self.charge_again(child, entry, (0..7).map(|ago| today.plus_days(-ago)), amount);
            }
            if self.last_days.is_empty() {
                self.used_since.clear();
            }
        }
    }

    /// Records that the engine may have charged time to an entry again, on one of these days.
    fn charge_again(
        &mut self,
        child: usize,
        entry: usize,
        days: impl IntoIterator<Item = Day>,
        amount: Duration,
    ) {
        self.charged_again += amount;
        for day in days {
            self.add_overcharge(child, entry, day, amount);
        }
    }

    fn played_on_days(&self, child: usize, what: CounterIndex, days: &[Day]) -> Duration {
        days.iter().map(|day| self.get(child, what, *day)).sum()
    }

    pub(super) fn total(&self) -> Duration {
        self.played.values().sum()
    }
}

/// A policy with the chosen mode and the zone.
#[derive(Clone)]
pub(super) struct PolicyTerms {
    pub(super) policy: std::rc::Rc<Policy>,
    pub(super) mode: Option<String>,
    pub(super) zone: TimeZone,
}

/// A quota: the time that was really played, and the limit.
pub(super) struct QuotaCheck {
    what: CounterIndex,
    period: &'static str,
    pub(super) played: Duration,
    pub(super) allowed: Duration,
}

impl fmt::Display for QuotaCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} of {:?} a {} of {:?}", self.played, self.allowed, self.period, self.what)
    }
}

impl PolicyTerms {
    pub(super) fn entry(&self, entry: usize) -> Option<&PolicyEntry> {
        self.policy.entries().iter().find(|known| known.entry_id.as_str() == ENTRIES[entry])
    }

    /// Returns true if use of an entry earns time or unlocks another entry.
    fn is_rewarded(&self, entry: usize) -> bool {
        let unlocks = |rules: &PolicyEntry| {
            rules.unlock.as_ref().is_some_and(|unlock| unlock.entry_id.as_str() == ENTRIES[entry])
        };
        self.entry(entry).is_some_and(|rules| rules.earns.is_some())
            || self.policy.entries().iter().any(unlocks)
    }

    pub(super) fn mode_on(&self, day: Day) -> &str {
        self.mode.as_deref().unwrap_or_else(|| self.policy.rules().modes.mode_on(day))
    }

    /// Returns every quota of an entry on a day, including earned time and these grants: those that are valid on the
    /// day, and those that are borrowed from another day.
    pub(super) fn quotas<'g>(
        &self,
        child: usize,
        entry: usize,
        day: Day,
        book: &UsageModel,
        grants: &(impl Iterator<Item = &'g GrantView> + Clone),
        is_lent: impl Fn(&GrantView) -> bool,
    ) -> Vec<QuotaCheck> {
        let Some(rules) = self.entry(entry).filter(|rules| rules.cost == TimeCost::Counts) else {
            return Vec::new();
        };
        let week: Vec<Day> = (0..7).map(|ahead| day.week_start().plus_days(ahead)).collect();
        let mut quotas = Vec::new();
        let mut add = |what: CounterIndex, daily: &DailyQuota, weekly: Option<Duration>| {
            let periods = [
                ("day", daily.amount_on(day, self.mode_on(day)), std::slice::from_ref(&day)),
                ("week", weekly, week.as_slice()),
            ];
            for (period, amount, days) in periods {
                let Some(amount) = amount else { continue };
                let gifts: Duration = grants
                    .clone()
                    .filter(|grant| grant_raises_counter(grant, child, entry, rules, what))
                    .filter(|grant| self.holds_on(grant, days) || is_lent(grant))
                    .map(extra_time)
                    .sum();
                let earned =
                    if period == "day" { self.earned(child, what, day, book) } else { Duration::ZERO };
                let allowed = amount + gifts + earned;
                quotas.push(QuotaCheck {
                    what,
                    period,
                    played: book.played_on_days(child, what, days),
                    allowed,
                });
            }
        };
        add(CounterIndex::Entry(entry), &rules.limits.daily_quota, rules.limits.weekly_quota);
        for (position, id) in BUDGETS.iter().enumerate() {
            if rules.budgets.iter().any(|budget| budget.as_str() == *id) {
                let budget = &self.policy.rules().budgets[&id.parse().unwrap()];
                add(CounterIndex::Budget(position), &budget.daily, budget.weekly);
            }
        }
        quotas
    }

    /// Earned time raises only the daily quota.
    fn earned(&self, child: usize, what: CounterIndex, day: Day, book: &UsageModel) -> Duration {
        let CounterIndex::Budget(budget) = what else { return Duration::ZERO };
        let earners =
            (0..ENTRIES.len()).filter_map(|entry| Some((entry, self.entry(entry)?.earns.as_ref()?)));
        let earners = earners.filter(|(_, earning)| earning.budget.as_str() == BUDGETS[budget]);
        let earned = earners.map(|(entry, earning)| {
            let portions = book.used(child, entry, day).as_micros() / earning.for_each.as_micros();
            let portions = u32::try_from(portions).unwrap_or(u32::MAX);
            earning.earned.saturating_mul(portions).min(earning.ceiling)
        });
        earned.sum()
    }

    fn holds_on(&self, grant: &GrantView, days: &[Day]) -> bool {
        let first = day_of(grant.valid_from, &self.zone);
        let last = day_of(grant.lapses_at - Duration::from_nanos(1), &self.zone);
        first <= days[days.len() - 1] && days[0] <= last
    }

    /// Returns true if an entry is open at a time, by its windows or by one of these grants.
    pub(super) fn is_open<'g>(
        &self,
        child: usize,
        entry: usize,
        at: Timestamp,
        mut grants: impl Iterator<Item = &'g GrantView>,
    ) -> bool {
        super::hours::is_open(self, child, entry, at)
            || grants.any(|grant| {
                let GrantKind::OpenUntil { until } = grant.gift else { return false };
                let rules = self.entry(entry);
                rules.is_some_and(|rules| grant_applies(grant, child, entry, rules))
                    && grant.valid_from <= at
                    && at < until.min(grant.lapses_at)
            })
    }
}

/// Returns the extra time that a grant gives.
pub(super) fn extra_time(grant: &GrantView) -> Duration {
    match grant.gift {
        GrantKind::Extra { amount } => amount.into(),
        GrantKind::OpenUntil { .. } => Duration::ZERO,
    }
}

/// Returns true if a grant is for this child and this entry.
pub(super) fn grant_applies(grant: &GrantView, child: usize, entry: usize, rules: &PolicyEntry) -> bool {
    let in_scope = match &grant.scope {
        EntryScope::Everything {} => true,
        EntryScope::Entry { entry_id } => entry_id.as_str() == ENTRIES[entry],
        EntryScope::Budget { budget_id } => rules.budgets.contains(budget_id),
    };
    in_scope && is_for_child(grant, child)
}

pub(super) fn is_for_child(grant: &GrantView, child: usize) -> bool {
    grant.profile.as_ref().is_none_or(|profile| profile.as_str() == CHILDREN[child])
}

/// Returns true if a grant raises this counter. A grant for a budget raises only that budget.
fn grant_raises_counter(
    grant: &GrantView,
    child: usize,
    entry: usize,
    rules: &PolicyEntry,
    what: CounterIndex,
) -> bool {
    let same_counter = match (&grant.scope, what) {
        (EntryScope::Budget { budget_id }, CounterIndex::Budget(budget)) => {
            budget_id.as_str() == BUDGETS[budget]
        }
        (EntryScope::Budget { .. }, CounterIndex::Entry(_)) => false,
        (EntryScope::Everything {} | EntryScope::Entry { .. }, _) => true,
    };
    same_counter && grant_applies(grant, child, entry, rules)
}
