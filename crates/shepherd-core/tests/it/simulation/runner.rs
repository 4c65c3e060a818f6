//! Runs a household with a simulated host and store, and checks the invariants after each step.

use std::rc::Rc;
use std::time::Duration;

use shepherd_api::EndReason;
use shepherd_core::policy::Day;
use shepherd_core::{CoreEvent, ExitInfo, StoredState, UsageCounter};
use shepherd_util::{MonotonicInstant, SessionId};

use super::counts::SimulationCounts;
use super::household::{BUDGETS, CHILDREN, ENTRIES, random_policy};
use super::reference_model::{MAX_LOST, ReferenceModel};
use super::rng::SimulationRng;
use super::usage_model::{CounterIndex, PolicyTerms};
use crate::harness::EngineHarness;

/// The session that the host is working on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SimulatedHost {
    Idle,
    Launching(SessionId),
    Playing(SessionId),
}

/// The state of the store. A broken store keeps the model as it was when the store broke.
pub(super) enum SimulatedStore {
    Works,
    Broken {
        before: Box<ReferenceModel>,
        /// True if a write has failed since, so that the daemon knows.
        known: bool,
    },
}

pub(super) struct HouseholdSimulation {
    pub(super) world: EngineHarness,
    pub(super) rng: SimulationRng,
    pub(super) first: Day,
    pub(super) model: ReferenceModel,
    pub(super) host: SimulatedHost,
    pub(super) store: SimulatedStore,
    /// The time that may have been charged without being played.
    pub(super) overcharge: Duration,
    pub(super) ids: u128,
    pub(super) log: SimulationLog,
    pub(super) counts: SimulationCounts,
    used_before: Duration,
}

/// The log of a simulation.
pub(super) enum SimulationLog {
    Off,
    /// Collects the lines, to compare two runs.
    Recorded(String),
    /// Prints the lines, to replay a failure.
    Printed,
}

impl HouseholdSimulation {
    pub(super) fn new(seed: u64) -> Self {
        let mut rng = SimulationRng::new(seed);
        let starts = [
            "2026-03-28 20:00",
            "2026-10-24 22:00",
            "2026-12-31 21:00",
            "2026-11-16 09:00",
            "2026-11-15 17:00",
            "2026-11-14 10:00",
        ];
        let start = *rng.pick(&starts);
        let first = Day::from_date(start[..10].parse().unwrap());
        let policy = random_policy(&mut rng, first);
        let world = EngineHarness::new(policy.clone(), start);
        let zone = policy.rules().zone.clone().unwrap_or_else(|| world.place.zone.clone());
        let model = ReferenceModel::new(PolicyTerms { policy: Rc::new(policy), mode: None, zone });
        let mut simulation = Self {
            world,
            rng,
            first,
            model,
            host: SimulatedHost::Idle,
            store: SimulatedStore::Works,
            overcharge: Duration::ZERO,
            ids: 0,
            log: SimulationLog::Off,
            counts: SimulationCounts::default(),
            used_before: Duration::ZERO,
        };
        simulation.run_due_ticks();
        simulation
    }

    pub(super) fn next_id(&mut self) -> u128 {
        self.ids += 1;
        self.ids
    }

    pub(super) fn log_line(&mut self, what: impl FnOnce(&Self) -> String) {
        match self.log {
            SimulationLog::Off => {}
            SimulationLog::Printed => println!("{}", what(self)),
            SimulationLog::Recorded(_) => {
                let line = what(self);
                if let SimulationLog::Recorded(text) = &mut self.log {
                    *text += &line;
                }
            }
        }
    }

    /// Brings the model up to the current time. Every action starts with it.
    pub(super) fn observe_clock(&mut self) {
        self.model.advance_to(self.world.now());
    }

    /// Makes the writes durable, or fails to.
    pub(super) fn sync_store(&mut self) {
        match &mut self.store {
            SimulatedStore::Works => self.world.sync(),
            SimulatedStore::Broken { known, .. } => {
                *known = true;
                self.world.fail_to_sync();
            }
        }
    }

    /// Checks that nothing is granted while it can't be recorded (S8.4b).
    pub(super) fn assert_store_works(&self) {
        assert!(
            !matches!(self.store, SimulatedStore::Broken { known: true, .. }),
            "given, with a store that is broken"
        );
    }

    /// Stores and handles events, and ticks until nothing is due.
    pub(super) fn apply_events(&mut self, events: &[CoreEvent]) {
        self.sync_store();
        self.handle_events(events);
        self.run_due_ticks();
    }

    /// Ticks until nothing is due. A tick must not leave anything that is due at once (S4.7).
    pub(super) fn run_due_ticks(&mut self) {
        let now = self.world.now();
        let is_due = |due: Option<MonotonicInstant>| due.is_some_and(|due| due.total() <= now.mono.total());
        for round in 0.. {
            assert!(round < 5, "the daemon spins");
            if round > 0 && !is_due(self.world.engine.next_due()) {
                break;
            }
            self.observe_clock();
            let left = self.engine_left();
            if let Some(play) = &mut self.model.session {
                play.expect_warnings(left, now);
            }
            let events = self.world.engine.tick(now);
            self.sync_store();
            self.handle_events(&events);
        }
        self.model.check(now);
        if let (Some(play), Some(session)) = (&mut self.model.session, self.world.engine.sessions().only()) {
            play.record_end(session.ends.remaining(now.mono), now);
            play.check_left(session.ends.remaining(now.mono));
        }
    }

    /// Lets time pass from one due event to the next, as a daemon does.
    pub(super) fn pass_time(&mut self, length: Duration) {
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
            let told_before = self.is_end_requested();
            self.run_due_ticks();
            // Stop here, so that the next step decides what happens to a program that ignores the request to end.
            if self.is_end_requested() && !told_before {
                return;
            }
        }
    }

    fn handle_events(&mut self, events: &[CoreEvent]) {
        self.log_line(|_| format!("  {events:?}"));
        for event in events {
            match event {
                CoreEvent::Warning { threshold_secs, .. } => {
                    let play = self.model.session.as_mut().expect("a warning is for somebody");
                    play.record_warning(*threshold_secs);
                    self.counts.warned += 1;
                }
                CoreEvent::ExpireDue { .. } => self.handle_expiry(),
                CoreEvent::SessionEnded { .. } => self.handle_session_end(),
                _ => {}
            }
        }
    }

    pub(super) fn is_end_requested(&self) -> bool {
        self.model.session.as_ref().is_some_and(|play| play.end_requested)
    }

    /// Returns the remaining time of the session according to the engine.
    fn engine_left(&self) -> Option<Duration> {
        let session = self.world.engine.sessions().only()?;
        session.ends.remaining(self.world.now().mono)
    }

    fn handle_expiry(&mut self) {
        let (left, now) = (self.engine_left(), self.world.now());
        if let Some(play) = &mut self.model.session {
            play.record_end(left, now);
        }
        let session = self.world.engine.sessions().only();
        let by_itself =
            session.is_some_and(|session| session.stage.end_reason() == Some(&EndReason::Expired));
        if let Some(play) = &mut self.model.session
            && !std::mem::replace(&mut play.end_requested, true)
            && by_itself
        {
            play.check_warnings();
            self.counts.expired += 1;
        }
        // Some programs ignore the request for a while. With a broken store, that time could never be known.
        let is_gone = self.model.session.as_ref().is_none_or(|play| play.stopped.is_some());
        if is_gone || matches!(self.store, SimulatedStore::Broken { .. }) || self.rng.percent(85) {
            self.exit();
        }
    }

    fn handle_session_end(&mut self) {
        self.model.session_ended(self.world.now());
        if let SimulatedHost::Launching(session_id) = std::mem::replace(&mut self.host, SimulatedHost::Idle) {
            let now = self.world.now();
            let late = self.world.engine.start_session(&session_id, "late".to_owned(), now);
            assert!(late.is_err(), "nobody waits for it any more");
        }
    }

    /// Lets the program exit.
    pub(super) fn exit(&mut self) {
        let SimulatedHost::Playing(session_id) = self.host.clone() else { return };
        self.observe_clock();
        let exit = ExitInfo { session_id, code: Some(0), signal: None };
        let events = self.world.engine.notify_session_exited(&exit, self.world.now());
        self.sync_store();
        self.handle_events(&events);
    }

    /// Compares the stored usage with the model. Call it when everything has been stored.
    pub(super) fn check_accounts(&mut self) {
        assert_eq!(
            self.host != SimulatedHost::Idle,
            !self.world.engine.sessions().is_empty(),
            "{:?}",
            self.host
        );
        if matches!(self.store, SimulatedStore::Broken { .. }) {
            return;
        }
        let StoredState { usage, .. } = &self.world.store;
        // A reboot around midnight may move a moment from one day to the next, but must not gain time.
        let lost = if self.model.boot > 1 { MAX_LOST } else { Duration::ZERO };
        let (mut used, mut booked) = (Duration::ZERO, Duration::ZERO);
        for (key, charged) in usage {
            let child = CHILDREN.iter().position(|id| *id == key.profile.as_str()).unwrap();
            let what = match &key.counter {
                UsageCounter::Entry(entry) => {
                    used += *charged;
                    CounterIndex::Entry(ENTRIES.iter().position(|id| *id == entry.as_str()).unwrap())
                }
                UsageCounter::Budget(budget) => {
                    CounterIndex::Budget(BUDGETS.iter().position(|id| *id == budget.as_str()).unwrap())
                }
            };
            let played = self.model.usage.get(child, what, key.day);
            assert!(
                *charged + lost >= played || self.model.days_unknown,
                "played {played:?}, charged {charged:?}: time was won on {key:?}"
            );
            booked += played;
        }
        let nowhere = self.model.usage.total() - booked;
        // One entry and two budgets lose this time at each boot.
        let most = lost * 3 * u32::try_from(self.model.boot).unwrap();
        assert!(nowhere <= most || self.model.days_unknown, "{nowhere:?} were played and never charged");
        // In this case it is also unknown how much of the time was sleep.
        let played = if self.model.days_unknown { self.model.awake } else { self.model.played };
        assert!(used >= played, "played {played:?}, charged {used:?}: time was won");
        assert!(used >= self.used_before, "used time fell");
        self.used_before = used;
        let overcharge = self.overcharge + self.model.usage.charged_again;
        let most = self.model.played + overcharge;
        assert!(used <= most, "charged {used:?} for {:?} and {overcharge:?}", self.model.played);
    }
}
