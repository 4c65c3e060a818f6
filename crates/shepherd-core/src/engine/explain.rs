//! Why, and when (S3.10): the same rules as for a launch, told one by one, for any moment; and the week as intervals.

use std::time::Duration;

use jiff::Timestamp;
use shepherd_api::ReasonCode;
use shepherd_util::{EntryId, Now, ProfileId};

use super::CoreEngine;
use crate::hours::Opening;
use crate::judge::{Moment, Saying, Witness};
use crate::policy::Entry;

/// Two months are more than anyone draws; what is beyond is left out.
const MAX_TIMELINE: Duration = Duration::from_secs(62 * 24 * 60 * 60);

/// What one rule looked at and how it came out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleOutcome {
    /// The stable name of the rule.
    pub rule: &'static str,
    /// What it looked at.
    pub looked_at: String,
    /// How it came out.
    pub outcome: Outcome,
}

/// How a rule came out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It has nothing against it.
    Allows,
    /// It allows a run of at most so long.
    AllowsFor(Duration),
    /// It allows a run until then.
    AllowsUntil(Timestamp),
    /// It forbids it.
    Forbids(ReasonCode),
}

/// A stretch of time in which an entry could be launched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// From.
    pub start: Timestamp,
    /// Until, not included.
    pub end: Timestamp,
}

/// Takes down what every rule says.
#[derive(Default)]
struct Minutes(Vec<RuleOutcome>);

impl Witness for Minutes {
    fn hear(&mut self, rule: &'static str, looked_at: impl FnOnce() -> String, saying: &Saying) {
        let outcome = match saying {
            Saying::No(reason) => Outcome::Forbids(reason.clone()),
            Saying::AtMost(run) => Outcome::AllowsFor(*run),
            Saying::Until(closes) => Outcome::AllowsUntil(*closes),
            Saying::Nothing => Outcome::Allows,
        };
        self.0.push(RuleOutcome { rule, looked_at: looked_at(), outcome });
    }
}

impl CoreEngine {
    /// Each rule, what it looked at and how it came out, now. `None` if there is no such entry.
    #[must_use]
    pub fn why(&self, profile: &ProfileId, entry_id: &EntryId, now: Now) -> Option<Vec<RuleOutcome>> {
        self.explain(profile, entry_id, self.moment(now))
    }

    /// The same for any other moment.
    #[must_use]
    pub fn why_at(&self, profile: &ProfileId, entry_id: &EntryId, at: Timestamp) -> Option<Vec<RuleOutcome>> {
        self.explain(profile, entry_id, self.other_moment(at))
    }

    fn explain(&self, profile: &ProfileId, entry_id: &EntryId, at: Moment) -> Option<Vec<RuleOutcome>> {
        let entry = self.policy.entry(entry_id)?;
        let mut minutes = Minutes::default();
        self.facts(at).judge(profile, entry, at, &mut minutes);
        Some(minutes.0)
    }

    /// The intervals in which each entry could be launched, as far as hours, quotas and pauses are known now.
    #[must_use]
    pub fn timeline(
        &self,
        profile: &ProfileId,
        from: Timestamp,
        to: Timestamp,
    ) -> Vec<(EntryId, Vec<Interval>)> {
        let to = to.min(from.checked_add(MAX_TIMELINE).unwrap_or(to));
        let entries = self.policy.entries().iter();
        entries.map(|entry| (entry.entry_id.clone(), self.intervals(profile, entry, from, to))).collect()
    }

    fn intervals(&self, profile: &ProfileId, entry: &Entry, from: Timestamp, to: Timestamp) -> Vec<Interval> {
        let facts = self.facts(self.other_moment(from));
        let mut intervals: Vec<Interval> = Vec::new();
        let mut at = from;
        while at < to {
            let moment = self.other_moment(at);
            let finding = facts.judge(profile, entry, moment, &mut crate::judge::Nobody);
            // Hours, the day and every pause change the answer; between two of these it stays as it is.
            let hours = match facts.hours(entry).at(at) {
                Opening::Open { closes } => closes,
                Opening::Closed { opens } => opens,
            };
            let midnight = facts.wall.end_of_day(at, moment.day);
            let pauses = finding.reasons.iter().filter_map(ReasonCode::until);
            let grants = self.snapshot.grants.iter().flat_map(|grant| [grant.valid_from, grant.lapses_at]);
            let changes = pauses.chain(hours).chain(midnight).chain(finding.closes).chain(grants);
            let next = changes.filter(|change| *change > at).min().unwrap_or(to).min(to);
            if finding.reasons.is_empty() {
                match intervals.last_mut() {
                    Some(last) if last.end == at => last.end = next,
                    _ => intervals.push(Interval { start: at, end: next }),
                }
            }
            at = next;
        }
        intervals
    }
}
