//! Grants that the policy refuses: above its ceilings, or without sense (S2.7).

use std::time::Duration;

use shepherd_api::{AuditKind, EntryScope, GrantKind};
use shepherd_core::policy::{DailyQuota, MinuteOfDay, PolicyEntry};
use shepherd_core::{GrantError, NewGrant};
use shepherd_util::{BudgetId, EntryId, ProfileId};

use crate::harness::{
    BERLIN, EngineHarness, MONDAY_NOON, entry, entry_in_window, extra, grant, hours, minutes, policy_with,
    scoped_grant, wall_time,
};

/// A household with two children and a ceiling of an hour a day.
fn household() -> EngineHarness {
    let mut game = entry("game");
    game.limits.daily_quota = DailyQuota::every_day(hours(1));
    let policy = policy_with(vec![game], |rules| {
        let profile = rules.profiles.values().next().unwrap().clone();
        rules.profiles.insert("anna".parse().unwrap(), profile.clone());
        rules.profiles.insert("ben".parse().unwrap(), profile);
        rules.ceilings.extra_per_day = Some(hours(1));
    });
    EngineHarness::new(policy, MONDAY_NOON)
}

fn extra_for(id: u128, child: Option<&str>, amount: Duration) -> NewGrant {
    NewGrant { profile: child.map(|child| child.parse().unwrap()), ..grant(id, extra(amount)) }
}

/// Gives a grant of 40 minutes, and checks how much is left for somebody afterwards.
fn check(first: Option<&str>, second: Option<&str>, left: Duration) {
    let mut world = household();
    world.grant(extra_for(1, first, minutes(40)));
    let too_much = extra_for(2, second, left + Duration::from_secs(1));
    let refused = world.engine.grant(too_much, world.now());
    assert_eq!(refused, Err(GrantError::AboveCeiling { left }), "{first:?}, {second:?}");
    world.grant(extra_for(3, second, left));
}

#[test]
fn a_grant_counts_for_its_child_and_a_grant_for_all_counts_for_every_child() {
    check(Some("anna"), Some("anna"), minutes(20));
    check(Some("anna"), Some("ben"), minutes(60));
    check(Some("anna"), None, minutes(20));
    check(None, Some("anna"), minutes(20));
    check(None, None, minutes(20));
}

#[test]
fn a_revoked_grant_no_longer_counts() {
    let mut world = household();
    world.grant(extra_for(1, None, hours(1)));
    world.revoke(1);
    world.grant(extra_for(2, Some("anna"), hours(1)));
}

#[test]
fn a_longer_window_is_no_extra_time() {
    let mut world = household();
    let until = wall_time(BERLIN, "2026-11-16 20:00");
    world.grant(NewGrant { gift: GrantKind::OpenUntil { until }, ..grant(1, extra(Duration::ZERO)) });
    world.grant(extra_for(2, None, hours(1)));
}

#[test]
fn a_grant_counts_on_its_own_days_only() {
    let mut world = household();
    let tomorrow = NewGrant {
        valid_from: Some(wall_time(BERLIN, "2026-11-17 00:00")),
        lapses_at: Some(wall_time(BERLIN, "2026-11-18 00:00")),
        ..grant(1, extra(hours(1)))
    };
    world.grant(tomorrow);
    world.grant(grant(2, extra(hours(1))));
    world.grant(NewGrant {
        valid_from: Some(wall_time(BERLIN, "2026-11-18 00:00")),
        ..grant(3, extra(hours(1)))
    });
    let two_days = NewGrant {
        lapses_at: Some(wall_time(BERLIN, "2026-11-17 00:00:00.000000001")),
        ..grant(4, extra(minutes(1)))
    };
    let refused = world.engine.grant(two_days, world.now());
    assert_eq!(refused, Err(GrantError::AboveCeiling { left: Duration::ZERO }));
}

#[test]
fn one_grant_gives_a_year_of_extra_time_at_most() {
    let mut game = entry("game");
    game.limits.daily_quota = DailyQuota::every_day(hours(1));
    let mut world = EngineHarness::new(policy_with(vec![game], |_| {}), MONDAY_NOON);
    let year = hours(366 * 24);
    let refused = world.engine.grant(grant(1, extra(year + Duration::from_secs(1))), world.now());
    assert_eq!(refused, Err(GrantError::TooMuch));
    world.grant(grant(2, extra(year)));
}

#[test]
fn a_grant_for_somebody_or_something_unknown_is_refused() {
    let mut world = household();
    let now = world.now();
    let mut refusal = |new: NewGrant| world.engine.grant(new, now).unwrap_err();
    let of = |scope| scoped_grant(1, scope, extra(minutes(1)));
    let entry_id: EntryId = "lost".parse().unwrap();
    assert_eq!(
        refusal(of(EntryScope::Entry { entry_id: entry_id.clone() })),
        GrantError::UnknownEntry(entry_id.clone())
    );
    let until = wall_time(BERLIN, "2026-11-16 20:00");
    let window = NewGrant { gift: GrantKind::OpenUntil { until }, ..of(EntryScope::Everything {}) };
    assert_eq!(
        refusal(NewGrant { scope: EntryScope::Entry { entry_id: entry_id.clone() }, ..window.clone() }),
        GrantError::UnknownEntry(entry_id)
    );
    let budget_id: BudgetId = "lost".parse().unwrap();
    assert_eq!(
        refusal(NewGrant { scope: EntryScope::Budget { budget_id: budget_id.clone() }, ..window.clone() }),
        GrantError::UnknownBudget(budget_id)
    );
    let profile: ProfileId = "lost".parse().unwrap();
    assert_eq!(
        refusal(NewGrant { profile: Some(profile.clone()), ..window }),
        GrantError::UnknownProfile(profile)
    );
}

#[test]
fn a_grant_that_ends_when_it_begins_is_refused() {
    let mut world = household();
    let moment = wall_time(BERLIN, "2026-11-16 15:00");
    let new = NewGrant { valid_from: Some(moment), lapses_at: Some(moment), ..grant(1, extra(minutes(1))) };
    let longer = moment + Duration::from_nanos(1);
    assert_eq!(world.engine.grant(new.clone(), world.now()), Err(GrantError::EmptyPeriod));
    world.grant(NewGrant { lapses_at: Some(longer), ..new });
}

#[test]
fn the_ceiling_of_an_opening_follows_the_windows_of_its_own_entries() {
    // At 00:30 the window of `night` still belongs to Monday, whose ceiling is over. The game has Tuesday's ceiling.
    let night = PolicyEntry { entry_id: "night".parse().unwrap(), ..entry_in_window((22, 0), (1, 0)) };
    let game = entry_in_window((15, 0), (18, 0));
    let policy = policy_with(vec![night, game], |rules| {
        rules.ceilings.open_until = MinuteOfDay::new(20, 0);
    });
    let mut world = EngineHarness::new(policy, "2026-11-17 00:30");
    let now = world.now();
    let mut open = |id: u128, entry_id: &str, until: &str| {
        let scope = EntryScope::Entry { entry_id: entry_id.parse().unwrap() };
        let until = wall_time(BERLIN, until);
        world.engine.grant(scoped_grant(id, scope, GrantKind::OpenUntil { until }), now).map(drop)
    };
    let too_late = Err(GrantError::TooLate { latest: MinuteOfDay::new(20, 0).unwrap() });
    assert_eq!(open(1, "night", "2026-11-17 02:00"), too_late);
    assert_eq!(open(2, "game", "2026-11-17 02:00"), Ok(()));
    assert_eq!(open(3, "game", "2026-11-17 20:00"), Ok(()));
    assert_eq!(open(4, "game", "2026-11-17 20:01"), too_late);
}

#[test]
fn the_audit_log_records_the_whole_grant() {
    let mut world = household();
    world.grant(extra_for(1, Some("anna"), minutes(10)));
    world.sync();
    let given = world.engine.snapshot().grants[0].clone();
    let granted = world.audit.iter().find_map(|event| match &event.what {
        AuditKind::Granted { grant_id, grant } => Some((grant_id.clone(), grant.clone())),
        _ => None,
    });
    assert_eq!(granted, Some((given.grant_id.clone(), serde_json::to_value(&given).unwrap())));
}
