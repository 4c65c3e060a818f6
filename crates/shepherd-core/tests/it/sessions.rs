//! The life of a session (S3.3 – S3.8, S9).

use std::time::Duration;

use jiff::SignedDuration;
use shepherd_api::{EndReason, GrantKind, StopMode, StopRequester};
use shepherd_core::policy::{
    AvailabilityPolicy, BreakRule, DailyQuota, DisabledReason, EarningRule, LimitsPolicy, OnShutdown,
    TimeBudget, TimeCost, UnlockRule, WarningPolicy, Weekdays,
};
use shepherd_core::{
    CoreEngine, CoreEvent, ExitInfo, HostCapabilities, LaunchDecision, NewGrant, SessionLiveness,
    StopDecision, StopRequest, StoredState, WarningMessage,
};
use shepherd_util::SessionId;

use crate::harness::{
    EngineHarness, MONDAY_NOON, boot, budget, entry, entry_with_max_run, hours, minutes, policy, policy_with,
    warning, warnings, window,
};

fn game() -> shepherd_core::policy::PolicyEntry {
    let mut game = entry_with_max_run(minutes(30));
    game.warnings = WarningPolicy::new(vec![warning(minutes(5)), warning(minutes(1)), warning(hours(2))]);
    game
}

#[test]
fn a_session_warns_expires_and_ends_each_once() {
    // S2.5, S3.5, S13.4: the two-hour warning does not fit into half an hour.
    let mut world = EngineHarness::new(policy(vec![game()]), MONDAY_NOON);
    let plan = world.launch("game");
    assert_eq!(plan.warnings.len(), 2);
    assert_eq!(plan.deadline.unwrap().total_since(world.now().mono), minutes(30));
    let events = world.run_for(minutes(40));
    assert_eq!(warnings(&events), [300, 60]);
    let expiries = events.iter().filter(|event| matches!(event, CoreEvent::ExpireDue { .. })).count();
    assert_eq!(expiries, 1);
    let events = world.exit();
    assert!(matches!(&events[0], CoreEvent::SessionEnded { reason: EndReason::Expired, .. }));
    assert!(world.engine.sessions().is_empty());
    assert!(world.view("game").enabled);
}

#[test]
fn the_deadline_is_the_least_of_all_that_apply() {
    // S3.4: max run 30 min, window 20 min, quota 10 min, budget 7 min.
    let mut world = EngineHarness::new(policy(vec![game()]), MONDAY_NOON);
    assert_eq!(world.launch("game").deadline.unwrap().total_since(world.now().mono), minutes(30));
    let mut by_window = game();
    by_window.availability = AvailabilityPolicy::Windows(vec![window(Weekdays::ALL, (11, 0), (12, 20))]);
    let mut world = EngineHarness::new(policy(vec![by_window.clone()]), MONDAY_NOON);
    assert_eq!(world.launch("game").deadline.unwrap().total_since(world.now().mono), minutes(20));
    by_window.limits.daily_quota = DailyQuota::every_day(minutes(10));
    let mut world = EngineHarness::new(policy(vec![by_window.clone()]), MONDAY_NOON);
    assert_eq!(world.launch("game").deadline.unwrap().total_since(world.now().mono), minutes(10));
    by_window.budgets = vec!["games".parse().unwrap()];
    let policy = policy_with(vec![by_window], |rules| {
        rules.budgets.insert("games".parse().unwrap(), budget(minutes(7)));
    });
    let mut world = EngineHarness::new(policy, MONDAY_NOON);
    assert_eq!(world.view("game").max_run_if_started_now.map(|run| run.0), Some(7 * 60_000));
    assert_eq!(world.launch("game").deadline.unwrap().total_since(world.now().mono), minutes(7));
}

#[test]
fn a_session_without_limits_has_no_end() {
    // S3.4: no deadline means no limit.
    let mut world = EngineHarness::new(policy(vec![entry("piano")]), MONDAY_NOON);
    assert_eq!(world.launch("piano").deadline, None);
    assert_eq!(world.run_for(hours(100)), []);
    assert_eq!(world.remaining(), None);
    assert_eq!(world.used("piano"), hours(100));
}

#[test]
fn a_denial_lists_all_its_reasons() {
    // S3.3, S3.8.
    let mut closed = game();
    closed.disabled = Some(DisabledReason { reason: Some("broken".to_owned()) });
    closed.availability = AvailabilityPolicy::Windows(vec![window(Weekdays::WEEKENDS, (9, 0), (10, 0))]);
    closed.limits.daily_quota = DailyQuota::every_day(Duration::ZERO);
    let mut world = EngineHarness::new(policy(vec![closed, entry("piano")]), MONDAY_NOON);
    world.launch("piano");
    assert_eq!(
        world.denied_codes("game"),
        ["disabled", "session-active", "outside-hours", "quota-exhausted"]
    );
    assert_eq!(world.denied_codes("nothing"), ["unknown-entry"]);
}

#[test]
fn budgets_are_shared_and_free_entries_cost_nothing() {
    // S2.4.
    let mut games = [entry("tux"), entry("frogs"), entry("maths")];
    for game in &mut games {
        game.budgets = vec!["games".parse().unwrap()];
    }
    games[2].cost = TimeCost::Free;
    let policy = policy_with(games.to_vec(), |rules| {
        rules.budgets.insert("games".parse().unwrap(), budget(hours(1)));
    });
    let mut world = EngineHarness::new(policy, MONDAY_NOON);
    world.launch("tux");
    world.run_for(minutes(40));
    world.exit();
    world.launch("maths");
    world.run_for(hours(3));
    world.exit();
    assert_eq!(world.used("maths"), hours(3), "it is recorded all the same");
    world.launch("frogs");
    assert_eq!(world.play_until_expired(), minutes(20));
    assert_eq!(world.denied_codes("tux"), ["quota-exhausted"]);
    let again = world.view("tux").next_available.unwrap();
    assert_eq!(again, crate::harness::wall_time(crate::harness::BERLIN, "2026-11-17 00:00"));
}

#[test]
fn use_earns_and_unlocks() {
    // S2.4: ten minutes of play for each twenty of maths, at most half an hour; and maths first.
    let mut maths = entry("maths");
    maths.cost = TimeCost::Free;
    maths.earns = Some(EarningRule {
        budget: "games".parse().unwrap(),
        for_each: minutes(20),
        earned: minutes(10),
        ceiling: minutes(30),
    });
    let mut game = entry("game");
    game.budgets = vec!["games".parse().unwrap()];
    game.unlock = Some(UnlockRule { entry_id: "maths".parse().unwrap(), at_least: minutes(20) });
    let policy = policy_with(vec![maths, game], |rules| {
        rules.budgets.insert("games".parse().unwrap(), budget(Duration::ZERO));
    });
    let mut world = EngineHarness::new(policy, "2026-11-16 08:00");
    assert_eq!(world.denied_codes("game"), ["not-unlocked", "quota-exhausted"]);
    world.launch("maths");
    world.run_for(minutes(39));
    world.exit();
    assert_eq!(world.view("game").max_run_if_started_now.map(|run| run.0), Some(10 * 60_000));
    world.launch("maths");
    world.run_for(hours(5));
    world.exit();
    world.launch("game");
    assert_eq!(world.play_until_expired(), minutes(30));
}

#[test]
fn earned_time_raises_the_daily_quota_but_not_the_weekly() {
    // S2.4: the weekly quota is the stricter limit.
    let mut maths = entry("maths");
    maths.earns = Some(EarningRule {
        budget: "games".parse().unwrap(),
        for_each: minutes(20),
        earned: minutes(20),
        ceiling: hours(1),
    });
    let mut game = entry("game");
    game.budgets = vec!["games".parse().unwrap()];
    let policy = policy_with(vec![maths, game], |rules| {
        let games = TimeBudget { weekly: Some(minutes(90)), ..budget(minutes(30)) };
        rules.budgets.insert("games".parse().unwrap(), games);
    });
    let mut world = EngineHarness::new(policy, "2026-11-16 08:00");
    for (left_today, day) in [(minutes(70), "Monday"), (minutes(20), "Tuesday")] {
        world.launch("maths");
        world.run_for(minutes(40));
        world.exit();
        world.launch("game");
        assert_eq!(world.play_until_expired(), left_today, "{day}");
        world.clock.advance(hours(24));
    }
    assert_eq!(world.denied_codes("game"), ["quota-exhausted"], "nothing is left of the week");
}

#[test]
fn a_break_is_due_after_uninterrupted_use() {
    // S2.4.
    let policy = policy_with(vec![entry("a"), entry("b")], |rules| {
        rules.breaks = Some(BreakRule { after: hours(2), length: minutes(15) });
    });
    let mut world = EngineHarness::new(policy, MONDAY_NOON);
    world.launch("a");
    world.run_for(minutes(90));
    world.exit();
    world.run_for(minutes(10));
    world.launch("b");
    assert_eq!(world.play_until_expired(), minutes(30), "ten minutes are no break");
    assert_eq!(world.denied_codes("a"), ["break-needed"]);
    world.run_for(minutes(15));
    world.launch("a");
    assert_eq!(world.play_until_expired(), hours(2));
}

#[test]
fn a_cooldown_follows_a_run_but_not_a_failed_launch() {
    // S2.4, S3.5b.
    let mut game = game();
    game.limits.cooldown_after_run = minutes(10);
    let mut world = EngineHarness::new(policy(vec![game]), MONDAY_NOON);
    let LaunchDecision::Approved(plan) = world.request_launch("game") else { panic!() };
    let events = world.engine.launch_failed(&plan.session_id, "no such file".to_owned(), world.now());
    assert!(matches!(&events[0], CoreEvent::SessionEnded { reason: EndReason::LaunchFailed { .. }, .. }));
    assert_eq!(world.used("game"), Duration::ZERO);
    world.launch("game");
    world.run_for(minutes(1));
    world.exit();
    assert_eq!(world.denied_codes("game"), ["cooldown"]);
    // S4.5: changing the clock does not end it sooner.
    world.move_wall(SignedDuration::from_hours(1));
    assert_eq!(world.denied_codes("game"), ["cooldown"]);
    world.run_for(minutes(10));
    world.launch("game");
}

/// Launches the game, and lets it exit after some time with this exit code or signal.
fn crash(world: &mut EngineHarness, after: Duration, code: Option<i32>, signal: Option<i32>) {
    world.launch("game");
    world.run_for(after);
    world.exit_with(code, signal);
}

#[test]
fn a_crash_soon_after_the_launch_causes_no_cooldown() {
    // S2.4.
    let seconds = Duration::from_secs;
    let mut game = game();
    game.limits.cooldown_after_run = minutes(10);
    let start =
        |game: shepherd_core::policy::PolicyEntry| EngineHarness::new(policy(vec![game]), MONDAY_NOON);
    for (code, signal, is_excused) in [
        (Some(1), None, true),
        (None, Some(11), true),
        (None, Some(6), true),
        (Some(0), None, false),
        (None, None, false),
        // A person stopped the session.
        (None, Some(15), false),
        (None, Some(9), false),
        (None, Some(1), false),
    ] {
        let mut world = start(game.clone());
        crash(&mut world, seconds(9), code, signal);
        assert_eq!(world.used("game"), seconds(9));
        assert_eq!(world.view("game").enabled, is_excused, "{code:?} {signal:?}");
    }
    let mut world = start(game.clone());
    crash(&mut world, seconds(10), Some(1), None);
    assert_eq!(world.denied_codes("game"), ["cooldown"], "too late");
    game.limits.crash_within = Duration::ZERO;
    let mut world = start(game);
    crash(&mut world, seconds(1), Some(1), None);
    assert_eq!(world.denied_codes("game"), ["cooldown"], "switched off");
}

#[test]
fn a_stop_soon_after_the_launch_causes_a_cooldown() {
    // S2.4: whatever the exit code of the program is.
    let mut game = game();
    game.limits.cooldown_after_run = minutes(10);
    let mut world = EngineHarness::new(policy(vec![game]), MONDAY_NOON);
    world.launch("game");
    let stop = StopRequest { by: StopRequester::User, mode: StopMode::Graceful, actor: "anna".to_owned() };
    let _ = world.engine.stop_current(&stop, world.now());
    world.exit_with(Some(1), None);
    assert_eq!(world.denied_codes("game"), ["cooldown"]);
}

#[test]
fn at_most_three_crashes_in_a_row_cause_no_cooldown() {
    // S2.4: a program that fails on purpose after nine seconds of play does not avoid the cooldown.
    let seconds = Duration::from_secs;
    let mut game = game();
    game.limits.cooldown_after_run = minutes(10);
    let mut world = EngineHarness::new(policy(vec![game]), MONDAY_NOON);
    for _ in 0..2 {
        for _ in 0..3 {
            crash(&mut world, seconds(9), Some(1), None);
            assert!(world.view("game").enabled);
        }
        crash(&mut world, seconds(9), Some(1), None);
        assert_eq!(world.denied_codes("game"), ["cooldown"]);
        world.run_for(minutes(10));
    }
    assert_eq!(world.used("game"), seconds(8 * 9));
}

#[test]
fn a_launch_that_hangs_times_out() {
    // S3.6.
    let mut world = EngineHarness::new(policy(vec![game()]), MONDAY_NOON);
    let LaunchDecision::Approved(_) = world.request_launch("game") else { panic!() };
    let events = world.run_for(minutes(1));
    assert!(
        events
            .iter()
            .any(|event| matches!(event, CoreEvent::SessionEnded { reason: EndReason::LaunchTimedOut, .. }))
    );
    assert!(world.view("game").enabled);
}

#[test]
fn a_restarted_daemon_continues_from_the_original_start() {
    // S9.1: no warning is repeated, the deadline stays, and nothing is lost.
    let mut world = EngineHarness::new(policy(vec![game()]), MONDAY_NOON);
    world.launch("game");
    let before = world.run_for(minutes(26));
    assert_eq!(warnings(&before), [300]);
    world.crash();
    world.clock.advance(minutes(2));
    let after = world.engine.recover(SessionLiveness::Alive { handle: "handle".to_owned() }, world.now());
    world.sync();
    assert_eq!(warnings(&after), Vec::<u64>::new());
    assert_eq!(world.remaining(), Some(minutes(2)));
    assert_eq!(world.used("game"), minutes(28));
    world.crash();
    world.clock.advance(minutes(10));
    let late = world.engine.recover(SessionLiveness::Alive { handle: "handle".to_owned() }, world.now());
    assert!(
        late.iter().any(|event| matches!(event, CoreEvent::ExpireDue { .. })),
        "a passed deadline is enforced at once"
    );
}

#[test]
fn a_session_whose_program_is_gone_is_ended_and_charged() {
    // S9.2, S9.2b.
    let mut world = EngineHarness::new(policy(vec![game()]), MONDAY_NOON);
    world.launch("game");
    world.run_for(minutes(3));
    world.crash();
    let events = world.engine.recover(SessionLiveness::Gone, world.now());
    world.sync();
    assert!(matches!(&events[0], CoreEvent::SessionEnded { reason: EndReason::Lost, .. }));
    assert_eq!(world.used("game"), minutes(3));
    assert!(world.engine.sessions().is_empty());
}

#[test]
fn a_reboot_ends_the_session_and_gains_no_time() {
    // S9.2, S9.2b.
    let mut world = EngineHarness::new(policy(vec![game()]), MONDAY_NOON);
    world.launch("game");
    world.run_for(minutes(3));
    // The last seven seconds are not charged yet when the power fails.
    world.advance(Duration::from_secs(7));
    world.place.boot = boot(2);
    world.crash();
    let events = world.engine.recover(SessionLiveness::Gone, world.now());
    world.sync();
    assert!(matches!(&events[0], CoreEvent::SessionEnded { reason: EndReason::Lost, .. }));
    let used = world.used("game");
    assert!(used >= minutes(3) + Duration::from_secs(7), "never in the child's favour: {used:?}");
    assert!(used <= minutes(3) + Duration::from_secs(7 + 31), "at most to the next sign of life: {used:?}");
}

#[test]
fn stopping_is_for_the_session_that_runs() {
    // S3.5, S6.2b.
    let mut world = EngineHarness::new(policy(vec![game()]), MONDAY_NOON);
    let request =
        StopRequest { by: StopRequester::User, mode: StopMode::Graceful, actor: "child".to_owned() };
    assert_eq!(world.engine.stop_current(&request, world.now()), StopDecision::NothingToStop);
    let plan = world.launch("game");
    world.run_for(minutes(1));
    let StopDecision::Stop { session_id, .. } = world.engine.stop_current(&request, world.now()) else {
        panic!()
    };
    assert_eq!(session_id, plan.session_id);
    let stranger = ExitInfo { session_id: SessionId::from_random(999), code: Some(0), signal: None };
    assert_eq!(world.engine.notify_session_exited(&stranger, world.now()), []);
    let events = world.exit();
    assert!(matches!(
        &events[0],
        CoreEvent::SessionEnded { reason: EndReason::Stopped { by: StopRequester::User }, .. }
    ));
}

fn extra(id: u128, amount: Duration) -> NewGrant {
    crate::harness::grant(id, crate::harness::extra(amount))
}

#[test]
fn a_grant_lengthens_the_running_session_and_replans_its_warnings() {
    // S2.7, S3.5b.
    let mut game = game();
    game.limits.daily_quota = DailyQuota::every_day(minutes(30));
    let mut world = EngineHarness::new(policy(vec![game]), MONDAY_NOON);
    world.launch("game");
    assert_eq!(warnings(&world.run_for(minutes(26))), [300]);
    let events = world.engine.grant(extra(1, minutes(15)), world.now()).unwrap();
    world.sync();
    assert!(events.iter().any(|event| matches!(event, CoreEvent::DeadlineChanged { .. })));
    assert_eq!(world.remaining(), Some(minutes(19)));
    let events = world.run_for(minutes(25));
    assert_eq!(warnings(&events), [300, 60], "each before the new end, none missed");
    assert_eq!(world.engine.sessions().only().unwrap().given.len(), 2);
    world.exit();
    assert_eq!(world.denied_codes("game"), ["quota-exhausted"]);
}

#[test]
fn a_grant_opens_a_window_in_advance_and_up_to_the_ceiling() {
    // S2.7.
    let mut game = game();
    game.availability = AvailabilityPolicy::Windows(vec![window(Weekdays::ALL, (15, 0), (16, 0))]);
    let policy = policy_with(vec![game], |rules| {
        rules.ceilings.open_until = shepherd_core::policy::MinuteOfDay::new(20, 0);
        rules.ceilings.extra_per_day = Some(minutes(20));
    });
    let mut world = EngineHarness::new(policy, MONDAY_NOON);
    let at = |civil: &str| crate::harness::wall_time(crate::harness::BERLIN, civil);
    let open = |from: &str, until: &str, id| NewGrant {
        gift: GrantKind::OpenUntil { until: at(until) },
        valid_from: Some(at(from)),
        ..extra(id, Duration::ZERO)
    };
    assert!(world.engine.grant(open("2026-11-16 18:00", "2026-11-16 21:00", 1), world.now()).is_err());
    world.grant(open("2026-11-16 18:00", "2026-11-16 19:00", 2));
    world.clock.advance(minutes(361));
    world.tick();
    assert!(world.view("game").enabled);
    assert!(world.engine.grant(extra(3, minutes(15)), world.now()).is_ok());
    let error = world.engine.grant(extra(4, minutes(10)), world.now()).unwrap_err();
    assert_eq!(error.to_string(), "the policy allows at most 5 minutes more on that day");
}

#[test]
fn a_revoked_grant_shortens_a_running_session() {
    // S2.7.
    let mut game = entry("game");
    game.limits = LimitsPolicy { daily_quota: DailyQuota::every_day(minutes(10)), ..LimitsPolicy::default() };
    let mut world = EngineHarness::new(policy(vec![game]), MONDAY_NOON);
    world.grant(extra(1, minutes(30)));
    world.launch("game");
    world.run_for(minutes(5));
    assert_eq!(world.remaining(), Some(minutes(35)));
    world.revoke(1);
    assert_eq!(world.remaining(), Some(minutes(5)));
}

#[test]
fn a_session_stopped_while_it_was_launching_ends_and_costs_nothing() {
    // S3.6: no stop is lost between the approval and the start.
    let request =
        StopRequest { by: StopRequester::User, mode: StopMode::Graceful, actor: "child".to_owned() };
    let mut game = game();
    let mut world = EngineHarness::new(policy(vec![game.clone()]), MONDAY_NOON);
    let LaunchDecision::Approved(plan) = world.request_launch("game") else { panic!() };
    let _ = world.engine.stop_current(&request, world.now());
    world.clock.advance(Duration::from_secs(2));
    let events = world.engine.start_session(&plan.session_id, "handle".to_owned(), world.now()).unwrap();
    assert!(matches!(&events[..], [CoreEvent::ExpireDue { .. }]), "started after all: it must be ended");
    world.exit();
    assert_eq!(world.used("game"), Duration::ZERO);

    game.limits.cooldown_after_run = minutes(10);
    let mut world = EngineHarness::new(policy(vec![game]), MONDAY_NOON);
    let LaunchDecision::Approved(plan) = world.request_launch("game") else { panic!() };
    let _ = world.engine.stop_current(&request, world.now());
    let events = world.engine.launch_failed(&plan.session_id, "no".to_owned(), world.now());
    assert!(matches!(&events[0], CoreEvent::SessionEnded { .. }));
    assert!(world.view("game").enabled);
}

#[test]
fn a_program_that_starts_after_the_launch_timeout_is_refused() {
    // S3.6.
    let mut world = EngineHarness::new(policy(vec![game()]), MONDAY_NOON);
    let LaunchDecision::Approved(plan) = world.request_launch("game") else { panic!() };
    world.run_for(minutes(1));
    assert!(world.engine.start_session(&plan.session_id, "handle".to_owned(), world.now()).is_err());
}

#[test]
fn a_shutdown_charges_the_time_until_then() {
    // S9.2b, S9.3.
    for (on_shutdown, ended) in [(OnShutdown::LeaveSessions, 0), (OnShutdown::EndSessions, 1)] {
        let policy = policy_with(vec![game()], |rules| rules.on_shutdown = on_shutdown);
        let mut world = EngineHarness::new(policy, MONDAY_NOON);
        world.launch("game");
        world.clock.advance(Duration::from_millis(12_345));
        assert_eq!(world.engine.shut_down(world.now()).len(), ended);
        world.sync();
        assert_eq!(world.used("game"), Duration::from_millis(12_345));
    }
}

#[test]
fn an_engine_is_built_from_policy_stored_state_and_capabilities() {
    // S3.1, S5.1: the same engine refuses kinds that the host can't run.
    let world = EngineHarness::new(policy(vec![game()]), MONDAY_NOON);
    let mut poor = HostCapabilities::all_supported();
    poor.spawn_kinds_supported.remove("process");
    let engine = CoreEngine::new(policy(vec![game()]), StoredState::default(), poor, world.place.clone());
    assert!(!engine.capabilities().spawn_kinds_supported.contains("process"));
    assert!(engine.capabilities().spawn_kinds_supported.contains("vm"));
    let reasons = &engine.list_entries(world.now())[0].reasons;
    assert_eq!(reasons.iter().map(shepherd_api::ReasonCode::code).collect::<Vec<_>>(), ["host-cannot-run"]);
}

#[test]
fn every_event_of_a_session_has_its_profile_and_remaining_time() {
    // S3.7.
    let mut world = EngineHarness::new(policy(vec![game()]), MONDAY_NOON);
    let LaunchDecision::Approved(plan) = world.request_launch("game") else { panic!() };
    let started = world.engine.start_session(&plan.session_id, "handle".to_owned(), world.now()).unwrap();
    let expected = CoreEvent::SessionStarted {
        session_id: plan.session_id.clone(),
        entry_id: "game".parse().unwrap(),
        deadline: plan.deadline,
    };
    assert_eq!(started, [expected]);
    let events = world.run_for(minutes(25));
    let warning = CoreEvent::Warning {
        session_id: plan.session_id.clone(),
        threshold_secs: 300,
        remaining: minutes(5),
        severity: shepherd_api::WarningSeverity::Warn,
        message: WarningMessage { template: None, label: "game".to_owned(), profile: "default".to_owned() },
    };
    assert_eq!(events, [warning]);
}

#[test]
fn nothing_is_due_while_nothing_can_happen() {
    // S4.7: an idle daemon does not wake up; with a session it wakes for warnings and the end.
    let mut world = EngineHarness::new(policy(vec![game()]), MONDAY_NOON);
    world.tick();
    assert_eq!(world.engine.next_due(), None);
    world.launch("game");
    world.tick();
    let due = |world: &EngineHarness| world.engine.next_due().unwrap().total_since(world.now().mono);
    assert_eq!(due(&world), minutes(25));
    world.run_for(minutes(25) - Duration::from_secs(5));
    assert_eq!(due(&world), Duration::from_secs(5), "the warning, to the second");
    world.run_for(minutes(5) + Duration::from_secs(1));
    assert_eq!(due(&world), Duration::from_secs(4), "the end, to the second");

    // The opening of a window is a reason to wake up.
    let mut evening = game();
    evening.availability = AvailabilityPolicy::Windows(vec![window(Weekdays::ALL, (18, 0), (20, 0))]);
    let mut world = EngineHarness::new(policy(vec![evening]), MONDAY_NOON);
    world.tick();
    assert_eq!(due(&world), hours(6));
    let events = world.run_for(hours(6));
    assert_eq!(events, [CoreEvent::EntryAvailabilityChanged]);
}
