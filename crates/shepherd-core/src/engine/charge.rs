//! Charging time as it passes (S4.6, S8.4b), and the pauses that follow.

use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use shepherd_util::{BootInstant, ClockReading, Deadline, DeadlineClock, MonotonicInstant, ProfileId};

use super::CoreEngine;
use super::reload::earlier_deadline;
use crate::civil::ZoneClock;
use crate::evaluation::EvaluationTime;
use crate::policy::{Day, PolicyEntry, SuspendedTime, TimeCost};
use crate::session::SessionRecord;
use crate::state::{PauseEnd, PlayStreak, StoreWrite, UsageCounter, UsageKey};

/// Whether anybody can have played. Time that counts although nobody saw it, or although the machine slept, is a
/// price; it earns and unlocks nothing.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PlayObserved {
    Yes,
    No,
}

impl CoreEngine {
    pub(super) fn counting_mode(&self) -> DeadlineClock {
        match self.policy.rules().suspended_time {
            SuspendedTime::Free => DeadlineClock::Awake,
            SuspendedTime::Counts => DeadlineClock::Total,
        }
    }

    /// Counts what has been used up to a moment; nothing else comes of it. Use is counted at every change anyway, so
    /// this is for whoever asks about it meanwhile, and for a moment that has passed unnoticed: the last one before the
    /// machine slept, or before an earlier daemon died. What is older than what is known says nothing.
    pub fn count_usage_until(&mut self, at: ClockReading) {
        let is_news =
            |known: Option<MonotonicInstant>| known.is_none_or(|known| known.total() <= at.mono.total());
        let seen_at = self.snapshot.clock.seen_at.and_then(|seen_at| seen_at.during(self.environment.boot));
        if is_news(seen_at) && is_news(self.last_seen.map(|seen| seen.mono)) {
            self.observe(at);
        }
        if is_news(self.snapshot.session.as_ref().map(|session| session.charged_to)) {
            self.charge(at);
        }
    }

    /// Charges the running session with the time since it was last charged, to each day for its part.
    pub(super) fn charge(&mut self, now: ClockReading) {
        self.charge_at_most(Duration::MAX, PlayObserved::Yes, now);
    }

    /// The same for a session that nobody saw, and that can't have gone on for longer than this since then.
    pub(super) fn charge_unobserved_at_most(&mut self, most: Duration, now: ClockReading) {
        self.charge_at_most(most, PlayObserved::No, now);
    }

    fn charge_at_most(&mut self, most: Duration, witnessed: PlayObserved, now: ClockReading) {
        let counting = self.counting_mode();
        let Some(session) = &mut self.snapshot.session else { return };
        // What has not been started costs nothing, whatever else happens to it; and the clock of another boot says
        // nothing about this one.
        if !session.stage.has_program() || session.boot != self.environment.boot {
            return;
        }
        let passed = now.mono.total_since(session.charged_to);
        let awake = now.mono.awake_since(session.charged_to);
        let elapsed = match counting {
            DeadlineClock::Awake => awake,
            DeadlineClock::Total => passed,
        };
        session.charged_to = now.mono;
        let from_day = session.charged_day;
        let over = if elapsed > most { passed.saturating_sub(most) } else { Duration::ZERO };
        let end = self.effective_time(now).saturating_sub(over).unwrap_or(Timestamp::MIN);
        let elapsed = elapsed.min(most);
        let asleep = elapsed.saturating_sub(awake);
        if !asleep.is_zero() {
            let woke = end.saturating_sub(elapsed.saturating_sub(asleep)).unwrap_or(Timestamp::MIN);
            self.charge_until(woke, asleep, PlayObserved::No, now);
            // What follows may have begun on the same day.
            if let Some(session) = &mut self.snapshot.session {
                session.charged_day = from_day;
            }
        }
        self.charge_until(end, elapsed.saturating_sub(asleep), witnessed, now);
    }

    /// Charges the session with so much time up to then that nobody saw.
    pub(super) fn charge_unobserved(&mut self, end: Timestamp, elapsed: Duration, now: ClockReading) {
        self.charge_until(end, elapsed, PlayObserved::No, now);
    }

    fn charge_until(
        &mut self,
        end: Timestamp,
        elapsed: Duration,
        witnessed: PlayObserved,
        now: ClockReading,
    ) {
        let to_day = self.evaluation_time(now).day;
        // Also while the clock is not believed: a crash must not bring back a day that was charged.
        self.snapshot.clock.accounting_day = Some(to_day);
        if elapsed.is_zero() {
            // What comes next is not charged to a day that is over, whatever the wall shows by then, and whoever
            // charges it.
            if let Some(session) = &mut self.snapshot.session
                && std::mem::replace(&mut session.charged_day, to_day) != to_day
            {
                self.save_snapshot();
            }
            return;
        }
        let zone = self.zone().clone();
        let own = witnessed == PlayObserved::Yes || !self.use_is_rewarded();
        let Some(session) = &mut self.snapshot.session else { return };
        let parts = split_by_day(&zone, session.charged_day.min(to_day), to_day, end, elapsed);
        session.charged_day = to_day;
        session.charged = session.charged.saturating_add(elapsed);
        let keys: Vec<(UsageKey, Duration)> = parts
            .into_iter()
            .filter(|(_, amount)| !amount.is_zero())
            .flat_map(|(day, amount)| usage_keys(session, day, own).into_iter().map(move |key| (key, amount)))
            .collect();
        for (key, amount) in keys {
            self.usage.add(&key, amount);
            self.write_usage(key, amount);
        }
        // Together with what was charged goes up to when, or a crash in between would charge it twice.
        self.save_snapshot();
    }

    /// Adds to what is to be written, which may wait for a while: for a change, or for the disk.
    fn write_usage(&mut self, key: UsageKey, amount: Duration) {
        let waiting = self.writes.iter_mut().find_map(|write| match write {
            StoreWrite::AddUsage { key: waiting, amount } if *waiting == key => Some(amount),
            _ => None,
        });
        match waiting {
            Some(waiting) => *waiting = waiting.saturating_add(amount),
            None => self.writes.push(StoreWrite::AddUsage { key, amount }),
        }
    }

    /// Whether use of what runs is good for something else: it earns, unlocks, or costs nothing and may come to.
    fn use_is_rewarded(&self) -> bool {
        let Some(session) = &self.snapshot.session else { return false };
        let unlocks = |entry: &PolicyEntry| {
            entry.unlock.as_ref().is_some_and(|unlock| unlock.entry_id == session.entry_id)
        };
        session.free
            || self.policy.entry(&session.entry_id).is_some_and(|entry| entry.earns.is_some())
            || self.policy.entries().iter().any(unlocks)
    }

    /// No movement of the clock may leave a session more than the quotas of the day it is charged to (S4.2, S4.5):
    /// its end can come nearer by this, never later.
    pub(super) fn shorten_to_quota(&mut self, now: ClockReading) {
        let Some(session) = &self.snapshot.session else { return };
        let Some(entry) = self.policy.entry(&session.entry_id) else { return };
        if session.stage.end_reason().is_some() || entry.cost == TimeCost::Free {
            return;
        }
        let at = self.evaluation_time(now);
        let left = self.evaluation_context(at).quota_left(&session.profile, entry, at);
        let Some(left) = left else { return };
        let end = Deadline::after(now.mono, left, self.counting_mode());
        if let Some(session) = &mut self.snapshot.session {
            session.ends.run = earlier_deadline(session.ends.run, Some(end), now);
        }
    }

    /// The pause after a run, and the time in a row.
    pub(super) fn start_pauses(&mut self, session: &SessionRecord, now: ClockReading) {
        if !session.cooldown.is_zero() {
            let until = self.pause_end(now, session.cooldown);
            let key = (session.profile.clone(), session.entry_id.clone());
            self.cooldowns.insert(key.clone(), until);
            self.writes.push(StoreWrite::SetCooldown { profile: key.0, entry_id: key.1, until });
        }
        if let Some(rule) = self.policy.rules().breaks {
            let played = session.in_a_row.saturating_add(session.charged);
            let streak = PlayStreak { played, rested: self.pause_end(now, rule.length) };
            self.snapshot.streaks.insert(session.profile.clone(), streak);
        }
    }

    /// The time in a row so far, if no break has ended it.
    pub(super) fn streak_so_far(&self, profile: &ProfileId, at: EvaluationTime) -> Duration {
        let streak = self.snapshot.streaks.get(profile);
        let goes_on =
            streak.filter(|streak| self.evaluation_context(at).pending_until(streak.rested, at).is_some());
        goes_on.map_or(Duration::ZERO, |streak| streak.played)
    }

    pub(super) fn pause_end(&self, now: ClockReading, length: Duration) -> PauseEnd {
        let at = MonotonicInstant::new(now.mono.total().saturating_add(length), now.mono.awake());
        PauseEnd {
            wall: self.effective_time(now).checked_add(length).unwrap_or(Timestamp::MAX),
            boot: BootInstant::new(self.environment.boot, at),
        }
    }
}

/// So much time up to `end`, cut at every midnight in between, to days from `first` to `last`.
fn split_by_day(
    zone: &TimeZone,
    first: Day,
    last: Day,
    end: Timestamp,
    elapsed: Duration,
) -> Vec<(Day, Duration)> {
    let mut cursor = end.saturating_sub(elapsed).unwrap_or(Timestamp::MIN);
    let wall = ZoneClock::cached_from(zone, cursor);
    let (mut left, mut parts) = (elapsed, Vec::new());
    while !left.is_zero() {
        let day = wall.local(cursor).day().clamp(first, last);
        // The last day takes what is left, whatever the wall shows by then.
        let midnight = wall.end_of_day(cursor, day).filter(|midnight| day < last && *midnight > cursor);
        let part = midnight.map_or(left, |midnight| duration_between(midnight, cursor).min(left));
        parts.push((day, part));
        left -= part;
        cursor = midnight.unwrap_or(end);
    }
    parts
}

/// What the time of a session is counted under; `own` is whether it counts as use of the entry itself, too.
fn usage_keys(session: &SessionRecord, day: Day, own: bool) -> Vec<UsageKey> {
    let key = |counter| UsageKey { profile: session.profile.clone(), counter, day };
    let entry = own.then(|| UsageCounter::Entry(session.entry_id.clone())).into_iter();
    let budgets = session.budgets.iter().filter(|_| !session.free).cloned().map(UsageCounter::Budget);
    entry.chain(budgets).map(key).collect()
}

fn duration_between(later: Timestamp, earlier: Timestamp) -> Duration {
    Duration::try_from(later.duration_since(earlier)).unwrap_or_default()
}
