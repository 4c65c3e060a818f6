//! The real events in a household, and the limits of its policies.
//!
//! The model takes nothing from the accounts of the engine. Across a reboot it knows the length of a pause only from
//! the wall clock, and across a crash it knows of the clock only what was stored. Everything else is measured.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use shepherd_api::{EntryScope, GrantView};
use shepherd_core::policy::{BreakRule, Day, OnReload};
use shepherd_core::{DaemonHeartbeat, SessionRecord, StoredState};
use shepherd_util::{BootId, ClockReading, GrantId, MonotonicInstant};

use super::household::{CHILDREN, ENTRIES};
use super::reference_clock::{ReferenceClock, day_of};
use super::session_model::{AppliedGrant, ProgramEnd, SimulatedSession, counted_play};
use super::usage_model::{CounterIndex, PolicyTerms, UsageModel, extra_time, grant_applies};

/// The longest time that a power cut loses: the time since the last heartbeat, and the time to write a heartbeat.
pub(super) const MAX_LOST: Duration = Duration::from_secs(31);

/// A pause after a session, and the end of that session.
#[derive(Clone, Copy)]
struct RequiredPause {
    length: Duration,
    since: ProgramEnd,
}

/// Says if a daemon was running at the time.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SeenByDaemon {
    Yes,
    No,
}

#[derive(Clone)]
pub(super) struct ReferenceModel {
    pub(super) terms: PolicyTerms,
    pub(super) clock: ReferenceClock,
    pub(super) usage: UsageModel,
    pub(super) grants: Vec<GrantView>,
    pub(super) session: Option<SimulatedSession>,
    /// A session that is over, but still stored as running, as it was when it was stored.
    unwritten_session: Option<SimulatedSession>,
    /// All time that was ever played, as far as it counted.
    pub(super) played: Duration,
    /// All time that was ever played while the machine was awake.
    pub(super) awake: Duration,
    pub(super) boot: u128,
    earlier_boots: Duration,
    /// True if something was played whose day could not be stored.
    pub(super) days_unknown: bool,
    pauses: BTreeMap<(usize, usize), RequiredPause>,
    streaks: BTreeMap<usize, (Duration, RequiredPause)>,
    /// The extra time of a grant that runs of a child have used, and the day.
    extra_used: BTreeMap<(GrantId, usize), (Day, Duration)>,
}

impl ReferenceModel {
    pub(super) fn new(terms: PolicyTerms) -> Self {
        Self {
            terms,
            clock: ReferenceClock::default(),
            usage: UsageModel::default(),
            grants: Vec::new(),
            session: None,
            unwritten_session: None,
            played: Duration::ZERO,
            awake: Duration::ZERO,
            boot: 1,
            earlier_boots: Duration::ZERO,
            days_unknown: false,
            pauses: BTreeMap::new(),
            streaks: BTreeMap::new(),
            extra_used: BTreeMap::new(),
        }
    }

    fn tolerance(&self) -> Duration {
        self.terms.policy.rules().clock_tolerance
    }

    pub(super) fn is_clock_behind(&self, now: ClockReading) -> bool {
        self.clock.is_behind(now, self.tolerance())
    }

    fn day(&self, now: ClockReading) -> Day {
        self.clock.day(now, &self.terms.zone)
    }

    /// Accounts the play since the last call, and applies grants that have become valid.
    pub(super) fn advance_to(&mut self, now: ClockReading) {
        self.observe(now);
        self.account_play(now, Duration::ZERO, SeenByDaemon::Yes);
        self.apply_due_grants(now);
    }

    pub(super) fn observe(&mut self, now: ClockReading) {
        self.clock.observe(now, &self.terms.zone, self.tolerance());
        let day = self.day(now);
        self.usage.charge_use_since_correction_again(day);
    }

    /// Accounts the play up to the last heartbeat.
    pub(super) fn account_until_heartbeat(&mut self, stored: &StoredState) {
        let Some(heartbeat) = session_heartbeat(stored) else { return };
        let booked_to = self.session.as_ref().and_then(|play| play.booked_to);
        if booked_to.is_some_and(|booked_to| booked_to.total() <= heartbeat.at.mono.total()) {
            self.account_play(heartbeat.at, Duration::ZERO, SeenByDaemon::Yes);
        }
    }

    /// Accounts the play since the last call, up to `ago` before now.
    fn account_play(&mut self, now: ClockReading, ago: Duration, seen: SeenByDaemon) {
        let (today, end) = (self.day(now), self.clock.time(now) - ago);
        let Some(play) = &mut self.session else { return };
        let Some(from) = play.booked_to.filter(|_| play.stopped.is_none()) else { return };
        let to = MonotonicInstant::new(now.mono.total() - ago, now.mono.awake() - ago);
        let passed = MonotonicInstant::new(to.total_since(from), to.awake_since(from));
        let counted = counted_play(self.terms.policy.rules().suspended_time, passed);
        play.booked_to = Some(to);
        play.played =
            MonotonicInstant::new(play.played.total() + passed.total(), play.played.awake() + passed.awake());
        play.counted += counted;
        // Use that can earn time counts only if a daemon saw it, and only while the machine was awake.
        let rules = self.terms.entry(play.entry);
        let rewards = play.free || rules.is_some_and(|rules| rules.earns.is_some());
        let own = match (rewards, seen) {
            (false, _) => counted,
            (true, SeenByDaemon::Yes) => passed.awake(),
            (true, SeenByDaemon::No) => Duration::ZERO,
        };
        self.played += own;
        self.awake += own.min(passed.awake());
        let first = play.day.min(today);
        let budgets =
            play.budgets.iter().filter(|_| !play.free).map(|budget| (CounterIndex::Budget(*budget), counted));
        for (what, amount) in std::iter::once((CounterIndex::Entry(play.entry), own)).chain(budgets) {
            let (mut left, mut at) = (amount, end - amount);
            while !left.is_zero() {
                let day = day_of(at, &self.terms.zone).clamp(first, today);
                let midnight = day.plus_days(1).date().to_zoned(self.terms.zone.clone()).unwrap().timestamp();
                let part = Duration::try_from(midnight.duration_since(at)).unwrap_or_default();
                // Today has no end yet. A day that a changed clock skipped has no length.
                let part = if day < today && !part.is_zero() { part.min(left) } else { left };
                self.usage.add(play.child, what, day, part);
                if let CounterIndex::Entry(entry) = what {
                    self.usage.record_charge(play.child, entry, day, part);
                }
                (left, at) = (left - part, at + part);
            }
        }
        play.day = today;
        self.clock.record_day(today);
    }

    /// Records that time was charged to this day, so that no earlier day is charged again.
    pub(super) fn record_day(&mut self, now: ClockReading) {
        let day = self.day(now);
        self.clock.record_day(day);
    }

    /// Adds time that the engine may charge to a stored session although nobody saw it. Such time earns nothing.
    pub(super) fn add_overcharge(&mut self, session: &SessionRecord, amount: Duration, now: ClockReading) {
        let child = CHILDREN.iter().position(|id| *id == session.profile.as_str()).unwrap();
        let entry = ENTRIES.iter().position(|id| *id == session.entry_id.as_str()).unwrap();
        if session.free || self.terms.entry(entry).is_some_and(|rules| rules.earns.is_some()) {
            return;
        }
        for day in BTreeSet::from([session.charged_day, self.day(now)]) {
            self.usage.add_overcharge(child, entry, day, amount);
            self.usage.record_charge(child, entry, day, amount);
        }
    }

    /// Charges usage on days more than a week ahead of the clock again to the days on which it was really used, the last
    /// of which is today.
    pub(super) fn correct_to_earlier_day(&mut self, now: ClockReading) {
        let (today, last) = (day_of(now.wall, &self.terms.zone), self.day(now));
        self.usage.correct_to_earlier_day(today, last, &self.terms);
    }

    /// Trusts the clock. A pause that was recorded while the clock was ahead ends, after a reboot, when it would have ended
    /// by this clock. The time since an earlier boot is unknown, so such a pause begins again, by the rules of now.
    pub(super) fn confirm_clock(&mut self, now: ClockReading) {
        self.clock.confirm(now);
        let (real, boot, terms) = (self.real_time(now), self.boot, &self.terms);
        let correct = |pause: &mut RequiredPause, rule: Duration| {
            let end = if pause.since.boot == boot {
                now.wall - real.saturating_sub(pause.since.real) + pause.length
            } else {
                now.wall + rule
            };
            pause.since.time = pause.since.time.min(end - pause.length);
        };
        for ((_, entry), pause) in &mut self.pauses {
            let rule = terms.entry(*entry).map_or(Duration::ZERO, |rules| rules.limits.cooldown_after_run);
            correct(pause, rule);
        }
        if let Some(rule) = terms.policy.rules().breaks {
            self.streaks.values_mut().for_each(|(_, pause)| correct(pause, rule.length));
        }
    }

    /// Checks an approved launch against the rules, as far as the model knows them.
    pub(super) fn check_approval(&mut self, child: usize, entry: usize, now: ClockReading) {
        let (time, day, terms) = (self.clock.time(now), self.day(now), &self.terms);
        assert!(!self.is_clock_behind(now), "the clock is behind, and yet it was approved");
        let rules = terms.entry(entry).expect("it is in the policy");
        let held = self.grants.iter().filter(|grant| grant.revoked_at.is_none() && grant.is_valid_at(time));
        assert!(terms.is_open(child, entry, time, held.clone()), "it is closed");
        let borrowed = day != day_of(time, &terms.zone);
        for quota in terms.quotas(child, entry, day, &self.usage, &held, |_| borrowed) {
            assert!(quota.played < quota.allowed, "nothing is left: {quota}");
        }
        if let Some(pause) = self.pauses.get(&(child, entry)) {
            assert!(self.is_over(*pause, now), "no cooldown of {:?}", pause.length);
        }
        let row = self.streaks.get(&child).filter(|(_, pause)| !self.is_over(*pause, now));
        let in_row = row.map_or(Duration::ZERO, |(in_row, _)| *in_row);
        if let Some(BreakRule { after, .. }) = terms.policy.rules().breaks {
            assert!(in_row < after, "no break after {in_row:?} of {after:?}");
        }
        assert!(rules.disabled.is_none());
        let mut play = SimulatedSession::from_launch(child, entry, terms, day, time, now);
        play.in_row = in_row;
        play.applied_grants = self.extra_time_at_launch(child, entry, day, time);
        self.session = Some(play);
    }

    /// Returns the grants that lengthen a new run by their unused time of the day. Extra time for a budget does not.
    fn extra_time_at_launch(
        &self,
        child: usize,
        entry: usize,
        day: Day,
        time: Timestamp,
    ) -> Vec<AppliedGrant> {
        let Some(rules) = self.terms.entry(entry) else { return Vec::new() };
        let held = self.grants.iter().filter(|grant| grant.revoked_at.is_none() && grant.is_valid_at(time));
        let held = held.filter(|grant| grant_applies(grant, child, entry, rules));
        let longer = held.filter(|grant| !matches!(grant.scope, EntryScope::Budget { .. }));
        let left = longer.map(|grant| {
            let used = self.extra_used.get(&(grant.grant_id.clone(), child));
            let used = used.filter(|(last, _)| day <= *last).map_or(Duration::ZERO, |(_, used)| *used);
            let run = extra_time(grant).saturating_sub(used);
            AppliedGrant { grant_id: grant.grant_id.clone(), run, window: Duration::ZERO, opened: None }
        });
        left.filter(|gift| !gift.run.is_zero()).collect()
    }

    pub(super) fn add_extra_use(
        &mut self,
        grant_id: GrantId,
        child: usize,
        used: Duration,
        now: ClockReading,
    ) {
        let day = self.day(now);
        let known = self.extra_used.entry((grant_id, child)).or_insert((day, Duration::ZERO));
        let before = if known.0 == day { known.1 } else { Duration::ZERO };
        *known = (day, before + used);
    }

    /// Returns the real time since the start of the simulation.
    fn real_time(&self, now: ClockReading) -> Duration {
        self.earlier_boots + now.mono.total()
    }

    /// Returns true if a pause is over. In its own boot a pause is measured; in a later boot the trusted clock decides,
    /// of which a power cut may lose some time.
    fn is_over(&self, pause: RequiredPause, now: ClockReading) -> bool {
        let RequiredPause { length, since } = pause;
        let passed_on_the_wall = || self.clock.time(now) + MAX_LOST >= since.time + length;
        self.real_time(now).saturating_sub(since.real) >= length
            || (since.boot != self.boot && passed_on_the_wall())
    }

    /// Starts another boot, after a time in which the machine was off.
    pub(super) fn start_boot(&mut self, ended: ClockReading, gap: Duration) {
        self.earlier_boots = self.real_time(ended) + gap;
        self.boot += 1;
    }

    /// Records that the program runs since `at`.
    pub(super) fn program_started(&mut self, at: MonotonicInstant, now: ClockReading) {
        let day = self.day(now);
        if let Some(play) = &mut self.session {
            play.booked_to = Some(at);
            play.day = if at == now.mono { day } else { play.day };
        }
    }

    /// Records that the program was gone `ago` before now, although no daemon knows yet.
    pub(super) fn program_ended(&mut self, now: ClockReading, ago: Duration) {
        self.account_play(now, ago, SeenByDaemon::No);
        let stop = self.stop_at(now, ago);
        if let Some(play) = &mut self.session {
            play.stopped = Some(stop);
        }
    }

    fn stop_at(&self, now: ClockReading, ago: Duration) -> ProgramEnd {
        ProgramEnd { boot: self.boot, real: self.real_time(now) - ago, time: self.clock.time(now) - ago }
    }

    /// Ends the session. Its pauses begin, if its program ever ran.
    pub(super) fn session_ended(&mut self, now: ClockReading) {
        let Some(play) = self.session.take().filter(|play| play.booked_to.is_some()) else { return };
        for (grant_id, used) in play.used_extra_time(&self.terms) {
            self.add_extra_use(grant_id, play.child, used, now);
        }
        let since = play.stopped.unwrap_or_else(|| self.stop_at(now, Duration::ZERO));
        let pause = RequiredPause { length: play.cooldown, since };
        if !pause.length.is_zero() {
            self.pauses.insert((play.child, play.entry), pause);
        }
        if let Some(rule) = self.terms.policy.rules().breaks {
            let pause = RequiredPause { length: rule.length, ..pause };
            self.streaks.insert(play.child, (play.in_row + play.counted, pause));
        }
    }

    /// Applies another policy.
    pub(super) fn reload(&mut self, terms: PolicyTerms, now: ClockReading) {
        let hops = self.terms.zone != terms.zone;
        // Grants are applied by the rules under which they became valid.
        self.apply_new_grants(now);
        self.terms = terms;
        let replans = self.terms.policy.rules().on_reload == OnReload::Replan;
        let time = self.clock.time(now);
        if let Some(play) = &mut self.session {
            play.mark_settled(time);
            play.set_charging_rules(&self.terms);
            play.set_sleep_rule(&self.terms);
            play.supersede_plans();
            if hops {
                play.drop_superseded_day_bounds();
            }
            if replans && self.terms.entry(play.entry).is_some() {
                play.add_plan(&self.terms, time, now);
            }
        }
    }

    /// Restores an earlier state, because everything since then was not stored.
    pub(super) fn roll_back_to(&mut self, before: &Self) {
        self.terms.mode.clone_from(&before.terms.mode);
        for (grant, was) in self.grants.iter_mut().zip(&before.grants) {
            grant.revoked_at = was.revoked_at;
        }
        self.usage = before.usage.clone();
        self.played = before.played;
        self.awake = before.awake;
        self.pauses = before.pauses.clone();
        self.streaks = before.streaks.clone();
        self.extra_used = before.extra_used.clone();
        let is_over = self.session.as_ref().is_none_or(|play| play.stopped.is_some());
        self.unwritten_session = before.session.clone().filter(|_| is_over);
        if let (Some(play), Some(before)) = (&mut self.session, &before.session) {
            play.roll_back_to(before);
            self.days_unknown = true;
        }
    }

    /// Restarts the daemon. It knows the stored clock, and the time of the last heartbeat of the session.
    pub(super) fn daemon_restarted(&mut self, boot: BootId, stored: &StoredState) {
        self.clock = ReferenceClock::from_record(stored.snapshot.clock.clone(), boot);
        let forgotten = self.unwritten_session.take();
        if let Some(heartbeat) = session_heartbeat(stored) {
            self.clock.observe_heartbeat(heartbeat, &self.terms.zone, self.tolerance());
            self.account_unwritten_session(forgotten, stored);
            if heartbeat.boot != boot {
                self.clock.forget_uptime();
            }
        }
        self.drop_superseded_day_bounds();
    }

    /// Accounts an unstored session up to the last heartbeat.
    fn account_unwritten_session(&mut self, forgotten: Option<SimulatedSession>, stored: &StoredState) {
        let present = std::mem::replace(&mut self.session, forgotten);
        self.account_until_heartbeat(stored);
        self.session = present;
    }

    pub(super) fn drop_superseded_day_bounds(&mut self) {
        if let Some(play) = &mut self.session {
            play.drop_superseded_day_bounds();
        }
    }

    pub(super) fn check(&mut self, now: ClockReading) {
        let (day, time) = (self.day(now), self.clock.time(now));
        if let Some(play) = &mut self.session {
            if day != day_of(time, &self.terms.zone) {
                let held = self.grants.iter().filter(|grant| grant.is_valid_at(time));
                play.grants_on_other_day.extend(held.map(|grant| grant.grant_id.clone()));
            }
            play.check(now, &self.terms, day, &self.usage, &self.grants);
        }
    }
}

/// Returns the last heartbeat, if it belongs to the stored session.
fn session_heartbeat(stored: &StoredState) -> Option<DaemonHeartbeat> {
    let session = stored.sessions.values().next()?;
    let began = session.started.total();
    stored.heartbeat.filter(|heartbeat| heartbeat.boot == session.boot && heartbeat.at.mono.total() >= began)
}
