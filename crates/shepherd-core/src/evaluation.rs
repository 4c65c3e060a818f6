//! Evaluates whether an entry may run, and for how long. This is the only place that decides it.
//!
//! Every rule is evaluated, none stops the others, and the same rules in the same order answer a launch, a listing and
//! `why`. A rule denies with a reason, limits the run, or passes.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use shepherd_api::{GrantView, ReasonCode};
use shepherd_util::{BootId, EntryId, GrantId, MonotonicInstant, ProfileId};

use crate::capability::HostCapabilities;
use crate::civil::ZoneClock;
use crate::hours::{BedtimeHours, BedtimeState, OpenState, OpeningHours, SpanSource};
use crate::policy::{Day, Policy, PolicyEntry};
use crate::session_table::SessionTable;
use crate::state::{ExtraRunUse, PauseEnd, PlayStreak};
use crate::usage::UsageTable;

mod bedtime;
mod entry_history;
mod rules;
mod usage_limits;

pub(crate) use entry_history::EntryHistory;
pub(crate) use rules::EntryEvaluation;

/// The facts that rules look at, as of one moment.
#[derive(Clone, Copy)]
pub(crate) struct EvaluationContext<'a> {
    pub(crate) policy: &'a Policy,
    pub(crate) capabilities: &'a HostCapabilities,
    pub(crate) usage: &'a UsageTable,
    pub(crate) cooldowns: &'a BTreeMap<(ProfileId, EntryId), PauseEnd>,
    pub(crate) grants: &'a [GrantView],
    pub(crate) streaks: &'a BTreeMap<ProfileId, PlayStreak>,
    pub(crate) extra_runs: &'a [ExtraRunUse],
    pub(crate) mode: Option<&'a str>,
    pub(crate) wall: ZoneClock<'a>,
    pub(crate) boot: BootId,
    /// The sessions, which count only if the question is about now.
    pub(crate) sessions: &'a SessionTable,
    /// The account of a login that the question is about.
    pub(crate) account: Option<&'a str>,
    /// The latest known time, if the clock is not trusted.
    pub(crate) clock_behind: Option<Timestamp>,
    /// The time at which the clock will be trusted again, if it runs on.
    pub(crate) clock_trusted_at: Option<Timestamp>,
    /// The fault of the store, if it can't be used.
    pub(crate) store_trouble: Option<&'a str>,
}

/// The moment that an evaluation is about.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EvaluationTime {
    /// The time that counts.
    pub(crate) wall: Timestamp,
    /// The time that the clock shows.
    pub(crate) shown: Timestamp,
    /// `None` for a moment other than now.
    pub(crate) mono: Option<MonotonicInstant>,
    /// The day to which usage is charged.
    pub(crate) day: Day,
}

/// The combined result of all rules.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct EntryFinding {
    pub(crate) reasons: Vec<ReasonCode>,
    /// The least time that the longest run, quotas, budgets and breaks leave.
    pub(crate) run_limit: Option<Duration>,
    /// The end of the window, or the bedtime before it.
    pub(crate) closes: Option<Timestamp>,
    /// The least time that quotas and budgets leave for the day.
    pub(crate) left_today: Option<Duration>,
}

impl EntryFinding {
    /// Returns how long a run from `wall` on would last if it is allowed; `None` is no limit.
    pub(crate) fn longest_run(&self, wall: Timestamp) -> Option<Duration> {
        let window =
            self.closes.map(|closes| Duration::try_from(closes.duration_since(wall)).unwrap_or_default());
        match (self.run_limit, window) {
            (Some(run), Some(window)) => Some(run.min(window)),
            (run, window) => run.or(window),
        }
    }
}

/// The result of a single rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RuleVerdict {
    Refuses(ReasonCode),
    Limits(Duration),
    LimitsUntil(Timestamp),
    Passes,
}

/// An observer that sees the result of each rule.
pub(crate) trait RuleObserver {
    /// Reports a rule. The facts are formatted only if the observer asks for them.
    fn observe_rule(&mut self, rule: &'static str, facts: impl FnOnce() -> String, verdict: &RuleVerdict);
}

/// An observer that ignores everything.
pub(crate) struct NoObserver;

impl RuleObserver for NoObserver {
    fn observe_rule(&mut self, _: &'static str, _: impl FnOnce() -> String, _: &RuleVerdict) {}
}

impl<'a> EvaluationContext<'a> {
    pub(crate) fn opening_hours<'s>(&'s self, entry: &'s PolicyEntry) -> OpeningHours<'s> {
        let source = SpanSource::Entry(entry);
        OpeningHours { policy: self.policy, source, mode: self.mode, wall: self.wall }
    }

    /// Returns the bedtime of a profile, if it has one.
    pub(crate) fn bedtime_hours(&self, profile: &ProfileId) -> Option<BedtimeHours<'a>> {
        let bedtime = self.policy.rules().bedtimes.get(profile).filter(|bedtime| !bedtime.is_never())?;
        Some(BedtimeHours::new(self.policy, bedtime, self.mode, self.wall))
    }

    /// Returns whether an entry is open at a moment by its hours and the bedtime of a profile, and until when. The next
    /// opening is left out.
    pub(crate) fn open_state_at(&self, profile: &ProfileId, entry: &PolicyEntry, at: Timestamp) -> OpenState {
        let hours = self.opening_hours(entry).open_state_at(at);
        match (hours, self.bedtime_hours(profile).map(|bedtime| bedtime.state_at(at))) {
            (OpenState::Open { closes }, Some(BedtimeState::Awake { begins })) => {
                OpenState::Open { closes: closes.into_iter().chain(begins).min() }
            }
            (OpenState::Open { closes }, None) => OpenState::Open { closes },
            (OpenState::Closed { .. }, _) | (_, Some(BedtimeState::Asleep { .. })) => {
                OpenState::Closed { opens: None }
            }
        }
    }

    /// Returns the time at which the entry closes for a profile, if it is open at `until`; otherwise returns `until`.
    pub(crate) fn extend_through_open_hours(
        &self,
        profile: &ProfileId,
        entry: &PolicyEntry,
        until: Timestamp,
    ) -> Timestamp {
        let closes = self.opening_hours(entry).extend_through_open_hours(until);
        self.bedtime_hours(profile).map_or(closes, |bedtime| closes.min(bedtime.extend_to_bedtime(until)))
    }

    /// Returns the mode of a day.
    pub(crate) fn mode_on(&self, day: Day) -> &'a str {
        self.mode.unwrap_or_else(|| self.policy.rules().modes.mode_on(day))
    }

    /// Evaluates every rule for one entry.
    pub(crate) fn evaluate(
        &self,
        profile: &ProfileId,
        entry: &PolicyEntry,
        at: EvaluationTime,
        observer: &mut impl RuleObserver,
    ) -> EntryFinding {
        let mut evaluation = EntryEvaluation::new(*self, profile, at);
        evaluation.evaluate(entry, evaluation.entry_history(entry), observer)
    }

    /// Returns the least time that quotas and budgets leave; `None` is no limit.
    pub(crate) fn quota_left(
        &self,
        profile: &ProfileId,
        entry: &PolicyEntry,
        at: EvaluationTime,
    ) -> Option<Duration> {
        let mut evaluation = EntryEvaluation::new(*self, profile, at);
        let finding = evaluation.evaluate_quotas(entry, evaluation.entry_history(entry));
        let exhausted = |reason: &ReasonCode| matches!(reason, ReasonCode::QuotaExhausted { .. });
        if finding.reasons.iter().any(exhausted) { Some(Duration::ZERO) } else { finding.run_limit }
    }

    /// Returns the grants that make a run of this entry longer, each with what is left of its extra time on that day.
    pub(crate) fn extra_runs(
        &self,
        profile: &ProfileId,
        entry: &PolicyEntry,
        at: EvaluationTime,
    ) -> Vec<(GrantId, Duration)> {
        let evaluation = EntryEvaluation::new(*self, profile, at);
        evaluation.extra_runs(entry).map(|(grant_id, left)| (grant_id.clone(), left)).collect()
    }

    /// Returns the wall-clock time at which a pause ends, if it hasn't ended.
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

/// Collects the results of the rules.
struct FindingBuilder<'w, W> {
    finding: EntryFinding,
    observer: &'w mut W,
}

impl<W: RuleObserver> FindingBuilder<'_, W> {
    fn record_left_today(&mut self, left: Option<Duration>) {
        let Some(left) = left else { return };
        self.finding.left_today = Some(self.finding.left_today.map_or(left, |least| least.min(left)));
    }

    fn record_verdict(&mut self, rule: &'static str, facts: impl FnOnce() -> String, verdict: RuleVerdict) {
        self.observer.observe_rule(rule, facts, &verdict);
        match verdict {
            RuleVerdict::Refuses(reason) => {
                // Most entries have one reason, and a vector that grows by itself would start with a capacity of four.
                self.finding.reasons.reserve_exact(1);
                self.finding.reasons.push(reason);
            }
            RuleVerdict::Limits(run) => {
                self.finding.run_limit = Some(self.finding.run_limit.map_or(run, |least| least.min(run)));
            }
            RuleVerdict::LimitsUntil(closes) => {
                self.finding.closes = Some(self.finding.closes.map_or(closes, |first| first.min(closes)));
            }
            RuleVerdict::Passes => {}
        }
    }
}
