//! Charges usage as time passes (S4.6, S8.4b), and starts the pauses that follow a session.

use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use shepherd_api::EndReason;
use shepherd_util::{
    BootInstant, ClockReading, Deadline, DeadlineClock, EntryId, MonotonicInstant, ProfileId,
};

use super::reload::earlier_deadline;
use super::{CoreEngine, Effects};
use crate::civil::ZoneClock;
use crate::evaluation::EvaluationTime;
use crate::policy::{Day, PolicyEntry, SuspendedTime};
use crate::session::SessionRecord;
use crate::state::{PauseEnd, PlayStreak, StoreWrite, UsageCounter, UsageKey};

/// The source of charged time: observed by the daemon or not. Time without a daemon, or while the machine was
/// suspended, is charged as usual but earns and unlocks nothing, because nobody can have played.
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

    /// Counts usage up to a moment. Every change counts usage anyway; this is for questions in between, and for moments
    /// that passed unnoticed: the last one before the machine was suspended, or before an earlier daemon died. A moment
    /// older than the last known one changes nothing.
    ///
    /// The usage is written with the effects of the next change, so that a question doesn't cost a disk write.
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

    /// Counts usage up to now and writes it.
    pub fn checkpoint_usage(&mut self, now: ClockReading) -> Effects {
        self.count_usage_until(now);
        self.take_effects()
    }

    /// Charges the running session with the time since it was last charged, split by day.
    pub(super) fn charge(&mut self, now: ClockReading) {
        self.charge_at_most(Duration::MAX, PlayObserved::Yes, now);
    }

    /// Charges a session that no daemon observed and that can't have run for longer than this.
    pub(super) fn charge_unobserved_at_most(&mut self, most: Duration, now: ClockReading) {
        self.charge_at_most(most, PlayObserved::No, now);
    }

    fn charge_at_most(&mut self, most: Duration, observed: PlayObserved, now: ClockReading) {
        let counting = self.counting_mode();
        let Some(session) = &mut self.snapshot.session else { return };
        // A program that was not started costs nothing, and the clock of another boot can't be compared with this one.
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
            // The time awake may have begun on the same day.
            if let Some(session) = &mut self.snapshot.session {
                session.charged_day = from_day;
            }
        }
        self.charge_until(end, elapsed.saturating_sub(asleep), observed, now);
    }

    /// Charges the session with this much unobserved time up to `end`.
    pub(super) fn charge_unobserved(&mut self, end: Timestamp, elapsed: Duration, now: ClockReading) {
        self.charge_until(end, elapsed, PlayObserved::No, now);
    }

    fn charge_until(&mut self, end: Timestamp, elapsed: Duration, observed: PlayObserved, now: ClockReading) {
        let to_day = self.evaluation_time(now).day;
        // This holds for an untrusted clock, too: a crash must not bring back a day that was charged.
        self.snapshot.clock.accounting_day = Some(to_day);
        if elapsed.is_zero() {
            // Later time must not be charged to a day that is over, even if the wall clock is set back.
            if let Some(session) = &mut self.snapshot.session
                && std::mem::replace(&mut session.charged_day, to_day) != to_day
            {
                self.save_snapshot();
            }
            return;
        }
        let zone = self.zone().clone();
        let own = observed == PlayObserved::Yes || !self.use_is_rewarded();
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
            self.record_use_since_correction(&key, amount);
            self.charge_usage(key, amount);
        }
        // The snapshot with `charged_to` goes into the same batch, or a crash in between would charge the time twice.
        self.save_snapshot();
    }

    /// Charges usage in memory, and adds it to the pending writes, which may wait for the next change.
    pub(super) fn charge_usage(&mut self, key: UsageKey, amount: Duration) {
        self.usage.add(&key, amount);
        let pending = self.effects.writes.iter_mut().find_map(|write| match write {
            StoreWrite::AddUsage { key: pending, amount } if *pending == key => Some(amount),
            _ => None,
        });
        match pending {
            Some(pending) => *pending = pending.saturating_add(amount),
            None => self.effects.writes.push(StoreWrite::AddUsage { key, amount }),
        }
    }

    /// Returns whether usage of the session's entry benefits the child: it earns time, unlocks another entry, or is
    /// free.
    fn use_is_rewarded(&self) -> bool {
        let Some(session) = &self.snapshot.session else { return false };
        session.free || self.earns_or_unlocks(&session.entry_id)
    }

    /// Returns whether usage of an entry earns time or unlocks another entry.
    pub(super) fn earns_or_unlocks(&self, entry_id: &EntryId) -> bool {
        let unlocks =
            |entry: &PolicyEntry| entry.unlock.as_ref().is_some_and(|unlock| unlock.entry_id == *entry_id);
        self.policy.entry(entry_id).is_some_and(|entry| entry.earns.is_some())
            || self.policy.entries().iter().any(unlocks)
    }

    /// Brings the end of the session forward to what the quotas of its day leave, so that no change of the clock gives
    /// it more (S4.2, S4.5).
    pub(super) fn shorten_to_quota(&mut self, now: ClockReading) {
        let Some(session) = &self.snapshot.session else { return };
        let Some(entry) = self.policy.entry(&session.entry_id) else { return };
        let at = self.evaluation_time(now);
        let left = self.evaluation_context(at).quota_left(&session.profile, entry, at);
        let Some(left) = left else { return };
        let end = Deadline::after(now.mono, left, self.counting_mode());
        if let Some(session) = &mut self.snapshot.session {
            session.ends.run = earlier_deadline(session.ends.run, Some(end), now);
        }
    }

    /// Starts the cooldown after a session, and adds the session to the time played in a row.
    pub(super) fn start_pauses(&mut self, session: &SessionRecord, reason: &EndReason, now: ClockReading) {
        if !session.cooldown.is_zero() && !self.excuse_crash(session, reason, now) {
            let until = self.pause_end(now, session.cooldown);
            let key = (session.profile.clone(), session.entry_id.clone());
            self.cooldowns.insert(key.clone(), until);
            self.effects.writes.push(StoreWrite::SetCooldown { profile: key.0, entry_id: key.1, until });
        }
        if let Some(rule) = self.policy.rules().breaks {
            let played = session.in_a_row.saturating_add(session.charged);
            let streak = PlayStreak { played, rested: self.pause_end(now, rule.length) };
            self.snapshot.streaks.insert(session.profile.clone(), streak);
        }
    }

    /// Returns the time played in a row so far; zero if a break has ended the streak.
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

/// Splits the time that ends at `end` at every midnight, over the days from `first` to `last`.
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
        // The rest goes to the last day, even if the wall clock was set back.
        let midnight = wall.end_of_day(cursor, day).filter(|_| day < last);
        let part = midnight.map_or(left, |midnight| duration_between(midnight, cursor).min(left));
        parts.push((day, part));
        left -= part;
        cursor = midnight.unwrap_or(end);
    }
    parts
}

/// Returns the counters that a session is charged to. The entry's own counter is left out for unobserved time that
/// would be rewarded.
fn usage_keys(session: &SessionRecord, day: Day, own: bool) -> Vec<UsageKey> {
    let key = |counter| UsageKey { profile: session.profile.clone(), counter, day };
    let entry = own.then(|| UsageCounter::Entry(session.entry_id.clone())).into_iter();
    let budgets = session.budgets.iter().filter(|_| !session.free).cloned().map(UsageCounter::Budget);
    entry.chain(budgets).map(key).collect()
}

fn duration_between(later: Timestamp, earlier: Timestamp) -> Duration {
    Duration::try_from(later.duration_since(earlier)).unwrap_or_default()
}
