//! The facts and the next opening that an explanation names (S3.10).

use jiff::Timestamp;
use shepherd_api::{EntryScope, GrantKind, ReasonCode};
use shepherd_core::NewGrant;
use shepherd_core::policy::{DailyQuota, TimeBudget, UnlockRule};

use crate::harness::{
    BERLIN, EngineHarness, MONDAY_NOON, budget, entry, entry_in_window, extra, grant, hours, minutes, policy,
    policy_with, wall_time,
};

/// Returns the facts of each rule of `game` with this name.
fn facts_of(world: &EngineHarness, rule: &str) -> Vec<String> {
    let profile = world.engine.policy().default_profile();
    let explained = world.engine.why(&profile, &"game".parse().unwrap(), world.now()).unwrap();
    explained.rules.into_iter().filter(|known| known.rule == rule).map(|known| known.facts).collect()
}

fn next_opening(world: &EngineHarness) -> Option<Timestamp> {
    let reasons = world.view("game").reasons;
    let opening = reasons.iter().find_map(|reason| match reason {
        ReasonCode::OutsideHours { next_opening } => Some(*next_opening),
        _ => None,
    });
    opening.expect("it is outside its hours")
}

#[test]
fn facts_name_the_label_and_the_period() {
    let mut maths = entry("maths");
    maths.label = "Maths".to_owned();
    let mut game = entry("game");
    game.limits.daily_quota = DailyQuota::every_day(hours(1));
    game.limits.weekly_quota = Some(hours(3));
    game.unlock = Some(UnlockRule { entry_id: "maths".parse().unwrap(), at_least: minutes(5) });
    let world = EngineHarness::new(policy(vec![maths, game]), MONDAY_NOON);
    assert_eq!(facts_of(&world, "unlock"), ["no time used for Maths today"]);
    let used = [facts_of(&world, "daily-quota"), facts_of(&world, "weekly-quota")].concat();
    assert_eq!(used, ["no time used today", "no time used this week"]);
}

#[test]
fn the_next_opening_is_the_earliest_window_that_a_grant_or_the_policy_opens() {
    let mut other = entry("other");
    other.limits.max_run = Some(hours(1));
    let world = |grants: Vec<NewGrant>| {
        let policy = policy(vec![entry_in_window((18, 0), (19, 0)), other.clone()]);
        let mut world = EngineHarness::new(policy, MONDAY_NOON);
        grants.into_iter().for_each(|grant| world.grant(grant));
        world
    };
    let at = |civil: &str| wall_time(BERLIN, civil);
    let open = |id, scope| NewGrant {
        scope,
        valid_from: Some(at("2026-11-16 15:00")),
        ..grant(id, GrantKind::OpenUntil { until: at("2026-11-16 16:00") })
    };
    let of = |id: &str| EntryScope::Entry { entry_id: id.parse().unwrap() };
    assert_eq!(next_opening(&world(vec![])), Some(at("2026-11-16 18:00")));
    assert_eq!(next_opening(&world(vec![open(1, of("game"))])), Some(at("2026-11-16 15:00")));
    assert_eq!(next_opening(&world(vec![open(1, of("other"))])), Some(at("2026-11-16 18:00")));
    // Extra time opens nothing.
    let extra_time = NewGrant { valid_from: Some(at("2026-11-16 15:00")), ..grant(1, extra(minutes(10))) };
    assert_eq!(next_opening(&world(vec![extra_time])), Some(at("2026-11-16 18:00")));
    // A revoked grant opens nothing, either, and a grant that is over is no opening to come.
    let mut revoked = world(vec![open(1, of("game"))]);
    revoked.revoke(1);
    assert_eq!(next_opening(&revoked), Some(at("2026-11-16 18:00")));
    let mut over = world(vec![open(1, of("game"))]);
    over.run_for(hours(5));
    assert_eq!(next_opening(&over), Some(at("2026-11-16 18:00")));
}

#[test]
fn a_window_opens_when_the_clock_shows_its_time_for_good() {
    // At 03:00 summer time the clocks of Berlin go back to 02:00, so the window opens an hour later.
    let world = EngineHarness::new(policy(vec![entry_in_window((3, 0), (4, 0))]), "2026-10-24 12:00");
    assert_eq!(next_opening(&world), Some("2026-10-25T02:00:00Z".parse().unwrap()));
}

#[test]
fn a_policy_has_quotas_if_an_entry_or_a_budget_has_one() {
    let with_budget = |budget: TimeBudget| {
        policy_with(vec![entry("game")], |rules| {
            rules.budgets.insert("budget".parse().unwrap(), budget);
        })
    };
    let weekly = TimeBudget { daily: DailyQuota::default(), weekly: Some(hours(3)), ..budget(hours(1)) };
    let without = TimeBudget { weekly: None, ..weekly.clone() };
    assert!(with_budget(weekly).has_quotas());
    assert!(with_budget(budget(hours(1))).has_quotas());
    assert!(!with_budget(without).has_quotas());
}
