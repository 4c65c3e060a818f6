//! Grants that were taken back (S2.7).

use std::time::Duration;

use shepherd_api::{EntryScope, GrantKind};
use shepherd_core::NewGrant;
use shepherd_core::policy::{AvailabilityPolicy, DailyQuota, PolicyEntry, Weekdays};
use shepherd_util::{GrantId, ProfileId};

use crate::harness::{
    BERLIN, EngineHarness, MONDAY_NOON, entry, entry_in_window, extra, grant, hours, minutes, policy,
    policy_with, scoped_grant, wall_time, window, zone,
};

#[test]
fn a_grant_that_is_revoked_when_it_begins_was_never_valid() {
    // An hour a day: from 23:30 on Monday, a run has half an hour and Tuesday's share. The grant begins at 10:00.
    for (valid_for, length) in [(Duration::ZERO, 90), (Duration::from_secs(1), 110)] {
        let mut game = entry("game");
        game.limits.daily_quota = DailyQuota::every_day(hours(1));
        let mut world = EngineHarness::new(policy(vec![game]), MONDAY_NOON);
        let valid_from = Some(wall_time(BERLIN, "2026-11-17 10:00"));
        world.grant(NewGrant { valid_from, ..grant(1, extra(minutes(20))) });
        world.run_for(hours(22) + valid_for);
        world.revoke(1);
        let asked = wall_time(BERLIN, "2026-11-16 23:30");
        let views = world.engine.list_entries_at(&ProfileId::default(), asked);
        assert_eq!(views[0].max_run_if_started_now, Some(minutes(length).into()), "valid for {valid_for:?}");
    }
}

#[test]
fn revoking_an_opening_leaves_openings_of_other_entries_out() {
    let film = PolicyEntry { entry_id: "film".parse().unwrap(), ..entry_in_window((18, 0), (19, 0)) };
    let mut world = EngineHarness::new(policy(vec![entry_in_window((11, 0), (13, 0)), film]), MONDAY_NOON);
    world.launch("game");
    for (id, entry_id, civil) in [(1, "game", "2026-11-16 15:00"), (2, "film", "2026-11-16 17:00")] {
        let scope = EntryScope::Entry { entry_id: entry_id.parse().unwrap() };
        let until = wall_time(BERLIN, civil);
        world.grant(scoped_grant(id, scope, GrantKind::OpenUntil { until }));
    }
    assert_eq!(world.remaining(), Some(hours(3)));
    world.revoke(1);
    assert_eq!(world.remaining(), Some(hours(1)));
}

#[test]
fn a_revoked_grant_makes_no_session_longer_after_a_journey() {
    // The session is open until 15:00 by a grant. In Kathmandu, that is a time within the second window.
    let mut game = entry("game");
    let windows = [((11, 0), (13, 0)), ((19, 0), (23, 0))];
    let windows = windows.map(|(from, to)| window(Weekdays::ALL, from, to));
    game.availability = AvailabilityPolicy::Windows(windows.into());
    let mut world =
        EngineHarness::new(policy_with(vec![game], |rules| rules.zone = None), "2026-11-16 12:00");
    world.launch("game");
    world.grant(grant(1, GrantKind::OpenUntil { until: wall_time(BERLIN, "2026-11-16 15:00") }));
    world.engine.zone_changed(zone("Asia/Kathmandu"), world.now());
    world.engine.extend_current(minutes(10), &GrantId::from_random(2), "parent", world.now()).unwrap();
    let before = world.remaining().unwrap();
    assert_eq!(before, hours(3) + minutes(10));
    world.revoke(2);
    assert!(world.remaining() <= Some(before), "{:?} instead of {before:?}", world.remaining());
}
