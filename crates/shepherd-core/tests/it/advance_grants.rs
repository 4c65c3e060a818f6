//! Grants that were given in advance and become valid during a session (S2.7, S3.5b).

use shepherd_api::{EntryScope, GrantKind};
use shepherd_core::policy::{AvailabilityPolicy, DailyQuota, PolicyEntry, WarningPolicy, Weekdays};
use shepherd_core::{CoreEvent, GrantError, NewGrant, SessionLiveness};
use shepherd_util::GrantId;

use crate::harness::{
    BERLIN, EngineHarness, MONDAY_NOON, budget, entry, entry_in_window, entry_with_max_run, extra, grant,
    hours, minutes, policy, policy_with, wall_time, warning, warnings, window,
};

fn grant_from(id: u128, civil: &str, scope: EntryScope, gift: GrantKind) -> NewGrant {
    NewGrant { scope, valid_from: Some(wall_time(BERLIN, civil)), ..grant(id, gift) }
}

fn half_an_hour() -> GrantKind {
    extra(minutes(30))
}

/// One hour a day, with a warning five minutes before the end.
fn an_hour_a_day() -> PolicyEntry {
    let mut game = entry("game");
    game.limits.daily_quota = DailyQuota::every_day(hours(1));
    game.warnings = WarningPolicy::new(vec![warning(minutes(5))]);
    game
}

fn count_deadline_changes(events: &[CoreEvent]) -> usize {
    events.iter().filter(|event| matches!(event, CoreEvent::DeadlineChanged { .. })).count()
}

#[test]
fn extra_time_reaches_a_running_session_when_it_becomes_valid_and_only_once() {
    let mut world = EngineHarness::new(policy(vec![an_hour_a_day()]), MONDAY_NOON);
    let grant = grant_from(1, "2026-11-16 12:40", EntryScope::Everything {}, half_an_hour());
    world.grant(grant);
    world.launch("game");
    let before = world.run_for(minutes(39));
    assert_eq!((world.remaining(), count_deadline_changes(&before)), (Some(minutes(21)), 0));
    let events = world.run_for(minutes(1));
    assert_eq!((world.remaining(), count_deadline_changes(&events)), (Some(minutes(50)), 1));
    // Neither another tick nor a restarted daemon applies the grant again.
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
fn next_due_includes_the_start_of_a_grant() {
    // S4.7: nothing else is due at that time.
    let mut world = EngineHarness::new(policy(vec![an_hour_a_day()]), MONDAY_NOON);
    let grant = grant_from(1, "2026-11-16 12:00:07", EntryScope::Everything {}, half_an_hour());
    world.grant(grant);
    world.launch("game");
    world.tick();
    let due = world.engine.next_due().unwrap().total_since(world.now().mono);
    assert_eq!(due, std::time::Duration::from_secs(7));
}

#[test]
fn an_opening_granted_in_advance_applies_when_the_window_closes() {
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
    let mut piano = entry("piano");
    piano.limits.max_run = Some(hours(1));
    let test_policy = policy_with(vec![game, piano], |rules| {
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
fn a_grant_that_was_valid_at_the_launch_is_not_applied_again() {
    // The wall clock is a little behind the trusted time. The grant starts after the wall time, but not after the
    // trusted time.
    let mut game = entry_with_max_run(minutes(30));
    game.limits.daily_quota = DailyQuota::every_day(minutes(10));
    let mut world = EngineHarness::new(policy(vec![game]), MONDAY_NOON);
    world.tick();
    world.move_wall(jiff::SignedDuration::from_mins(-5));
    let grant = grant_from(1, "2026-11-16 11:58", EntryScope::Everything {}, half_an_hour());
    world.grant(grant);
    world.launch("game");
    assert_eq!(world.play_until_expired(), minutes(40));
}

fn of_the_game() -> EntryScope {
    EntryScope::Entry { entry_id: "game".parse().unwrap() }
}

#[test]
fn extra_time_that_would_do_nothing_is_refused_with_the_reason() {
    let mut closed = entry("closed");
    closed.availability = AvailabilityPolicy::Windows(vec![window(Weekdays::ALL, (11, 0), (13, 0))]);
    let mut weekly = entry("weekly");
    weekly.limits.weekly_quota = Some(hours(5));
    let mut weekend = entry("weekend");
    weekend.limits.daily_quota.base[5] = Some(hours(1));
    let mut learning = an_hour_a_day();
    learning.entry_id = "learning".parse().unwrap();
    learning.cost = shepherd_core::policy::TimeCost::Free;
    let entries = vec![closed, weekly, weekend, learning, entry("piano")];
    let mut world = EngineHarness::new(policy(entries), MONDAY_NOON);
    let scope = |id: &str| EntryScope::Entry { entry_id: id.parse().unwrap() };
    let saturday = "2026-11-21 09:00";
    for (number, id, from, works) in [
        (1, "closed", MONDAY_NOON, false),
        (2, "piano", MONDAY_NOON, false),
        (3, "learning", MONDAY_NOON, false),
        (4, "weekend", MONDAY_NOON, false),
        (5, "weekend", saturday, true),
        (6, "weekly", MONDAY_NOON, true),
    ] {
        let given = world.engine.grant(grant_from(number, from, scope(id), half_an_hour()), world.now());
        let refused = GrantError::NothingToExtend(id.parse().unwrap());
        assert_eq!(given.err(), (!works).then_some(refused), "{id} from {from}");
    }
    // A session that runs in a window can still be extended.
    world.launch("closed");
    world.engine.extend_current(minutes(30), &GrantId::from_random(7), "parent", world.now()).unwrap();
    assert_eq!(world.remaining(), Some(minutes(90)));
}

#[test]
fn extra_time_where_nothing_has_a_limit_is_refused() {
    let mut game = entry("game");
    game.budgets = vec!["games".parse().unwrap()];
    game.profiles = Some(std::iter::once("ben".parse().unwrap()).collect());
    let test_policy = policy_with(vec![game, entry("piano")], |rules| {
        let unlimited =
            shepherd_core::policy::TimeBudget { daily: DailyQuota::default(), ..budget(hours(1)) };
        rules.budgets.insert("games".parse().unwrap(), unlimited);
        let profile = |id: &str| {
            let label = id.to_owned();
            (id.parse().unwrap(), shepherd_core::policy::Profile { label, accounts: Vec::new() })
        };
        rules.profiles = ["anna", "ben"].map(profile).into();
    });
    let mut world = EngineHarness::new(test_policy, MONDAY_NOON);
    let mut refused = |scope: EntryScope, profile: Option<&str>| {
        let profile = profile.map(|profile| profile.parse().unwrap());
        let now = world.now();
        world.engine.grant(NewGrant { scope, profile, ..grant(1, half_an_hour()) }, now).unwrap_err()
    };
    assert_eq!(refused(EntryScope::Everything {}, None), GrantError::NoLimits);
    let games: shepherd_util::BudgetId = "games".parse().unwrap();
    let of_games = EntryScope::Budget { budget_id: games.clone() };
    assert_eq!(refused(of_games, None), GrantError::BudgetWithoutLimit(games));
    let not_hers = GrantError::NotForProfile("game".parse().unwrap(), "anna".parse().unwrap());
    assert_eq!(refused(of_the_game(), Some("anna")), not_hers);
}
