//! A deliberately simple second implementation of the policy, minute by minute.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ToSpan};
use shepherd_api::{QuotaKind, ReasonCode};
use shepherd_core::policy::{
    AvailabilityPolicy, DailyQuota, Day, DayRule, PolicyEntry, PolicyRules, TimeCost,
};
use shepherd_core::{StoredState, UsageCounter, UsageKey};
use shepherd_util::ProfileId;

/// The longest run that is simulated. A longer run is only known to be longer.
pub(super) const LONGEST_RUN: Duration = Duration::from_secs(3 * 24 * 60 * 60);

/// The local time of one minute.
#[derive(Clone, Copy)]
struct WallMinute {
    date: Date,
    minute: u16,
}

/// A quota of an entry or of one of its budgets.
struct OracleLimit<'a> {
    counter: UsageCounter,
    daily: &'a DailyQuota,
    weekly: Option<Duration>,
}

/// Values that are the same all day, calculated once.
struct OracleDayFacts {
    windows: Vec<(u16, u16)>,
    /// The exhausted quotas: the quota, the used time and the limit.
    exhausted: Vec<(QuotaKind, Duration, Duration)>,
    /// The smallest remaining time of the day, and of the week.
    left: (Duration, Duration),
    /// The entry that has to be used first and was not: the done and the needed time.
    locked: Option<(Duration, Duration)>,
}

/// The simulated minutes in local time.
pub(super) struct WatchedMinutes {
    start: Timestamp,
    shown: Vec<WallMinute>,
}

impl WatchedMinutes {
    pub(super) fn new(zone: &TimeZone, start: Timestamp, minutes: usize) -> Self {
        let mut watch = Self { start, shown: Vec::new() };
        for index in 0..minutes {
            let civil = zone.to_datetime(watch.at(index));
            let (hour, minute) =
                (u16::try_from(civil.hour()).unwrap(), u16::try_from(civil.minute()).unwrap());
            watch.shown.push(WallMinute { date: civil.date(), minute: hour * 60 + minute });
        }
        watch
    }

    pub(super) fn at(&self, index: usize) -> Timestamp {
        self.start + SignedDuration::from_mins(i64::try_from(index).unwrap())
    }
}

/// One entry over several weeks.
pub(super) struct NaiveEvaluator<'a> {
    rules: &'a PolicyRules,
    store: &'a StoredState,
    entry: &'a PolicyEntry,
    watch: &'a WatchedMinutes,
    days: BTreeMap<Date, OracleDayFacts>,
    open: Vec<bool>,
    asleep: Vec<bool>,
    enabled: Vec<bool>,
}

impl<'a> NaiveEvaluator<'a> {
    pub(super) fn new(
        rules: &'a PolicyRules,
        store: &'a StoredState,
        entry: &'a PolicyEntry,
        watch: &'a WatchedMinutes,
    ) -> Self {
        let mut naive = Self {
            rules,
            store,
            entry,
            watch,
            days: BTreeMap::new(),
            open: Vec::new(),
            asleep: Vec::new(),
            enabled: Vec::new(),
        };
        let (first, last) = (watch.shown[0].date, watch.shown[watch.shown.len() - 1].date);
        let mut date = first.yesterday().unwrap();
        while date <= last {
            naive.days.insert(date, naive.day_facts(date));
            date = date.tomorrow().unwrap();
        }
        for shown in &watch.shown {
            let inside = |date: Date, now: u16| {
                naive.days[&date].windows.iter().any(|(from, to)| *from <= now && now < *to)
            };
            let yesterday = shown.date.yesterday().unwrap();
            naive.open.push(inside(shown.date, shown.minute) || inside(yesterday, shown.minute + 1440));
            let asleep = |evening: Date, now: u16| {
                naive.night_after(evening).is_some_and(|(from, to)| from <= now && now < to)
            };
            naive.asleep.push(asleep(shown.date, shown.minute) || asleep(yesterday, shown.minute + 1440));
        }
        let cooldown = naive.cooldown();
        for index in 0..watch.shown.len() {
            let (open, day) = (naive.is_open_and_awake(index), naive.facts_at(index));
            let cooled = cooldown.is_none_or(|until| until <= watch.at(index));
            let allowed = entry.disabled.is_none() && day.locked.is_none() && day.exhausted.is_empty();
            naive.enabled.push(open && cooled && allowed);
        }
        naive
    }

    fn day_facts(&self, date: Date) -> OracleDayFacts {
        let mut facts = OracleDayFacts {
            windows: self.windows_of(date),
            exhausted: Vec::new(),
            left: (Duration::MAX, Duration::MAX),
            locked: None,
        };
        for limit in self.limits() {
            let (daily, weekly) = quota_names(&limit.counter);
            let used = self.used_on(&limit.counter, date);
            if let Some(amount) = self.daily_limit(&limit, date) {
                facts.left.0 = facts.left.0.min(amount.saturating_sub(used));
                if used >= amount {
                    facts.exhausted.push((daily, used, amount));
                }
            }
            let used = self.used_in_week_of(&limit.counter, date);
            if let Some(amount) = limit.weekly {
                facts.left.1 = facts.left.1.min(amount.saturating_sub(used));
                if used >= amount {
                    facts.exhausted.push((weekly, used, amount));
                }
            }
        }
        if let Some(unlock) = &self.entry.unlock {
            let done = self.used_on(&UsageCounter::Entry(unlock.entry_id.clone()), date);
            facts.locked = (done < unlock.at_least).then_some((done, unlock.at_least));
        }
        facts
    }

    fn facts_at(&self, index: usize) -> &OracleDayFacts {
        &self.days[&self.watch.shown[index].date]
    }

    fn mode(&self, date: Date) -> &str {
        if let Some(mode) = &self.store.snapshot.mode {
            return mode;
        }
        let mut mode = &self.rules.modes.default;
        for (from, to, dated) in &self.rules.modes.by_date {
            if from.date() <= date && date <= to.date() {
                mode = dated;
            }
        }
        mode
    }

    /// Returns the windows that start on a date, in minutes after its midnight.
    fn windows_of(&self, date: Date) -> Vec<(u16, u16)> {
        let mut rule = None;
        for exception in &self.rules.exceptions {
            let concerned = exception.entries.as_ref().is_none_or(|ids| ids.contains(&self.entry.entry_id));
            if concerned && exception.from.date() <= date && date <= exception.to.date() {
                rule = Some(&exception.rule);
            }
        }
        let pairs = match rule {
            Some(DayRule::Closed) => Vec::new(),
            Some(DayRule::Open) => vec![(0, 1440)],
            Some(DayRule::Windows(pairs)) => {
                pairs.iter().map(|(from, to)| (from.minutes(), to.minutes())).collect()
            }
            Some(DayRule::AsOn(weekday)) => self.weekly_windows(*weekday, self.mode(date)),
            None => self.weekly_windows(weekday(date), self.mode(date)),
        };
        pairs.into_iter().map(|(from, to)| if to > from { (from, to) } else { (from, to + 1440) }).collect()
    }

    /// Returns the bedtime after an evening, in minutes after the midnight before it.
    fn night_after(&self, evening: Date) -> Option<(u16, u16)> {
        let bedtime = self.rules.bedtimes.get(&ProfileId::default())?;
        let next = evening.tomorrow().unwrap();
        let mut kind = weekday(next);
        for exception in &self.rules.exceptions {
            let is_for_all = exception.entries.is_none();
            if let DayRule::AsOn(other) = exception.rule
                && (is_for_all && exception.from.date() <= next && next <= exception.to.date())
            {
                kind = other;
            }
        }
        let nights = bedtime.by_mode.get(self.mode(next)).unwrap_or(&bedtime.nights);
        let night = if kind < 5 { nights.school_nights } else { nights.weekends };
        let (from, to) = night?.times_of_day();
        let from = if from.minutes() < 720 { from.minutes() + 1440 } else { from.minutes() };
        let to = (0..3).map(|days| to.minutes() + days * 1440).find(|to| *to > from)?;
        Some((from, to))
    }

    fn is_open_and_awake(&self, index: usize) -> bool {
        self.open[index] && !self.asleep[index]
    }

    fn weekly_windows(&self, weekday: usize, mode: &str) -> Vec<(u16, u16)> {
        let AvailabilityPolicy::Windows(windows) = &self.entry.availability else { return vec![(0, 1440)] };
        let in_mode = |modes: &std::collections::BTreeSet<String>| modes.contains(mode);
        windows
            .iter()
            .filter(|window| window.days.contains(weekday) && window.modes.as_ref().is_none_or(in_mode))
            .map(|window| (window.start.minutes(), window.end.minutes()))
            .collect()
    }

    fn limits(&self) -> Vec<OracleLimit<'a>> {
        if self.entry.cost == TimeCost::Free {
            return Vec::new();
        }
        let own = OracleLimit {
            counter: UsageCounter::Entry(self.entry.entry_id.clone()),
            daily: &self.entry.limits.daily_quota,
            weekly: self.entry.limits.weekly_quota,
        };
        let shared = self.entry.budgets.iter().map(|id| {
            let budget = &self.rules.budgets[id];
            OracleLimit {
                counter: UsageCounter::Budget(id.clone()),
                daily: &budget.daily,
                weekly: budget.weekly,
            }
        });
        std::iter::once(own).chain(shared).collect()
    }

    fn used_on(&self, counter: &UsageCounter, date: Date) -> Duration {
        let key =
            UsageKey { profile: ProfileId::default(), counter: counter.clone(), day: Day::from_date(date) };
        self.store.usage.get(&key).copied().unwrap_or_default()
    }

    fn used_in_week_of(&self, counter: &UsageCounter, date: Date) -> Duration {
        let monday = monday_of(date);
        (0..7).map(|days| self.used_on(counter, monday + days.days())).sum()
    }

    fn daily_limit(&self, limit: &OracleLimit<'_>, date: Date) -> Option<Duration> {
        let amounts = limit.daily.by_mode.get(self.mode(date)).unwrap_or(&limit.daily.base);
        Some(amounts[weekday(date)]? + self.earned_on(limit, date))
    }

    fn earned_on(&self, limit: &OracleLimit<'_>, date: Date) -> Duration {
        let UsageCounter::Budget(budget) = &limit.counter else { return Duration::ZERO };
        let mut earned = Duration::ZERO;
        for earner in &self.rules.entries {
            if let Some(earning) = earner.earns.as_ref().filter(|earning| earning.budget == *budget) {
                let used = self.used_on(&UsageCounter::Entry(earner.entry_id.clone()), date);
                let times = u32::try_from(used.as_secs() / earning.for_each.as_secs()).unwrap();
                earned += (earning.earned * times).min(earning.ceiling);
            }
        }
        earned
    }

    fn cooldown(&self) -> Option<Timestamp> {
        let key = (ProfileId::default(), self.entry.entry_id.clone());
        self.store.cooldowns.get(&key).map(|until| until.wall)
    }

    pub(super) fn enabled(&self, index: usize) -> bool {
        self.enabled[index]
    }

    /// Returns true if the answer for this minute may differ from the previous one.
    pub(super) fn is_edge(&self, index: usize) -> bool {
        let shown = &self.watch.shown;
        index > 0
            && (self.open[index] != self.open[index - 1]
                || self.asleep[index] != self.asleep[index - 1]
                || shown[index].date != shown[index - 1].date)
    }

    fn first_after(&self, index: usize, holds: impl Fn(usize) -> bool) -> Option<Timestamp> {
        (index + 1..self.open.len()).find(|later| holds(*later)).map(|later| self.watch.at(later))
    }

    pub(super) fn next_available(&self, index: usize) -> Option<Timestamp> {
        if !self.can_foresee() {
            return None;
        }
        self.first_after(index, |later| self.enabled(later))
    }

    /// The time at which another entry will have been used can't be predicted.
    pub(super) fn can_foresee(&self) -> bool {
        self.entry.unlock.is_none()
    }

    pub(super) fn reasons(&self, index: usize) -> Vec<ReasonCode> {
        let mut reasons = Vec::new();
        if let Some(disabled) = &self.entry.disabled {
            reasons.push(ReasonCode::Disabled { reason: disabled.reason.clone() });
        }
        if !self.open[index] {
            let next_opening = self.first_after(index, |later| self.is_open_and_awake(later));
            reasons.push(ReasonCode::OutsideHours { next_opening });
        }
        if self.asleep[index] {
            reasons.push(ReasonCode::Bedtime { until: self.first_after(index, |later| !self.asleep[later]) });
        }
        if let Some(until) = self.cooldown().filter(|until| *until > self.watch.at(index)) {
            reasons.push(ReasonCode::Cooldown { until });
        }
        if let (Some((done, needed)), Some(unlock)) = (self.facts_at(index).locked, &self.entry.unlock) {
            let entry_id = unlock.entry_id.clone();
            reasons.push(ReasonCode::NotUnlocked { entry_id, done: done.into(), needed: needed.into() });
        }
        for (quota, used, limit) in &self.facts_at(index).exhausted {
            let again = |later| self.facts_at(later).exhausted.iter().all(|(other, _, _)| other != quota);
            reasons.push(ReasonCode::QuotaExhausted {
                quota: quota.clone(),
                used: (*used).into(),
                limit: (*limit).into(),
                until: self.first_after(index, again),
            });
        }
        reasons
    }

    /// Returns how long a run could last that starts this many seconds into a minute, simulated minute by minute.
    /// `None` is longer than [`LONGEST_RUN`].
    pub(super) fn longest_run(&self, index: usize, seconds: u64) -> Option<Duration> {
        let most = self.entry.limits.max_run.unwrap_or(Duration::MAX);
        let mut date = self.watch.shown[index].date;
        let (mut run, mut today, mut this_week) = (Duration::ZERO, Duration::ZERO, Duration::ZERO);
        for later in index..self.open.len() {
            let shown = self.watch.shown[later].date;
            // If the clock goes back over midnight, use stays with the later day (S4.5).
            if shown > date {
                today = Duration::ZERO;
                if monday_of(shown) > monday_of(date) {
                    this_week = Duration::ZERO;
                }
                date = shown;
            }
            if run >= most || !self.is_open_and_awake(later) {
                return Some(run.min(most));
            }
            if run > LONGEST_RUN {
                return None;
            }
            let rest = Duration::from_secs(if later == index { 60 - seconds } else { 60 });
            let (daily, weekly) = self.days[&date].left;
            let left = daily.saturating_sub(today).min(weekly.saturating_sub(this_week));
            let part = rest.min(left);
            run += part;
            today += part;
            this_week += part;
            if part < rest {
                return Some(run.min(most));
            }
        }
        None
    }
}

fn quota_names(counter: &UsageCounter) -> (QuotaKind, QuotaKind) {
    match counter {
        UsageCounter::Entry(_) => (QuotaKind::EntryDaily, QuotaKind::EntryWeekly),
        UsageCounter::Budget(id) => (QuotaKind::BudgetDaily(id.clone()), QuotaKind::BudgetWeekly(id.clone())),
    }
}

fn weekday(date: Date) -> usize {
    usize::try_from(date.weekday().to_monday_zero_offset()).unwrap()
}

fn monday_of(date: Date) -> Date {
    date - i64::from(date.weekday().to_monday_zero_offset()).days()
}
