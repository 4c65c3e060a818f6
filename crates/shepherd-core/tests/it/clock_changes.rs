//! Settings of the wall clock and suspends that the engine notices before, at or after a tick (S4.2, S4.4).

use std::time::Duration;

use jiff::SignedDuration;
use shepherd_core::{CLOCK_JITTER, CoreEvent, SessionLiveness};

use crate::harness::{EngineHarness, MONDAY_NOON, entry, entry_with_max_run, hours, minutes, policy};

/// Lets the engine see the clock without a tick.
fn observe_clock(world: &mut EngineHarness) {
    world.engine.reload_failed(Vec::new(), "parent", world.now());
}

fn world_with_session() -> EngineHarness {
    let mut world = EngineHarness::new(policy(vec![entry_with_max_run(minutes(30))]), MONDAY_NOON);
    world.launch("game");
    world.tick();
    world
}

fn announces_deadline(events: &[CoreEvent]) -> bool {
    events.iter().any(|event| matches!(event, CoreEvent::DeadlineChanged { .. }))
}

#[test]
fn a_clock_that_was_set_once_or_twice_since_the_last_tick_is_announced() {
    for times in 1..=2 {
        let mut world = EngineHarness::new(policy(vec![entry("game")]), MONDAY_NOON);
        world.tick();
        for _ in 0..times {
            world.clock.move_wall(SignedDuration::from_hours(1));
            observe_clock(&mut world);
        }
        assert_eq!(world.tick(), [CoreEvent::EntryAvailabilityChanged], "set {times} times");
        assert_eq!(world.tick(), []);
    }
}

#[test]
fn one_suspend_or_two_since_the_last_tick_are_announced() {
    for times in 1..=2 {
        let mut world = world_with_session();
        for _ in 0..times {
            world.clock.suspend(hours(1));
            observe_clock(&mut world);
        }
        assert!(announces_deadline(&world.tick()), "suspended {times} times");
        assert_eq!(world.tick(), []);
    }
}

#[test]
fn a_session_gets_the_quota_of_the_day_to_which_the_clock_was_set() {
    // S4.5: an hour on Monday, ten minutes on Tuesday. The session starts at 23:30.
    for times in 0..=2 {
        let mut game = entry("game");
        game.limits.daily_quota.base = [Some(minutes(10)); 7];
        game.limits.daily_quota.base[0] = Some(hours(1));
        let mut world = EngineHarness::new(policy(vec![game]), "2026-11-16 23:30");
        world.launch("game");
        world.tick();
        for _ in 0..times {
            world.clock.move_wall(SignedDuration::from_mins(40));
            observe_clock(&mut world);
        }
        world.tick();
        let expected = if times == 0 { 40 } else { 10 };
        assert_eq!(world.remaining(), Some(minutes(expected)), "set {times} times");
    }
}

#[test]
fn a_difference_of_a_second_between_the_clocks_is_no_change() {
    let more = CLOCK_JITTER + Duration::from_millis(1);
    for (asleep, is_news) in [(CLOCK_JITTER, false), (more, true)] {
        let mut world = world_with_session();
        world.clock.suspend(asleep);
        assert_eq!(announces_deadline(&world.tick()), is_news, "asleep for {asleep:?}");
    }
    for (by, is_news) in [(CLOCK_JITTER, false), (more, true)] {
        let by = SignedDuration::try_from(by).unwrap();
        for by in [by, -by] {
            let mut world = EngineHarness::new(policy(vec![entry("game")]), MONDAY_NOON);
            world.tick();
            world.clock.move_wall(by);
            let news = world.tick().contains(&CoreEvent::EntryAvailabilityChanged);
            assert_eq!(news, is_news, "set by {by:?}");
        }
    }
}

#[test]
fn a_restarted_daemon_notices_a_suspend_since_the_last_heartbeat() {
    // S9.1: the heartbeat came at the same moment as the last write.
    let mut world = EngineHarness::new(policy(vec![entry_with_max_run(minutes(30))]), MONDAY_NOON);
    world.launch("game");
    world.crash();
    world.clock.suspend(hours(1));
    let alive = SessionLiveness::Alive { handle: "handle".to_owned() };
    assert!(announces_deadline(&world.engine.recover(alive, world.now())));
    assert_eq!(world.remaining(), Some(minutes(30)));
}
