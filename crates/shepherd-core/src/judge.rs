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
use crate::civil::Wall;
use crate::hours::Hours;
use crate::policy::{Day, Entry, Policy};
use crate::state::{Streak, Until};
use crate::usage::UsageBook;

mod hearing;
mod limit;
mod record;

pub(crate) use hearing::Hearing;
pub(crate) use record::Record;

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
    /// When it will be trusted again, if it goes on as it does.
    pub(crate) trusted_again: Option<Timestamp>,
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

impl<'a> Facts<'a> {
    pub(crate) fn hours<'s>(&'s self, entry: &'s Entry) -> Hours<'s> {
        Hours { policy: self.policy, entry, mode: self.mode, wall: self.wall }
    }

    /// The mode on a day.
    pub(crate) fn mode_on(&self, day: Day) -> &'a str {
        self.mode.unwrap_or_else(|| self.policy.rules().modes.on(day))
    }

    /// Asks every rule about one entry.
    pub(crate) fn judge(
        &self,
        profile: &ProfileId,
        entry: &Entry,
        at: Moment,
        witness: &mut impl Witness,
    ) -> Finding {
        let mut hearing = Hearing::new(*self, profile, at);
        hearing.judge(entry, hearing.record(entry), witness)
    }

    /// The least that quotas and budgets leave; `None` is without limit.
    pub(crate) fn quota_left(&self, profile: &ProfileId, entry: &Entry, at: Moment) -> Option<Duration> {
        let mut hearing = Hearing::new(*self, profile, at);
        let finding = hearing.judge_quotas(entry, hearing.record(entry));
        let exhausted = |reason: &ReasonCode| matches!(reason, ReasonCode::QuotaExhausted { .. });
        if finding.reasons.iter().any(exhausted) { Some(Duration::ZERO) } else { finding.run }
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

    fn concerns(&self, grant: &GrantView, profile: &ProfileId, entry: &Entry) -> bool {
        grant.is_for(profile) && grant.scope.includes(&entry.entry_id, &entry.budgets)
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
            Saying::No(reason) => {
                // Most have one; a vector that grows by itself begins with room for four.
                self.finding.reasons.reserve_exact(1);
                self.finding.reasons.push(reason);
            }
            Saying::AtMost(run) => {
                self.finding.run = Some(self.finding.run.map_or(run, |least| least.min(run)));
            }
            Saying::Until(closes) => self.finding.closes = Some(closes),
            Saying::Nothing => {}
        }
    }
}
