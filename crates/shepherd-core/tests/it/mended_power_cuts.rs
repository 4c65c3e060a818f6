//! Faults that random lives found where a daemon comes back with less than it knew.

use jiff::{SignedDuration, Timestamp};
use shepherd_core::SessionFate;
use shepherd_core::policy::OnReload;
use shepherd_util::ManualClock;

use crate::harness::{World, boot, entry, hours, minutes, policy, policy_with};

const MONDAY_NOON: &str = "2026-11-16 12:00";

/// The power fails, and with it goes the last sign of life. The machine comes back with this time on its clock.
fn power_cut_without_a_sign(world: &mut World, shows: Timestamp) {
    world.store.pulse = None;
    world.clock = ManualClock::starting_at(shows);
    world.place.boot = boot(2);
    world.crash();
    world.engine.recover(SessionFate::Gone, world.now());
    world.sync();
}

#[test]
fn what_was_played_unseen_counts_by_the_clock_that_was_put_right() {
    // S4.5, S9.2b: the clock ran a day ahead when it began, and a parent has said since that it does not.
    let mut world = World::new(policy(vec![entry("game")]), MONDAY_NOON);
    world.move_wall(SignedDuration::from_hours(24));
    world.launch("game");
    world.run_for(minutes(10));
    world.clock.move_wall(SignedDuration::from_hours(-24));
    world.engine.confirm_clock("parent", world.now());
    world.sync();
    world.clock.advance(minutes(40));
    let shows = world.now().wall;
    power_cut_without_a_sign(&mut world, shows);
    assert!(world.used("game") >= minutes(50), "{:?} of fifty minutes", world.used("game"));
}

#[test]
fn what_was_played_unseen_after_a_new_plan_counts() {
    // S7.3, S9.2b: the new plan was made an hour after the launch.
    let household = policy_with(vec![entry("game")], |rules| rules.on_reload = OnReload::Replan);
    let mut world = World::new(household.clone(), MONDAY_NOON);
    world.launch("game");
    world.run_for(hours(1));
    world.engine.reload(household, None, "parent", world.now());
    world.sync();
    world.clock.advance(minutes(40));
    let shows = world.now().wall;
    power_cut_without_a_sign(&mut world, shows);
    assert!(world.used("game") >= minutes(100), "{:?} of a hundred minutes", world.used("game"));
}

#[test]
fn that_the_clock_was_set_is_remembered_at_once() {
    // S4.5, S9.1: nothing else is due, and nothing has been charged when the daemon is killed.
    let mut world = World::new(policy(vec![entry("game")]), MONDAY_NOON);
    world.launch("game");
    world.run_for(minutes(1));
    world.move_wall(SignedDuration::from_hours(24));
    assert_eq!(world.store.snapshot.clock.latest_seen, Some(world.now().wall));
}
