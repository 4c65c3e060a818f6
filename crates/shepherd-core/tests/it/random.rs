//! Ten thousand random lives of a household, with invariants after every step (S2–S4, S9, S13.5).
//!
//! A life is a random policy and forty random acts: launches that come up, fail or hang; exits, stops and programs
//! that resist; gifts of every kind, now and in advance, and their revocation; requests; other policies; sleep; a
//! clock set by minutes, hours and days; other zones and modes; a store that breaks; crashes and reboots at any
//! point. `truth.rs` keeps its own account by the clock that nobody can set, and `play.rs` says what must be true.
//!
//! A failure names its seed; `SHEPHERD_LIFE=<seed>` tells that life alone, act by act, and `SHEPHERD_LIVES=<from>..<to>`
//! looks for more of them. What was found is cut down to a test in `mended_lives.rs`.

mod acts;
mod book;
mod crash;
mod dice;
mod gifts;
mod hours;
mod household;
mod life;
mod play;
mod span;
mod tally;
mod truth;
mod watch;

use shepherd_core::ExitInfo;
use shepherd_util::SessionId;

use life::{Life, Listener};
use tally::Tally;

const STEPS: usize = 40;

fn live(seed: u64, listener: Listener) -> Tally {
    let mut life = Life::new(seed);
    life.listener = listener;
    for _ in 0..STEPS {
        life.step();
        life.check();
    }
    life.tally
}

/// A failure is found again by its seed alone.
fn live_all(seeds: std::ops::Range<u64>) {
    let lives = seeds.end - seeds.start;
    let mut sum = Tally::default();
    let mut broke = Vec::new();
    for seed in seeds {
        match std::panic::catch_unwind(|| live(seed, Listener::Nobody)) {
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
fn asked_for(variable: &str) -> Option<String> {
    std::env::var(variable).ok()
}

#[test]
fn the_life_that_is_asked_for_is_told() {
    let seed = asked_for("SHEPHERD_LIFE").map_or(0, |seed| seed.parse().unwrap());
    live(seed, Listener::Reads);
}

#[test]
fn more_lives_that_are_asked_for_break_no_rule() {
    let range = asked_for("SHEPHERD_LIVES").unwrap_or_else(|| "10000..10100".to_owned());
    let (from, to) = range.split_once("..").unwrap();
    live_all(from.parse().unwrap()..to.parse().unwrap());
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
    for seed in 0..200 {
        let run = || {
            let mut life = Life::new(seed);
            life.listener = Listener::Keeps(String::new());
            for _ in 0..STEPS {
                life.step();
            }
            let Listener::Keeps(said) = life.listener else { unreachable!() };
            format!("{said} {:?} {:?}", life.world.audit, life.world.store)
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
