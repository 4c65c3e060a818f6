//! Reported usage: the day that is charged, and the limits with the grants that raise them (S2.7, S10).

use jiff::SignedDuration;
use shepherd_api::EntryScope;
use shepherd_core::NewGrant;
use shepherd_core::policy::DailyQuota;
use shepherd_util::GrantId;

use crate::harness::{
    BERLIN, EngineHarness, MONDAY_NOON, budget, entry, extra, grant, hours, minutes, policy, policy_with,
    wall_time,
};

/// Anna and Ben have an hour a day for each entry, and two hours for all games. Anna has played for ten minutes.
fn annas_household() -> EngineHarness {
    let mut entries = [entry("game"), entry("film")];
    for entry in &mut entries {
        entry.limits.daily_quota = DailyQuota::every_day(hours(1));
    }
    entries[0].budgets = vec!["games".parse().unwrap()];
    let policy = policy_with(entries.into(), |rules| {
        let profile = rules.profiles.values().next().unwrap().clone();
        rules.profiles = ["anna", "ben"].map(|name| (name.parse().unwrap(), profile.clone())).into();
        for id in ["games", "films"] {
            rules.budgets.insert(id.parse().unwrap(), budget(hours(2)));
        }
    });
    let mut world = EngineHarness::new(policy, MONDAY_NOON);
    world.launch_for("game", "anna");
    world.run_for(minutes(10));
    world.exit();
    world
}

/// Returns the minutes of extra time in the limits of the game and of the budget.
fn extra_minutes(world: &EngineHarness) -> [u64; 2] {
    let monday = "2026-11-16".parse().unwrap();
    let rows = world.engine.usage(monday, monday, None).unwrap();
    let [game, games] = rows.as_slice() else { panic!("{rows:?}") };
    [(game, 60), (games, 120)].map(|(row, ordinary)| row.limit.unwrap().0 / 60_000 - ordinary)
}

#[test]
fn a_limit_includes_the_grants_for_its_child_its_entry_or_budget_and_its_day() {
    let entry_scope = |id: &str| EntryScope::Entry { entry_id: id.parse().unwrap() };
    let budget_scope = |id: &str| EntryScope::Budget { budget_id: id.parse().unwrap() };
    let everything = || EntryScope::Everything {};
    let cases = [
        (everything(), None, [5, 5]),
        (everything(), Some("anna"), [5, 5]),
        (everything(), Some("ben"), [0, 0]),
        (entry_scope("game"), None, [5, 0]),
        (entry_scope("film"), None, [0, 0]),
        (budget_scope("games"), None, [0, 5]),
        (budget_scope("films"), None, [0, 0]),
    ];
    for (scope, child, expected) in cases {
        let profile = child.map(|child: &str| child.parse().unwrap());
        let new = NewGrant { scope, profile, ..grant(1, extra(minutes(5))) };
        let mut world = annas_household();
        assert_eq!(extra_minutes(&world), [0, 0]);
        world.grant(new.clone());
        assert_eq!(extra_minutes(&world), expected, "{new:?}");
        world.revoke(1);
        assert_eq!(extra_minutes(&world), [0, 0], "revoked: {new:?}");
        let tomorrow = Some(wall_time(BERLIN, "2026-11-17 00:00"));
        world.grant(NewGrant { grant_id: GrantId::from_random(2), valid_from: tomorrow, ..new });
        assert_eq!(extra_minutes(&world), [0, 0], "tomorrow");
    }
}

#[test]
fn today_is_the_day_that_usage_is_charged_to() {
    // S4.5: the clock is set back over midnight, within the tolerance.
    let mut world = EngineHarness::new(policy(vec![entry("game")]), "2026-11-16 23:58");
    world.tick();
    assert_eq!(world.engine.today(world.now()).to_string(), "2026-11-16");
    world.run_for(minutes(3));
    assert_eq!(world.engine.today(world.now()).to_string(), "2026-11-17");
    world.move_wall(SignedDuration::from_mins(-5));
    assert_eq!(world.engine.today(world.now()).to_string(), "2026-11-17");
}
