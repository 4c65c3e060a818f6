//! Charging after power cuts, crashes and sleep. The simulation found these cases.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use shepherd_core::policy::{OnReload, SuspendedTime};
use shepherd_core::{NewGrant, SessionLiveness};
use shepherd_util::ManualClock;

use crate::harness::{
    EngineHarness, MONDAY_NOON, boot, entry, entry_with_max_run, extra, grant, hours, minutes, policy,
    policy_with, zone,
};

/// The grace, the heartbeat interval, and the time to write a heartbeat.
const RESISTED_AT_MOST: Duration = Duration::from_secs(10 + 30 + 1);

/// Cuts the power. The machine starts again with this time on its clock.
fn power_cut(world: &mut EngineHarness, shows: Timestamp) {
    world.clock = ManualClock::starting_at(shows);
    world.place.boot = boot(2);
    world.crash();
    world.engine.recover(SessionLiveness::Gone, world.now());
    world.sync();
}

/// Cuts the power, and loses the last heartbeat.
fn power_cut_without_heartbeat(world: &mut EngineHarness, shows: Timestamp) {
    world.store.heartbeat = None;
    power_cut(world, shows);
}

#[test]
fn unseen_play_is_charged_by_the_corrected_clock() {
    // S4.5, S9.2b: the clock was a day ahead at the launch, and a parent has corrected and confirmed it since.
    let mut world = EngineHarness::new(policy(vec![entry("game")]), MONDAY_NOON);
    world.move_wall(SignedDuration::from_hours(24));
    world.launch("game");
    world.run_for(minutes(10));
    world.clock.move_wall(SignedDuration::from_hours(-24));
    world.engine.confirm_clock("parent", world.now());
    world.sync();
    world.clock.advance(minutes(40));
    let shows = world.now().wall;
    power_cut_without_heartbeat(&mut world, shows);
    assert!(world.used("game") >= minutes(50), "{:?} of fifty minutes", world.used("game"));
}

#[test]
fn unseen_play_after_a_new_plan_is_charged() {
    // S7.3, S9.2b: the new plan was made an hour after the launch.
    let test_policy = policy_with(vec![entry("game")], |rules| rules.on_reload = OnReload::Replan);
    let mut world = EngineHarness::new(test_policy.clone(), MONDAY_NOON);
    world.launch("game");
    world.run_for(hours(1));
    world.engine.reload(test_policy, None, "parent", world.now());
    world.sync();
    world.clock.advance(minutes(40));
    let shows = world.now().wall;
    power_cut_without_heartbeat(&mut world, shows);
    assert!(world.used("game") >= minutes(100), "{:?} of a hundred minutes", world.used("game"));
}

#[test]
fn a_changed_clock_is_stored_at_once() {
    // S4.5, S9.1: nothing else is due, and nothing has been charged when the daemon is killed.
    let mut world = EngineHarness::new(policy(vec![entry("game")]), MONDAY_NOON);
    world.launch("game");
    world.run_for(minutes(1));
    world.move_wall(SignedDuration::from_hours(24));
    assert_eq!(world.store.snapshot.clock.latest_seen, Some(world.now().wall));
}

#[test]
fn a_day_that_began_in_another_zone_continues_after_a_crash() {
    // S4.5, S9.1: nothing was due between the change of the zone and the crash, and the zone is changed back meanwhile.
    let test_policy = policy_with(vec![entry("game")], |rules| rules.zone = None);
    let mut world = EngineHarness::new(test_policy, "2026-11-16 21:00");
    world.launch("game");
    world.engine.zone_changed(zone("Pacific/Apia"), world.now());
    world.tick();
    world.advance(minutes(1));
    world.crash();
    world.engine.recover(SessionLiveness::Alive { handle: "handle".to_owned() }, world.now());
    world.exit();
    let days: Vec<String> = world.store.usage.keys().map(|key| key.day.to_string()).collect();
    assert_eq!(days, ["2026-11-17"]);
}

#[test]
fn play_after_counted_sleep_is_split_at_midnight() {
    // S4.4, S4.6: half an hour of sleep before midnight, and no tick until after midnight.
    let test_policy = policy_with(vec![entry("game")], |rules| rules.suspended_time = SuspendedTime::Counts);
    let mut world = EngineHarness::new(test_policy, "2026-11-16 23:00");
    world.launch("game");
    world.clock.suspend(minutes(30));
    world.clock.advance(minutes(40));
    world.tick();
    let days: Vec<_> = world.store.usage.iter().map(|(key, used)| (key.day.to_string(), *used)).collect();
    assert_eq!(days, [("2026-11-16".to_owned(), hours(1)), ("2026-11-17".to_owned(), minutes(10))]);
}

/// A session of ten minutes whose program then ignores the request to end for this long. No tick comes meanwhile.
fn world_with_resisting_program(resisted: Duration) -> EngineHarness {
    let game = entry_with_max_run(minutes(10));
    let mut world = EngineHarness::new(policy(vec![game]), MONDAY_NOON);
    world.launch("game");
    world.run_for(minutes(10));
    world.clock.advance(resisted);
    world
}

#[test]
fn a_program_that_ignored_its_end_gains_nothing_by_a_lost_heartbeat() {
    // S8.2, S9.2b: the last heartbeat may come as late as the end of the grace, before the daemon is killed.
    for last_sign in (0..=10).map(Duration::from_secs) {
        let mut signed = world_with_resisting_program(last_sign);
        signed.write_heartbeat();
        let shows = signed.now().wall + Duration::from_secs(30);
        power_cut(&mut signed, shows);

        let resisted = last_sign + Duration::from_secs(30);
        let mut torn = world_with_resisting_program(resisted);
        power_cut_without_heartbeat(&mut torn, shows);
        let (known, unknown) = (signed.used("game"), torn.used("game"));
        assert!(unknown >= known, "a sign after {last_sign:?} costs {known:?}, a lost one {unknown:?}");
        assert!(unknown >= minutes(10) + resisted, "resisted for {resisted:?}, charged {unknown:?}");
    }
}

#[test]
fn a_program_that_ignored_its_end_is_not_charged_for_time_without_power() {
    // S9.2b: the run time is unknown, but a running daemon kills the program, and without a daemon there is no
    // heartbeat.
    for off in [SignedDuration::ZERO, SignedDuration::from_hours(7 * 24), SignedDuration::from_hours(-24)] {
        let mut world = world_with_resisting_program(Duration::from_secs(30));
        let shows = world.now().wall + off;
        power_cut_without_heartbeat(&mut world, shows);
        assert_eq!(world.used("game"), minutes(10) + RESISTED_AT_MOST, "the clock went on by {off:#}");
    }
}

#[test]
fn play_in_time_that_was_granted_in_advance_is_charged_if_the_longer_end_was_not_stored() {
    // S2.7, S9.2b: the store is broken when the grant makes the run longer.
    for same_boot in [true, false] {
        let mut world = EngineHarness::new(policy(vec![entry_with_max_run(minutes(30))]), MONDAY_NOON);
        let valid_from = Some(world.now().wall + minutes(20));
        world.grant(NewGrant { valid_from, ..grant(1, extra(minutes(20))) });
        world.launch("game");
        world.run_for(minutes(10));
        for _ in 0..35 {
            world.advance(minutes(1));
            world.engine.tick(world.now());
            world.fail_to_sync();
        }
        world.write_heartbeat();
        world.clock.advance(Duration::from_secs(20));
        let shows = world.now().wall;
        if same_boot {
            world.crash();
            world.engine.recover(SessionLiveness::Gone, world.now());
            world.sync();
        } else {
            power_cut(&mut world, shows);
        }
        let played = minutes(45) + Duration::from_secs(20);
        assert!(
            world.used("game") >= played,
            "{:?} of {played:?}, same boot: {same_boot}",
            world.used("game")
        );
    }
}

#[test]
fn unseen_play_is_charged_although_a_clock_that_was_set_back_has_caught_up() {
    // S4.5, S9.2b: the clock isn't trusted while the session is charged, but it is when the machine starts again.
    let mut world = EngineHarness::new(policy(vec![entry_with_max_run(hours(1))]), MONDAY_NOON);
    world.launch("game");
    world.run_for(minutes(1));
    world.move_wall(SignedDuration::from_mins(-60));
    world.run_for(minutes(40));
    world.clock.advance(minutes(15));
    let shows = world.now().wall;
    power_cut_without_heartbeat(&mut world, shows);
    assert!(world.used("game") >= minutes(56), "{:?} of 56 minutes", world.used("game"));
}
