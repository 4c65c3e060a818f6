//! Extra time that makes runs longer (S2.7): each grant gives its time once a day.

use shepherd_api::EntryScope;
use shepherd_core::NewGrant;
use shepherd_core::policy::{AvailabilityPolicy, BreakRule, DailyQuota, PolicyEntry, Profile, Weekdays};
use shepherd_util::{GrantId, ProfileId};

use crate::harness::{
    BERLIN, EngineHarness, MONDAY_NOON, budget, entry_with_max_run, extra, grant, hours, minutes, policy,
    policy_with, wall_time, window,
};

fn of_the_game() -> EntryScope {
    EntryScope::Entry { entry_id: "game".parse().unwrap() }
}

/// Half an hour at a time, without a quota.
fn half_an_hour_at_a_time() -> PolicyEntry {
    entry_with_max_run(minutes(30))
}

fn give(world: &mut EngineHarness, id: u128, scope: EntryScope, amount: u64) {
    world.engine.grant(NewGrant { scope, ..grant(id, extra(minutes(amount))) }, world.now()).unwrap();
    world.sync();
}

#[test]
fn extra_time_makes_the_next_run_longer_and_is_used_up_by_it() {
    for scope in [of_the_game(), EntryScope::Everything {}] {
        let mut world = EngineHarness::new(policy(vec![half_an_hour_at_a_time()]), MONDAY_NOON);
        give(&mut world, 1, scope, 40);
        assert_eq!(world.view("game").max_run_if_started_now, Some(minutes(70).into()));
        world.launch("game");
        assert_eq!(world.play_until_expired(), minutes(70));
        world.launch("game");
        assert_eq!(world.play_until_expired(), minutes(30), "used up is used up");
    }
}

#[test]
fn the_unused_part_of_extra_time_is_left_for_the_next_run() {
    let mut world = EngineHarness::new(policy(vec![half_an_hour_at_a_time()]), MONDAY_NOON);
    give(&mut world, 1, of_the_game(), 40);
    for (played, left) in [(20, 40), (45, 25), (50, 5)] {
        world.launch("game");
        world.run_for(minutes(played));
        world.exit();
        assert_eq!(world.view("game").max_run_if_started_now, Some(minutes(30 + left).into()));
        // S9.1: a restarted daemon knows it, too.
        world.crash();
        assert_eq!(world.view("game").max_run_if_started_now, Some(minutes(30 + left).into()));
    }
}

#[test]
fn extra_time_for_a_running_session_is_not_given_to_the_next_run_again() {
    let mut world = EngineHarness::new(policy(vec![half_an_hour_at_a_time()]), MONDAY_NOON);
    world.launch("game");
    give(&mut world, 1, of_the_game(), 40);
    world.run_for(minutes(50));
    world.exit();
    assert_eq!(world.view("game").max_run_if_started_now, Some(minutes(50).into()), "20 of 40 are left");
    // An extension applies to the running session only.
    world.launch("game");
    world.engine.extend_current(minutes(15), &GrantId::from_random(2), "parent", world.now()).unwrap();
    world.sync();
    assert_eq!(world.remaining(), Some(minutes(65)));
    world.run_for(minutes(40));
    world.exit();
    assert_eq!(world.view("game").max_run_if_started_now, Some(minutes(40).into()), "10 of the grant");
}

#[test]
fn each_child_and_each_day_of_a_grant_has_its_own_extra_time() {
    let test_policy = policy_with(vec![half_an_hour_at_a_time()], |rules| {
        let profile = |id: &str| {
            let label = id.to_owned();
            (id.parse().unwrap(), Profile { label, accounts: Vec::new() })
        };
        rules.profiles = ["anna", "ben"].map(profile).into();
    });
    let mut world = EngineHarness::new(test_policy, MONDAY_NOON);
    let lapses_at = Some(wall_time(BERLIN, "2026-11-18 00:00"));
    let two_days = NewGrant { lapses_at, scope: of_the_game(), ..grant(1, extra(minutes(40))) };
    world.engine.grant(two_days, world.now()).unwrap();
    let longest = |world: &EngineHarness, child: &str| {
        let child: ProfileId = child.parse().unwrap();
        world.engine.list_entries_for(&child, world.now()).remove(0).max_run_if_started_now
    };
    world.launch_for("game", "anna");
    assert_eq!(world.play_until_expired(), minutes(70));
    assert_eq!(longest(&world, "anna"), Some(minutes(30).into()));
    assert_eq!(longest(&world, "ben"), Some(minutes(70).into()));
    world.run_for(hours(24));
    assert_eq!(longest(&world, "anna"), Some(minutes(70).into()), "on Tuesday");
    world.launch_for("game", "anna");
    assert_eq!(world.play_until_expired(), minutes(70));
    assert_eq!(longest(&world, "anna"), Some(minutes(30).into()), "Tuesday's is used up, too");
    world.run_for(hours(24));
    assert_eq!(longest(&world, "anna"), Some(minutes(30).into()), "it has lapsed");
}

#[test]
fn extra_time_lifts_the_quota_the_budget_the_run_and_the_break_but_no_pause_or_window() {
    let mut game = half_an_hour_at_a_time();
    game.limits.daily_quota = DailyQuota::every_day(minutes(50));
    game.budgets = vec!["games".parse().unwrap()];
    game.limits.cooldown_after_run = minutes(10);
    game.availability = AvailabilityPolicy::Windows(vec![window(Weekdays::ALL, (11, 0), (14, 0))]);
    let test_policy = policy_with(vec![game], |rules| {
        rules.budgets.insert("games".parse().unwrap(), budget(minutes(60)));
        rules.breaks = Some(BreakRule { after: minutes(45), length: minutes(15) });
    });
    let mut world = EngineHarness::new(test_policy, MONDAY_NOON);
    give(&mut world, 1, of_the_game(), 40);
    world.launch("game");
    assert_eq!(world.play_until_expired(), minutes(70), "30 and 40; the quota would leave 90");
    assert_eq!(world.denied_codes("game"), ["cooldown", "break-needed"]);
    world.run_for(minutes(15));
    world.launch("game");
    assert_eq!(world.play_until_expired(), minutes(20), "what is left of 50 and 40 minutes today");
    world.run_for(minutes(60));
    assert!(world.denied_codes("game").contains(&"outside-hours"));
}

#[test]
fn extra_time_for_a_budget_makes_no_run_longer() {
    let mut game = half_an_hour_at_a_time();
    game.budgets = vec!["games".parse().unwrap()];
    let test_policy = policy_with(vec![game], |rules| {
        rules.budgets.insert("games".parse().unwrap(), budget(minutes(20)));
    });
    let mut world = EngineHarness::new(test_policy, MONDAY_NOON);
    give(&mut world, 1, EntryScope::Budget { budget_id: "games".parse().unwrap() }, 40);
    world.launch("game");
    assert_eq!(world.play_until_expired(), minutes(30));
}

#[test]
fn extra_time_is_used_up_by_a_run_although_a_budget_has_more_as_well() {
    let mut game = half_an_hour_at_a_time();
    game.budgets = vec!["games".parse().unwrap()];
    let test_policy = policy_with(vec![game], |rules| {
        rules.budgets.insert("games".parse().unwrap(), budget(hours(3)));
    });
    let mut world = EngineHarness::new(test_policy, MONDAY_NOON);
    give(&mut world, 1, of_the_game(), 40);
    give(&mut world, 2, EntryScope::Budget { budget_id: "games".parse().unwrap() }, 40);
    world.launch("game");
    assert_eq!(world.play_until_expired(), minutes(70));
    assert_eq!(world.view("game").max_run_if_started_now, Some(minutes(30).into()));
}

#[test]
fn revoking_extra_time_shortens_the_run_that_was_planned_with_it() {
    for (quota, left) in [(None, 30), (Some(20), 20)] {
        let mut game = half_an_hour_at_a_time();
        if let Some(quota) = quota {
            game.limits.daily_quota = DailyQuota::every_day(minutes(quota));
        }
        let mut world = EngineHarness::new(policy(vec![game]), MONDAY_NOON);
        give(&mut world, 1, of_the_game(), 40);
        world.launch("game");
        world.run_for(minutes(5));
        world.engine.revoke(&GrantId::from_random(1), "parent", world.now()).unwrap();
        assert_eq!(world.remaining(), Some(minutes(left - 5)), "{quota:?}");
    }
}

#[test]
fn why_shows_the_granted_part_of_a_run() {
    // S3.10.
    let test_policy = policy_with(vec![half_an_hour_at_a_time()], |rules| {
        rules.breaks = Some(BreakRule { after: minutes(60), length: minutes(15) });
    });
    let mut world = EngineHarness::new(test_policy, MONDAY_NOON);
    give(&mut world, 1, of_the_game(), 40);
    let child = world.engine.policy().default_profile();
    let explained = world.engine.why(&child, &"game".parse().unwrap(), world.now()).unwrap();
    let facts = |rule: &str| {
        let mut rules = explained.rules.iter().filter(|known| known.rule == rule);
        rules.next().map(|known| known.facts.as_str())
    };
    assert_eq!(facts("max-run"), Some("longest single run, with 40 minutes of extra time"));
    assert_eq!(facts("break"), Some("no time used since the last break, with 40 minutes of extra time"));
}
