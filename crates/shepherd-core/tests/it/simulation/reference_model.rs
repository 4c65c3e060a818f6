//! What really happened in a household, and what its policies allowed.
//!
//! Nothing here is taken from the engine's accounts. Across a reboot only the wall clock tells how long a pause was,
//! and across a crash only what was written down is known of the clock; the rest is measured.

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

/// A power cut loses the time since the last sign of life, and that takes a moment to be written.
pub(super) const MAX_LOST: Duration = Duration::from_secs(31);

/// When something ended, and how long it has to rest.
#[derive(Clone, Copy)]
struct RequiredPause {
    length: Duration,
    since: ProgramEnd,
}

/// Whether there was a daemon to see it.
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
    /// A session that is still on record, with what was on record of it, though it is over.
    unwritten_session: Option<SimulatedSession>,
    /// All that was ever played, as it counted.
    pub(super) played: Duration,
    /// All that was ever played while the machine was awake.
    pub(super) awake: Duration,
    pub(super) boot: u128,
    earlier_boots: Duration,
    /// Something was played of which nobody could write down the day.
    pub(super) days_unknown: bool,
    pauses: BTreeMap<(usize, usize), RequiredPause>,
    streaks: BTreeMap<usize, (Duration, RequiredPause)>,
    /// How much of a grant has made runs of a child longer, and on which day.
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

    fn day(&self, now: ClockReading) -> Day {
        self.clock.day(now, &self.terms.zone)
    }

    /// Somebody looks at the clock: what was played since goes into the book.
    pub(super) fn advance_to(&mut self, now: ClockReading) {
        self.observe(now);
        self.account_play(now, Duration::ZERO, SeenByDaemon::Yes);
        self.apply_due_grants(now);
    }

    pub(super) fn observe(&mut self, now: ClockReading) {
        self.clock.observe(now, &self.terms.zone, self.tolerance());
    }

    /// Nobody looked at the clock then, but there is a sign of life.
    pub(super) fn account_until_heartbeat(&mut self, stored: &StoredState) {
        let Some(pulse) = session_heartbeat(stored) else { return };
        let booked_to = self.session.as_ref().and_then(|play| play.booked_to);
        if booked_to.is_some_and(|booked_to| booked_to.total() <= pulse.at.mono.total()) {
            self.account_play(pulse.at, Duration::ZERO, SeenByDaemon::Yes);
        }
    }

    /// Enters what was played since the last time, up to so long ago.
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
        // What may earn counts as use only if somebody saw it, awake.
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
                // Today has no end yet; and what a moved clock skipped has no length.
                let part = if day < today && !part.is_zero() { part.min(left) } else { left };
                self.usage.add(play.child, what, day, part);
                (left, at) = (left - part, at + part);
            }
        }
        play.day = today;
        self.clock.record_day(today);
    }

    /// Something is charged to this day: none before it comes again.
    pub(super) fn record_day(&mut self, now: ClockReading) {
        let day = self.day(now);
        self.clock.record_day(day);
    }

    /// A session on record is charged with up to so much that nobody saw. It earns nothing by the rules of the time.
    pub(super) fn add_overcharge(&mut self, session: &SessionRecord, amount: Duration, now: ClockReading) {
        let child = CHILDREN.iter().position(|id| *id == session.profile.as_str()).unwrap();
        let entry = ENTRIES.iter().position(|id| *id == session.entry_id.as_str()).unwrap();
        if session.free || self.terms.entry(entry).is_some_and(|rules| rules.earns.is_some()) {
            return;
        }
        for day in BTreeSet::from([session.charged_day, self.day(now)]) {
            self.usage.add_overcharge(child, entry, day, amount);
        }
    }

    /// What was charged for days more than a week ahead of what the clock shows may be charged again, for the days on
    /// which it was really used: the last of them is today.
    pub(super) fn charge_far_days_again(&mut self, now: ClockReading) -> Duration {
        let (today, last) = (day_of(now.wall, &self.terms.zone), self.day(now));
        let far = self.usage.charged_to_entries_after(today.plus_days(7));
        for (child, entry, day, amount) in &far {
            self.usage.add_overcharge(*child, *entry, today.plus_days(day.0 - last.0), *amount);
        }
        far.iter().map(|(_, _, _, amount)| *amount).sum()
    }

    /// By the rules, as far as they can be known, this launch is right.
    pub(super) fn check_approval(&mut self, child: usize, entry: usize, now: ClockReading) {
        let (time, day, terms) = (self.clock.time(now), self.day(now), &self.terms);
        assert!(!self.clock.is_behind(now, self.tolerance()), "the clock is behind, and yet it was approved");
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

    /// What was given before makes the run longer by what is left of it on the day. More of a budget does not.
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

    /// How much time has really passed since the life began.
    fn real_time(&self, now: ClockReading) -> Duration {
        self.earlier_boots + now.mono.total()
    }

    /// In its own boot a pause is measured. In another one the time that counts has to do, and a power cut takes some
    /// of it along.
    fn is_over(&self, pause: RequiredPause, now: ClockReading) -> bool {
        let RequiredPause { length, since } = pause;
        let passed_on_the_wall = || self.clock.time(now) + MAX_LOST >= since.time + length;
        self.real_time(now).saturating_sub(since.real) >= length
            || (since.boot != self.boot && passed_on_the_wall())
    }

    /// Another boot, after so much time without any: it has been up for a moment when the daemon comes.
    pub(super) fn start_boot(&mut self, ended: ClockReading, gap: Duration) {
        self.earlier_boots = self.real_time(ended) + gap;
        self.boot += 1;
    }

    /// The program runs, since then.
    pub(super) fn program_started(&mut self, at: MonotonicInstant, now: ClockReading) {
        let day = self.day(now);
        if let Some(play) = &mut self.session {
            play.booked_to = Some(at);
            play.day = if at == now.mono { day } else { play.day };
        }
    }

    /// The program is gone since so long, though nobody knows yet.
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

    /// The session is over: its pauses begin, if its program ever ran.
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

    /// Another policy applies.
    pub(super) fn reload(&mut self, terms: PolicyTerms, now: ClockReading) {
        let hops = self.terms.zone != terms.zone;
        // By the rules under which it began.
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

    /// What was not written down since then is not known any more.
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

    /// The daemon comes back. Of the clock it knows what was written down, and what it showed at the last sign of life
    /// of the session.
    pub(super) fn daemon_restarted(&mut self, boot: BootId, stored: &StoredState) {
        self.clock = ReferenceClock::from_record(stored.snapshot.clock.clone(), boot);
        let forgotten = self.unwritten_session.take();
        if let Some(pulse) = session_heartbeat(stored) {
            self.clock.observe_heartbeat(pulse, &self.terms.zone, self.tolerance());
            self.account_unwritten_session(forgotten, stored);
            if pulse.boot != boot {
                self.clock.forget_uptime();
            }
        }
        self.drop_superseded_day_bounds();
    }

    /// What could not be written down is known as far as there were signs of life.
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

/// The last sign of life, if it is of the session that is remembered.
fn session_heartbeat(stored: &StoredState) -> Option<DaemonHeartbeat> {
    let session = stored.snapshot.session.as_ref()?;
    let began = session.started.total();
    stored.heartbeat.filter(|pulse| pulse.boot == session.boot && pulse.at.mono.total() >= began)
}
