//! Rules that earlier versions of the engine broke: grants, clocks, failed writes, reloads and restarts.

use std::time::Duration;

use jiff::SignedDuration;
use shepherd_api::{EndReason, EntryScope, GrantKind, StopMode, StopRequester};
use shepherd_core::policy::{BreakRule, DailyQuota, OnReload};
use shepherd_core::{CoreEvent, GrantError, LaunchDecision, NewGrant, SessionLiveness, StopRequest};
use shepherd_util::GrantId;

use crate::harness::{
    BERLIN, EngineHarness, MONDAY_NOON, boot, entry, entry_in_window, entry_with_max_run, extra, grant,
    hours, minutes, policy, policy_with, wall_time,
};

#[test]
fn a_revoked_opening_shortens_a_session_that_used_it() {
    // S2.7.
    let until = GrantKind::OpenUntil { until: wall_time(BERLIN, "2026-11-16 15:00") };
    for before_the_launch in [true, false] {
        let mut world = EngineHarness::new(policy(vec![entry_in_window((11, 0), (13, 0))]), MONDAY_NOON);
        if before_the_launch {
            world.grant(grant(1, until));
            world.launch("game");
        } else {
            world.launch("game");
            world.grant(grant(1, until));
        }
        assert_eq!(world.remaining(), Some(hours(3)));
        world.revoke(1);
        assert_eq!(world.remaining(), Some(hours(1)), "before the launch: {before_the_launch}");
    }
}

#[test]
fn revoking_a_grant_that_is_not_valid_yet_takes_no_time() {
    // S2.7.
    let game = entry_with_max_run(minutes(30));
    let mut world = EngineHarness::new(policy(vec![game]), MONDAY_NOON);
    let tomorrow =
        NewGrant { valid_from: Some(wall_time(BERLIN, "2026-11-17 08:00")), ..grant(1, extra(minutes(20))) };
    world.grant(tomorrow);
    world.launch("game");
    world.revoke(1);
    assert_eq!(world.remaining(), Some(minutes(30)));
}

#[test]
fn the_latest_time_is_remembered_by_an_idle_daemon_too() {
    // S4.5: at 23:00 the clock is set to 19:00, and the machine is rebooted.
    let mut world = EngineHarness::new(policy(vec![entry_in_window((16, 0), (20, 0))]), "2026-11-16 16:00");
    world.run_for(hours(7));
    world.place.boot = boot(2);
    world.crash();
    world.clock.move_wall(SignedDuration::from_hours(-4));
    world.engine.recover(SessionLiveness::Gone, world.now());
    world.sync();
    assert_eq!(world.denied_codes("game"), ["clock-untrusted", "outside-hours"]);
}

#[test]
fn setting_the_clock_back_within_the_tolerance_opens_no_window() {
    // S4.2: play to the end of the window, set the clock back by less than the tolerance, and repeat.
    let mut world = EngineHarness::new(policy(vec![entry_in_window((15, 0), (18, 0))]), "2026-11-16 17:50");
    world.launch("game");
    assert_eq!(world.play_until_expired(), minutes(10));
    for _ in 0..5 {
        world.move_wall(SignedDuration::from_secs(-599));
        assert!(world.denied_codes("game").contains(&"outside-hours"));
        world.run_for(minutes(5));
    }
    assert_eq!(world.used("game"), minutes(10));
}

#[test]
fn failed_writes_are_repeated_and_nothing_is_granted_meanwhile() {
    // S8.4b: fifty minutes on a full disk are charged when the disk has space again.
    let mut game = entry("game");
    game.limits.daily_quota = DailyQuota::every_day(hours(1));
    let mut world = EngineHarness::new(policy(vec![game]), MONDAY_NOON);
    world.launch("game");
    for _ in 0..10 {
        world.clock.advance(minutes(5));
        world.engine.tick(world.now());
        world.fail_to_sync();
    }
    assert_eq!(world.used("game"), Duration::ZERO);
    world.engine.store_recovered();
    world.tick();
    assert_eq!(world.used("game"), minutes(50));
    world.exit();
    world.crash();
    assert_eq!(world.view("game").max_run_if_started_now.map(|run| run.0), Some(10 * 60_000));
}

#[test]
fn extra_time_counts_only_while_its_grant_is_valid() {
    // S2.7.
    let mut game = entry("game");
    game.limits.daily_quota = DailyQuota::every_day(minutes(30));
    let mut world = EngineHarness::new(policy(vec![game]), MONDAY_NOON);
    let lapsed =
        NewGrant { lapses_at: Some(wall_time(BERLIN, "2026-11-16 12:30")), ..grant(1, extra(minutes(30))) };
    let later =
        NewGrant { valid_from: Some(wall_time(BERLIN, "2026-11-16 20:00")), ..grant(2, extra(minutes(30))) };
    world.grant(lapsed);
    world.grant(later);
    world.clock.advance(hours(2));
    assert_eq!(world.view("game").max_run_if_started_now.map(|run| run.0), Some(30 * 60_000));
}

#[test]
fn a_new_plan_ends_a_removed_entry_and_charges_by_the_new_rules() {
    // S7.3.
    let replan = |entries| policy_with(entries, |rules| rules.on_reload = OnReload::Replan);
    let mut world = EngineHarness::new(replan(vec![entry("game")]), MONDAY_NOON);
    world.launch("game");
    world.engine.reload(replan(vec![entry("piano")]), None, "parent", world.now());
    assert!(world.tick().iter().any(|event| matches!(event, CoreEvent::ExpireDue { .. })));

    let mut counted = entry("game");
    counted.budgets = vec!["games".parse().unwrap()];
    let with_budget = policy_with(vec![counted], |rules| {
        rules.budgets.insert("games".parse().unwrap(), crate::harness::budget(hours(1)));
    });
    let mut world = EngineHarness::new(policy(vec![entry("game")]), MONDAY_NOON);
    world.launch("game");
    world.engine.reload(with_budget, None, "parent", world.now());
    world.run_for(minutes(40));
    world.exit();
    assert_eq!(world.view("game").max_run_if_started_now.map(|run| run.0), Some(20 * 60_000));
}

#[test]
fn a_reboot_is_no_break_and_the_uncertain_time_is_charged() {
    // S2.4, S9.2b.
    let policy = policy_with(vec![entry("a"), entry("b")], |rules| {
        rules.breaks = Some(BreakRule { after: hours(1), length: minutes(10) });
    });
    let mut world = EngineHarness::new(policy, MONDAY_NOON);
    world.launch("a");
    world.run_for(minutes(30));
    world.exit();
    world.launch("b");
    world.run_for(minutes(29));
    world.place.boot = boot(2);
    world.crash();
    let now = world.now().wall;
    world.clock = shepherd_util::ManualClock::starting_at(now);
    world.clock.advance(Duration::from_secs(3));
    world.engine.recover(SessionLiveness::Gone, world.now());
    world.sync();
    assert_eq!(world.used("b"), minutes(29) + Duration::from_secs(31));
    world.launch("a");
    assert!(world.remaining().unwrap() <= minutes(1), "{:?} in a row are left", world.remaining());
}

#[test]
fn a_program_that_ignores_its_end_is_charged_until_it_exits() {
    // S8.2.
    let game = entry_with_max_run(minutes(1));
    let mut world = EngineHarness::new(policy(vec![game]), MONDAY_NOON);
    world.launch("game");
    world.run_for(minutes(10));
    assert_eq!(world.used("game"), minutes(10));
}

#[test]
fn a_session_stopped_before_its_program_came_up_times_out() {
    // S3.6, S13.5: no session is left behind.
    let mut world = EngineHarness::new(policy(vec![entry("game")]), MONDAY_NOON);
    let LaunchDecision::Approved(_) = world.request_launch("game") else { panic!() };
    let request =
        StopRequest { by: StopRequester::User, mode: StopMode::Graceful, actor: "child".to_owned() };
    let _ = world.engine.stop_current(&request, world.now());
    let events = world.run_for(minutes(1));
    let timed_out = CoreEvent::SessionEnded {
        session_id: shepherd_util::SessionId::from_random(1),
        reason: EndReason::LaunchTimedOut,
    };
    assert!(events.contains(&timed_out), "{events:?}");
}

#[test]
fn the_ceiling_holds_on_every_day_of_a_long_grant() {
    // S2.7.
    let mut game = entry("game");
    game.limits.daily_quota = DailyQuota::every_day(hours(1));
    let policy = policy_with(vec![game], |rules| rules.ceilings.extra_per_day = Some(hours(1)));
    let mut world = EngineHarness::new(policy, MONDAY_NOON);
    let week =
        NewGrant { lapses_at: Some(wall_time(BERLIN, "2026-11-23 00:00")), ..grant(1, extra(hours(1))) };
    world.grant(week);
    world.clock.advance(hours(24));
    let error = world.engine.grant(grant(2, extra(minutes(1))), world.now()).unwrap_err();
    assert_eq!(error, GrantError::AboveCeiling { left: Duration::ZERO });
}

#[test]
fn a_grant_that_cannot_be_recorded_is_refused() {
    // S8.4b.
    let mut world = EngineHarness::new(policy(vec![entry("game")]), MONDAY_NOON);
    world.engine.store_failed("the disk is full".to_owned());
    let error = world.engine.grant(grant(1, extra(minutes(1))), world.now()).unwrap_err();
    assert_eq!(error.to_string(), "could not record the grant: the disk is full");
}

#[test]
fn a_session_keeps_its_plan_when_a_quota_shrinks_unless_the_policy_says_otherwise() {
    // S7.3, and a new plan keeps a grant.
    let test_policy = |quota, on_reload| {
        let mut game = entry_with_max_run(hours(1));
        game.limits.daily_quota = DailyQuota::every_day(quota);
        policy_with(vec![game], |rules| rules.on_reload = on_reload)
    };
    let mut world = EngineHarness::new(test_policy(hours(1), OnReload::KeepPlan), MONDAY_NOON);
    world.launch("game");
    world.run_for(minutes(10));
    world.engine.reload(test_policy(minutes(20), OnReload::KeepPlan), None, "parent", world.now());
    world.run_for(minutes(1));
    assert_eq!(world.remaining(), Some(minutes(49)));

    let mut world = EngineHarness::new(test_policy(hours(1), OnReload::Replan), MONDAY_NOON);
    world.launch("game");
    world.engine.extend_current(minutes(30), &GrantId::from_random(1), "parent", world.now()).unwrap();
    world.run_for(minutes(70));
    world.engine.reload(test_policy(hours(1), OnReload::Replan), None, "parent", world.now());
    assert_eq!(world.remaining(), Some(minutes(20)), "the extension is not forgotten");
}

#[test]
fn clients_get_an_event_when_sleep_moves_the_end() {
    // S3.5b.
    let game = entry_with_max_run(hours(1));
    let mut world = EngineHarness::new(policy(vec![game]), MONDAY_NOON);
    world.launch("game");
    world.tick();
    world.clock.suspend(hours(2));
    let events = world.tick();
    assert!(
        matches!(events[..], [CoreEvent::DeadlineChanged { remaining: Some(left), .. }] if left == hours(1))
    );
}

#[test]
fn ticking_at_next_due_misses_no_event() {
    // S4.7: a tick is due after a start, at midnight, and at the end of a pause.
    let mut game = entry("game");
    game.limits.daily_quota = DailyQuota::every_day(hours(1));
    game.limits.cooldown_after_run = minutes(10);
    let mut world = EngineHarness::new(policy(vec![game]), MONDAY_NOON);
    world.engine.recover(SessionLiveness::Gone, world.now());
    let due = |world: &EngineHarness| world.engine.next_due().map(|due| due.total_since(world.now().mono));
    assert_eq!(due(&world), Some(Duration::ZERO));
    world.tick();
    assert_eq!(due(&world), Some(hours(12)), "the refill at midnight");
    world.launch("game");
    world.run_for(minutes(5));
    world.exit();
    world.tick();
    assert_eq!(due(&world), Some(minutes(10)), "the end of the pause");
}

#[test]
fn a_clock_that_catches_up_is_due() {
    // S4.5, S4.7: the clock is set back by two hours, ten minutes of which are tolerated.
    let mut world = EngineHarness::new(policy(vec![entry("game")]), MONDAY_NOON);
    world.tick();
    world.move_wall(SignedDuration::from_hours(-2));
    assert_eq!(world.denied_codes("game"), ["clock-untrusted"]);
    let due = world.engine.next_due().unwrap().total_since(world.now().mono);
    assert_eq!(due, hours(1) + minutes(50));
    world.clock.advance(due);
    assert_eq!(world.tick(), [CoreEvent::EntryAvailabilityChanged]);
    world.launch("game");
}

#[test]
fn moving_to_a_zone_further_west_keeps_the_clock_trusted_and_gives_no_second_quota() {
    // S4.3, S4.5: windows follow the new zone; the accounting day stays, so the journey gains no quota.
    let mut game = entry_in_window((15, 0), (18, 0));
    game.limits.daily_quota = DailyQuota::every_day(hours(2));
    let test_policy = policy_with(vec![game], |rules| rules.zone = None);
    let mut world = EngineHarness::new(test_policy, "2026-11-16 17:00");
    world.launch("game");
    assert_eq!(world.play_until_expired(), hours(1));
    let now = world.now();
    world.engine.zone_changed(crate::harness::zone("America/New_York"), now);
    // It is noon in New York. The window opens there three hours later, with the rest of the day's quota.
    assert_eq!(world.denied_codes("game"), ["outside-hours"]);
    world.run_for(hours(3));
    world.launch("game");
    assert_eq!(world.play_until_expired(), hours(1));
    assert_eq!(world.denied_codes("game"), ["quota-exhausted"]);
}

#[test]
fn extra_time_for_a_budget_does_not_exceed_max_run() {
    // S2.7.
    let mut game = entry_with_max_run(minutes(30));
    game.budgets = vec!["games".parse().unwrap()];
    let policy = policy_with(vec![game], |rules| {
        rules.budgets.insert("games".parse().unwrap(), crate::harness::budget(minutes(20)));
    });
    let mut world = EngineHarness::new(policy, MONDAY_NOON);
    world.launch("game");
    world.run_for(minutes(5));
    let more = NewGrant {
        scope: EntryScope::Budget { budget_id: "games".parse().unwrap() },
        ..grant(1, extra(hours(1)))
    };
    world.grant(more);
    assert_eq!(world.remaining(), Some(minutes(25)));
}

#[test]
fn midnight_brings_no_new_ceiling() {
    // S2.7.
    let policy = policy_with(vec![entry_in_window((20, 0), (1, 0))], |rules| {
        rules.ceilings.open_until = shepherd_core::policy::MinuteOfDay::new(22, 0);
    });
    let mut world = EngineHarness::new(policy, "2026-11-16 23:30");
    world.launch("game");
    world.run_for(minutes(40));
    world.engine.extend_current(hours(8), &GrantId::from_random(1), "parent", world.now()).unwrap();
    assert_eq!(world.remaining(), Some(minutes(50)));
}

#[test]
fn with_two_profiles_none_is_chosen_by_default_and_refusals_are_recorded() {
    // S3.3, S8.3.
    let policy = policy_with(vec![entry("game")], |rules| {
        let label =
            |name: &str| shepherd_core::policy::Profile { label: name.to_owned(), accounts: Vec::new() };
        rules.profiles = [("anna", label("Anna")), ("ben", label("Ben"))]
            .map(|(id, label)| (id.parse().unwrap(), label))
            .into();
        rules.ceilings.extra_per_day = Some(minutes(1));
    });
    let mut world = EngineHarness::new(policy, MONDAY_NOON);
    assert_eq!(world.denied_codes("game"), ["not-for-profile"]);
    world.engine.grant(grant(1, extra(minutes(5))), world.now()).unwrap_err();
    world.sync();
    let refused = |event: &shepherd_api::AuditEvent| matches!(&event.what, shepherd_api::AuditKind::CommandRefused { reason, .. } if reason.contains("1 minute"));
    assert!(world.audit.iter().any(refused));
}
