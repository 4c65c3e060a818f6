//! The one place where it is decided whether an entry may run, and for how long.
//!
//! Every rule is asked, none stops the others, and the same rules in the same order answer a launch, a listing and
//! the question why. A rule either says no with its reason, or bounds the run, or has nothing to say.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use shepherd_api::{GrantView, ReasonCode};
use shepherd_util::{BootId, EntryId, MonotonicInstant, ProfileId, SessionId};

use crate::capability::HostCapabilities;
use crate::civil::ZoneClock;
use crate::hours::OpeningHours;
use crate::policy::{Day, Policy, PolicyEntry};
use crate::state::{PauseEnd, PlayStreak};
use crate::usage::UsageTable;

mod entry_history;
mod rules;
mod usage_limits;

pub(crate) use entry_history::EntryHistory;
pub(crate) use rules::EntryEvaluation;

/// The facts, as of one moment.
#[derive(Clone, Copy)]
pub(crate) struct EvaluationContext<'a> {
    pub(crate) policy: &'a Policy,
    pub(crate) capabilities: &'a HostCapabilities,
    pub(crate) usage: &'a UsageTable,
    pub(crate) cooldowns: &'a BTreeMap<(ProfileId, EntryId), PauseEnd>,
    pub(crate) grants: &'a [GrantView],
    pub(crate) streaks: &'a BTreeMap<ProfileId, PlayStreak>,
    pub(crate) mode: Option<&'a str>,
    pub(crate) wall: ZoneClock<'a>,
    pub(crate) boot: BootId,
    /// The session that runs, if the question is about now.
    pub(crate) active: Option<(&'a SessionId, &'a EntryId)>,
    /// Set if the clock is not trusted.
    pub(crate) clock_behind: Option<Timestamp>,
    /// When it will be trusted again, if it goes on as it does.
    pub(crate) clock_trusted_at: Option<Timestamp>,
    /// Why the store can't be relied on, if it can't.
    pub(crate) store_trouble: Option<&'a str>,
}

/// The moment that a question is about.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EvaluationTime {
    /// The time that counts.
    pub(crate) wall: Timestamp,
    /// What the clock shows.
    pub(crate) shown: Timestamp,
    /// `NotRequested` for a moment other than now.
    pub(crate) mono: Option<MonotonicInstant>,
    /// The day that use is charged to.
    pub(crate) day: Day,
}

/// What the rules say together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct EntryFinding {
    pub(crate) reasons: Vec<ReasonCode>,
    /// The least that max run, quotas, budgets and breaks leave.
    pub(crate) run_limit: Option<Duration>,
    /// When the window closes.
    pub(crate) closes: Option<Timestamp>,
}

impl EntryFinding {
    /// How long a run from `wall` on would last, if nothing forbids it; `NotRequested` is without end.
    pub(crate) fn longest_run(&self, wall: Timestamp) -> Option<Duration> {
        let window =
            self.closes.map(|closes| Duration::try_from(closes.duration_since(wall)).unwrap_or_default());
        match (self.run_limit, window) {
            (Some(run), Some(window)) => Some(run.min(window)),
            (run, window) => run.or(window),
        }
    }
}

/// What one rule says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RuleVerdict {
    Refuses(ReasonCode),
    Limits(Duration),
    LimitsUntil(Timestamp),
    Passes,
}

/// Who listens to the rules one by one.
pub(crate) trait RuleObserver {
    /// What the rule looked at is told only to those who want to know.
    fn observe_rule(&mut self, rule: &'static str, looked_at: impl FnOnce() -> String, saying: &RuleVerdict);
}

/// Nobody listens.
pub(crate) struct NoObserver;

impl RuleObserver for NoObserver {
    fn observe_rule(&mut self, _: &'static str, _: impl FnOnce() -> String, _: &RuleVerdict) {}
}

impl<'a> EvaluationContext<'a> {
    pub(crate) fn opening_hours<'s>(&'s self, entry: &'s PolicyEntry) -> OpeningHours<'s> {
        OpeningHours { policy: self.policy, entry, mode: self.mode, wall: self.wall }
    }

    /// The mode on a day.
    pub(crate) fn mode_on(&self, day: Day) -> &'a str {
        self.mode.unwrap_or_else(|| self.policy.rules().modes.mode_on(day))
    }

    /// Asks every rule about one entry.
    pub(crate) fn evaluate(
        &self,
        profile: &ProfileId,
        entry: &PolicyEntry,
        at: EvaluationTime,
        witness: &mut impl RuleObserver,
    ) -> EntryFinding {
        let mut hearing = EntryEvaluation::new(*self, profile, at);
        hearing.evaluate(entry, hearing.entry_history(entry), witness)
    }

    /// The least that quotas and budgets leave; `NotRequested` is without limit.
    pub(crate) fn quota_left(
        &self,
        profile: &ProfileId,
        entry: &PolicyEntry,
        at: EvaluationTime,
    ) -> Option<Duration> {
        let mut hearing = EntryEvaluation::new(*self, profile, at);
        let finding = hearing.evaluate_quotas(entry, hearing.entry_history(entry));
        let exhausted = |reason: &ReasonCode| matches!(reason, ReasonCode::QuotaExhausted { .. });
        if finding.reasons.iter().any(exhausted) { Some(Duration::ZERO) } else { finding.run_limit }
    }

    /// The wall-clock time at which a pause ends, if it has not ended yet.
    pub(crate) fn pending_until(&self, until: PauseEnd, at: EvaluationTime) -> Option<Timestamp> {
        match (at.mono, until.boot.during(self.boot)) {
            (Some(now), Some(end)) => {
                let left = end.total_since(now);
                (!left.is_zero()).then(|| at.wall.saturating_add(left).unwrap_or(Timestamp::MAX))
            }
            _ => (at.wall < until.wall).then_some(until.wall),
        }
    }

    fn grant_applies(&self, grant: &GrantView, profile: &ProfileId, entry: &PolicyEntry) -> bool {
        grant.is_for(profile) && grant.scope.includes(&entry.entry_id, &entry.budgets)
    }
}

/// Where the sayings of the rules are put together.
struct FindingBuilder<'w, W> {
    finding: EntryFinding,
    witness: &'w mut W,
}

impl<W: RuleObserver> FindingBuilder<'_, W> {
    fn record_verdict(
        &mut self,
        rule: &'static str,
        looked_at: impl FnOnce() -> String,
        saying: RuleVerdict,
    ) {
        self.witness.observe_rule(rule, looked_at, &saying);
        match saying {
            RuleVerdict::Refuses(reason) => {
                // Most have one; a vector that grows by itself begins with room for four.
                self.finding.reasons.reserve_exact(1);
                self.finding.reasons.push(reason);
            }
            RuleVerdict::Limits(run) => {
                self.finding.run_limit = Some(self.finding.run_limit.map_or(run, |least| least.min(run)));
            }
            RuleVerdict::LimitsUntil(closes) => self.finding.closes = Some(closes),
            RuleVerdict::Passes => {}
        }
    }
}
