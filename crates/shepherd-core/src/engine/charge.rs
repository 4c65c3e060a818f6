//! Charges usage as time passes (S4.6, S8.4b), and starts the pauses that follow a session.
//!
//! Sessions of a profile that run at the same time share the profile's counters. Each counter (an entry, a budget, the
//! time played in a row) gets each second once, and not once for each session (S19.1). The sessions of a profile are
//! therefore charged together.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use shepherd_api::{EndReason, SessionCounting};
use shepherd_util::{
    BootInstant, ClockReading, Deadline, DeadlineClock, EntryId, MonotonicInstant, ProfileId, SessionId,
};

use super::charged_time::{ChargedSpan, PlayObserved, UnchargedTime, merge_spans};
use super::reload::earlier_deadline;
use super::{CoreEngine, Effects};
use crate::evaluation::EvaluationTime;
use crate::policy::{PolicyEntry, SuspendedTime};
use crate::session::SessionRecord;
use crate::state::{PauseEnd, PlayStreak, StoreWrite, UsageCounter, UsageKey};

/// The least time between two ticks that charge every one of many sessions. A tick charges the sessions that something is
/// due for in any case; the others can wait, so that sessions that end together don't charge all others once each.
const CHARGE_INTERVAL: Duration = Duration::from_secs(1);

/// The number of sessions that each tick charges.
const FEW_SESSIONS: usize = 16;

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
        self.observe_if_later(at);
        self.charge_profiles(at);
    }

    /// Counts usage of one profile up to a moment, as [`CoreEngine::count_usage_until`] does.
    pub fn count_profile_usage_until(&mut self, profile: &ProfileId, at: ClockReading) {
        self.observe_if_later(at);
        self.charge_profile(profile, at);
    }

    fn observe_if_later(&mut self, at: ClockReading) {
        let is_news =
            |known: Option<MonotonicInstant>| known.is_none_or(|known| known.total() <= at.mono.total());
        let seen_at = self.snapshot.clock.seen_at.and_then(|seen_at| seen_at.during(self.environment.boot));
        if is_news(seen_at) && is_news(self.last_seen.map(|seen| seen.mono)) {
            self.observe(at);
        }
    }

    /// Counts usage up to now and writes it.
    pub fn checkpoint_usage(&mut self, now: ClockReading) -> Effects {
        self.count_usage_until(now);
        self.take_effects()
    }

    /// Charges every session with the time since it was last charged.
    pub(super) fn charge_all(&mut self, now: ClockReading) {
        self.all_charged_at = Some(now.mono);
        self.charge_profiles(now);
    }

    /// Charges the sessions of all profiles. Each session is looked at once, however many profiles there are.
    fn charge_profiles(&mut self, now: ClockReading) {
        let mut by_profile = BTreeMap::<&ProfileId, Vec<UnchargedTime>>::new();
        for session in self.sessions.iter() {
            if let Some(time) = self.uncharged_time(session, Duration::MAX, PlayObserved::Yes, now) {
                by_profile.entry(&session.profile).or_default().push(time);
            }
        }
        let all: Vec<Vec<UnchargedTime>> = by_profile.into_values().collect();
        all.iter().for_each(|times| self.charge_times(times, now));
    }

    /// Charges every session, unless they are many and a tick did so a moment ago.
    pub(super) fn charge_all_now_and_then(&mut self, now: ClockReading) {
        if self.sessions.len() <= FEW_SESSIONS
            || self.all_charged_at.is_none_or(|last| now.mono.total_since(last) >= CHARGE_INTERVAL)
        {
            self.charge_all(now);
        }
    }

    /// Charges the sessions of a profile with the time since they were last charged.
    pub(super) fn charge_profile(&mut self, profile: &ProfileId, now: ClockReading) {
        let sessions = self.sessions.of_profile(profile);
        let times: Vec<UnchargedTime> = sessions
            .filter_map(|session| self.uncharged_time(session, Duration::MAX, PlayObserved::Yes, now))
            .collect();
        self.charge_times(&times, now);
    }

    /// Returns the time since a session was last charged, split into the parts asleep and awake; `None` if it costs
    /// nothing. A session can't have run for longer than `most`.
    pub(super) fn uncharged_time(
        &self,
        session: &SessionRecord,
        most: Duration,
        observed: PlayObserved,
        now: ClockReading,
    ) -> Option<UnchargedTime> {
        // The clock of another boot can't be compared with this one, and later time is charged already.
        let is_comparable =
            session.boot == self.environment.boot && session.charged_to.total() <= now.mono.total();
        if !session.is_counting() || !is_comparable {
            return None;
        }
        let passed = now.mono.total_since(session.charged_to);
        let awake = now.mono.awake_since(session.charged_to);
        let elapsed = match self.counting_mode() {
            DeadlineClock::Total => passed,
            DeadlineClock::Awake | DeadlineClock::Stopped => awake,
        };
        let over = if elapsed > most { passed.saturating_sub(most) } else { Duration::ZERO };
        let end = self.effective_time(now).saturating_sub(over).unwrap_or(Timestamp::MIN);
        let elapsed = elapsed.min(most);
        let asleep = elapsed.saturating_sub(awake);
        Some(UnchargedTime {
            session_id: session.session_id.clone(),
            end,
            asleep,
            awake: elapsed.saturating_sub(asleep),
            observed,
        })
    }

    /// Charges sessions of one profile with these times, split by day.
    pub(super) fn charge_times(&mut self, times: &[UnchargedTime], now: ClockReading) {
        let first = times.first().and_then(|time| self.sessions.get(&time.session_id));
        let Some(profile) = first.map(|session| session.profile.clone()) else { return };
        let to_day = self.evaluation_time(now).day;
        // This holds for an untrusted clock, too: a crash must not bring back a day that was charged.
        self.snapshot.clock.accounting_day = Some(to_day);
        let mut counters = BTreeMap::<UsageCounter, Vec<ChargedSpan>>::new();
        for time in times {
            let Some(session) = self.sessions.get(&time.session_id) else { continue };
            for span in time.spans(session.charged_day) {
                for counter in self.charged_counters(session, span.observed) {
                    counters.entry(counter).or_default().push(span);
                }
            }
        }
        let mut is_charged = false;
        for time in times {
            let length = time.length();
            let is_news = |session: &SessionRecord| !length.is_zero() || session.charged_day != to_day;
            if self.sessions.get(&time.session_id).is_some_and(is_news) {
                is_charged = true;
                // Time is earned for a day.
                let earned =
                    self.sessions.get(&time.session_id).filter(|session| session.charged_day != to_day);
                let earned = earned.map(|session| self.earned_time(&profile, &session.budgets, to_day));
                if let Some(session) = self.sessions.get_mut(&time.session_id) {
                    session.charged = session.charged.saturating_add(length);
                    if let Some(earned) = earned {
                        session.earned = earned;
                    }
                    // Later time must not be charged to a day that is over, even if the wall clock is set back.
                    session.charged_day = to_day;
                }
            }
            if let Some(session) = self.sessions.get_mut_unsaved(&time.session_id)
                && session.boot == self.environment.boot
            {
                session.charged_to = now.mono;
            }
        }
        if !is_charged {
            return;
        }
        let zone = self.zone().clone();
        for (counter, mut spans) in counters {
            merge_spans(&mut spans);
            for (day, amount) in spans.iter().flat_map(|span| span.split_by_day(&zone, to_day)) {
                if !amount.is_zero() {
                    let key = UsageKey { profile: profile.clone(), counter: counter.clone(), day };
                    self.record_use_since_correction(&key, amount);
                    self.charge_usage(key, amount);
                }
            }
        }
        // The sessions with `charged_to` go into the same batch, or a crash in between would charge the time twice.
        self.save_snapshot();
    }

    /// Returns the counters that a session is charged to. The entry's own counter is left out for time that would be
    /// rewarded although nobody played.
    fn charged_counters(&self, session: &SessionRecord, observed: PlayObserved) -> Vec<UsageCounter> {
        let is_idle = session.counting == SessionCounting::Idle;
        let own = match observed {
            PlayObserved::Yes => !is_idle || !self.earns_or_unlocks(&session.entry_id),
            PlayObserved::No => !session.free && !self.earns_or_unlocks(&session.entry_id),
        };
        let entry = own.then(|| UsageCounter::Entry(session.entry_id.clone()));
        let budgets = session.budgets.iter().filter(|_| !session.free).cloned().map(UsageCounter::Budget);
        entry.into_iter().chain(budgets).collect()
    }

    /// Charges usage in memory, and adds it to the pending writes, which may wait for the next change.
    pub(super) fn charge_usage(&mut self, key: UsageKey, amount: Duration) {
        self.usage.add(&key, amount);
        let pending = self.effects.usage.entry(key).or_default();
        *pending = pending.saturating_add(amount);
    }

    /// Returns whether usage of an entry earns time or unlocks another entry.
    pub(super) fn earns_or_unlocks(&self, entry_id: &EntryId) -> bool {
        let unlocks =
            |entry: &PolicyEntry| entry.unlock.as_ref().is_some_and(|unlock| unlock.entry_id == *entry_id);
        self.policy.entry(entry_id).is_some_and(|entry| entry.earns.is_some())
            || self.policy.entries().iter().any(unlocks)
    }

    /// Brings the end of a session forward to what the quotas of its day leave, so that no change of the clock gives
    /// it more (S4.2, S4.5). A session that doesn't count is compared with them when it counts again.
    pub(super) fn shorten_to_quota(&mut self, session_id: &SessionId, now: ClockReading) {
        let counts = |session: &&SessionRecord| session.counting != SessionCounting::Stopped;
        let Some(session) = self.sessions.get(session_id).filter(counts) else { return };
        let Some(entry) = self.policy.entry(&session.entry_id) else { return };
        let at = self.evaluation_time(now);
        let left = self.evaluation_context(at).quota_left(&session.profile, entry, at);
        let Some(left) = left else { return };
        let end = Deadline::after(now.mono, left, session.run_clock(self.counting_mode()));
        let run = earlier_deadline(session.ends.run, Some(end), now);
        if run != session.ends.run
            && let Some(session) = self.sessions.get_mut(session_id)
        {
            session.ends.run = run;
        }
    }

    /// Starts the cooldown after a session that is over, and adds the session to the time played in a row.
    pub(super) fn start_pauses(&mut self, session: &SessionRecord, reason: &EndReason, now: ClockReading) {
        if !session.cooldown.is_zero() && !self.excuse_crash(session, reason, now) {
            let until = self.pause_end(now, session.cooldown);
            let key = (session.profile.clone(), session.entry_id.clone());
            self.cooldowns.insert(key.clone(), until);
            self.effects.writes.push(StoreWrite::SetCooldown { profile: key.0, entry_id: key.1, until });
        }
        if session.is_counting() {
            self.interrupt_streak(session, now);
        }
    }

    /// Starts the break that would end the streak of a profile, because a session of it no longer counts. As long as
    /// another session counts, the streak goes on in that one.
    pub(super) fn interrupt_streak(&mut self, session: &SessionRecord, now: ClockReading) {
        if let Some(rule) = self.policy.rules().breaks {
            let others = self.running_streak(&session.profile).unwrap_or_default();
            let played = session.played_in_a_row().max(others);
            let streak = PlayStreak { played, rested: self.pause_end(now, rule.length) };
            self.snapshot.streaks.insert(session.profile.clone(), streak);
            self.save_snapshot();
        }
    }

    /// Returns the time played in a row by the sessions of a profile that count now, as far as they have been charged.
    pub(super) fn running_streak(&self, profile: &ProfileId) -> Option<Duration> {
        let counting = self.sessions.of_profile(profile).filter(|session| session.is_counting());
        counting.map(SessionRecord::played_in_a_row).max()
    }

    /// Returns the time played in a row so far; zero if a break has ended the streak.
    pub(super) fn streak_so_far(&self, profile: &ProfileId, at: EvaluationTime) -> Duration {
        let ended = || {
            let streak = self.snapshot.streaks.get(profile)?;
            self.evaluation_context(at).pending_until(streak.rested, at).map(|_| streak.played)
        };
        self.running_streak(profile).or_else(ended).unwrap_or_default()
    }

    pub(super) fn pause_end(&self, now: ClockReading, length: Duration) -> PauseEnd {
        let at = MonotonicInstant::new(now.mono.total().saturating_add(length), now.mono.awake());
        PauseEnd {
            wall: self.effective_time(now).checked_add(length).unwrap_or(Timestamp::MAX),
            boot: BootInstant::new(self.environment.boot, at),
        }
    }
}
