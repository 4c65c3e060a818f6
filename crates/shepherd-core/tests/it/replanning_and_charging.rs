//! Replanning after a reload, a grant or a changed clock, and what is charged then.

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
fn who_sleeps_past_midnight_wakes_up_to_the_quota_of_that_day() {
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
fn a_new_plan_counts_the_time_in_a_row_that_was_played_already() {
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
    // S7.3, S2.7: the grant is in the quota already; and an hour that is used up is not longer for it.
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
fn a_new_plan_by_which_sleep_counts_is_ended_by_sleep() {
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
fn more_of_a_budget_gives_no_more_than_that() {
    // S2.7, S7.3: the session keeps its plan, also where the new policy would have allowed an hour.
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
fn a_grant_to_what_is_being_launched_does_not_pass_other_quotas() {
    // S2.4, S2.7: ten minutes more of one budget, but the other one has only twenty.
    let mut game = entry_with_max_run(minutes(15));
    game.budgets = vec!["games".parse().unwrap(), "screen".parse().unwrap()];
    let test_policy = policy_with(vec![game], |rules| {
        rules.budgets.insert("games".parse().unwrap(), budget(hours(1)));
        rules.budgets.insert("screen".parse().unwrap(), budget(minutes(20)));
    });
    let mut world = EngineHarness::new(test_policy, "2026-11-16 23:50");
    let LaunchDecision::Approved(_) = world.request_launch("game") else { panic!() };
    // It lapses at midnight, so that tomorrow has nothing of it.
    let more = NewGrant {
        lapses_at: Some(wall_time(BERLIN, "2026-11-17 00:00")),
        ..scoped_grant(1, EntryScope::Everything {}, extra(hours(1)))
    };
    world.grant(more);
    assert_eq!(world.remaining(), Some(minutes(30)), "ten today, twenty tomorrow");
}

#[test]
fn taking_back_never_lengthens() {
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
fn a_clock_that_is_confirmed_brings_the_quota_of_its_day() {
    // S4.5: the clock ran a day ahead, and is put right while something runs that has had its time on that day.
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
    // S4.5: two changes of the zone between two charges, the first of which began another day.
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
fn a_session_of_another_boot_leaves_no_time() {
    // S9.2: whatever the host believes.
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
fn more_of_a_budget_twice_is_not_a_longer_run_either() {
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
fn what_a_new_policy_has_closed_is_not_opened_by_more_time() {
    // S7.3, S2.7: the grant begins in the very moment in which the window is gone.
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
fn nobody_earns_by_what_nobody_saw() {
    // S2.4, S9.2b: ten minutes of maths earn ten of play. Five were done when daemon and program were killed.
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
    // S4.5, S9.1: the clock is set back so far that it is not believed, and what runs goes on past midnight.
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
fn sleep_that_counts_is_charged_to_what_died_unseen_also_where_it_was_planned_otherwise() {
    // S4.4, S7.3, S9.2: it may have slept before its twenty minutes were over.
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
fn what_only_a_grant_keeps_open_closes_when_it_is_taken_back() {
    // S2.7, S7.3: by the first policy the grant gave nothing; by the new plan there is nothing else.
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
fn a_clock_set_forward_and_a_reboot_are_no_break() {
    // S2.4, S4.5, S9.2b: the second session went on without one, whatever the wall showed; then the power failed.
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
fn the_time_goes_on_over_a_crash_also_while_the_clock_is_not_believed() {
    // S2.7, S4.5, S9.1: the window closes at one, and a grant keeps it open until it is taken back at ten past.
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
fn a_new_plan_after_a_clock_was_put_right_gives_no_grant_again() {
    // S2.7, S7.3: it held when the session was planned, on a clock that ran two hours ahead.
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
fn another_policy_gives_what_runs_no_grant_that_was_none_of_its() {
    // S7.3, S2.7: two minutes of maths, which draws on no budget yet when more of one is given.
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
