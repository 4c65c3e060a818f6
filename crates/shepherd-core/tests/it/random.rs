//! Ten thousand random lives of a household, with invariants after every step (S13.5, S4.5).
//!
//! The test keeps its own account of how long programs really ran and compares it with what was charged.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::SignedDuration;
use shepherd_api::{Gift, Scope, StopMode, StopRequester};
use shepherd_core::policy::{
    AvailabilityPolicy, BreakRule, Cost, DailyQuota, LimitsPolicy, OnReload, Policy, WarningPolicy, Weekdays,
};
use shepherd_core::{CoreEvent, Counter, ExitInfo, LaunchDecision, NewGrant, SessionFate, StopRequest};
use shepherd_util::{GrantId, SessionId};

use crate::harness::{World, boot, budget, entry, hours, minutes, policy_with, warning, window, zone};

const STEPS: usize = 30;
const CHECKPOINT: Duration = Duration::from_secs(15);
const DAILY_A: Duration = Duration::from_secs(60 * 60);
const DAILY_GAMES: Duration = Duration::from_secs(100 * 60);

/// Deterministic, so that a seed is all that a failure needs.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % sides
    }

    fn seconds(&mut self, most: u64) -> Duration {
        Duration::from_millis(self.roll(most * 1_000) + 1)
    }
}

fn household(variant: u64) -> Policy {
    let mut a = entry("a");
    a.limits = LimitsPolicy {
        max_run: Some(minutes(if variant == 1 { 20 } else { 40 })),
        daily_quota: DailyQuota::every_day(DAILY_A),
        weekly_quota: None,
        cooldown_after_run: minutes(5),
    };
    a.budgets = vec!["games".parse().unwrap()];
    a.warnings = WarningPolicy::new(vec![warning(minutes(10)), warning(minutes(5)), warning(minutes(1))]);
    let mut b = entry("b");
    b.availability = AvailabilityPolicy::Windows(vec![
        window(Weekdays::ALL, (8, 0), (13, 0)),
        window(Weekdays::ALL, (13, 0), (if variant == 2 { 18 } else { 22 }, 0)),
        window(Weekdays::WEEKENDS, (23, 0), (1, 30)),
    ]);
    b.budgets = vec!["games".parse().unwrap()];
    let mut free = entry("free");
    free.cost = Cost::Free;
    let entries = if variant == 3 { vec![a, free] } else { vec![a, b, free] };
    policy_with(entries, |rules| {
        let mut games = budget(DAILY_GAMES);
        games.weekly = Some(hours(8));
        rules.budgets.insert("games".parse().unwrap(), games);
        rules.zone = None;
        if variant == 1 {
            rules.breaks = Some(BreakRule { after: hours(1), length: minutes(10) });
        }
        if variant == 2 {
            rules.on_reload = OnReload::Replan;
        }
    })
}

/// A household, and what really happened in it.
struct Life {
    world: World,
    dice: Dice,
    /// How long programs ran, on the clock that stops in suspend.
    played: Duration,
    /// What may have been charged beyond that, and never the other way round.
    overcharge: Duration,
    /// Play that no daemon was there to end.
    unwatched: Duration,
    granted: Duration,
    granted_in_session: Duration,
    planned: Option<Duration>,
    warned: BTreeSet<(SessionId, u64)>,
    used_before: Duration,
    ids: u128,
    boots: u128,
}

impl Life {
    fn new(seed: u64) -> Self {
        let mut dice = Dice(seed);
        let start = ["2026-03-28 20:00", "2026-10-24 22:00", "2026-12-31 21:00", "2026-11-16 09:00"];
        let start = start[usize::try_from(dice.roll(4)).unwrap()];
        let mut world = World::new(household(dice.roll(4)), start);
        world.tick();
        Self {
            world,
            dice,
            played: Duration::ZERO,
            overcharge: Duration::ZERO,
            unwatched: Duration::ZERO,
            granted: Duration::ZERO,
            granted_in_session: Duration::ZERO,
            planned: None,
            warned: BTreeSet::new(),
            used_before: Duration::ZERO,
            ids: 0,
            boots: 1,
        }
    }

    fn is_running(&self) -> bool {
        self.world.engine.snapshot().session.is_some()
    }

    fn next_id(&mut self) -> u128 {
        self.ids += 1;
        self.ids
    }

    /// Lets time pass as a daemon does, which ends a program the moment that it is told to.
    fn pass(&mut self, length: Duration) {
        let end = self.world.now().mono.total() + length;
        loop {
            let now = self.world.now();
            let left = end.saturating_sub(now.mono.total());
            if left.is_zero() {
                return;
            }
            let due = self.world.engine.next_due().map_or(left, |due| due.total_since(now.mono));
            let step = due.clamp(Duration::from_millis(1), left.max(Duration::from_millis(1)));
            if self.is_running() {
                self.played += step;
            }
            self.world.clock.advance(step);
            let events = self.world.tick();
            self.hear(&events);
        }
    }

    fn hear(&mut self, events: &[CoreEvent]) {
        for event in events {
            match event {
                CoreEvent::Warning { session_id, threshold_secs, .. } => {
                    assert!(self.warned.insert((session_id.clone(), *threshold_secs)), "warned twice");
                }
                CoreEvent::ExpireDue { .. } => self.exit(),
                CoreEvent::SessionEnded { .. } => self.planned = None,
                _ => {}
            }
        }
    }

    fn exit(&mut self) {
        if self.is_running() {
            let events = self.world.exit();
            self.hear(&events);
        }
    }

    fn launch(&mut self) {
        let id = ["a", "b", "free"][usize::try_from(self.dice.roll(3)).unwrap()];
        let busy = self.is_running();
        match self.world.ask(id) {
            LaunchDecision::Approved(plan) => {
                assert!(!busy, "two sessions on one seat");
                if self.dice.roll(10) == 0 {
                    let now = self.world.now();
                    let events = self.world.engine.launch_failed(&plan.session_id, "no".to_owned(), now);
                    self.world.sync();
                    self.hear(&events);
                    return;
                }
                let now = self.world.now();
                let events = self.world.engine.start_session(&plan.session_id, "h".to_owned(), now).unwrap();
                self.world.sync();
                self.hear(&events);
                self.planned = self.world.remaining();
                self.granted_in_session = Duration::ZERO;
            }
            LaunchDecision::Denied { reasons } => assert!(!reasons.is_empty(), "a denial without a reason"),
        }
    }

    fn grant(&mut self, extend: bool) {
        let amount = minutes(self.dice.roll(30) + 1);
        let id = GrantId::from_random(self.next_id());
        let now = self.world.now();
        let result = if extend {
            self.world.engine.extend_current(amount, &id, "parent", now)
        } else {
            let new = NewGrant {
                grant_id: id,
                profile: None,
                scope: Scope::Everything {},
                gift: Gift::Extra { amount: amount.into() },
                why: None,
                valid_from: None,
                lapses_at: None,
                actor: "parent".to_owned(),
            };
            self.world.engine.grant(new, now)
        };
        self.world.sync();
        if let Ok(events) = result {
            self.granted += amount;
            self.granted_in_session += amount;
            self.hear(&events);
        }
    }

    /// The daemon is gone for a while; the program is not, or it is.
    fn crash(&mut self) {
        let downtime = self.dice.seconds(600);
        let reboot = self.dice.roll(3) == 0;
        let dies = reboot || self.dice.roll(2) == 0;
        let was_running = self.is_running();
        // It dies between two things that are due: nobody has charged the last seconds.
        let now = self.world.now();
        let quiet = self.world.engine.next_due().map_or(CHECKPOINT, |due| due.total_since(now.mono));
        let unseen = Duration::from_millis(self.dice.roll(15_000)).min(quiet);
        self.world.clock.advance(unseen);
        if was_running {
            self.played += unseen;
        }
        self.world.crash();
        if reboot {
            self.boots += 1;
            self.world.place.boot = boot(self.boots);
            self.world.crash();
            // The clock of the new boot starts over; the wall clock goes on.
            let wall = self.world.now().wall.checked_add(downtime).unwrap();
            self.world.clock = shepherd_util::ManualClock::starting_at(wall);
            self.world.clock.advance(minutes(1));
            self.world.clock.set_wall(wall);
            self.overcharge += CHECKPOINT;
        } else {
            self.world.clock.advance(downtime);
            if was_running && !dies {
                self.played += downtime;
                self.unwatched += downtime;
            } else if was_running {
                self.overcharge += downtime;
                self.unwatched += downtime;
            }
        }
        let fate = if dies { SessionFate::Gone } else { SessionFate::Alive { handle: "handle".to_owned() } };
        let now = self.world.now();
        let events = self.world.engine.recover(fate, now);
        self.world.sync();
        self.hear(&events);
        if !self.is_running() {
            self.planned = None;
        }
    }

    fn step(&mut self) {
        match self.dice.roll(16) {
            0..4 => self.launch(),
            4..7 => {
                let length = self.dice.seconds(3_000);
                self.pass(length);
            }
            7 => self.exit(),
            8 => {
                let request =
                    StopRequest { by: StopRequester::Admin, mode: StopMode::Force, actor: "p".to_owned() };
                let now = self.world.now();
                let _ = self.world.engine.stop_current(&request, now);
                self.world.sync();
                self.exit();
            }
            9 => {
                let extend = self.dice.roll(2) == 0;
                self.grant(extend);
            }
            10 => {
                let policy = household(self.dice.roll(4));
                let now = self.world.now();
                let events = self.world.engine.reload(policy, None, "parent", now);
                self.world.sync();
                self.hear(&events);
            }
            11 => {
                let asleep = self.dice.seconds(20_000);
                self.world.clock.suspend(asleep);
                let events = self.world.tick();
                self.hear(&events);
            }
            12 | 13 => {
                let by = i64::try_from(self.dice.roll(100)).unwrap() - 50;
                self.world.clock.move_wall(SignedDuration::from_mins(by * 47));
                let events = self.world.tick();
                self.hear(&events);
            }
            14 => {
                let zones = ["Europe/Berlin", "Pacific/Apia", "America/New_York", "Asia/Kathmandu"];
                let name = zones[usize::try_from(self.dice.roll(4)).unwrap()];
                let now = self.world.now();
                self.world.place.zone = zone(name);
                let events = self.world.engine.zone_changed(zone(name), now);
                self.world.sync();
                self.hear(&events);
                if self.dice.roll(3) == 0 {
                    self.world.engine.confirm_clock("parent", now);
                    self.world.sync();
                }
            }
            _ => self.crash(),
        }
    }

    /// Extra time given under a clock that was ahead begins to hold when the hour comes that it showed.
    fn begun(&self) -> Duration {
        let snapshot = self.world.engine.snapshot();
        let Some(session) = &snapshot.session else { return Duration::ZERO };
        let later = snapshot.grants.iter().filter(|grant| session.judged_at < grant.valid_from);
        let amounts = later.filter_map(|grant| match grant.gift {
            Gift::Extra { amount } => Some(Duration::from(amount)),
            Gift::OpenUntil { .. } => None,
        });
        amounts.sum()
    }

    fn check(&mut self) {
        let used: Duration = ["a", "b", "free"].map(|id| self.world.used(id)).iter().sum();
        assert!(used >= self.used_before, "used time fell");
        self.used_before = used;
        let in_memory: Duration = {
            let state = self.world.engine.stored_state();
            assert_eq!(state.usage, self.world.store.usage, "memory and store differ");
            state
                .usage
                .iter()
                .filter(|(key, _)| matches!(key.counter, Counter::Entry(_)))
                .map(|(_, used)| *used)
                .sum()
        };
        assert_eq!(in_memory, used);
        assert!(used >= self.played, "played {:?}, charged {used:?}: time was won", self.played);
        assert!(used <= self.played + self.overcharge, "charged {used:?} for {:?}", self.played);
        self.check_quotas();
        if let (Some(planned), Some(remaining)) = (self.planned, self.world.remaining()) {
            let more = self.granted_in_session + self.begun();
            assert!(remaining <= planned + more, "{remaining:?} of {planned:?} and {more:?} remain");
        }
        if self.is_running() {
            assert!(self.world.engine.next_due().is_some() || self.world.remaining().is_none());
        }
    }

    /// No sequence of clock moves, suspends, crashes or reloads yields more than the policy allows.
    fn check_quotas(&self) {
        for (key, used) in &self.world.store.usage {
            let allowed = match &key.counter {
                Counter::Entry(id) if id.as_str() == "a" => DAILY_A,
                Counter::Entry(_) => continue,
                Counter::Budget(_) => DAILY_GAMES,
            };
            // A tick comes at most a millisecond late here; a boot that ends takes a checkpoint with it.
            let late =
                Duration::from_secs(1) + self.unwatched + CHECKPOINT * u32::try_from(self.boots - 1).unwrap();
            assert!(*used <= allowed + self.granted + late, "{used:?} on {} of {key:?}", key.day);
        }
    }
}

fn live(seed: u64) {
    let mut life = Life::new(seed);
    for _ in 0..STEPS {
        life.step();
        life.check();
    }
}

/// A failure is found again by its seed alone.
fn live_all(seeds: std::ops::Range<u64>) {
    for seed in seeds {
        let result = std::panic::catch_unwind(|| live(seed));
        assert!(result.is_ok(), "the life of seed {seed} broke a rule: add it to `lives_that_failed_before`");
    }
}

#[test]
fn lives_that_failed_before() {
    // Use was durable before the moment up to which it had been charged: a crash in between charged it twice.
    for seed in [0, 2_508, 5_024, 7_506] {
        live(seed);
    }
}

#[test]
fn ten_thousand_lives_first_quarter() {
    live_all(0..2_500);
}

#[test]
fn ten_thousand_lives_second_quarter() {
    live_all(2_500..5_000);
}

#[test]
fn ten_thousand_lives_third_quarter() {
    live_all(5_000..7_500);
}

#[test]
fn ten_thousand_lives_fourth_quarter() {
    live_all(7_500..10_000);
}

#[test]
fn the_same_life_twice_says_the_same() {
    // S3.9: same inputs, same outputs, byte for byte.
    for seed in 0..50 {
        let run = || {
            let mut life = Life::new(seed);
            for _ in 0..STEPS {
                life.step();
            }
            format!("{:?} {:?}", life.world.audit, life.world.store)
        };
        assert_eq!(run(), run(), "seed {seed}");
    }
}

#[test]
fn exits_of_other_sessions_change_nothing() {
    for seed in 0..50 {
        let mut life = Life::new(seed);
        for _ in 0..STEPS {
            life.step();
            let before = life.world.engine.stored_state();
            let stranger =
                ExitInfo { session_id: SessionId::from_random(u128::MAX), code: None, signal: Some(9) };
            let now = life.world.now();
            assert_eq!(life.world.engine.notify_session_exited(&stranger, now), []);
            assert_eq!(life.world.engine.stored_state().snapshot.session, before.snapshot.session);
        }
    }
}
