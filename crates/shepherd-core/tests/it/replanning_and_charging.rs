//! Replanning after a reload, a grant or a change of the clock, and the charged time.

use std::time::Duration;

use jiff::SignedDuration;
use shepherd_api::{EntryScope, GrantKind};
use shepherd_core::policy::{BreakRule, DailyQuota, EarningRule, OnReload, SuspendedTime, TimeCost};
use shepherd_core::{LaunchDecision, NewGrant, SessionLiveness};
use shepherd_util::{GrantId, ManualClock};

use crate::harness::{
    BERLIN, EngineHarness, MONDAY_NOON, boot, budget, entry, entry_in_window, entry_with_max_run, extra,
    has_expiry, hours, minutes, policy, policy_with, scoped_grant, wall_time, zone,
};

#[test]
fn after_sleep_past_midnight_the_quota_of_the_new_day_applies() {
    // S2.4, S4.4: half an hour on Sunday, ten minutes on Monday.
    let mut game = entry("game");
    game.limits.daily_quota.base = [Some(minutes(10)); 7];
    game.limits.daily_quota.base[6] = Some(minutes(30));
    let mut world = EngineHarness::new(policy(vec![game]), "2026-11-15 21:00");
    world.launch("game");
    world.run_for(minutes(1));
    world.clock.suspend(hours(6));
    world.tick();
    assert_eq!(world.remaining(), Some(minutes(10)));
}

#[test]
fn a_new_plan_counts_earlier_uninterrupted_play() {
    // S7.3, S2.4.
    let breaks = |after| {
        policy_with(vec![entry("game")], |rules| {
            rules.breaks = Some(BreakRule { after, length: minutes(10) });
            rules.on_reload = OnReload::Replan;
        })
    };
    let mut world = EngineHarness::new(breaks(hours(2)), MONDAY_NOON);
    world.launch("game");
    world.run_for(minutes(50));
    world.engine.reload(breaks(hours(1)), None, "parent", world.now());
    assert_eq!(world.remaining(), Some(minutes(10)));
}

#[test]
fn a_new_plan_counts_a_grant_once() {
    // S7.3, S2.7: the quota already includes the grant, and a grant doesn't lengthen an exhausted run.
    let test_policy = |max_run, quota| {
        let mut game = entry_with_max_run(max_run);
        game.limits.daily_quota = DailyQuota::every_day(quota);
        policy_with(vec![game], |rules| rules.on_reload = OnReload::Replan)
    };
    let mut world = EngineHarness::new(test_policy(hours(4), hours(4)), MONDAY_NOON);
    world.launch("game");
    world.engine.extend_current(minutes(30), &GrantId::from_random(1), "parent", world.now()).unwrap();
    world.run_for(minutes(80));
    world.engine.reload(test_policy(hours(4), hours(1)), None, "parent", world.now());
    assert_eq!(world.remaining(), Some(minutes(10)), "of an hour and a half");
    world.engine.reload(test_policy(minutes(45), hours(4)), None, "parent", world.now());
    assert_eq!(world.remaining(), Some(Duration::ZERO), "of three quarters and a half");
}

#[test]
fn sleep_ends_a_session_after_a_new_plan_that_counts_sleep() {
    // S7.3, S4.4.
    let test_policy = |suspended_time| {
        let game = entry_with_max_run(hours(1));
        policy_with(vec![game], |rules| {
            rules.suspended_time = suspended_time;
            rules.on_reload = OnReload::Replan;
        })
    };
    let mut world = EngineHarness::new(test_policy(SuspendedTime::Free), MONDAY_NOON);
    world.launch("game");
    world.run_for(minutes(10));
    world.engine.reload(test_policy(SuspendedTime::Counts), None, "parent", world.now());
    world.clock.suspend(hours(1));
    assert!(has_expiry(&world.tick()));
}

#[test]
fn extra_time_for_a_budget_adds_only_its_amount() {
    // S2.7, S7.3: the session keeps its plan, even if the new policy would allow an hour.
    let test_policy = |max_run| {
        let mut game = entry_with_max_run(max_run);
        game.budgets = vec!["games".parse().unwrap()];
        policy_with(vec![game], |rules| {
            rules.budgets.insert("games".parse().unwrap(), budget(hours(3)));
        })
    };
    let mut world = EngineHarness::new(test_policy(minutes(20)), MONDAY_NOON);
    world.launch("game");
    world.engine.reload(test_policy(hours(1)), None, "parent", world.now());
    let games = EntryScope::Budget { budget_id: "games".parse().unwrap() };
    world.engine.grant(scoped_grant(1, games, extra(minutes(5))), world.now()).unwrap();
    assert_eq!(world.remaining(), Some(minutes(25)));
}

#[test]
fn a_grant_during_a_launch_does_not_exceed_other_quotas() {
    // S2.4, S2.7: one budget has enough time, but the other has only twenty minutes.
    let mut game = entry_with_max_run(minutes(15));
    game.budgets = vec!["games".parse().unwrap(), "screen".parse().unwrap()];
    let test_policy = policy_with(vec![game], |rules| {
        rules.budgets.insert("games".parse().unwrap(), budget(hours(1)));
        rules.budgets.insert("screen".parse().unwrap(), budget(minutes(20)));
    });
    let mut world = EngineHarness::new(test_policy, "2026-11-16 23:50");
    let LaunchDecision::Approved(_) = world.request_launch("game") else { panic!() };
    // The grant lapses at midnight, so it adds nothing tomorrow.
    let more = NewGrant {
        lapses_at: Some(wall_time(BERLIN, "2026-11-17 00:00")),
        ..scoped_grant(1, EntryScope::Everything {}, extra(hours(1)))
    };
    world.grant(more);
    assert_eq!(world.remaining(), Some(minutes(30)), "ten today, twenty tomorrow");
}

#[test]
fn revoking_a_grant_never_lengthens_a_session() {
    // S2.7, S7.3.
    let test_policy = |closes| {
        let game = entry_in_window((11, 0), closes);
        policy(vec![game])
    };
    let mut world = EngineHarness::new(test_policy((13, 0)), MONDAY_NOON);
    let until = GrantKind::OpenUntil { until: wall_time(BERLIN, "2026-11-16 14:00") };
    world.grant(scoped_grant(1, EntryScope::Everything {}, until));
    world.launch("game");
    world.engine.reload(test_policy((22, 0)), None, "parent", world.now());
    world.revoke(1);
    assert_eq!(world.remaining(), Some(hours(2)));
}

#[test]
fn confirming_the_clock_applies_the_quota_of_its_day() {
    // S4.5: the clock was a day ahead, and is corrected during a session whose entry has used its time on the real day.
    let mut game = entry("game");
    game.limits.daily_quota = DailyQuota::every_day(minutes(30));
    let mut world = EngineHarness::new(policy(vec![game]), MONDAY_NOON);
    world.launch("game");
    world.run_for(minutes(20));
    world.exit();
    world.move_wall(SignedDuration::from_hours(24));
    world.launch("game");
    world.move_wall(SignedDuration::from_hours(-24));
    assert_eq!(world.remaining(), Some(minutes(30)), "it is Tuesday's time as long as nobody says otherwise");
    world.engine.confirm_clock("parent", world.now());
    world.tick();
    assert_eq!(world.remaining(), Some(minutes(10)));
}

#[test]
fn time_after_midnight_is_charged_to_the_new_day() {
    // S4.5: the zone changes twice between two charges, and the first change began another day.
    let mut world =
        EngineHarness::new(policy_with(vec![entry("game")], |rules| rules.zone = None), "2026-11-16 21:00");
    world.launch("game");
    for name in ["Pacific/Apia", BERLIN] {
        world.engine.zone_changed(zone(name), world.now());
        world.tick();
    }
    world.run_for(minutes(1));
    world.exit();
    let days: Vec<String> = world.store.usage.keys().map(|key| key.day.to_string()).collect();
    assert_eq!(days, ["2026-11-17"]);
}

#[test]
fn a_session_of_an_earlier_boot_has_no_time_left() {
    // S9.2: whatever the host reports.
    let game = entry_with_max_run(hours(1));
    let mut world = EngineHarness::new(policy(vec![game]), MONDAY_NOON);
    world.launch("game");
    world.place.boot = boot(2);
    world.crash();
    world.clock = ManualClock::starting_at(world.now().wall);
    let events = world.engine.recover(SessionLiveness::Alive { handle: "handle".to_owned() }, world.now());
    assert!(has_expiry(&events));
    assert_eq!(world.remaining(), Some(Duration::ZERO));
}

#[test]
fn two_grants_for_a_budget_do_not_exceed_max_run() {
    // S2.7.
    let mut game = entry_with_max_run(minutes(30));
    game.budgets = vec!["games".parse().unwrap()];
    let test_policy = policy_with(vec![game], |rules| {
        rules.budgets.insert("games".parse().unwrap(), budget(minutes(20)));
    });
    let mut world = EngineHarness::new(test_policy, MONDAY_NOON);
    world.launch("game");
    for id in 1..=2 {
        let games = EntryScope::Budget { budget_id: "games".parse().unwrap() };
        world.engine.grant(scoped_grant(id, games, extra(minutes(10))), world.now()).unwrap();
    }
    assert_eq!(world.remaining(), Some(minutes(30)));
}

#[test]
fn extra_time_does_not_open_a_window_that_a_reload_closed() {
    // S7.3, S2.7: the grant becomes valid at the moment at which the window is removed.
    let test_policy = |opens, on_reload| {
        let mut game = entry_in_window(opens, (20, 0));
        game.limits.max_run = Some(hours(2));
        policy_with(vec![game], |rules| rules.on_reload = on_reload)
    };
    let mut world = EngineHarness::new(test_policy((11, 0), OnReload::KeepPlan), MONDAY_NOON);
    let later = NewGrant {
        valid_from: Some(wall_time(BERLIN, "2026-11-16 12:10")),
        ..scoped_grant(1, EntryScope::Everything {}, extra(minutes(30)))
    };
    world.grant(later);
    world.launch("game");
    world.run_for(Duration::from_secs(599));
    world.clock.advance(Duration::from_secs(1));
    world.engine.reload(test_policy((15, 0), OnReload::Replan), None, "parent", world.now());
    assert!(has_expiry(&world.tick()));
}

#[test]
fn unseen_use_earns_no_time() {
    // S2.4, S9.2b: ten minutes of maths earn ten of play. Daemon and program are killed after five.
    let mut maths = entry("maths");
    maths.cost = TimeCost::Free;
    maths.earns = Some(EarningRule {
        budget: "games".parse().unwrap(),
        for_each: minutes(10),
        earned: minutes(10),
        ceiling: hours(1),
    });
    let mut game = entry("game");
    game.budgets = vec!["games".parse().unwrap()];
    let test_policy = policy_with(vec![maths, game], |rules| {
        rules.budgets.insert("games".parse().unwrap(), budget(Duration::ZERO));
    });
    let mut world = EngineHarness::new(test_policy, MONDAY_NOON);
    world.launch("maths");
    world.run_for(minutes(5));
    world.crash();
    world.clock.advance(hours(1));
    world.engine.recover(SessionLiveness::Gone, world.now());
    world.sync();
    assert_eq!(world.denied_codes("game"), ["quota-exhausted"]);
}

#[test]
fn a_crash_does_not_bring_back_a_day_that_was_charged() {
    // S4.5, S9.1: the clock is set back so far that it is not trusted, and the session continues past midnight.
    let mut game = entry("game");
    game.limits.daily_quota = DailyQuota::every_day(hours(1));
    let mut world = EngineHarness::new(policy(vec![game]), "2026-11-16 23:50");
    world.launch("game");
    world.move_wall(SignedDuration::from_hours(-3));
    world.run_for(minutes(20));
    world.crash();
    world.engine.recover(SessionLiveness::Alive { handle: "handle".to_owned() }, world.now());
    world.run_for(minutes(20));
    let days: Vec<_> = world.store.usage.iter().map(|(key, used)| (key.day.to_string(), *used)).collect();
    assert_eq!(days, [("2026-11-16".to_owned(), minutes(10)), ("2026-11-17".to_owned(), minutes(30))]);
}

#[test]
fn a_lost_session_is_charged_for_sleep_by_the_newest_policy() {
    // S4.4, S7.3, S9.2: the machine may have slept before the twenty minutes were over.
    let test_policy = |suspended_time| {
        let game = entry_with_max_run(minutes(20));
        policy_with(vec![game], |rules| rules.suspended_time = suspended_time)
    };
    let mut world = EngineHarness::new(test_policy(SuspendedTime::Free), MONDAY_NOON);
    world.launch("game");
    world.engine.reload(test_policy(SuspendedTime::Counts), None, "parent", world.now());
    world.sync();
    world.clock.suspend(hours(1));
    world.clock.advance(minutes(5));
    world.crash();
    world.engine.recover(SessionLiveness::Gone, world.now());
    world.sync();
    assert_eq!(world.used("game"), minutes(65));
}

#[test]
fn revoking_a_grant_closes_an_entry_that_only_the_grant_kept_open() {
    // S2.7, S7.3: under the first policy the grant adds nothing; under the new plan only the grant keeps the entry
    // open.
    let test_policy = |opens| {
        let game = entry_in_window(opens, (20, 0));
        policy_with(vec![game], |rules| rules.on_reload = OnReload::Replan)
    };
    let mut world = EngineHarness::new(test_policy((11, 0)), MONDAY_NOON);
    world.launch("game");
    let until = GrantKind::OpenUntil { until: wall_time(BERLIN, "2026-11-16 14:00") };
    world.grant(scoped_grant(1, EntryScope::Everything {}, until));
    world.engine.reload(test_policy((15, 0)), None, "parent", world.now());
    assert_eq!(world.remaining(), Some(hours(2)));
    world.revoke(1);
    assert!(has_expiry(&world.tick()));
}

#[test]
fn setting_the_clock_forward_before_a_reboot_is_no_break() {
    // S2.4, S4.5, S9.2b: there was no break before the second session, whatever the wall clock shows; then the power
    // fails.
    let rules = BreakRule { after: hours(1), length: minutes(30) };
    let test_policy = policy_with(vec![entry("game")], |policy| policy.breaks = Some(rules));
    let mut world = EngineHarness::new(test_policy, MONDAY_NOON);
    world.launch("game");
    world.run_for(minutes(50));
    world.exit();
    world.move_wall(SignedDuration::from_hours(5));
    world.launch("game");
    assert_eq!(world.remaining(), Some(minutes(10)));
    world.run_for(minutes(5));
    world.place.boot = boot(2);
    world.crash();
    world.clock = ManualClock::starting_at(world.now().wall);
    world.engine.recover(SessionLiveness::Gone, world.now());
    world.sync();
    world.launch("game");
    assert!(world.remaining() <= Some(minutes(5)), "{:?} of an hour", world.remaining());
}

#[test]
fn the_trusted_time_continues_after_a_crash_while_the_clock_is_untrusted() {
    // S2.7, S4.5, S9.1: the window closes at 13:00, and a grant keeps it open until it is revoked at 13:10.
    let game = entry_in_window((11, 0), (13, 0));
    let mut world = EngineHarness::new(policy(vec![game]), MONDAY_NOON);
    let until = GrantKind::OpenUntil { until: wall_time(BERLIN, "2026-11-16 14:00") };
    world.grant(scoped_grant(1, EntryScope::Everything {}, until));
    world.launch("game");
    world.move_wall(SignedDuration::from_hours(-5));
    world.crash();
    world.engine.recover(SessionLiveness::Alive { handle: "handle".to_owned() }, world.now());
    world.run_for(minutes(70));
    world.revoke(1);
    assert!(has_expiry(&world.tick()));
}

#[test]
fn a_new_plan_after_the_clock_was_corrected_applies_a_grant_only_once() {
    // S2.7, S7.3: the grant was valid when the session was planned, on a clock that was two hours ahead.
    let game = entry_with_max_run(hours(1));
    let test_policy = policy_with(vec![game], |rules| rules.on_reload = OnReload::Replan);
    let mut world = EngineHarness::new(test_policy.clone(), MONDAY_NOON);
    let later = NewGrant {
        valid_from: Some(wall_time(BERLIN, "2026-11-16 12:30")),
        ..scoped_grant(1, EntryScope::Everything {}, extra(minutes(30)))
    };
    world.grant(later);
    world.move_wall(SignedDuration::from_hours(2));
    world.launch("game");
    world.clock.move_wall(SignedDuration::from_hours(-2));
    world.engine.confirm_clock("parent", world.now());
    world.engine.reload(test_policy, None, "parent", world.now());
    world.run_for(minutes(40));
    assert_eq!(world.remaining(), Some(minutes(50)), "an hour and the grant, once");
}

#[test]
fn a_reload_does_not_apply_an_earlier_grant_to_the_running_session() {
    // S7.3, S2.7: a session of two minutes, which uses no budget when a budget gets extra time.
    for on_reload in [OnReload::KeepPlan, OnReload::Replan] {
        let test_policy = |max_run, budgets: &[&str]| {
            let mut maths = entry("maths");
            maths.limits.max_run = Some(max_run);
            maths.budgets = budgets.iter().map(|id| id.parse().unwrap()).collect();
            policy_with(vec![maths], |rules| {
                rules.budgets.insert("games".parse().unwrap(), budget(hours(3)));
                rules.on_reload = on_reload;
            })
        };
        let mut world = EngineHarness::new(test_policy(minutes(2), &[]), MONDAY_NOON);
        world.launch("maths");
        world.run_for(minutes(1));
        let games = EntryScope::Budget { budget_id: "games".parse().unwrap() };
        world.engine.grant(scoped_grant(1, games, extra(minutes(20))), world.now()).unwrap();
        world.engine.reload(test_policy(hours(1), &["games"]), None, "parent", world.now());
        world.tick();
        assert_eq!(world.remaining(), Some(minutes(1)), "{on_reload:?}");
    }
}
