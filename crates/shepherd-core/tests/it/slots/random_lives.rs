//! Random lives of a family whose sessions overlap (S19.1, S13.5). A model adds each step to the counters of what runs, once
//! for each counter, and plans nothing; the engine has to agree with it after each step, and each end has to be exact.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use shepherd_api::SessionCounting;
use shepherd_core::policy::PolicyEntry;
use shepherd_core::{LaunchDecision, SessionLiveness, UsageCounter};
use shepherd_util::SessionId;

use super::{adopt, background, exit, expired, family, login, on_budget, set_counting};
use crate::harness::{EngineHarness, MONDAY_NOON, entry, hours};
use crate::simulation::SimulationRng;

const CHILDREN: [&str; 2] = ["anna", "ben"];
const PROGRAMS: [&str; 5] = ["game", "film", "music", "radio", "painting"];
const STEPS: usize = 60;

type CounterKey = (String, UsageCounter);

fn entries() -> Vec<PolicyEntry> {
    vec![
        on_budget(entry("game"), &["screen"]),
        entry("film"),
        on_budget(background("music"), &["screen"]),
        background("radio"),
        on_budget(background("painting"), &["screen"]),
        on_budget(login(), &["screen"]),
    ]
}

struct OverlappingLives {
    world: EngineHarness,
    random: SimulationRng,
    used: BTreeMap<CounterKey, Duration>,
    /// The number of ends that came by themselves.
    ends: usize,
    /// The most sessions at once.
    most: usize,
}

impl OverlappingLives {
    fn new(seed: u64) -> Self {
        let world = EngineHarness::new(family(entries()), MONDAY_NOON);
        Self { world, random: SimulationRng::new(seed), used: BTreeMap::new(), ends: 0, most: 0 }
    }

    fn below(&mut self, count: usize) -> usize {
        self.random.index(count)
    }

    fn any_session(&mut self) -> Option<SessionId> {
        let count = self.world.engine.sessions().len();
        let place = self.below(count.max(1));
        self.world.engine.sessions().iter().nth(place).map(|session| session.session_id.clone())
    }

    /// Returns the counters that time is charged to now, each once.
    fn counters(&self) -> BTreeSet<CounterKey> {
        let counting = |session: &&shepherd_core::SessionRecord| {
            session.counting != SessionCounting::Stopped && session.stage.host_session_handle().is_some()
        };
        let sessions = self.world.engine.sessions().iter().filter(counting);
        let counters = sessions.flat_map(|session| {
            let budgets = session.budgets.iter().cloned().map(UsageCounter::Budget);
            let own = UsageCounter::Entry(session.entry_id.clone());
            budgets.chain([own]).map(|counter| (session.profile.to_string(), counter))
        });
        counters.collect()
    }

    /// Lets time pass in steps in which nothing ends.
    fn pass_time(&mut self, length: Duration) {
        let mut left = length;
        self.end_what_is_due();
        while !left.is_zero() {
            let now = self.world.now().mono;
            let due = self.world.engine.next_due().map_or(left, |due| due.total_since(now));
            let step = due.clamp(Duration::from_millis(1), left);
            for counter in self.counters() {
                *self.used.entry(counter).or_default() += step;
            }
            self.world.advance(step);
            left -= step;
            self.end_what_is_due();
        }
    }

    fn end_what_is_due(&mut self) {
        // The end of a session makes the engine look for its next change at once.
        while self.world.engine.next_due().is_none_or(|due| due.total() <= self.world.now().mono.total()) {
            let events = self.world.tick();
            for session_id in expired(&events) {
                self.ends += 1;
                let session = self.world.engine.sessions().get(&session_id).unwrap();
                let screen = (session.profile.to_string(), UsageCounter::Budget("screen".parse().unwrap()));
                assert_eq!(self.used[&screen], hours(1), "it ends when the budget is used up");
                exit(&mut self.world, &session_id);
            }
            if self.world.engine.next_due().is_none() {
                return;
            }
        }
    }

    fn restart(&mut self) {
        // Nothing that ran has ended, and nobody noticed that the daemon was away.
        self.world.crash();
        let alive = SessionLiveness::Alive { handle: "found".to_owned() };
        let sessions = self.world.engine.sessions().iter().map(|session| session.session_id.clone());
        let liveness = sessions.map(|session_id| (session_id, alive.clone())).collect();
        let now = self.world.now();
        self.world.engine.recover_each(&liveness, now);
        self.world.sync();
    }

    fn step(&mut self) {
        let child = CHILDREN[self.below(2)];
        match self.below(10) {
            0..=3 => {
                let program = PROGRAMS[self.below(PROGRAMS.len())];
                let decision = self.world.request_launch_for(program, Some(child));
                if let LaunchDecision::Approved(plan) = decision {
                    let now = self.world.now();
                    let handle = "handle".to_owned();
                    self.world.engine.start_session(&plan.session_id, handle, now).unwrap();
                    self.world.sync();
                }
            }
            4 => {
                let number = self.random.roll(1 << 40);
                let account = if self.below(2) == 0 { "anna" } else { "anna-school" };
                drop(adopt(&mut self.world, u128::from(number), account));
            }
            5 => {
                if let Some(session_id) = self.any_session() {
                    exit(&mut self.world, &session_id);
                }
            }
            6 | 7 => {
                let states = [SessionCounting::Active, SessionCounting::Idle, SessionCounting::Stopped];
                let counting = states[self.below(3)];
                if let Some(session_id) = self.any_session() {
                    set_counting(&mut self.world, &session_id, counting);
                }
            }
            8 => self.restart(),
            _ => self.world.clock.suspend(Duration::from_secs(self.random.roll(3_000))),
        }
        let length = Duration::from_millis(self.random.roll(900_000));
        self.pass_time(length);
    }

    fn check(&mut self) {
        let now = self.world.now();
        self.world.engine.checkpoint_usage(now);
        self.world.sync();
        let mut stored = BTreeMap::<CounterKey, Duration>::new();
        for (key, used) in &self.world.store.usage {
            *stored.entry((key.profile.to_string(), key.counter.clone())).or_default() += *used;
        }
        self.used.retain(|_, used| !used.is_zero());
        assert_eq!(stored, self.used);
        assert_eq!(self.world.store.sessions, self.world.engine.stored_state().sessions);
        for session in self.world.engine.sessions().iter() {
            let screen = (session.profile.to_string(), UsageCounter::Budget("screen".parse().unwrap()));
            let used = self.used.get(&screen).copied().unwrap_or_default();
            let left = session.ends.remaining(now.mono);
            if session.counting != SessionCounting::Stopped && !session.budgets.is_empty() {
                assert_eq!(left, hours(1).checked_sub(used), "{used:?} used: {session:?}");
            }
        }
        self.most = self.most.max(self.world.engine.sessions().len());
    }
}

#[test]
fn overlapping_sessions_are_charged_once_and_end_exactly() {
    let (mut ends, mut most) = (0, 0);
    for seed in 0..1_500 {
        let mut lives = OverlappingLives::new(seed);
        let began = lives.world.now().wall;
        for _ in 0..STEPS {
            // The budget is that of one day.
            if lives.world.now().wall > began + hours(10) {
                break;
            }
            lives.step();
            lives.check();
        }
        (ends, most) = (ends + lives.ends, most.max(lives.most));
    }
    assert!(ends > 1_500 && most >= 6, "too little happens: {ends} ends, {most} sessions at once");
}
