//! The one place where it is decided whether an entry may run, and for how long.
//!
//! Every rule is asked, none stops the others, and the same rules in the same order answer a launch, a listing and
//! the question why. A rule either says no with its reason, or bounds the run, or has nothing to say.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use shepherd_api::{Gift, GrantView, ReasonCode, Scope};
use shepherd_util::{BootId, EntryId, MonotonicInstant, ProfileId, SessionId};

use crate::capability::HostCapabilities;
use crate::civil::Wall;
use crate::hours::{Hours, Opening};
use crate::policy::{Cost, Day, Entry, Policy};
use crate::state::{Streak, Until};
use crate::usage::{ProfileUsage, UsageBook, on};

mod limit;

/// The facts, as of one moment.
#[derive(Clone, Copy)]
pub(crate) struct Facts<'a> {
    pub(crate) policy: &'a Policy,
    pub(crate) capabilities: &'a HostCapabilities,
    pub(crate) usage: &'a UsageBook,
    pub(crate) cooldowns: &'a BTreeMap<(ProfileId, EntryId), Until>,
    pub(crate) grants: &'a [GrantView],
    pub(crate) streaks: &'a BTreeMap<ProfileId, Streak>,
    pub(crate) mode: Option<&'a str>,
    pub(crate) wall: Wall<'a>,
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
    /// The time that counts.
    pub(crate) wall: Timestamp,
    /// What the clock shows.
    pub(crate) shown: Timestamp,
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
        Hours { policy: self.policy, entry, mode: self.mode, wall: self.wall }
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
            let day = self.wall.local(at).day();
            reasons = self
                .judge(profile, entry, Moment { wall: at, shown: at, mono: None, day }, &mut Nobody)
                .reasons;
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
        let unknown = !self.policy.rules().profiles.contains_key(profile);
        let stranger = unknown || entry.profiles.as_ref().is_some_and(|profiles| !profiles.contains(profile));
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
                    matches!(grant.gift, Gift::OpenUntil { .. })
                        && grant.valid_from > at.wall
                        && grant.holds_at(grant.valid_from)
                        && self.concerns(grant, profile, entry)
                });
                let opens = advance.map(|grant| grant.valid_from).chain(opens).min();
                Saying::No(ReasonCode::OutsideHours { next_opening: opens })
            }
        };
        let look = || {
            let local = at.wall.to_zoned(self.wall.zone.clone());
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
        // Most entries have none, and a key costs two copies.
        let none = self.cooldowns.is_empty();
        let cooldown =
            if none { None } else { self.cooldowns.get(&(profile.clone(), entry.entry_id.clone())) };
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
            let done = on(usage.of_entry(&unlock.entry_id), at.day);
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
        self.each_limit(profile, entry, usage, |limit| {
            let saying = self.ask_limit(limit, at);
            let look =
                || format!("{} used on {}", shepherd_util::HumanDuration(limit.used_on(at.day)), at.day);
            bench.take(limit.rule(), look, saying);
        });
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

    fn concerns(&self, grant: &GrantView, profile: &ProfileId, entry: &Entry) -> bool {
        grant.is_for(profile)
            && match &grant.scope {
                Scope::Everything {} => true,
                Scope::Entry { entry_id } => *entry_id == entry.entry_id,
                Scope::Budget { budget_id } => entry.budgets.contains(budget_id),
            }
    }

    /// How far a grant opens an entry now.
    fn open_until(&self, profile: &ProfileId, entry: &Entry, at: Timestamp) -> Option<Timestamp> {
        let open =
            self.grants.iter().filter(|grant| grant.holds_at(at) && self.concerns(grant, profile, entry));
        let until = open.filter_map(|grant| match grant.gift {
            Gift::OpenUntil { until } if until > at => Some(until.min(grant.lapses_at)),
            Gift::OpenUntil { .. } | Gift::Extra { .. } => None,
        });
        until.max()
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
