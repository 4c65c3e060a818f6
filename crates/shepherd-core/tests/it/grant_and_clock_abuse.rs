//! Attempts to gain time with grants and clocks.

use std::time::Duration;

use jiff::SignedDuration;
use jiff::tz::{TimeZone, offset};
use shepherd_api::GrantKind;
use shepherd_core::policy::{
    AvailabilityPolicy, DailyQuota, EarningRule, MinuteOfDay, OnReload, Policy, PolicyEntry, SuspendedTime,
    TimeCost, UnlockRule, Weekdays,
};
use shepherd_core::{GrantError, NewGrant, SessionLiveness};
use shepherd_util::GrantId;

use crate::harness::{
    BERLIN, EngineHarness, MONDAY_NOON, boot, budget, entry, entry_in_window, entry_with_max_run, extra,
    grant, has_expiry, hours, minutes, policy, policy_with, wall_time, window,
};

fn open_until_gift(civil: &str) -> GrantKind {
    GrantKind::OpenUntil { until: wall_time(BERLIN, civil) }
}

#[test]
fn an_extension_can_be_revoked_after_midnight() {
    // S2.7: the grant lapsed at midnight, but the session still uses its time.
    let game = entry_with_max_run(minutes(10));
    let mut world = EngineHarness::new(policy(vec![game]), "2026-11-16 23:50");
    world.launch("game");
    world.engine.extend_current(hours(3), &GrantId::from_random(1), "parent", world.now()).unwrap();
    world.run_for(minutes(30));
    world.revoke(1);
    assert!(has_expiry(&world.tick()));
}

#[test]
fn revoking_a_grant_of_tomorrow_shortens_a_session_that_was_planned_with_it() {
    // S2.7: the plan included tomorrow's quota, and with it tomorrow's grant.
    let mut game = entry("game");
    game.limits.daily_quota = DailyQuota::every_day(minutes(90));
    let mut world = EngineHarness::new(policy(vec![game]), "2026-11-16 23:00");
    let tomorrow =
        NewGrant { valid_from: Some(wall_time(BERLIN, "2026-11-17 08:00")), ..grant(1, extra(hours(3))) };
    world.grant(tomorrow);
    world.launch("game");
    world.revoke(1);
    assert_eq!(world.remaining(), Some(minutes(60 + 90)));
}

#[test]
fn revoking_a_grant_follows_the_trusted_time() {
    // S2.7, S4.2: the clock was set back a little, but the grant is valid already.
    let game = entry_with_max_run(minutes(30));
    let mut world = EngineHarness::new(policy(vec![game]), MONDAY_NOON);
    world.launch("game");
    world.move_wall(SignedDuration::from_mins(-5));
    let soon =
        NewGrant { valid_from: Some(wall_time(BERLIN, "2026-11-16 11:58")), ..grant(1, extra(hours(1))) };
    world.grant(soon);
    assert_eq!(world.remaining(), Some(minutes(90)));
    world.revoke(1);
    assert_eq!(world.remaining(), Some(minutes(30)));
}

#[test]
fn a_grant_while_the_clock_is_behind_is_valid_at_once() {
    // S2.7, S4.2: the wall clock shows 23:55, but it is past midnight.
    let game = entry_with_max_run(minutes(30));
    let mut world = EngineHarness::new(policy(vec![game]), "2026-11-16 23:59");
    world.launch("game");
    world.run_for(minutes(2));
    world.move_wall(SignedDuration::from_mins(-6));
    world.engine.extend_current(minutes(20), &GrantId::from_random(1), "parent", world.now()).unwrap();
    assert_eq!(world.remaining(), Some(minutes(48)));
}

#[test]
fn fixed_offset_zones_restore_no_day_and_keep_the_clock_trusted() {
    // S4.3, S4.5: it is past midnight in the first zone, and still yesterday in the second.
    let mut game = entry("game");
    game.limits.daily_quota = DailyQuota::every_day(hours(1));
    let test_policy = policy_with(vec![game], |rules| rules.zone = None);
    let mut world = EngineHarness::new(test_policy, "2026-11-17 00:00");
    world.engine.zone_changed(TimeZone::fixed(offset(1)), world.now());
    world.launch("game");
    assert_eq!(world.play_until_expired(), hours(1));
    world.engine.zone_changed(TimeZone::fixed(offset(-2)), world.now());
    assert_eq!(world.denied_codes("game"), ["quota-exhausted"]);
}

/// Returns a policy in which ten minutes of maths earn ten minutes of play.
pub(crate) fn maths_earns(cost: TimeCost, suspended_time: SuspendedTime) -> Policy {
    let mut maths = entry("maths");
    maths.cost = cost;
    maths.limits.max_run = Some(hours(5));
    maths.earns = Some(EarningRule {
        budget: "games".parse().unwrap(),
        for_each: minutes(10),
        earned: minutes(10),
        ceiling: hours(1),
    });
    let mut game = entry("game");
    game.budgets = vec!["games".parse().unwrap()];
    policy_with(vec![maths, game], |rules| {
        rules.budgets.insert("games".parse().unwrap(), budget(Duration::ZERO));
        rules.suspended_time = suspended_time;
    })
}

#[test]
fn unseen_use_of_free_and_counted_entries_earns_no_time() {
    // S2.4, S9.2b.
    for cost in [TimeCost::Free, TimeCost::Counts] {
        let mut world = EngineHarness::new(maths_earns(cost, SuspendedTime::Free), MONDAY_NOON);
        world.launch("maths");
        world.run_for(minutes(5));
        world.crash();
        world.clock.advance(hours(1));
        world.engine.recover(SessionLiveness::Gone, world.now());
        world.sync();
        assert_eq!(world.denied_codes("game"), ["quota-exhausted"], "{cost:?}");

        let mut world = EngineHarness::new(maths_earns(cost, SuspendedTime::Free), MONDAY_NOON);
        world.launch("maths");
        world.run_for(minutes(10) - Duration::from_secs(10));
        world.place.boot = boot(2);
        world.crash();
        world.engine.recover(SessionLiveness::Gone, world.now());
        world.sync();
        assert_eq!(world.denied_codes("game"), ["quota-exhausted"], "{cost:?}, after a power cut");
    }
}

#[test]
fn unseen_use_unlocks_nothing() {
    // S2.4, S9.2b: ten minutes of maths unlock the game. Daemon and program are killed after five.
    let mut game = entry("game");
    game.unlock = Some(UnlockRule { entry_id: "maths".parse().unwrap(), at_least: minutes(10) });
    let mut world = EngineHarness::new(policy(vec![entry("maths"), game]), MONDAY_NOON);
    world.launch("maths");
    world.run_for(minutes(5));
    world.crash();
    world.clock.advance(hours(1));
    world.engine.recover(SessionLiveness::Gone, world.now());
    world.sync();
    assert_eq!(world.denied_codes("game"), ["not-unlocked"]);
}

#[test]
fn sleep_earns_no_time() {
    // S2.4, S4.4: suspended time can be charged, but it never earns.
    for cost in [TimeCost::Free, TimeCost::Counts] {
        let mut world = EngineHarness::new(maths_earns(cost, SuspendedTime::Counts), MONDAY_NOON);
        world.launch("maths");
        world.run_for(minutes(5));
        world.clock.suspend(hours(1));
        world.tick();
        assert_eq!(world.remaining(), Some(hours(5) - minutes(65)));
        world.exit();
        assert_eq!(world.denied_codes("game"), ["quota-exhausted"], "{cost:?}");
    }
}

#[test]
fn a_grant_for_an_unknown_profile_or_a_past_time_is_refused() {
    // S2.7: a grant with a typing error is refused.
    let mut world = EngineHarness::new(policy(vec![entry("game")]), MONDAY_NOON);
    let nobody = NewGrant { profile: Some("ana".parse().unwrap()), ..grant(1, extra(hours(1))) };
    let error = world.engine.grant(nobody, world.now()).unwrap_err();
    assert_eq!(error, GrantError::UnknownProfile("ana".parse().unwrap()));
    let over = NewGrant {
        lapses_at: Some(wall_time(BERLIN, "2026-11-17 00:00")),
        ..grant(1, open_until_gift("2026-11-16 11:00"))
    };
    assert_eq!(world.engine.grant(over, world.now()).unwrap_err(), GrantError::EmptyPeriod);
}

#[test]
fn an_extension_moves_the_window_no_further_than_the_end() {
    // S2.7: half an hour after the end of the run is still inside the window; further extra time doesn't pass its end.
    let mut game = entry_in_window((11, 0), (14, 0));
    game.limits.max_run = Some(hours(1));
    let mut world = EngineHarness::new(policy(vec![game]), MONDAY_NOON);
    world.launch("game");
    world.engine.extend_current(minutes(30), &GrantId::from_random(1), "parent", world.now()).unwrap();
    assert_eq!(world.remaining(), Some(minutes(90)));
    world.engine.grant(grant(2, extra(hours(3))), world.now()).unwrap();
    assert_eq!(world.remaining(), Some(hours(2)));
}

#[test]
fn revoking_one_of_two_openings_keeps_the_other() {
    // S2.7.
    for (first, second) in
        [("2026-11-16 16:00", "2026-11-16 15:00"), ("2026-11-16 15:00", "2026-11-16 16:00")]
    {
        let mut world = EngineHarness::new(policy(vec![entry_in_window((11, 0), (13, 0))]), MONDAY_NOON);
        world.launch("game");
        world.grant(grant(1, open_until_gift(first)));
        world.grant(grant(2, open_until_gift(second)));
        world.revoke(1);
        let left = Duration::try_from(wall_time(BERLIN, second).duration_since(world.now().wall)).unwrap();
        assert_eq!(world.remaining(), Some(left));
    }
}

#[test]
fn a_new_plan_keeps_an_extension_past_the_window() {
    // S7.3, S2.7: the window closed at 13:00; a parent extended the session until 13:30.
    let test_policy = |closes| {
        policy_with(vec![entry_in_window((11, 0), closes)], |rules| rules.on_reload = OnReload::Replan)
    };
    let mut world = EngineHarness::new(test_policy((13, 0)), MONDAY_NOON);
    world.launch("game");
    world.engine.extend_current(minutes(30), &GrantId::from_random(1), "parent", world.now()).unwrap();
    world.run_for(minutes(70));
    world.engine.reload(test_policy((13, 0)), None, "parent", world.now());
    assert_eq!(world.remaining(), Some(minutes(20)));
    world.engine.reload(test_policy((12, 50)), None, "parent", world.now());
    assert_eq!(world.remaining(), Some(minutes(10)), "half an hour past ten to one");
    world.engine.reload(test_policy((12, 30)), None, "parent", world.now());
    assert!(has_expiry(&world.tick()), "half an hour past half past twelve is over");
}

#[test]
fn an_opening_during_a_session_continues_into_the_next_window() {
    // S2.7: a session that runs gets the same time as one that is launched then.
    let mut game = entry("game");
    let windows = [((11, 0), (13, 0)), ((14, 0), (16, 0))];
    let windows = windows.map(|(from, to)| window(Weekdays::ALL, from, to));
    game.availability = AvailabilityPolicy::Windows(windows.into());
    let mut world = EngineHarness::new(policy(vec![game]), MONDAY_NOON);
    world.launch("game");
    world.grant(grant(1, open_until_gift("2026-11-16 14:30")));
    assert_eq!(world.remaining(), Some(hours(4)));
    world.revoke(1);
    assert_eq!(world.remaining(), Some(hours(1)));
}

#[test]
fn the_past_shows_a_grant_until_it_was_revoked() {
    // S3.10: extra time for an exhausted entry, and an opening for a closed entry; both were revoked at 12:10.
    let mut game = entry("game");
    game.limits.daily_quota = DailyQuota::every_day(Duration::ZERO);
    let film = PolicyEntry { entry_id: "film".parse().unwrap(), ..entry_in_window((20, 0), (21, 0)) };
    let mut world = EngineHarness::new(policy(vec![game, film]), MONDAY_NOON);
    let noon = world.now().wall;
    world.engine.grant(grant(1, extra(minutes(20))), world.now()).unwrap();
    world.grant(grant(2, open_until_gift("2026-11-16 14:00")));
    world.run_for(minutes(10));
    for id in 1..=2 {
        world.revoke(id);
    }
    world.run_for(minutes(10));
    let child = world.engine.policy().default_profile();
    let week = world.engine.timeline(&child, noon - hours(1), noon + hours(4)).unwrap();
    for entry in week.entries {
        let intervals: Vec<_> = entry.intervals.iter().map(|open| (open.from, open.to)).collect();
        assert_eq!(intervals, [(noon, noon + minutes(10))], "{}", entry.entry_id);
    }
}

#[test]
fn correcting_the_clock_does_not_restore_a_revoked_grant() {
    // S2.7, S4.5: the grant was revoked while the clock was two days ahead.
    let mut world = EngineHarness::new(policy(vec![entry_in_window((9, 0), (10, 0))]), MONDAY_NOON);
    world.grant(grant(1, open_until_gift("2026-11-16 20:00")));
    world.move_wall(SignedDuration::from_hours(48));
    world.revoke(1);
    world.clock.move_wall(SignedDuration::from_hours(-48));
    world.engine.confirm_clock("parent", world.now());
    assert_eq!(world.denied_codes("game"), ["outside-hours"]);
}

#[test]
fn a_window_across_midnight_has_the_ceiling_of_the_day_it_belongs_to() {
    // S2.3, S2.7: no grant can allow anything after 22:00, and this window has passed that time already.
    let policy = policy_with(vec![entry_in_window((20, 0), (1, 0))], |rules| {
        rules.ceilings.open_until = MinuteOfDay::new(22, 0);
    });
    let mut world = EngineHarness::new(policy, "2026-11-17 00:30");
    world.launch("game");
    let latest = MinuteOfDay::new(22, 0).unwrap();
    let refused = world.engine.grant(grant(1, open_until_gift("2026-11-17 02:00")), world.now());
    assert_eq!(refused, Err(GrantError::TooLate { latest }));
    world.engine.extend_current(hours(8), &GrantId::from_random(2), "parent", world.now()).unwrap();
    assert_eq!(world.remaining(), Some(minutes(30)));
    // In the morning, the ceiling of the evening is far away.
    world.run_for(hours(1));
    world.exit();
    world.run_for(hours(9));
    world.grant(grant(3, open_until_gift("2026-11-17 12:00")));
}
