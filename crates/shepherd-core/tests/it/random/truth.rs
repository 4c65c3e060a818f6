//! What really happened in a household, and what its policies allowed.
//!
//! Nothing here is taken from the engine's accounts. Across a reboot only the wall clock tells how long a pause was,
//! and across a crash only what was written down is known of the clock; the rest is measured.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use shepherd_api::GrantView;
use shepherd_core::policy::{BreakRule, Day, OnReload};
use shepherd_core::{Pulse, SessionRecord, StoredState};
use shepherd_util::{BootId, MonotonicInstant, Now};

use super::book::{Book, Terms, What};
use super::household::{CHILDREN, ENTRIES};
use super::play::{Play, Stop, counts};
use super::watch::{Watch, day_of};

/// A power cut loses the time since the last sign of life, and that takes a moment to be written.
pub(super) const LOST: Duration = Duration::from_secs(31);

/// When something ended, and how long it has to rest.
#[derive(Clone, Copy)]
struct Pause {
    length: Duration,
    since: Stop,
}

/// Whether there was a daemon to see it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Seen {
    Yes,
    No,
}

#[derive(Clone)]
pub(super) struct Truth {
    pub(super) terms: Terms,
    pub(super) watch: Watch,
    pub(super) book: Book,
    pub(super) grants: Vec<GrantView>,
    pub(super) play: Option<Play>,
    /// A session that is still on record, with what was on record of it, though it is over.
    forgotten: Option<Play>,
    /// All that was ever played, as it counted.
    pub(super) played: Duration,
    /// All that was ever played while the machine was awake.
    pub(super) awake: Duration,
    pub(super) boot: u128,
    earlier_boots: Duration,
    /// Something was played of which nobody could write down the day.
    pub(super) days_unknown: bool,
    pauses: BTreeMap<(usize, usize), Pause>,
    rows: BTreeMap<usize, (Duration, Pause)>,
}

impl Truth {
    pub(super) fn new(terms: Terms) -> Self {
        Self {
            terms,
            watch: Watch::default(),
            book: Book::default(),
            grants: Vec::new(),
            play: None,
            forgotten: None,
            played: Duration::ZERO,
            awake: Duration::ZERO,
            boot: 1,
            earlier_boots: Duration::ZERO,
            days_unknown: false,
            pauses: BTreeMap::new(),
            rows: BTreeMap::new(),
        }
    }

    fn tolerance(&self) -> Duration {
        self.terms.policy.rules().clock_tolerance
    }

    fn day(&self, now: Now) -> Day {
        self.watch.day(now, &self.terms.zone)
    }

    /// Somebody looks at the clock: what was played since goes into the book.
    pub(super) fn look(&mut self, now: Now) {
        self.observe(now);
        self.enter(now, Duration::ZERO, Seen::Yes);
        self.give_what_begins(now);
    }

    pub(super) fn observe(&mut self, now: Now) {
        self.watch.observe(now, &self.terms.zone, self.tolerance());
    }

    /// Nobody looked at the clock then, but there is a sign of life.
    pub(super) fn see(&mut self, stored: &StoredState) {
        let Some(pulse) = pulse_of_session(stored) else { return };
        let booked_to = self.play.as_ref().and_then(|play| play.booked_to);
        if booked_to.is_some_and(|booked_to| booked_to.total() <= pulse.at.mono.total()) {
            self.enter(pulse.at, Duration::ZERO, Seen::Yes);
        }
    }

    /// Enters what was played since the last time, up to so long ago.
    fn enter(&mut self, now: Now, ago: Duration, seen: Seen) {
        let (today, end) = (self.day(now), self.watch.time(now) - ago);
        let Some(play) = &mut self.play else { return };
        let Some(from) = play.booked_to.filter(|_| play.stopped.is_none()) else { return };
        let to = MonotonicInstant::new(now.mono.total() - ago, now.mono.awake() - ago);
        let passed = MonotonicInstant::new(to.total_since(from), to.awake_since(from));
        let counted = counts(self.terms.policy.rules().suspended_time, passed);
        play.booked_to = Some(to);
        play.played =
            MonotonicInstant::new(play.played.total() + passed.total(), play.played.awake() + passed.awake());
        play.counted += counted;
        // What may earn counts as use only if somebody saw it, awake.
        let rules = self.terms.entry(play.entry);
        let rewards = play.free || rules.is_some_and(|rules| rules.earns.is_some());
        let own = match (rewards, seen) {
            (false, _) => counted,
            (true, Seen::Yes) => passed.awake(),
            (true, Seen::No) => Duration::ZERO,
        };
        self.played += own;
        self.awake += own.min(passed.awake());
        let first = play.day.min(today);
        let budgets =
            play.budgets.iter().filter(|_| !play.free).map(|budget| (What::Budget(*budget), counted));
        for (what, amount) in std::iter::once((What::Entry(play.entry), own)).chain(budgets) {
            let (mut left, mut at) = (amount, end - amount);
            while !left.is_zero() {
                let day = day_of(at, &self.terms.zone).clamp(first, today);
                let midnight = day.plus(1).date().to_zoned(self.terms.zone.clone()).unwrap().timestamp();
                let part = Duration::try_from(midnight.duration_since(at)).unwrap_or_default();
                // Today has no end yet; and what a moved clock skipped has no length.
                let part = if day < today && !part.is_zero() { part.min(left) } else { left };
                self.book.add(play.child, what, day, part);
                (left, at) = (left - part, at + part);
            }
        }
        play.day = today;
        self.watch.enter(today);
    }

    /// Something is charged to this day: none before it comes again.
    pub(super) fn enter_day(&mut self, now: Now) {
        let day = self.day(now);
        self.watch.enter(day);
    }

    /// A session on record is charged with up to so much that nobody saw. It earns nothing by the rules of the time.
    pub(super) fn pay(&mut self, session: &SessionRecord, amount: Duration, now: Now) {
        let child = CHILDREN.iter().position(|id| *id == session.profile.as_str()).unwrap();
        let entry = ENTRIES.iter().position(|id| *id == session.entry_id.as_str()).unwrap();
        if session.free || self.terms.entry(entry).is_some_and(|rules| rules.earns.is_some()) {
            return;
        }
        for day in BTreeSet::from([session.charged_day, self.day(now)]) {
            self.book.pay(child, entry, day, amount);
        }
    }

    /// By the rules, as far as they can be known, this launch is right.
    pub(super) fn approve(&mut self, child: usize, entry: usize, now: Now) {
        let (time, day, terms) = (self.watch.time(now), self.day(now), &self.terms);
        assert!(!self.watch.is_behind(now, self.tolerance()), "the clock is behind, and yet it was approved");
        let rules = terms.entry(entry).expect("it is in the policy");
        let held = self.grants.iter().filter(|grant| grant.revoked_at.is_none() && grant.holds_at(time));
        assert!(terms.is_open(child, entry, time, held.clone()), "it is closed");
        let borrowed = day != day_of(time, &terms.zone);
        for quota in terms.quotas(child, entry, day, &self.book, &held, |_| borrowed) {
            assert!(quota.played < quota.allowed, "nothing is left: {quota}");
        }
        if let Some(pause) = self.pauses.get(&(child, entry)) {
            assert!(self.is_over(*pause, now), "no cooldown of {:?}", pause.length);
        }
        let row = self.rows.get(&child).filter(|(_, pause)| !self.is_over(*pause, now));
        let in_row = row.map_or(Duration::ZERO, |(in_row, _)| *in_row);
        if let Some(BreakRule { after, .. }) = terms.policy.rules().breaks {
            assert!(in_row < after, "no break after {in_row:?} of {after:?}");
        }
        assert!(rules.disabled.is_none());
        let mut play = Play::approved(child, entry, terms, day, time, now);
        play.in_row = in_row;
        self.play = Some(play);
    }

    /// How much time has really passed since the life began.
    fn real(&self, now: Now) -> Duration {
        self.earlier_boots + now.mono.total()
    }

    /// In its own boot a pause is measured. In another one the time that counts has to do, and a power cut takes some
    /// of it along.
    fn is_over(&self, pause: Pause, now: Now) -> bool {
        let Pause { length, since } = pause;
        let passed_on_the_wall = || self.watch.time(now) + LOST >= since.time + length;
        self.real(now).saturating_sub(since.real) >= length
            || (since.boot != self.boot && passed_on_the_wall())
    }

    /// Another boot, after so much time without any: it has been up for a moment when the daemon comes.
    pub(super) fn boot(&mut self, ended: Now, gap: Duration) {
        self.earlier_boots = self.real(ended) + gap;
        self.boot += 1;
    }

    /// The program runs, since then.
    pub(super) fn start(&mut self, at: MonotonicInstant, now: Now) {
        let day = self.day(now);
        if let Some(play) = &mut self.play {
            play.booked_to = Some(at);
            play.day = if at == now.mono { day } else { play.day };
        }
    }

    /// The program is gone since so long, though nobody knows yet.
    pub(super) fn stop(&mut self, now: Now, ago: Duration) {
        self.enter(now, ago, Seen::No);
        let stop = self.stop_at(now, ago);
        if let Some(play) = &mut self.play {
            play.stopped = Some(stop);
        }
    }

    fn stop_at(&self, now: Now, ago: Duration) -> Stop {
        Stop { boot: self.boot, real: self.real(now) - ago, time: self.watch.time(now) - ago }
    }

    /// The session is over: its pauses begin, if its program ever ran.
    pub(super) fn end(&mut self, now: Now) {
        let Some(play) = self.play.take().filter(|play| play.booked_to.is_some()) else { return };
        let since = play.stopped.unwrap_or_else(|| self.stop_at(now, Duration::ZERO));
        let pause = Pause { length: play.cooldown, since };
        if !pause.length.is_zero() {
            self.pauses.insert((play.child, play.entry), pause);
        }
        if let Some(rule) = self.terms.policy.rules().breaks {
            let pause = Pause { length: rule.length, ..pause };
            self.rows.insert(play.child, (play.in_row + play.counted, pause));
        }
    }

    /// Another policy applies.
    pub(super) fn reload(&mut self, terms: Terms, now: Now) {
        let hops = self.terms.zone != terms.zone;
        // By the rules under which it began.
        self.give_what_is_new(now);
        self.terms = terms;
        self.watch.forget_zone();
        let replans = self.terms.policy.rules().on_reload == OnReload::Replan;
        let time = self.watch.time(now);
        if let Some(play) = &mut self.play {
            play.settle(time);
            play.count_by(&self.terms);
            play.sleep_by(&self.terms);
            play.supersede();
            if hops {
                play.upset();
            }
            if replans && self.terms.entry(play.entry).is_some() {
                play.plan_by(&self.terms, time, now);
            }
        }
    }

    /// What was not written down since then is not known any more.
    pub(super) fn fall_back_to(&mut self, before: &Self) {
        self.terms.mode.clone_from(&before.terms.mode);
        for (grant, was) in self.grants.iter_mut().zip(&before.grants) {
            grant.revoked_at = was.revoked_at;
        }
        self.book = before.book.clone();
        self.played = before.played;
        self.awake = before.awake;
        self.pauses = before.pauses.clone();
        self.rows = before.rows.clone();
        let is_over = self.play.as_ref().is_none_or(|play| play.stopped.is_some());
        self.forgotten = before.play.clone().filter(|_| is_over);
        if let (Some(play), Some(before)) = (&mut self.play, &before.play) {
            play.fall_back_to(before);
            self.days_unknown = true;
        }
    }

    /// The daemon comes back. Of the clock it knows what was written down, and what it showed at the last sign of life
    /// of the session.
    pub(super) fn come_back(&mut self, boot: BootId, stored: &StoredState) {
        self.watch = Watch::remembering(stored.snapshot.clock.clone(), boot);
        let forgotten = self.forgotten.take();
        if let Some(pulse) = pulse_of_session(stored) {
            self.watch.look_back(pulse, &self.terms.zone, self.tolerance());
            self.remember(forgotten, stored);
            if pulse.boot != boot {
                self.watch.lose_count();
            }
        }
        self.upset();
    }

    /// What could not be written down is known as far as there were signs of life.
    fn remember(&mut self, forgotten: Option<Play>, stored: &StoredState) {
        let present = std::mem::replace(&mut self.play, forgotten);
        self.see(stored);
        self.play = present;
    }

    pub(super) fn upset(&mut self) {
        if let Some(play) = &mut self.play {
            play.upset();
        }
    }

    pub(super) fn check(&mut self, now: Now) {
        let (day, time) = (self.day(now), self.watch.time(now));
        if let Some(play) = &mut self.play {
            if day != day_of(time, &self.terms.zone) {
                let held = self.grants.iter().filter(|grant| grant.holds_at(time));
                play.lent.extend(held.map(|grant| grant.grant_id.clone()));
            }
            play.check(now, &self.terms, day, &self.book, &self.grants);
        }
    }
}

/// The last sign of life, if it is of the session that is remembered.
fn pulse_of_session(stored: &StoredState) -> Option<Pulse> {
    let session = stored.snapshot.session.as_ref()?;
    let began = session.started.total();
    stored.pulse.filter(|pulse| pulse.boot == session.boot && pulse.at.mono.total() >= began)
}
