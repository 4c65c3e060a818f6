//! Grants that were given in advance and begin to hold while something runs (S2.7, S3.5b).

use shepherd_api::{EntryScope, GrantKind};
use shepherd_core::policy::{DailyQuota, PolicyEntry, WarningPolicy};
use shepherd_core::{CoreEvent, NewGrant, SessionLiveness};

use crate::harness::{
    BERLIN, EngineHarness, MONDAY_NOON, budget, entry, entry_in_window, entry_with_max_run, extra, grant,
    hours, minutes, policy, policy_with, wall_time, warning, warnings,
};

fn grant_from(id: u128, civil: &str, scope: EntryScope, gift: GrantKind) -> NewGrant {
    NewGrant { scope, valid_from: Some(wall_time(BERLIN, civil)), ..grant(id, gift) }
}

fn half_an_hour() -> GrantKind {
    extra(minutes(30))
}

/// An hour a day, and a warning five minutes before the end.
fn an_hour_a_day() -> PolicyEntry {
    let mut game = entry("game");
    game.limits.daily_quota = DailyQuota::every_day(hours(1));
    game.warnings = WarningPolicy::new(vec![warning(minutes(5))]);
    game
}

fn count_availability_changes(events: &[CoreEvent]) -> usize {
    events.iter().filter(|event| matches!(event, CoreEvent::DeadlineChanged { .. })).count()
}

#[test]
fn extra_time_reaches_a_running_session_when_it_begins_to_hold_and_only_once() {
    let mut world = EngineHarness::new(policy(vec![an_hour_a_day()]), MONDAY_NOON);
    let grant = grant_from(1, "2026-11-16 12:40", EntryScope::Everything {}, half_an_hour());
    world.grant(grant);
    world.launch("game");
    let before = world.run_for(minutes(39));
    assert_eq!((world.remaining(), count_availability_changes(&before)), (Some(minutes(21)), 0));
    let events = world.run_for(minutes(1));
    assert_eq!((world.remaining(), count_availability_changes(&events)), (Some(minutes(50)), 1));
    // Neither another look nor another daemon gives it again.
    world.run_for(minutes(10));
    world.crash();
    world.engine.recover(SessionLiveness::Alive { handle: "handle".to_owned() }, world.now());
    world.sync();
    assert_eq!(world.remaining(), Some(minutes(40)));
    let events = world.run_for(minutes(35));
    assert_eq!(warnings(&events), [300], "before the new end, and not before the old one");
    assert_eq!(world.play_until_expired(), minutes(5));
    assert_eq!(world.used("game"), minutes(90));
}

#[test]
fn a_daemon_that_trusts_next_due_is_there_when_a_grant_begins() {
    // S4.7: nothing else is due at that moment.
    let mut world = EngineHarness::new(policy(vec![an_hour_a_day()]), MONDAY_NOON);
    let grant = grant_from(1, "2026-11-16 12:00:07", EntryScope::Everything {}, half_an_hour());
    world.grant(grant);
    world.launch("game");
    world.tick();
    let due = world.engine.next_due().unwrap().total_since(world.now().mono);
    assert_eq!(due, std::time::Duration::from_secs(7));
}

#[test]
fn a_window_that_is_opened_in_advance_is_open_when_the_old_one_closes() {
    let game = entry_in_window((11, 0), (13, 0));
    for (begins, until, length) in [
        ("2026-11-16 12:30", "2026-11-16 14:00", hours(2)),
        ("2026-11-16 13:00", "2026-11-16 14:00", hours(2)),
        ("2026-11-16 12:30", "2026-11-16 12:45", hours(1)),
        ("2026-11-16 13:01", "2026-11-16 14:00", hours(1)),
    ] {
        let mut world = EngineHarness::new(policy(vec![game.clone()]), MONDAY_NOON);
        let open = GrantKind::OpenUntil { until: wall_time(BERLIN, until) };
        world.grant(grant_from(1, begins, EntryScope::Everything {}, open));
        world.launch("game");
        assert_eq!(world.play_until_expired(), length, "from {begins} until {until}");
    }
}

#[test]
fn grants_for_other_entries_or_revoked_grants_give_nothing() {
    let mut game = an_hour_a_day();
    game.budgets = vec!["games".parse().unwrap()];
    let test_policy = policy_with(vec![game, entry("piano")], |rules| {
        rules.budgets.insert("games".parse().unwrap(), budget(minutes(50)));
    });
    let mut world = EngineHarness::new(test_policy, MONDAY_NOON);
    let piano = EntryScope::Entry { entry_id: "piano".parse().unwrap() };
    let games = EntryScope::Budget { budget_id: "games".parse().unwrap() };
    let at = "2026-11-16 12:10";
    world.grant(grant_from(1, at, piano, half_an_hour()));
    world.grant(grant_from(2, at, EntryScope::Everything {}, half_an_hour()));
    world.grant(grant_from(3, at, games, half_an_hour()));
    world.launch("game");
    world.revoke(2);
    world.run_for(minutes(10));
    assert_eq!(world.remaining(), Some(minutes(50)), "the budget gives way, the entry's own hour does not");
}

#[test]
fn a_grant_that_held_at_the_launch_is_not_given_again() {
    // The clock is a little behind the time that counts: the grant begins after what it shows, not after that.
    let mut game = entry_with_max_run(minutes(30));
    game.limits.daily_quota = DailyQuota::every_day(minutes(10));
    let mut world = EngineHarness::new(policy(vec![game]), MONDAY_NOON);
    world.tick();
    world.move_wall(jiff::SignedDuration::from_mins(-5));
    let grant = grant_from(1, "2026-11-16 11:58", EntryScope::Everything {}, half_an_hour());
    world.grant(grant);
    world.launch("game");
    assert_eq!(world.play_until_expired(), minutes(30));
}
