//! The ceilings of a policy on grants (S2.7).

use std::time::Duration;

use shepherd_api::GrantKind;
use shepherd_core::policy::DailyQuota;
use shepherd_core::{GrantError, NewGrant};

use crate::harness::{
    BERLIN, EngineHarness, MONDAY_NOON, entry, extra, grant, hours, minutes, policy_with, wall_time,
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
