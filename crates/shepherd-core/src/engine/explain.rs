//! Why, and when (S3.10): the same rules as for a launch, told one by one, for any moment; and the week as intervals.

use jiff::{SignedDuration, Timestamp};
use shepherd_api::{EntryTimeline, Interval, ReasonCode, RuleOutcome, RuleView, TimelineView, WhyView};
use shepherd_util::{EntryId, Now, ProfileId};

use super::refusal::AskError;
use super::{CoreEngine, view};
use crate::hours::Opening;
use crate::judge::{Moment, Nobody, Saying, Witness};
use crate::policy::Entry;

/// A calendar sheet of a month has at most six weeks.
const MAX_TIMELINE_DAYS: u16 = 42;

/// Takes down what every rule says.
#[derive(Default)]
struct Minutes(Vec<RuleView>);

impl Witness for Minutes {
    fn hear(&mut self, rule: &'static str, looked_at: impl FnOnce() -> String, saying: &Saying) {
        let outcome = match saying {
            Saying::No(reason) => RuleOutcome::Refuses { reason: reason.clone() },
            Saying::AtMost(run) => RuleOutcome::Limits { at_most: (*run).into() },
            Saying::Until(until) => RuleOutcome::LimitsUntil { until: *until },
            Saying::Nothing => RuleOutcome::Passes,
        };
        self.0.push(RuleView { rule: rule.to_owned(), looked_at: looked_at(), outcome });
    }
}

impl CoreEngine {
    /// Each rule, what it looked at and how it came out, now.
    ///
    /// # Errors
    /// When there is no such entry.
    pub fn why(&self, profile: &ProfileId, entry_id: &EntryId, now: Now) -> Result<WhyView, AskError> {
        self.explain(profile, entry_id, self.moment(now))
    }

    /// The same for any other moment.
    ///
    /// # Errors
    /// When there is no such entry.
    pub fn why_at(
        &self,
        profile: &ProfileId,
        entry_id: &EntryId,
        at: Timestamp,
    ) -> Result<WhyView, AskError> {
        self.explain(profile, entry_id, self.other_moment(at))
    }

    fn explain(&self, profile: &ProfileId, entry_id: &EntryId, at: Moment) -> Result<WhyView, AskError> {
        let entry = self.policy.entry(entry_id).ok_or_else(|| AskError::UnknownEntry(entry_id.clone()))?;
        let mut minutes = Minutes::default();
        let facts = self.facts(at);
        facts.judge(profile, entry, at, &mut minutes);
        Ok(WhyView {
            at: at.shown,
            profile: profile.clone(),
            entry: view(&facts, profile, entry, at),
            rules: minutes.0,
        })
    }

    /// The intervals in which each entry could be launched, as far as hours, quotas and pauses are known now.
    ///
    /// # Errors
    /// When the span is empty or longer than six weeks.
    pub fn timeline(
        &self,
        profile: &ProfileId,
        from: Timestamp,
        to: Timestamp,
    ) -> Result<TimelineView, AskError> {
        if to <= from {
            return Err(AskError::EmptyRange);
        }
        if to.duration_since(from) > SignedDuration::from_hours(24 * i64::from(MAX_TIMELINE_DAYS)) {
            return Err(AskError::RangeTooLong { days: MAX_TIMELINE_DAYS });
        }
        // The week shows what the listing shows.
        let entries = self.policy.entries().iter().filter(|entry| entry.is_for(profile));
        let entries = entries.map(|entry| EntryTimeline {
            entry_id: entry.entry_id.clone(),
            label: entry.label.clone(),
            intervals: self.intervals(profile, entry, from, to),
        });
        Ok(TimelineView { from, to, profile: profile.clone(), entries: entries.collect() })
    }

    fn intervals(&self, profile: &ProfileId, entry: &Entry, from: Timestamp, to: Timestamp) -> Vec<Interval> {
        let facts = self.facts(self.other_moment(from));
        let mut intervals: Vec<Interval> = Vec::new();
        let mut at = from;
        while at < to {
            let moment = self.other_moment(at);
            let finding = facts.judge(profile, entry, moment, &mut Nobody);
            // Hours, the day and every pause change the answer; between two of these it stays as it is.
            let hours = match facts.hours(entry).at(at) {
                Opening::Open { closes } => closes,
                Opening::Closed { opens } => opens,
            };
            let midnight = facts.wall.end_of_day(at, moment.day);
            let pauses = finding.reasons.iter().filter_map(ReasonCode::until);
            let grants = self.snapshot.grants.iter();
            let grants = grants
                .flat_map(|grant| [grant.valid_from, grant.lapses_at].into_iter().chain(grant.revoked_at));
            let changes = pauses.chain(hours).chain(midnight).chain(finding.closes).chain(grants);
            let next = changes.filter(|change| *change > at).min().unwrap_or(to).min(to);
            if finding.reasons.is_empty() {
                match intervals.last_mut() {
                    Some(last) if last.to == at => last.to = next,
                    _ => intervals.push(Interval { from: at, to: next }),
                }
            }
            at = next;
        }
        intervals
    }
}
