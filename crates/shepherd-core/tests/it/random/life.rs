//! A household with a daemon and a host that do as they are told, and somebody who watches them.

use std::rc::Rc;
use std::time::Duration;

use shepherd_api::EndReason;
use shepherd_core::policy::Day;
use shepherd_core::{CoreEvent, Counter, ExitInfo, StoredState};
use shepherd_util::{MonotonicInstant, SessionId};

use super::book::{Terms, What};
use super::dice::Dice;
use super::household::{BUDGETS, CHILDREN, ENTRIES, household};
use super::tally::Tally;
use super::truth::{LOST, Truth};
use crate::harness::World;

/// What the host has in hand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Host {
    Idle,
    Launching(SessionId),
    Playing(SessionId),
}

/// Whether the store works; if not, what was true when it stopped.
pub(super) enum Store {
    Works,
    Broken {
        before: Box<Truth>,
        /// A write has failed, so the daemon knows.
        known: bool,
    },
}

pub(super) struct Life {
    pub(super) world: World,
    pub(super) dice: Dice,
    pub(super) first: Day,
    pub(super) truth: Truth,
    pub(super) host: Host,
    pub(super) store: Store,
    /// What may have been charged beyond what was played.
    pub(super) overcharge: Duration,
    pub(super) ids: u128,
    pub(super) listener: Listener,
    pub(super) tally: Tally,
    used_before: Duration,
}

/// Who wants to hear what happens.
pub(super) enum Listener {
    Nobody,
    /// Somebody who compares.
    Keeps(String),
    /// Somebody who replays a failure.
    Reads,
}

impl Life {
    pub(super) fn new(seed: u64) -> Self {
        let mut dice = Dice::new(seed);
        let starts = [
            "2026-03-28 20:00",
            "2026-10-24 22:00",
            "2026-12-31 21:00",
            "2026-11-16 09:00",
            "2026-11-15 17:00",
            "2026-11-14 10:00",
        ];
        let start = *dice.pick(&starts);
        let first = Day::from_date(start[..10].parse().unwrap());
        let policy = household(&mut dice, first);
        let world = World::new(policy.clone(), start);
        let zone = policy.rules().zone.clone().unwrap_or_else(|| world.place.zone.clone());
        let truth = Truth::new(Terms { policy: Rc::new(policy), mode: None, zone });
        let mut life = Self {
            world,
            dice,
            first,
            truth,
            host: Host::Idle,
            store: Store::Works,
            overcharge: Duration::ZERO,
            ids: 0,
            listener: Listener::Nobody,
            tally: Tally::default(),
            used_before: Duration::ZERO,
        };
        life.turn();
        life
    }

    pub(super) fn next_id(&mut self) -> u128 {
        self.ids += 1;
        self.ids
    }

    pub(super) fn say(&mut self, what: impl FnOnce(&Self) -> String) {
        match self.listener {
            Listener::Nobody => {}
            Listener::Reads => println!("{}", what(self)),
            Listener::Keeps(_) => {
                let line = what(self);
                if let Listener::Keeps(said) = &mut self.listener {
                    *said += &line;
                }
            }
        }
    }

    /// Every act begins with a look at the clock.
    pub(super) fn look(&mut self) {
        self.truth.look(self.world.now());
    }

    /// Writes down, or fails to.
    pub(super) fn write(&mut self) {
        match &mut self.store {
            Store::Works => self.world.sync(),
            Store::Broken { known, .. } => {
                *known = true;
                self.world.fail_to_sync();
            }
        }
    }

    /// What can't be written down is not given (S8.4b).
    pub(super) fn check_may_give(&self) {
        assert!(
            !matches!(self.store, Store::Broken { known: true, .. }),
            "given, with a store that is broken"
        );
    }

    /// Writes down what the engine said, does it, and lets the daemon go on until nothing is due.
    pub(super) fn carry_out(&mut self, events: &[CoreEvent]) {
        self.write();
        self.hear(events);
        self.turn();
    }

    /// What the daemon does between two waits. A tick leaves nothing that is due at once (S4.7).
    pub(super) fn turn(&mut self) {
        let now = self.world.now();
        let is_due = |due: Option<MonotonicInstant>| due.is_some_and(|due| due.total() <= now.mono.total());
        for round in 0.. {
            assert!(round < 5, "the daemon spins");
            if round > 0 && !is_due(self.world.engine.next_due()) {
                break;
            }
            self.look();
            let events = self.world.engine.tick(now);
            self.write();
            self.hear(&events);
        }
        self.truth.check(now);
        if let (Some(play), Some(session)) = (&mut self.truth.play, &self.world.engine.snapshot().session) {
            play.check_left(session.ends.remaining(now.mono));
        }
    }

    /// Lets time pass as a daemon does: from one thing that is due to the next.
    pub(super) fn pass(&mut self, length: Duration) {
        let end = self.world.now().mono.total() + length;
        loop {
            let now = self.world.now();
            let left = end.saturating_sub(now.mono.total());
            if left.is_zero() {
                return;
            }
            let due = self.world.engine.next_due().map_or(left, |due| due.total_since(now.mono));
            let step = due.clamp(Duration::from_millis(1), left.max(Duration::from_millis(1)));
            self.world.advance(step);
            let told_before = self.is_told_to_end();
            self.turn();
            // Whoever resists is not waited for.
            if self.is_told_to_end() && !told_before {
                return;
            }
        }
    }

    fn hear(&mut self, events: &[CoreEvent]) {
        self.say(|_| format!("  {events:?}"));
        for event in events {
            match event {
                CoreEvent::Warning { threshold_secs, .. } => {
                    let play = self.truth.play.as_mut().expect("a warning is for somebody");
                    assert!(play.warned.insert(*threshold_secs), "warned twice, {threshold_secs} s before");
                    self.tally.warned += 1;
                }
                CoreEvent::ExpireDue { .. } => self.expire(),
                CoreEvent::SessionEnded { .. } => self.ended(),
                _ => {}
            }
        }
    }

    pub(super) fn is_told_to_end(&self) -> bool {
        self.truth.play.as_ref().is_some_and(|play| play.told_to_end)
    }

    fn expire(&mut self) {
        let session = self.world.engine.snapshot().session.as_ref();
        let by_itself = session.is_some_and(|session| session.stage.end() == Some(&EndReason::Expired));
        if let Some(play) = &mut self.truth.play
            && !std::mem::replace(&mut play.told_to_end, true)
            && by_itself
        {
            play.check_warnings();
            self.tally.expired += 1;
        }
        // Some programs resist for a while, if they are there. Should the store be broken, too, nobody will ever know.
        let is_gone = self.truth.play.as_ref().is_none_or(|play| play.stopped.is_some());
        if is_gone || matches!(self.store, Store::Broken { .. }) || self.dice.percent(85) {
            self.exit();
        }
    }

    fn ended(&mut self) {
        self.truth.end(self.world.now());
        if let Host::Launching(session_id) = std::mem::replace(&mut self.host, Host::Idle) {
            let now = self.world.now();
            let late = self.world.engine.start_session(&session_id, "late".to_owned(), now);
            assert!(late.is_err(), "nobody waits for it any more");
        }
    }

    /// The program ends by itself, or because it was made to.
    pub(super) fn exit(&mut self) {
        let Host::Playing(session_id) = self.host.clone() else { return };
        self.look();
        let exit = ExitInfo { session_id, code: Some(0), signal: None };
        let events = self.world.engine.notify_session_exited(&exit, self.world.now());
        self.write();
        self.hear(&events);
    }

    /// What must be true whenever everything has been written down.
    pub(super) fn check(&mut self) {
        assert_eq!(
            self.host != Host::Idle,
            self.world.engine.snapshot().session.is_some(),
            "{:?}",
            self.host
        );
        if matches!(self.store, Store::Broken { .. }) {
            return;
        }
        let StoredState { usage, .. } = &self.world.store;
        // A boot that ends at night takes a moment from one day to the next, but nothing is won by it.
        let lost = if self.truth.boot > 1 { LOST } else { Duration::ZERO };
        let (mut used, mut booked) = (Duration::ZERO, Duration::ZERO);
        for (key, charged) in usage {
            let child = CHILDREN.iter().position(|id| *id == key.profile.as_str()).unwrap();
            let what = match &key.counter {
                Counter::Entry(entry) => {
                    used += *charged;
                    What::Entry(ENTRIES.iter().position(|id| *id == entry.as_str()).unwrap())
                }
                Counter::Budget(budget) => {
                    What::Budget(BUDGETS.iter().position(|id| *id == budget.as_str()).unwrap())
                }
            };
            let played = self.truth.book.get(child, what, key.day);
            assert!(
                *charged + lost >= played || self.truth.days_unknown,
                "played {played:?}, charged {charged:?}: time was won on {key:?}"
            );
            booked += played;
        }
        let nowhere = self.truth.book.total() - booked;
        // An entry and two budgets.
        let most = lost * 3 * u32::try_from(self.truth.boot).unwrap();
        assert!(nowhere <= most || self.truth.days_unknown, "{nowhere:?} were played and never charged");
        // How much of it was sleep is not known either, then.
        let played = if self.truth.days_unknown { self.truth.awake } else { self.truth.played };
        assert!(used >= played, "played {played:?}, charged {used:?}: time was won");
        assert!(used >= self.used_before, "used time fell");
        self.used_before = used;
        let most = self.truth.played + self.overcharge;
        assert!(used <= most, "charged {used:?} for {:?} and {:?}", self.truth.played, self.overcharge);
    }
}
