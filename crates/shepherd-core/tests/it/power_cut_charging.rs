//! Faults that random lives found where nobody was looking: power cuts, crashes and sleep.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use shepherd_core::SessionLiveness;
use shepherd_core::policy::{OnReload, SuspendedTime};
use shepherd_util::ManualClock;

use crate::harness::{
    EngineHarness, MONDAY_NOON, boot, entry, entry_with_max_run, hours, minutes, policy, policy_with, zone,
};

/// The grace, the time to the next sign of life, and what a disk takes to write it.
const RESISTED_AT_MOST: Duration = Duration::from_secs(10 + 30 + 1);

/// The power fails. The machine comes back with this time on its clock.
fn power_cut(world: &mut EngineHarness, shows: Timestamp) {
    world.clock = ManualClock::starting_at(shows);
    world.place.boot = boot(2);
    world.crash();
    world.engine.recover(SessionLiveness::Gone, world.now());
    world.sync();
}

/// And with it goes the last sign of life.
fn power_cut_without_heartbeat(world: &mut EngineHarness, shows: Timestamp) {
    world.store.heartbeat = None;
    power_cut(world, shows);
}

#[test]
fn what_was_played_unseen_counts_by_the_clock_that_was_put_right() {
    // S4.5, S9.2b: the clock ran a day ahead when it began, and a parent has said since that it does not.
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
fn what_was_played_unseen_after_a_new_plan_counts() {
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
fn that_the_clock_was_set_is_remembered_at_once() {
    // S4.5, S9.1: nothing else is due, and nothing has been charged when the daemon is killed.
    let mut world = EngineHarness::new(policy(vec![entry("game")]), MONDAY_NOON);
    world.launch("game");
    world.run_for(minutes(1));
    world.move_wall(SignedDuration::from_hours(24));
    assert_eq!(world.store.snapshot.clock.latest_seen, Some(world.now().wall));
}

#[test]
fn a_day_that_has_begun_in_another_zone_is_not_over_after_a_crash() {
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
fn what_follows_a_sleep_that_counts_is_charged_to_each_day_for_its_part() {
    // S4.4, S4.6: half an hour of sleep before midnight, and nobody looked at the clock until after it.
    let test_policy = policy_with(vec![entry("game")], |rules| rules.suspended_time = SuspendedTime::Counts);
    let mut world = EngineHarness::new(test_policy, "2026-11-16 23:00");
    world.launch("game");
    world.clock.suspend(minutes(30));
    world.clock.advance(minutes(40));
    world.tick();
    let days: Vec<_> = world.store.usage.iter().map(|(key, used)| (key.day.to_string(), *used)).collect();
    assert_eq!(days, [("2026-11-16".to_owned(), hours(1)), ("2026-11-17".to_owned(), minutes(10))]);
}

/// Ten minutes of a game, which then resists its end for a while. Nobody looks at the clock meanwhile.
fn world_with_resisting_program(resisted: Duration) -> EngineHarness {
    let game = entry_with_max_run(minutes(10));
    let mut world = EngineHarness::new(policy(vec![game]), MONDAY_NOON);
    world.launch("game");
    world.run_for(minutes(10));
    world.clock.advance(resisted);
    world
}

#[test]
fn what_resisted_its_end_wins_nothing_by_a_lost_sign_of_life() {
    // S8.2, S9.2b: the last sign may have been as late as the end of its grace, and then the daemon was killed.
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
fn what_resisted_its_end_pays_for_no_week_without_power() {
    // S9.2b: nobody knows how long it was, but a daemon that is there ends it, and one that is not leaves no sign.
    for off in [SignedDuration::ZERO, SignedDuration::from_hours(7 * 24), SignedDuration::from_hours(-24)] {
        let mut world = world_with_resisting_program(Duration::from_secs(30));
        let shows = world.now().wall + off;
        power_cut_without_heartbeat(&mut world, shows);
        assert_eq!(world.used("game"), minutes(10) + RESISTED_AT_MOST, "the clock went on by {off:#}");
    }
}
