//! Random lives of a family whose sessions overlap (S19.1, S13.5). A model adds each step to the counters of what runs, once
//! for each counter, and plans nothing; the engine has to agree with it after each step, and each end has to be exact.
//! Meanwhile parents give more screen time and take it back, rules are reloaded, clocks are set, and machines restart.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use shepherd_api::{EntryScope, SessionCounting};
use shepherd_core::policy::{OnReload, PolicyEntry};
use shepherd_core::{CoreEvent, LaunchDecision, NewGrant, SessionLiveness, SessionRecord, UsageCounter};
use shepherd_util::{ManualClock, SessionId};

use super::{adopt, background, exit, expired, family_with, login, on_budget, set_counting};
use crate::harness::{EngineHarness, MONDAY_NOON, boot, entry, extra, hours, scoped_grant};
use crate::simulation::SimulationRng;

const CHILDREN: [&str; 2] = ["anna", "ben"];
const PROGRAMS: [&str; 5] = ["game", "film", "music", "radio", "painting"];
const STEPS: usize = 60;

/// The cost of a power cut after the last heartbeat: the heartbeat interval, and the time to write a heartbeat.
const MAX_LOST: Duration = Duration::from_secs(31);

/// The clock shows at most this many minutes too much or too little, so that it stays trusted.
const MOST_MINUTES_WRONG: i64 = 5;

type CounterKey = (String, UsageCounter);

fn screen(child: &str) -> CounterKey {
    (child.to_owned(), UsageCounter::Budget("screen".parse().unwrap()))
}

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
    /// The extra screen time of each child, by the number of its grant.
    granted: BTreeMap<u128, (&'static str, Duration)>,
    /// The screen time that a child had used when a grant was revoked. It stays used.
    used_when_revoked: BTreeMap<&'static str, Duration>,
    grants: u128,
    boots: u128,
    /// The number of minutes by which the clock is wrong.
    minutes_wrong: i64,
    /// The number of ends that came by themselves.
    ends: usize,
    /// The most sessions at once.
    most: usize,
}

impl OverlappingLives {
    fn new(seed: u64) -> Self {
        let world = EngineHarness::new(family_with(entries(), |_| {}), MONDAY_NOON);
        Self {
            world,
            random: SimulationRng::new(seed),
            used: BTreeMap::new(),
            granted: BTreeMap::new(),
            used_when_revoked: BTreeMap::new(),
            grants: 0,
            boots: 1,
            minutes_wrong: 0,
            ends: 0,
            most: 0,
        }
    }

    fn below(&mut self, count: usize) -> usize {
        self.random.index(count)
    }

    fn any_session(&mut self) -> Option<SessionId> {
        let count = self.world.engine.sessions().len();
        let place = self.below(count.max(1));
        self.world.engine.sessions().iter().nth(place).map(|session| session.session_id.clone())
    }

    /// Returns the real time.
    fn real_time(&self) -> Timestamp {
        self.world.now().wall - SignedDuration::from_mins(self.minutes_wrong)
    }

    fn used_screen(&self, child: &str) -> Duration {
        self.used.get(&screen(child)).copied().unwrap_or_default()
    }

    /// Returns the screen time of a child: an hour, and what was granted.
    fn allowed_screen(&self, child: &str) -> Duration {
        let granted = self.granted.values().filter(|(granted_to, _)| *granted_to == child);
        hours(1) + granted.map(|(_, amount)| *amount).sum::<Duration>()
    }

    fn counting_sessions(&self) -> impl Iterator<Item = &SessionRecord> {
        let counting = |session: &&SessionRecord| {
            session.counting != SessionCounting::Stopped && session.stage.host_session_handle().is_some()
        };
        self.world.engine.sessions().iter().filter(counting)
    }

    /// Returns the counters that time is charged to now, each once.
    fn counters(&self) -> BTreeSet<CounterKey> {
        self.counting_sessions().flat_map(counters_of).collect()
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
            self.end_expired(&events);
            if self.world.engine.next_due().is_none() {
                return;
            }
        }
    }

    fn end_expired(&mut self, events: &[CoreEvent]) {
        for session_id in expired(events) {
            self.ends += 1;
            let session = self.world.engine.sessions().get(&session_id).unwrap();
            let child = session.profile.as_str();
            let revoked = self.used_when_revoked.get(child).copied().unwrap_or_default();
            let allowed = self.allowed_screen(child).max(revoked);
            assert_eq!(self.used_screen(child), allowed, "it ends when the budget is used up");
            exit(&mut self.world, &session_id);
        }
    }

    fn restart(&mut self) {
        // Nothing that ran has ended, and nobody noticed that the daemon was away.
        self.world.crash();
        let alive = SessionLiveness::Alive { handle: "found".to_owned() };
        let sessions = self.world.engine.sessions().iter().map(|session| session.session_id.clone());
        let liveness = sessions.map(|session_id| (session_id, alive.clone())).collect();
        let now = self.world.now();
        let events = self.world.engine.recover_each(&liveness, now);
        self.world.sync();
        self.end_expired(&events);
    }

    /// Cuts the power right after a heartbeat. Nobody knows how long the programs ran after it, so the most is charged.
    fn reboot(&mut self) {
        self.world.write_heartbeat();
        let now = self.world.now();
        let mut lost = BTreeMap::<CounterKey, Duration>::new();
        for session in self.counting_sessions() {
            let most = session.ends.remaining(now.mono).map_or(MAX_LOST, |left| left.min(MAX_LOST));
            for counter in counters_of(session) {
                let known = lost.entry(counter).or_default();
                *known = most.max(*known);
            }
        }
        for (counter, most) in lost {
            *self.used.entry(counter).or_default() += most;
        }
        self.boots += 1;
        self.world.clock = ManualClock::starting_at(now.wall);
        self.world.place.boot = boot(self.boots);
        self.world.crash();
        let now = self.world.now();
        self.world.engine.recover_each(&BTreeMap::new(), now);
        self.world.sync();
        assert!(self.world.engine.sessions().is_empty(), "no program survives a reboot");
    }

    fn grant(&mut self, child: &'static str) {
        let amount = self.random.minutes(1, 30);
        self.grants += 1;
        let budget = EntryScope::Budget { budget_id: "screen".parse().unwrap() };
        let grant = scoped_grant(self.grants, budget, extra(amount));
        self.world.grant(NewGrant { profile: Some(child.parse().unwrap()), ..grant });
        self.world.sync();
        self.granted.insert(self.grants, (child, amount));
    }

    fn revoke(&mut self) {
        let place = self.below(self.granted.len().max(1));
        let Some(number) = self.granted.keys().nth(place).copied() else { return };
        let (child, _) = self.granted.remove(&number).unwrap();
        self.used_when_revoked.insert(child, self.used_screen(child));
        self.world.revoke(number);
        self.world.sync();
    }

    /// Loads the same rules again. A new plan is the same as the old one.
    fn reload(&mut self) {
        let on_reload = *self.random.pick(&[OnReload::KeepPlan, OnReload::Replan]);
        let policy = family_with(entries(), |rules| rules.on_reload = on_reload);
        let now = self.world.now();
        self.world.engine.reload(policy, None, "parent", now);
        self.world.sync();
    }

    fn set_clock(&mut self) {
        let minutes = i64::try_from(self.below(11)).unwrap() - MOST_MINUTES_WRONG;
        self.world.clock.move_wall(SignedDuration::from_mins(minutes - self.minutes_wrong));
        self.minutes_wrong = minutes;
        let events = self.world.tick();
        self.end_expired(&events);
    }

    fn step(&mut self) {
        let child = CHILDREN[self.below(2)];
        match self.below(14) {
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
            9 => self.grant(child),
            10 => match self.below(3) {
                0 => self.reboot(),
                1 => self.reload(),
                _ => self.set_clock(),
            },
            11 => self.revoke(),
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
            let child = session.profile.as_str();
            let (used, allowed) = (self.used_screen(child), self.allowed_screen(child));
            let left = session.ends.remaining(now.mono);
            if session.counting != SessionCounting::Stopped && !session.budgets.is_empty() {
                assert_eq!(left, allowed.checked_sub(used), "{used:?} of {allowed:?} used: {session:?}");
            }
        }
        self.most = self.most.max(self.world.engine.sessions().len());
    }
}

/// Returns the counters that the time of a session is charged to.
fn counters_of(session: &SessionRecord) -> impl Iterator<Item = CounterKey> {
    let budgets = session.budgets.iter().cloned().map(UsageCounter::Budget);
    let own = UsageCounter::Entry(session.entry_id.clone());
    budgets.chain([own]).map(|counter| (session.profile.to_string(), counter))
}

#[test]
fn overlapping_sessions_are_charged_once_and_end_exactly() {
    let (mut ends, mut most) = (0, 0);
    for seed in 0..1_500 {
        let mut lives = OverlappingLives::new(seed);
        let began = lives.real_time();
        for _ in 0..STEPS {
            // The budget is that of one day.
            if lives.real_time() > began + hours(9) {
                break;
            }
            lives.step();
            lives.check();
        }
        (ends, most) = (ends + lives.ends, most.max(lives.most));
    }
    assert!(ends > 1_500 && most >= 6, "too little happens: {ends} ends, {most} sessions at once");
}
