//! Ten thousand random lives of a household, with invariants after every step (S2–S4, S9, S13.5).
//!
//! A life is a random policy and forty random acts: launches that come up, fail or hang; exits, stops and programs
//! that resist; gifts of every kind, now and in advance, and their revocation; requests; other policies; sleep; a
//! clock set by minutes, hours and days; other zones and modes; a store that breaks; crashes and reboots at any
//! point. `reference_model.rs` keeps its own account by the clock that nobody can set, and `runner.rs` checks the invariants.
//!
//! A failure names its seed; `SHEPHERD_LIFE=<seed>` prints that life alone, act by act, and `SHEPHERD_LIVES=<from>..<to>`
//! looks for more of them. A failure that was found is cut down to a test in the file of the rule that it broke.

mod actions;
mod counts;
mod crash;
mod grants;
mod hours;
mod household;
mod open_span;
mod reference_clock;
mod reference_model;
mod rng;
mod runner;
mod session_model;
mod usage_model;

use shepherd_core::ExitInfo;
use shepherd_util::SessionId;

use counts::SimulationCounts;
use runner::{HouseholdSimulation, SimulationLog};

const STEPS: usize = 40;

fn run_simulation(seed: u64, listener: SimulationLog) -> SimulationCounts {
    let mut life = HouseholdSimulation::new(seed);
    life.log = listener;
    for _ in 0..STEPS {
        life.step();
        life.check_accounts();
    }
    life.counts
}

/// A failure is found again by its seed alone.
fn run_simulations(seeds: std::ops::Range<u64>) {
    let lives = seeds.end - seeds.start;
    let mut sum = SimulationCounts::default();
    let mut broke = Vec::new();
    for seed in seeds {
        match std::panic::catch_unwind(|| run_simulation(seed, SimulationLog::Off)) {
            Ok(tally) => sum = sum.plus(tally),
            Err(_) => {
                println!("in the life of seed {seed}");
                broke.push(seed);
            }
        }
    }
    assert!(
        broke.is_empty(),
        "the lives of seeds {broke:?} broke a rule; one is told by `SHEPHERD_LIFE=<seed> cargo nextest run -p \
         shepherd-core --no-capture the_life_that_is_asked_for`"
    );
    assert!(sum.each_at_least(lives / 2), "too little happens: {sum:?}");
}

#[expect(clippy::disallowed_methods, reason = "a person who looks for failures says where")]
fn env_setting(variable: &str) -> Option<String> {
    std::env::var(variable).ok()
}

#[test]
fn the_life_that_is_asked_for_is_told() {
    let seed = env_setting("SHEPHERD_LIFE").map_or(0, |seed| seed.parse().unwrap());
    run_simulation(seed, SimulationLog::Printed);
}

#[test]
fn more_lives_that_are_asked_for_break_no_rule() {
    let range = env_setting("SHEPHERD_LIVES").unwrap_or_else(|| "10000..10100".to_owned());
    let (from, to) = range.split_once("..").unwrap();
    run_simulations(from.parse().unwrap()..to.parse().unwrap());
}

#[test]
fn ten_thousand_lives_first_quarter() {
    run_simulations(0..2_500);
}

#[test]
fn ten_thousand_lives_second_quarter() {
    run_simulations(2_500..5_000);
}

#[test]
fn ten_thousand_lives_third_quarter() {
    run_simulations(5_000..7_500);
}

#[test]
fn ten_thousand_lives_fourth_quarter() {
    run_simulations(7_500..10_000);
}

#[test]
fn the_same_life_twice_says_the_same() {
    // S3.9: same inputs, same outputs, byte for byte.
    for seed in 0..200 {
        let run = || {
            let mut life = HouseholdSimulation::new(seed);
            life.log = SimulationLog::Recorded(String::new());
            for _ in 0..STEPS {
                life.step();
            }
            let SimulationLog::Recorded(said) = life.log else { unreachable!() };
            format!("{said} {:?} {:?}", life.world.audit, life.world.store)
        };
        assert_eq!(run(), run(), "seed {seed}");
    }
}

#[test]
fn exits_of_other_sessions_change_nothing() {
    for seed in 0..50 {
        let mut life = HouseholdSimulation::new(seed);
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
