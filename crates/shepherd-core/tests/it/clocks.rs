//! Sessions while the clock is set, during sleep, and across midnight (S4).

use std::time::Duration;

use jiff::SignedDuration;
use shepherd_core::policy::{AvailabilityPolicy, DailyQuota, PolicyEntry, SuspendedTime, Weekdays};
use shepherd_core::{CoreEvent, SessionLiveness};

use crate::harness::{
    EngineHarness, MONDAY_NOON, entry, entry_with_max_run, hours, minutes, policy, policy_with, window,
};

/// A session of half an hour.
fn game() -> PolicyEntry {
    entry_with_max_run(minutes(30))
}

#[test]
fn the_wall_clock_moves_no_deadline() {
    // S4.2.
    let mut world = EngineHarness::new(policy(vec![game()]), MONDAY_NOON);
    world.launch("game");
    world.run_for(minutes(10));
    for hours in [-30, 50, -3, 2] {
        world.move_wall(SignedDuration::from_hours(hours));
        assert_eq!(world.remaining(), Some(minutes(20)));
    }
    assert_eq!(world.play_until_expired(), minutes(20));
}

#[test]
fn time_borrowed_from_tomorrow_is_used_tomorrow() {
    // S4.5: the accounting day never goes back by itself.
    let mut game = entry("game");
    game.limits.daily_quota = DailyQuota::every_day(hours(1));
    let mut world = EngineHarness::new(policy(vec![game]), MONDAY_NOON);
    world.launch("game");
    assert_eq!(world.play_until_expired(), hours(1));
    assert_eq!(world.denied_codes("game"), ["quota-exhausted"]);
    world.move_wall(SignedDuration::from_hours(24));
    world.launch("game");
    assert_eq!(world.play_until_expired(), hours(1));
    // Back to Monday: that is far behind the latest known time, so the clock is not trusted, and Tuesday's time is
    // used.
    world.move_wall(SignedDuration::from_hours(-24));
    assert_eq!(world.denied_codes("game"), ["clock-untrusted", "quota-exhausted"]);
    world.run_for(hours(12));
    assert_eq!(world.denied_codes("game"), ["clock-untrusted"], "still behind what was seen");
    world.run_for(hours(15));
    assert_eq!(world.denied_codes("game"), ["quota-exhausted"], "Tuesday's time is gone on Tuesday");
    world.run_for(hours(12));
    assert_eq!(world.reason_codes("game"), Vec::<&str>::new(), "Wednesday has its own");
}

#[test]
fn the_accounting_day_never_goes_back_even_within_the_tolerance() {
    // S4.5: a clock that is only minutes behind is trusted, but yesterday's quota does not come back.
    let mut game = entry("game");
    game.limits.daily_quota = DailyQuota::every_day(hours(1));
    let mut world = EngineHarness::new(policy(vec![game]), "2026-11-16 23:58");
    world.run_for(minutes(4));
    world.move_wall(SignedDuration::from_mins(-8));
    world.launch("game");
    world.run_for(minutes(2));
    world.exit();
    let days: Vec<String> = world.store.usage.keys().map(|key| key.day.to_string()).collect();
    assert_eq!(days, ["2026-11-17"], "the wall shows Monday again, and it is charged to Tuesday");
}

#[test]
fn an_administrator_can_confirm_the_clock() {
    // S4.5.
    let mut world = EngineHarness::new(policy(vec![game()]), MONDAY_NOON);
    world.tick();
    world.move_wall(SignedDuration::from_hours(-1));
    assert_eq!(world.denied_codes("game"), ["clock-untrusted"]);
    world.engine.confirm_clock("parent", world.now());
    assert!(world.view("game").enabled);
}

#[test]
fn a_session_across_midnight_is_charged_to_each_day() {
    // S4.6: the quota of the next day counts from midnight on.
    let mut game = entry("game");
    game.limits.daily_quota = DailyQuota::every_day(hours(1));
    let mut world = EngineHarness::new(policy(vec![game]), "2026-11-16 23:40");
    world.launch("game");
    assert_eq!(world.play_until_expired(), minutes(80));
    let days: Vec<Duration> = world.store.usage.values().copied().collect();
    assert_eq!(days, [minutes(20), minutes(60)]);
}

#[test]
fn days_without_a_daemon_are_charged_one_by_one() {
    // S4.6, S9.1: the daemon was down from Monday to Thursday, while the program ran.
    let mut world = EngineHarness::new(policy(vec![entry("piano")]), "2026-11-16 18:00");
    world.launch("piano");
    world.crash();
    world.clock.advance(hours(66));
    world.engine.recover(SessionLiveness::Alive { handle: "handle".to_owned() }, world.now());
    world.sync();
    let days: Vec<Duration> = world.store.usage.values().copied().collect();
    assert_eq!(days, [hours(6), hours(24), hours(24), hours(12)]);
}

#[test]
fn suspend_costs_nothing_but_the_window_closes() {
    // S4.4.
    let mut game = game();
    game.availability = AvailabilityPolicy::Windows(vec![window(Weekdays::ALL, (9, 0), (14, 0))]);
    let mut world = EngineHarness::new(policy(vec![game.clone()]), MONDAY_NOON);
    world.launch("game");
    world.run_for(minutes(10));
    world.clock.suspend(hours(1));
    world.tick();
    assert_eq!(world.remaining(), Some(minutes(20)));
    assert_eq!(world.used("game"), minutes(10));
    world.clock.suspend(hours(1));
    let events = world.tick();
    assert!(
        events.iter().any(|event| matches!(event, CoreEvent::ExpireDue { .. })),
        "woken after the window: at once"
    );
    // A policy can charge suspended time.
    let counting = policy_with(vec![game], |rules| rules.suspended_time = SuspendedTime::Counts);
    let mut world = EngineHarness::new(counting, MONDAY_NOON);
    world.launch("game");
    world.clock.suspend(minutes(20));
    world.tick();
    assert_eq!(world.remaining(), Some(minutes(10)));
}
