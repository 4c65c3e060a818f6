//! The one place where it is decided whether an entry may run, and for how long.
//!
//! Every rule is asked, none stops the others, and the same rules in the same order answer a launch, a listing and
//! the question why. A rule either says no with its reason, or bounds the run, or has nothing to say.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use shepherd_api::{Quota, ReasonCode};
use shepherd_util::{BootId, BudgetId, EntryId, MonotonicInstant, ProfileId, SessionId};

use crate::capability::HostCapabilities;
use crate::civil::end_of_day;
use crate::grant::{Gift, Grant, GrantScope};
use crate::hours::{Hours, Opening};
use crate::policy::{Cost, DailyQuota, Day, Entry, Policy};
use crate::state::{Streak, Until};
use crate::usage::{ProfileUsage, UsageBook};

/// How many days ahead a quota is followed: a run that long is without end for all purposes.
const DAYS_AHEAD: u8 = 8;

/// The facts, as of one moment.
#[derive(Clone, Copy)]
pub(crate) struct Facts<'a> {
    pub(crate) policy: &'a Policy,
    pub(crate) capabilities: &'a HostCapabilities,
    pub(crate) usage: &'a UsageBook,
    pub(crate) cooldowns: &'a BTreeMap<(ProfileId, EntryId), Until>,
    pub(crate) grants: &'a [Grant],
    pub(crate) streaks: &'a BTreeMap<ProfileId, Streak>,
    pub(crate) mode: Option<&'a str>,
    pub(crate) zone: &'a TimeZone,
    pub(crate) boot: BootId,
    /// The session that runs, if the question is about now.
    pub(crate) active: Option<(&'a SessionId, &'a EntryId)>,
    /// Set if the clock is not trusted.
    pub(crate) clock_behind: Option<Timestamp>,
    /// Why the store can't be relied on, if it can't.
    pub(crate) store_trouble: Option<&'a str>,
}

/// The moment that a question is about.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    pub(crate) wall: Timestamp,
    /// `None` for a moment other than now.
    pub(crate) mono: Option<MonotonicInstant>,
    /// The day that use is charged to.
    pub(crate) day: Day,
}

/// What the rules say together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) reasons: Vec<ReasonCode>,
    /// The least that max run, quotas, budgets and breaks leave.
    pub(crate) run: Option<Duration>,
    /// When the window closes.
    pub(crate) closes: Option<Timestamp>,
}

impl Finding {
    /// How long a run from `wall` on would last, if nothing forbids it; `None` is without end.
    pub(crate) fn longest(&self, wall: Timestamp) -> Option<Duration> {
        let window =
            self.closes.map(|closes| Duration::try_from(closes.duration_since(wall)).unwrap_or_default());
        match (self.run, window) {
            (Some(run), Some(window)) => Some(run.min(window)),
            (run, window) => run.or(window),
        }
    }
}

/// What one rule says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Saying {
    No(ReasonCode),
    AtMost(Duration),
    Until(Timestamp),
    Nothing,
}

/// Who listens to the rules one by one.
pub(crate) trait Witness {
    /// What the rule looked at is told only to those who want to know.
    fn hear(&mut self, rule: &'static str, looked_at: impl FnOnce() -> String, saying: &Saying);
}

/// Nobody listens.
pub(crate) struct Nobody;

impl Witness for Nobody {
    fn hear(&mut self, _: &'static str, _: impl FnOnce() -> String, _: &Saying) {}
}

impl Facts<'_> {
    pub(crate) fn hours<'s>(&'s self, entry: &'s Entry) -> Hours<'s> {
        Hours { policy: self.policy, entry, mode: self.mode, zone: self.zone }
    }

    /// Asks every rule.
    pub(crate) fn judge(
        &self,
        profile: &ProfileId,
        entry: &Entry,
        at: Moment,
        witness: &mut impl Witness,
    ) -> Finding {
        let mut bench = Bench { finding: Finding::default(), witness };
        self.ask_about_the_entry(profile, entry, at, &mut bench);
        self.ask_about_hours(profile, entry, at, &mut bench);
        self.ask_about_pauses(profile, entry, at, &mut bench);
        self.ask_about_quotas(profile, entry, at, &mut bench);
        let max_run = entry.limits.max_run.map_or(Saying::Nothing, Saying::AtMost);
        bench.take("max-run", || "the longest run of this entry".to_owned(), max_run);
        bench.finding
    }

    /// When nothing will speak against it any more, where that can be known.
    pub(crate) fn available_again(
        &self,
        profile: &ProfileId,
        entry: &Entry,
        finding: &Finding,
    ) -> Option<Timestamp> {
        /// Each round passes the end of a reason; a rule that keeps finding new ones is not going to stop.
        const ROUNDS: usize = 16;
        let mut reasons = finding.reasons.clone();
        for _ in 0..ROUNDS {
            let ends: Option<Vec<Timestamp>> = reasons.iter().map(ReasonCode::until).collect();
            let at = ends?.into_iter().max()?;
            if let [ReasonCode::OutsideHours { .. }] = reasons.as_slice() {
                return Some(at);
            }
            let day = crate::civil::Local::at(self.zone, at).day();
            reasons = self.judge(profile, entry, Moment { wall: at, mono: None, day }, &mut Nobody).reasons;
            if reasons.is_empty() {
                return Some(at);
            }
        }
        None
    }

    fn ask_about_the_entry<W: Witness>(
        &self,
        profile: &ProfileId,
        entry: &Entry,
        at: Moment,
        bench: &mut Bench<'_, W>,
    ) {
        let no = |condition: bool, reason: ReasonCode| {
            if condition { Saying::No(reason) } else { Saying::Nothing }
        };
        let stranger = entry.profiles.as_ref().is_some_and(|profiles| !profiles.contains(profile));
        bench.take("profile", || format!("profile `{profile}`"), no(stranger, ReasonCode::NotForProfile));
        let disabled = entry.disabled.as_ref().map_or(Saying::Nothing, |disabled| {
            Saying::No(ReasonCode::Disabled { reason: disabled.reason.clone() })
        });
        bench.take("disabled", || "whether the policy has switched it off".to_owned(), disabled);
        let kind = entry.kind.name();
        let impossible = !self.capabilities.spawn_kinds_supported.contains(kind);
        let reason = ReasonCode::HostCannotRun { kind: kind.to_owned() };
        bench.take("host", || format!("whether this machine can run `{kind}`"), no(impossible, reason));
        if at.mono.is_none() {
            return;
        }
        let untrusted = self
            .clock_behind
            .map_or(Saying::Nothing, |latest_seen| Saying::No(ReasonCode::ClockUntrusted { latest_seen }));
        bench.take("clock", || "the latest time ever seen".to_owned(), untrusted);
        let trouble = self.store_trouble.map_or(Saying::Nothing, |detail| {
            Saying::No(ReasonCode::StoreUnavailable { detail: detail.to_owned() })
        });
        bench.take("store", || "whether use can be looked up and recorded".to_owned(), trouble);
        let active = self.active.map_or(Saying::Nothing, |(session_id, entry_id)| {
            let (session_id, entry_id) = (session_id.clone(), entry_id.clone());
            Saying::No(ReasonCode::SessionActive { session_id, entry_id })
        });
        bench.take("seat", || "whether something else is running".to_owned(), active);
    }

    fn ask_about_hours<W: Witness>(
        &self,
        profile: &ProfileId,
        entry: &Entry,
        at: Moment,
        bench: &mut Bench<'_, W>,
    ) {
        let granted = self.open_until(profile, entry, at.wall);
        let saying = match (self.hours(entry).at(at.wall), granted) {
            (Opening::Open { closes: None }, _) => Saying::Nothing,
            (Opening::Open { closes: Some(closes) }, granted) => {
                Saying::Until(granted.map_or(closes, |granted| self.follow(entry, closes.max(granted))))
            }
            (Opening::Closed { .. }, Some(granted)) => Saying::Until(self.follow(entry, granted)),
            (Opening::Closed { opens }, None) => {
                // A window may be opened in advance by a grant.
                let advance = self.grants.iter().filter(|grant| {
                    matches!(grant.gift, Gift::OpenUntil(_))
                        && grant.valid_from > at.wall
                        && grant.holds_at(grant.valid_from)
                        && self.concerns(grant, profile, entry)
                });
                let opens = advance.map(|grant| grant.valid_from).chain(opens).min();
                Saying::No(ReasonCode::OutsideHours { next_opening: opens })
            }
        };
        let look = || {
            let local = at.wall.to_zoned(self.zone.clone());
            let mode = self.hours(entry).mode_on(Day::from_date(local.date()));
            let mode = if mode.is_empty() { String::new() } else { format!(", mode `{mode}`") };
            format!("{}{mode}", local.strftime("%a %Y-%m-%d %H:%M"))
        };
        bench.take("hours", look, saying);
    }

    /// A grant that ends inside a window is followed by the window.
    fn follow(&self, entry: &Entry, until: Timestamp) -> Timestamp {
        match self.hours(entry).at(until) {
            Opening::Open { closes } => closes.unwrap_or(Timestamp::MAX).max(until),
            Opening::Closed { .. } => until,
        }
    }

    fn ask_about_pauses<W: Witness>(
        &self,
        profile: &ProfileId,
        entry: &Entry,
        at: Moment,
        bench: &mut Bench<'_, W>,
    ) {
        let cooldown = self.cooldowns.get(&(profile.clone(), entry.entry_id.clone()));
        let waits = cooldown.and_then(|until| self.still_until(*until, at));
        let saying = waits.map_or(Saying::Nothing, |until| Saying::No(ReasonCode::Cooldown { until }));
        bench.take("cooldown", || "the pause after its last run".to_owned(), saying);
        let Some(rule) = self.policy.rules().breaks else { return };
        let streak = self.streaks.get(profile);
        let unrested = streak.and_then(|streak| Some((streak.played, self.still_until(streak.rested, at)?)));
        let saying = match unrested {
            Some((played, until)) if played >= rule.after => Saying::No(ReasonCode::BreakNeeded { until }),
            Some((played, _)) => Saying::AtMost(rule.after - played),
            None => Saying::AtMost(rule.after),
        };
        bench.take("break", || "time in a row, across entries".to_owned(), saying);
    }

    /// The wall-clock time at which a pause ends, if it has not ended yet.
    pub(crate) fn still_until(&self, until: Until, at: Moment) -> Option<Timestamp> {
        match (at.mono, until.boot.during(self.boot)) {
            (Some(now), Some(end)) => {
                let left = end.total_since(now);
                (!left.is_zero()).then(|| at.wall.saturating_add(left).unwrap_or(Timestamp::MAX))
            }
            _ => (at.wall < until.wall).then_some(until.wall),
        }
    }

    fn ask_about_quotas<W: Witness>(
        &self,
        profile: &ProfileId,
        entry: &Entry,
        at: Moment,
        bench: &mut Bench<'_, W>,
    ) {
        let none = ProfileUsage::default();
        let usage = self.usage.of(profile).unwrap_or(&none);
        if let Some(unlock) = &entry.unlock {
            let done = usage.entry_on(&unlock.entry_id, at.day);
            let reason = ReasonCode::NotUnlocked {
                entry_id: unlock.entry_id.clone(),
                done: done.into(),
                needed: unlock.at_least.into(),
            };
            let saying = if done < unlock.at_least { Saying::No(reason) } else { Saying::Nothing };
            bench.take("unlock", || format!("use of `{}` today", unlock.entry_id), saying);
        }
        if entry.cost == Cost::Free {
            return;
        }
        for limit in self.limits_of(profile, entry, usage) {
            let saying = self.ask_limit(&limit, at);
            let look =
                || format!("{} used on {}", shepherd_util::HumanDuration(limit.used_on(at.day)), at.day);
            bench.take(limit.rule(), look, saying);
        }
    }

    /// The least that quotas and budgets leave; `None` is without limit.
    pub(crate) fn quota_left(
        &self,
        profile: &ProfileId,
        entry: &Entry,
        at: Moment,
        witness: &mut impl Witness,
    ) -> Option<Duration> {
        let mut bench = Bench { finding: Finding::default(), witness };
        self.ask_about_quotas(profile, entry, at, &mut bench);
        let exhausted = |reason: &ReasonCode| matches!(reason, ReasonCode::QuotaExhausted { .. });
        if bench.finding.reasons.iter().any(exhausted) { Some(Duration::ZERO) } else { bench.finding.run }
    }

    fn ask_limit(&self, limit: &Limit<'_>, at: Moment) -> Saying {
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
    fn limits_of<'s>(
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

    fn concerns(&self, grant: &Grant, profile: &ProfileId, entry: &Entry) -> bool {
        grant.is_for(profile)
            && match &grant.scope {
                GrantScope::All => true,
                GrantScope::Entry(id) => *id == entry.entry_id,
                GrantScope::Budget(id) => entry.budgets.contains(id),
            }
    }

    /// How far a grant opens an entry now.
    fn open_until(&self, profile: &ProfileId, entry: &Entry, at: Timestamp) -> Option<Timestamp> {
        let open =
            self.grants.iter().filter(|grant| grant.holds_at(at) && self.concerns(grant, profile, entry));
        let until = open.filter_map(|grant| match grant.gift {
            Gift::OpenUntil(until) if until > at => Some(until),
            Gift::OpenUntil(_) | Gift::Extra(_) => None,
        });
        until.max()
    }
}

/// Something that bounds use over days.
struct Limit<'a> {
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
    fn rule(&self) -> &'static str {
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

    fn used_on(&self, day: Day) -> Duration {
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
            let first = crate::civil::Local::at(self.facts.zone, grant.valid_from).day();
            let last_instant =
                grant.lapses_at.checked_sub(Duration::from_nanos(1)).unwrap_or(grant.lapses_at);
            let last = crate::civil::Local::at(self.facts.zone, last_instant).day();
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

/// Where the sayings of the rules are put together.
struct Bench<'w, W> {
    finding: Finding,
    witness: &'w mut W,
}

impl<W: Witness> Bench<'_, W> {
    fn take(&mut self, rule: &'static str, looked_at: impl FnOnce() -> String, saying: Saying) {
        self.witness.hear(rule, looked_at, &saying);
        match saying {
            Saying::No(reason) => self.finding.reasons.push(reason),
            Saying::AtMost(run) => {
                self.finding.run = Some(self.finding.run.map_or(run, |least| least.min(run)));
            }
            Saying::Until(closes) => self.finding.closes = Some(closes),
            Saying::Nothing => {}
        }
    }
}
