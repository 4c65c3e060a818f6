//! Warnings after the end of a session has moved (S2.5, S3.5b): each threshold warns once for each end.

use std::time::Duration;

use shepherd_api::EntryScope;
use shepherd_core::policy::{OnReload, Policy, PolicyEntry, WarningPolicy};
use shepherd_core::{CoreEvent, NewGrant, SessionLiveness};
use shepherd_util::{GrantId, HumanDuration};

use crate::harness::{
    EngineHarness, entry, entry_in_window, extra, grant, hours, minutes, policy, policy_with, warning,
    warnings,
};

const MONDAY_NOON: &str = "2026-11-16 12:00";

const SECOND: Duration = Duration::from_secs(1);

/// A session of an hour with warnings ten and five minutes before the end.
fn game() -> PolicyEntry {
    let mut game = entry("game");
    game.limits.max_run = Some(hours(1));
    game.warnings = WarningPolicy::new(vec![warning(minutes(10)), warning(minutes(5))]);
    game
}

/// Returns a session with this many minutes left.
fn session_with_left(left: u64) -> EngineHarness {
    let mut world = EngineHarness::new(policy(vec![game()]), MONDAY_NOON);
    world.launch("game");
    world.run_for(minutes(60 - left));
    world
}

fn extend(world: &mut EngineHarness, by: u64, id: u128) {
    world.engine.extend_current(minutes(by), &GrantId::from_random(id), "parent", world.now()).unwrap();
    world.sync();
}

fn revoke(world: &mut EngineHarness, id: u128) {
    world.engine.revoke(&GrantId::from_random(id), "parent", world.now()).unwrap();
    world.sync();
}

fn restart(world: &mut EngineHarness) {
    world.crash();
    world.engine.recover(SessionLiveness::Alive { handle: "handle".to_owned() }, world.now());
    world.sync();
}

#[test]
fn warnings_come_again_before_the_end_that_an_extension_sets() {
    // Both warnings were given; the end is now an hour later.
    let mut world = session_with_left(4);
    extend(&mut world, 60, 1);
    assert_eq!(warnings(&world.run_for(minutes(53))), [] as [u64; 0]);
    assert_eq!(warnings(&world.run_for(minutes(1))), [600]);
    assert_eq!(warnings(&world.run_for(minutes(5))), [300]);
    assert_eq!(warnings(&world.run_for(minutes(5))), [] as [u64; 0]);
}

#[test]
fn a_grant_for_the_running_session_repeats_warnings_too() {
    let mut world = session_with_left(4);
    let entry_id = "game".parse().unwrap();
    let more = NewGrant { scope: EntryScope::Entry { entry_id }, ..grant(1, extra(minutes(20))) };
    world.engine.grant(more, world.now()).unwrap();
    assert_eq!(warnings(&world.run_for(minutes(24))), [600, 300]);
}

#[test]
fn only_thresholds_before_the_new_end_come_again() {
    // With four more minutes, eight are left: the warning at five minutes comes again, the one at ten doesn't.
    let mut world = session_with_left(4);
    extend(&mut world, 4, 1);
    assert_eq!(warnings(&world.run_for(minutes(8))), [300]);
    // With six more minutes, the end is exactly at the threshold of ten minutes.
    let mut world = session_with_left(4);
    extend(&mut world, 6, 1);
    assert_eq!(warnings(&world.run_for(minutes(10))), [300]);
}

#[test]
fn a_session_as_long_as_a_threshold_gets_no_such_warning() {
    // S2.5.
    for (length, expected) in [(minutes(10), vec![300]), (minutes(10) + SECOND, vec![600, 300])] {
        let mut game = game();
        game.limits.max_run = Some(length);
        let mut world = EngineHarness::new(policy(vec![game]), MONDAY_NOON);
        let planned: Vec<_> =
            world.launch("game").warnings.iter().map(|warning| warning.before.as_secs()).collect();
        assert_eq!(planned, expected, "{length:?}");
        assert_eq!(warnings(&world.run_for(length)), expected, "{length:?}");
    }
}

#[test]
fn a_late_warning_rounds_the_time_up_to_seconds() {
    for (late, text) in [
        (Duration::ZERO, "10 minutes"),
        (Duration::from_millis(1), "10 minutes"),
        (Duration::from_millis(999), "10 minutes"),
        (SECOND, "9 minutes 59 seconds"),
    ] {
        let mut world = session_with_left(11);
        world.clock.advance(minutes(1) + late);
        let shown = world.tick().into_iter().find_map(|event| match event {
            CoreEvent::Warning { remaining, .. } => Some(HumanDuration(remaining).to_string()),
            _ => None,
        });
        assert_eq!(shown.as_deref(), Some(text), "{late:?} late");
    }
}

#[test]
fn a_warning_that_was_repeated_twice_is_not_repeated_when_the_end_moves_back() {
    let mut world = session_with_left(9);
    extend(&mut world, 60, 1);
    assert_eq!(warnings(&world.run_for(minutes(60))), [600]);
    extend(&mut world, 60, 2);
    world.run_for(minutes(1));
    revoke(&mut world, 2);
    assert_eq!(warnings(&world.run_for(minutes(2))), [] as [u64; 0], "eight minutes are left");
}

#[test]
fn a_warning_is_not_repeated_when_the_end_moves_back_to_its_threshold() {
    let mut world = session_with_left(9);
    extend(&mut world, 60, 1);
    world.run_for(minutes(1));
    revoke(&mut world, 1);
    // Eight minutes are left, and the warning at ten minutes was already given for this end.
    assert_eq!(warnings(&world.run_for(minutes(2))), [] as [u64; 0]);
    assert_eq!(warnings(&world.run_for(minutes(6))), [300]);
}

#[test]
fn a_warning_that_was_never_given_comes_at_once_when_the_end_moves_earlier() {
    let mut world = session_with_left(30);
    extend(&mut world, 60, 1);
    world.run_for(minutes(22));
    revoke(&mut world, 1);
    assert_eq!(warnings(&world.tick()), [600], "eight minutes are left, and no warning was given yet");
    assert_eq!(warnings(&world.run_for(minutes(8))), [300]);
}

#[test]
fn a_restarted_daemon_repeats_each_warning_once_for_the_new_end() {
    // S9.1: with a crash before and after each step.
    let mut world = session_with_left(4);
    restart(&mut world);
    extend(&mut world, 60, 1);
    restart(&mut world);
    assert_eq!(warnings(&world.run_for(minutes(54))), [600]);
    restart(&mut world);
    assert_eq!(warnings(&world.run_for(minutes(10))), [300]);
}

#[test]
fn the_record_of_an_older_daemon_repeats_its_warnings_as_well() {
    // An older daemon removed a warning from the record when it gave the warning, and kept the threshold.
    let mut world = session_with_left(4);
    let mut stored = serde_json::to_value(&world.store.snapshot).unwrap();
    stored["session"]["warnings"] = serde_json::json!([]);
    world.store.snapshot = serde_json::from_value(stored).unwrap();
    restart(&mut world);
    assert_eq!(warnings(&world.tick()), [] as [u64; 0]);
    extend(&mut world, 60, 1);
    assert_eq!(warnings(&world.run_for(minutes(64))), [600, 300]);
}

#[test]
fn a_repeated_warning_that_was_missed_is_kept_until_it_is_seen() {
    let mut world = session_with_left(4);
    extend(&mut world, 60, 1);
    world.run_for(minutes(50));
    world.crash();
    world.clock.advance(minutes(6));
    world.engine.recover(SessionLiveness::Alive { handle: "handle".to_owned() }, world.now());
    world.sync();
    let missed = world.engine.take_missed_warning(world.now());
    assert_eq!(warnings(&missed.into_iter().collect::<Vec<_>>()), [600]);
}

#[test]
fn a_warning_that_is_due_again_comes_although_another_deadline_moves_first() {
    // S3.5b: the hours end at 13:00:05, and only the later end of the run is moved before the next tick.
    let game = |max_run: Duration| {
        let mut game = entry_in_window((11, 0), (13, 0));
        game.limits.max_run = Some(max_run);
        game.warnings = WarningPolicy::new(vec![warning(minutes(1))]);
        policy_with(vec![game], |rules| rules.on_reload = OnReload::Replan)
    };
    let moves: [fn(&mut EngineHarness, Policy); 2] = [
        |world, _| world.revoke(1),
        |world, shorter| drop(world.engine.reload(shorter, None, "parent", world.now())),
    ];
    for (number, move_run_end) in moves.into_iter().enumerate() {
        let mut world = EngineHarness::new(game(hours(2)), MONDAY_NOON);
        world.launch("game");
        world.grant(grant(1, extra(minutes(20))));
        assert_eq!(warnings(&world.run_for(minutes(59))), [60]);
        let by = Duration::from_secs(5);
        world.engine.extend_current(by, &GrantId::from_random(2), "parent", world.now()).unwrap();
        world.advance(Duration::from_secs(10));
        move_run_end(&mut world, game(minutes(90)));
        assert_eq!(world.remaining(), Some(Duration::from_secs(55)));
        assert_eq!(warnings(&world.tick()), [60], "{number}");
    }
}
