//! Warnings that fell due while no daemon ran (S9.1).

use std::time::Duration;

use shepherd_api::{StopMode, StopRequester};
use shepherd_core::policy::WarningPolicy;
use shepherd_core::{CoreEvent, SessionLiveness, StopRequest};
use shepherd_util::GrantId;

use crate::harness::{EngineHarness, MONDAY_NOON, entry_with_max_run, minutes, policy, warning, warnings};

/// Kills the daemon, and starts another that finds the program.
fn restart(world: &mut EngineHarness) -> Vec<CoreEvent> {
    world.crash();
    let events = world.engine.recover(SessionLiveness::Alive { handle: "found".to_owned() }, world.now());
    world.sync();
    events
}

/// A session of half an hour with warnings ten and five minutes before its end.
fn world_with_warnings() -> EngineHarness {
    let mut game = entry_with_max_run(minutes(30));
    game.warnings = WarningPolicy::new(vec![warning(minutes(10)), warning(minutes(5))]);
    let mut world = EngineHarness::new(policy(vec![game]), MONDAY_NOON);
    world.launch("game");
    world
}

fn missed_warning_thresholds(world: &mut EngineHarness) -> Vec<u64> {
    let event = world.engine.take_missed_warning(world.now());
    warnings(event.as_slice())
}

#[test]
fn the_most_urgent_missed_warning_is_kept_until_it_is_seen() {
    // The warning is recorded once and shown once.
    let mut world = world_with_warnings();
    world.run_for(minutes(15));
    world.clock.advance(minutes(12));
    assert_eq!(warnings(&restart(&mut world)), [600, 300]);
    world.run_for(Duration::from_secs(20));
    let missed = world.engine.take_missed_warning(world.now());
    let Some(CoreEvent::Warning { threshold_secs: 300, remaining, .. }) = missed else {
        panic!("{missed:?}")
    };
    assert_eq!(remaining, Duration::from_secs(160));
    assert_eq!(missed_warning_thresholds(&mut world), [] as [u64; 0]);
    restart(&mut world);
    assert_eq!(missed_warning_thresholds(&mut world), [] as [u64; 0]);
    assert_eq!(world.run_for(minutes(3)).len(), 1, "only its end is left");
}

#[test]
fn a_warning_that_may_have_been_seen_is_not_repeated() {
    // The daemon is killed right after it gave the warning.
    for (ran, away) in [(1_200, 0), (1_200, 200), (1_199, 30), (1_172, 60)] {
        let mut world = world_with_warnings();
        world.run_for(Duration::from_secs(1_170));
        world.advance(Duration::from_secs(ran - 1_170));
        world.clock.advance(Duration::from_secs(away));
        assert_eq!(warnings(&restart(&mut world)), [600], "{ran} {away}");
        assert_eq!(missed_warning_thresholds(&mut world), [] as [u64; 0], "{ran} {away}");
    }
}

#[test]
fn a_warning_is_missed_from_its_threshold_on_if_the_daemon_had_certainly_ended() {
    // A heartbeat comes at least every 31 seconds, and the warning was due at 1200 seconds.
    for (heartbeat, now, missed) in [
        (1_170, 1_200, &[] as &[u64]),
        (1_169, 1_200, &[]),
        (1_168, 1_199, &[]),
        (1_168, 1_200, &[600]),
        (1_168, 1_201, &[600]),
    ] {
        let mut world = world_with_warnings();
        world.clock.advance(Duration::from_secs(heartbeat));
        world.write_heartbeat();
        world.clock.advance(Duration::from_secs(now - heartbeat));
        restart(&mut world);
        assert_eq!(missed_warning_thresholds(&mut world), missed, "{heartbeat} {now}");
    }
}

#[test]
fn a_missed_warning_is_dropped_when_it_is_too_late() {
    let mut world = world_with_warnings();
    world.run_for(minutes(15));
    world.clock.advance(minutes(7));
    assert_eq!(warnings(&restart(&mut world)), [600]);
    assert_eq!(warnings(&world.run_for(minutes(4))), [300]);
    assert_eq!(missed_warning_thresholds(&mut world), [] as [u64; 0], "a louder one was heard since");
    for end in [EngineHarness::exit, |world: &mut EngineHarness| world.run_for(minutes(10))] {
        let mut world = world_with_warnings();
        world.run_for(minutes(15));
        world.clock.advance(minutes(7));
        restart(&mut world);
        end(&mut world);
        assert_eq!(missed_warning_thresholds(&mut world), [] as [u64; 0]);
    }
}

#[test]
fn a_missed_warning_is_dropped_when_the_session_is_stopped() {
    let mut world = world_with_warnings();
    world.run_for(minutes(15));
    world.clock.advance(minutes(7));
    assert_eq!(warnings(&restart(&mut world)), [600]);
    // The program still runs during its grace period.
    let stop = StopRequest { by: StopRequester::User, mode: StopMode::Graceful, actor: "child".to_owned() };
    let _ = world.engine.stop_current(&stop, world.now());
    world.sync();
    assert!(world.remaining().is_some());
    assert_eq!(missed_warning_thresholds(&mut world), [] as [u64; 0]);
}

#[test]
fn a_missed_warning_is_for_its_session_only() {
    let mut world = world_with_warnings();
    world.run_for(minutes(15));
    world.clock.advance(minutes(7));
    restart(&mut world);
    world.exit();
    world.launch("game");
    world.run_for(minutes(21));
    assert_eq!(missed_warning_thresholds(&mut world), [] as [u64; 0]);
}

#[test]
fn a_missed_warning_is_dropped_when_the_session_lasts_longer_again() {
    // Eight minutes are left, and the warning is for ten.
    for (by, expected) in [(119, &[600_u64] as &[u64]), (120, &[600]), (121, &[])] {
        let mut world = world_with_warnings();
        world.run_for(minutes(15));
        world.clock.advance(minutes(7));
        restart(&mut world);
        let by = Duration::from_secs(by);
        world.engine.extend_current(by, &GrantId::from_random(1), "parent", world.now()).unwrap();
        world.sync();
        assert_eq!(missed_warning_thresholds(&mut world), expected, "{by:?}");
    }
}

#[test]
fn a_missed_warning_that_came_again_before_a_new_end_is_dropped() {
    let mut world = world_with_warnings();
    world.run_for(minutes(15));
    world.clock.advance(minutes(7));
    restart(&mut world);
    world.engine.extend_current(minutes(30), &GrantId::from_random(1), "parent", world.now()).unwrap();
    world.sync();
    assert_eq!(warnings(&world.run_for(minutes(29))), [600]);
    assert_eq!(missed_warning_thresholds(&mut world), [] as [u64; 0]);
}

#[test]
fn a_missed_warning_is_kept_when_an_extension_is_taken_back() {
    let mut world = world_with_warnings();
    world.run_for(minutes(15));
    world.clock.advance(minutes(7));
    restart(&mut world);
    world.engine.extend_current(minutes(30), &GrantId::from_random(1), "parent", world.now()).unwrap();
    world.revoke(1);
    world.sync();
    assert_eq!(missed_warning_thresholds(&mut world), [600]);
}
