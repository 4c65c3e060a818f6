//! Explanations (S3.10): the outcome of each rule for an entry at any moment, and the times at which entries can be
//! launched, as intervals.

use jiff::{SignedDuration, Timestamp};
use shepherd_api::{
    EntryTimeline, ExplanationView, ReasonCode, RuleOutcomeView, RuleView, TimeInterval, TimelineView,
    UnlockView,
};
use shepherd_util::{ClockReading, EntryId, ProfileId};

use super::CoreEngine;
use super::errors::QueryError;
use super::listing::evaluate_entry;
use crate::evaluation::{EvaluationTime, NoObserver, RuleObserver, RuleVerdict};
use crate::hours::{BedtimeState, OpenState};
use crate::policy::PolicyEntry;

/// The longest timeline: a calendar sheet of a month shows up to six weeks.
const MAX_TIMELINE_DAYS: u16 = 42;

/// Collects the outcome of every rule.
#[derive(Default)]
struct RuleTrace(Vec<RuleView>);

impl RuleObserver for RuleTrace {
    fn observe_rule(&mut self, rule: &'static str, facts: impl FnOnce() -> String, verdict: &RuleVerdict) {
        let outcome = match verdict {
            RuleVerdict::Refuses(reason) => RuleOutcomeView::Refuses { reason: reason.clone() },
            RuleVerdict::Limits(run) => RuleOutcomeView::Limits { at_most: (*run).into() },
            RuleVerdict::LimitsUntil(until) => RuleOutcomeView::LimitsUntil { until: *until },
            RuleVerdict::Passes => RuleOutcomeView::Passes,
        };
        self.0.push(RuleView { rule: rule.to_owned(), facts: facts(), outcome });
    }
}

impl CoreEngine {
    /// Returns every rule with what it looked at and its outcome, now.
    ///
    /// # Errors
    /// Fails if there is no such entry.
    pub fn why(
        &self,
        profile: &ProfileId,
        entry_id: &EntryId,
        now: ClockReading,
    ) -> Result<ExplanationView, QueryError> {
        self.explain(profile, entry_id, self.evaluation_time(now))
    }

    /// Returns every rule with what it looked at and its outcome, at another moment.
    ///
    /// # Errors
    /// Fails if there is no such entry.
    pub fn why_at(
        &self,
        profile: &ProfileId,
        entry_id: &EntryId,
        at: Timestamp,
    ) -> Result<ExplanationView, QueryError> {
        self.explain(profile, entry_id, self.evaluation_time_at(at))
    }

    fn explain(
        &self,
        profile: &ProfileId,
        entry_id: &EntryId,
        at: EvaluationTime,
    ) -> Result<ExplanationView, QueryError> {
        let entry = self.policy.entry(entry_id).ok_or_else(|| QueryError::UnknownEntry(entry_id.clone()))?;
        let mut trace = RuleTrace::default();
        let facts = self.evaluation_context(at);
        facts.evaluate(profile, entry, at, &mut trace);
        Ok(ExplanationView {
            at: at.shown,
            profile: profile.clone(),
            entry: evaluate_entry(&facts, profile, entry, at),
            rules: trace.0,
        })
    }

    /// Returns the intervals in which each entry could be launched, by the hours, quotas and pauses that are known now.
    ///
    /// # Errors
    /// Fails if the range is empty or longer than six weeks.
    pub fn timeline(
        &self,
        profile: &ProfileId,
        from: Timestamp,
        to: Timestamp,
    ) -> Result<TimelineView, QueryError> {
        if to <= from {
            return Err(QueryError::EmptyRange);
        }
        if to.duration_since(from) > SignedDuration::from_hours(24 * i64::from(MAX_TIMELINE_DAYS)) {
            return Err(QueryError::RangeTooLong { days: MAX_TIMELINE_DAYS });
        }
        // The timeline shows the same entries as the listing.
        let entries = self.policy.entries().iter().filter(|entry| entry.is_for(profile));
        let entries = entries.map(|entry| self.entry_timeline(profile, entry, from, to));
        let entries = entries.collect();
        let bedtimes = self.bedtime_intervals(profile, from, to);
        Ok(TimelineView { from, to, profile: profile.clone(), entries, bedtimes })
    }

    /// Returns the bedtimes of a profile in a range.
    fn bedtime_intervals(&self, profile: &ProfileId, from: Timestamp, to: Timestamp) -> Vec<TimeInterval> {
        let facts = self.evaluation_context(self.evaluation_time_at(from));
        let (mut intervals, mut at) = (Vec::new(), from);
        while let Some(bedtime) = facts.bedtime_hours(profile).filter(|_| at < to) {
            at = match bedtime.state_at(at) {
                BedtimeState::Awake { begins } => begins.unwrap_or(to),
                BedtimeState::Asleep { ends } => {
                    let ends = ends.unwrap_or(to);
                    intervals.push(TimeInterval { from: at, to: ends.min(to) });
                    ends
                }
            };
        }
        intervals
    }

    fn entry_timeline(
        &self,
        profile: &ProfileId,
        entry: &PolicyEntry,
        from: Timestamp,
        to: Timestamp,
    ) -> EntryTimeline {
        let facts = self.evaluation_context(self.evaluation_time_at(from));
        let (mut intervals, mut unlockable) = (Vec::new(), Vec::new());
        let mut at = from;
        while at < to {
            let moment = self.evaluation_time_at(at);
            let finding = facts.evaluate(profile, entry, moment, &mut NoObserver);
            // Availability changes only where a window, a day, a pause or a grant begins or ends.
            let hours = match facts.opening_hours(entry).open_state_at(at) {
                OpenState::Open { closes } => closes,
                OpenState::Closed { opens } => opens,
            };
            let midnight = facts.wall.end_of_day(at, moment.day);
            let pauses = finding.reasons.iter().filter_map(ReasonCode::until);
            let grants = self.snapshot.grants.iter();
            let grants = grants
                .flat_map(|grant| [grant.valid_from, grant.lapses_at].into_iter().chain(grant.revoked_at));
            let changes = pauses.chain(hours).chain(midnight).chain(finding.closes).chain(grants);
            let next = changes.filter(|change| *change > at).min().unwrap_or(to).min(to);
            let interval = TimeInterval { from: at, to: next };
            match finding.reasons.as_slice() {
                [] => push_interval(&mut intervals, interval),
                [ReasonCode::NotUnlocked { .. }] => push_interval(&mut unlockable, interval),
                _ => {}
            }
            at = next;
        }
        let unlock = entry.unlock.as_ref().map(|unlock| UnlockView {
            entry_id: unlock.entry_id.clone(),
            label: self
                .policy
                .entry(&unlock.entry_id)
                .map_or(unlock.entry_id.as_str(), |entry| entry.label.as_str())
                .to_owned(),
            needed: unlock.at_least.into(),
        });
        let (entry_id, label) = (entry.entry_id.clone(), entry.label.clone());
        EntryTimeline { entry_id, label, intervals, unlock, unlockable }
    }
}

/// Adds an interval, or extends the last one that it touches.
fn push_interval(intervals: &mut Vec<TimeInterval>, interval: TimeInterval) {
    match intervals.last_mut() {
        Some(last) if last.to == interval.from => last.to = interval.to,
        _ => intervals.push(interval),
    }
}
