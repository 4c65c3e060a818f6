//! What was really played, by child, counter and day; and what a policy allows of it.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use shepherd_api::{Gift, GrantView, Scope};
use shepherd_core::policy::{Cost, DailyQuota, Day, Entry, Policy};

use super::household::{BUDGETS, CHILDREN, ENTRIES};
use super::watch::day_of;

/// What play is counted under, as a position in `ENTRIES` or `BUDGETS`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum What {
    Entry(usize),
    Budget(usize),
}

/// Play by child, counter and day.
#[derive(Clone, Default)]
pub(super) struct Book {
    played: BTreeMap<(usize, What, Day), Duration>,
    /// What may have been charged though nobody played, by child, entry and day.
    paid: BTreeMap<(usize, usize, Day), Duration>,
}

impl Book {
    pub(super) fn add(&mut self, child: usize, what: What, day: Day, amount: Duration) {
        *self.played.entry((child, what, day)).or_default() += amount;
    }

    pub(super) fn get(&self, child: usize, what: What, day: Day) -> Duration {
        self.played.get(&(child, what, day)).copied().unwrap_or_default()
    }

    pub(super) fn pay(&mut self, child: usize, entry: usize, day: Day, amount: Duration) {
        *self.paid.entry((child, entry, day)).or_default() += amount;
    }

    /// What may count as use of an entry: it earns by rules that come later, too.
    fn used(&self, child: usize, entry: usize, day: Day) -> Duration {
        let paid = self.paid.get(&(child, entry, day)).copied().unwrap_or_default();
        self.get(child, What::Entry(entry), day) + paid
    }

    fn over(&self, child: usize, what: What, days: &[Day]) -> Duration {
        days.iter().map(|day| self.get(child, what, *day)).sum()
    }

    pub(super) fn total(&self) -> Duration {
        self.played.values().sum()
    }
}

/// How a policy was understood at a moment: its words, the mode somebody had chosen, and the zone.
#[derive(Clone)]
pub(super) struct Terms {
    pub(super) policy: std::rc::Rc<Policy>,
    pub(super) mode: Option<String>,
    pub(super) zone: TimeZone,
}

/// One quota: how much was really played of how much.
pub(super) struct Quota {
    what: What,
    period: &'static str,
    pub(super) played: Duration,
    pub(super) allowed: Duration,
}

impl fmt::Display for Quota {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} of {:?} a {} of {:?}", self.played, self.allowed, self.period, self.what)
    }
}

impl Terms {
    pub(super) fn entry(&self, entry: usize) -> Option<&Entry> {
        self.policy.entries().iter().find(|known| known.entry_id.as_str() == ENTRIES[entry])
    }

    pub(super) fn mode_on(&self, day: Day) -> &str {
        self.mode.as_deref().unwrap_or_else(|| self.policy.rules().modes.on(day))
    }

    /// Every quota that bounds an entry on a day, with what was earned and what these grants add: those that hold on
    /// the day, and those that were lent to it.
    pub(super) fn quotas<'g>(
        &self,
        child: usize,
        entry: usize,
        day: Day,
        book: &Book,
        grants: &(impl Iterator<Item = &'g GrantView> + Clone),
        is_lent: impl Fn(&GrantView) -> bool,
    ) -> Vec<Quota> {
        let Some(rules) = self.entry(entry).filter(|rules| rules.cost == Cost::Counts) else {
            return Vec::new();
        };
        let week: Vec<Day> = (0..7).map(|ahead| day.week_start().plus(ahead)).collect();
        let mut quotas = Vec::new();
        let mut add = |what: What, daily: &DailyQuota, weekly: Option<Duration>| {
            let periods = [
                ("day", daily.on(day, self.mode_on(day)), std::slice::from_ref(&day)),
                ("week", weekly, week.as_slice()),
            ];
            for (period, amount, days) in periods {
                let Some(amount) = amount else { continue };
                let gifts: Duration = grants
                    .clone()
                    .filter(|grant| adds_to(grant, child, entry, rules, what))
                    .filter(|grant| self.holds_on(grant, days) || is_lent(grant))
                    .map(extra)
                    .sum();
                let earned =
                    if period == "day" { self.earned(child, what, day, book) } else { Duration::ZERO };
                let allowed = amount + gifts + earned;
                quotas.push(Quota { what, period, played: book.over(child, what, days), allowed });
            }
        };
        add(What::Entry(entry), &rules.limits.daily_quota, rules.limits.weekly_quota);
        for (position, id) in BUDGETS.iter().enumerate() {
            if rules.budgets.iter().any(|budget| budget.as_str() == *id) {
                let budget = &self.policy.rules().budgets[&id.parse().unwrap()];
                add(What::Budget(position), &budget.daily, budget.weekly);
            }
        }
        quotas
    }

    /// What was earned raises the day's share only.
    fn earned(&self, child: usize, what: What, day: Day, book: &Book) -> Duration {
        let What::Budget(budget) = what else { return Duration::ZERO };
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

    /// Whether the windows, or one of these grants, are open for an entry at a time.
    pub(super) fn is_open<'g>(
        &self,
        child: usize,
        entry: usize,
        at: Timestamp,
        mut grants: impl Iterator<Item = &'g GrantView>,
    ) -> bool {
        super::hours::is_open(self, entry, at)
            || grants.any(|grant| {
                let Gift::OpenUntil { until } = grant.gift else { return false };
                let rules = self.entry(entry);
                rules.is_some_and(|rules| concerns(grant, child, entry, rules))
                    && grant.valid_from <= at
                    && at < until.min(grant.lapses_at)
            })
    }
}

/// The extra time that a grant gives.
pub(super) fn extra(grant: &GrantView) -> Duration {
    match grant.gift {
        Gift::Extra { amount } => amount.into(),
        Gift::OpenUntil { .. } => Duration::ZERO,
    }
}

/// Whether a grant is for this child and this entry.
pub(super) fn concerns(grant: &GrantView, child: usize, entry: usize, rules: &Entry) -> bool {
    let in_scope = match &grant.scope {
        Scope::Everything {} => true,
        Scope::Entry { entry_id } => entry_id.as_str() == ENTRIES[entry],
        Scope::Budget { budget_id } => rules.budgets.contains(budget_id),
    };
    in_scope && grant.profile.as_ref().is_none_or(|profile| profile.as_str() == CHILDREN[child])
}

/// More of a budget is more of nothing else.
fn adds_to(grant: &GrantView, child: usize, entry: usize, rules: &Entry, what: What) -> bool {
    let same_counter = match (&grant.scope, what) {
        (Scope::Budget { budget_id }, What::Budget(budget)) => budget_id.as_str() == BUDGETS[budget],
        (Scope::Budget { .. }, What::Entry(_)) => false,
        (Scope::Everything {} | Scope::Entry { .. }, _) => true,
    };
    same_counter && concerns(grant, child, entry, rules)
}
