//! The engine's answers in the types of the protocol: grants, requests, usage, events and refusals (S10).

use std::time::Duration;

use shepherd_api::{
    ApiError, EndReason, EntryScope, ErrorCode, EventKind, Language, Millis, SessionPhase, StopMode,
    StopRequester, TimeInterval, TimeRequestState, UsageView,
};
use shepherd_core::policy::{
    AvailabilityPolicy, DailyQuota, EarningRule, UnlockRule, WarningPolicy, Weekdays,
};
use shepherd_core::{
    CoreEvent, GrantError, LaunchDecision, NewGrant, NewTimeRequest, QueryError, StopRequest,
    UnknownModeError,
};
use shepherd_util::{EntryId, GrantId, ProfileId, RequestId};

use crate::harness::{
    BERLIN, EngineHarness, MONDAY_NOON, budget, entry, entry_with_max_run, extra, grant, hours, minutes,
    policy, policy_with, wall_time, warning, window,
};

fn entry_scope(id: &str) -> EntryScope {
    EntryScope::Entry { entry_id: id.parse().unwrap() }
}

fn budget_scope(id: &str) -> EntryScope {
    EntryScope::Budget { budget_id: id.parse().unwrap() }
}

#[test]
fn current_and_future_grants_are_listed_and_lapsed_grants_can_be_found() {
    // S2.7.
    let mut game = entry("game");
    game.limits.max_run = Some(minutes(30));
    let mut world = EngineHarness::new(policy(vec![game]), MONDAY_NOON);
    let now = world.now();
    let tomorrow = NewGrant {
        valid_from: Some(wall_time(BERLIN, "2026-11-17 08:00")),
        scope: entry_scope("game"),
        ..grant(2, extra(minutes(10)))
    };
    world.engine.grant(grant(1, extra(minutes(5))), now).unwrap();
    world.engine.grant(tomorrow, now).unwrap();
    world.engine.grant(grant(3, extra(minutes(5))), now).unwrap();
    world.engine.revoke(&GrantId::from_random(3), "parent", now).unwrap();
    let held = |world: &EngineHarness| -> Vec<GrantId> {
        world.engine.active_grants(world.now()).into_iter().map(|grant| grant.grant_id).collect()
    };
    assert_eq!(held(&world), [GrantId::from_random(1), GrantId::from_random(2)]);
    world.run_for(hours(12));
    assert_eq!(held(&world), [GrantId::from_random(2)], "the first lapsed at midnight");
    assert!(world.engine.find_grant(&GrantId::from_random(1)).is_some());
    assert_eq!(world.engine.find_grant(&GrantId::from_random(3)).unwrap().revoked_at, Some(now.wall));
    assert_eq!(world.engine.find_grant(&GrantId::from_random(9)), None);
}

#[test]
fn a_request_is_shown_with_its_state() {
    // S2.7, S10.3.
    let mut world = EngineHarness::new(policy(vec![entry("game")]), MONDAY_NOON);
    let new = NewTimeRequest {
        request_id: RequestId::from_random(1),
        profile: ProfileId::default(),
        entry_id: "game".parse().unwrap(),
        amount: minutes(20),
        note: Some("please".to_owned()),
        actor: "child".to_owned(),
    };
    world.engine.request_time(new, world.now()).unwrap();
    let shown = world.engine.requests();
    assert_eq!(
        (shown.len(), shown[0].amount, &shown[0].state),
        (1, Millis(1_200_000), &TimeRequestState::Asked)
    );
    world.engine.deny_request(&RequestId::from_random(1), None, "parent", world.now()).unwrap();
    let denied = world.engine.find_request(&RequestId::from_random(1)).unwrap();
    assert_eq!(denied.state, TimeRequestState::Denied { why: None });
    assert_eq!(world.engine.find_request(&RequestId::from_random(2)), None);
}

#[test]
fn usage_is_reported_by_day_with_its_limit() {
    // S10: limits include earned and granted time; without a limit the field is empty.
    let mut game = entry("game");
    game.limits.daily_quota = DailyQuota::every_day(hours(1));
    game.budgets = vec!["games".parse().unwrap()];
    let mut maths = entry("maths");
    maths.earns = Some(EarningRule {
        budget: "games".parse().unwrap(),
        for_each: minutes(20),
        earned: minutes(10),
        ceiling: minutes(30),
    });
    let test_policy = policy_with(vec![game, maths], |rules| {
        rules.budgets.insert("games".parse().unwrap(), budget(hours(2)));
    });
    let mut world = EngineHarness::new(test_policy, "2026-11-16 23:00");
    world.launch("maths");
    world.run_for(minutes(40));
    world.exit();
    world.engine.grant(grant(1, extra(minutes(5))), world.now()).unwrap();
    world.launch("game");
    world.run_for(minutes(30));
    world.exit();
    let usage = |from: &str, to: &str| {
        world.engine.usage(from.parse().unwrap(), to.parse().unwrap(), Some(&ProfileId::default()))
    };
    let row = |day: &str, of: EntryScope, used: u64, limit: Option<u64>| UsageView {
        day: day.parse().unwrap(),
        profile: ProfileId::default(),
        of,
        used: minutes(used).into(),
        limit: limit.map(|limit| minutes(limit).into()),
    };
    let monday = [
        row("2026-11-16", entry_scope("game"), 20, Some(65)),
        row("2026-11-16", entry_scope("maths"), 40, None),
        row("2026-11-16", budget_scope("games"), 20, Some(120 + 20 + 5)),
    ];
    let tuesday = [
        row("2026-11-17", entry_scope("game"), 10, Some(60)),
        row("2026-11-17", budget_scope("games"), 10, Some(120)),
    ];
    assert_eq!(usage("2026-11-16", "2026-11-17").unwrap(), [&monday[..], &tuesday[..]].concat());
    assert_eq!(usage("2026-11-17", "2026-11-17").unwrap(), tuesday);
    assert_eq!(usage("2026-11-18", "2027-02-17").unwrap(), []);
    let nobody: ProfileId = "nobody".parse().unwrap();
    let (from, to) = ("2026-11-16".parse().unwrap(), "2026-11-17".parse().unwrap());
    assert_eq!(world.engine.usage(from, to, Some(&nobody)), Ok(Vec::new()));
    assert_eq!(world.engine.usage(from, to, None).unwrap().len(), 5);
}

#[test]
fn query_ranges_are_bounded() {
    // S10.
    let world = EngineHarness::new(policy(vec![entry("game")]), MONDAY_NOON);
    let usage = |from: &str, to: &str| {
        world.engine.usage(from.parse().unwrap(), to.parse().unwrap(), None).map(|_| ())
    };
    assert_eq!(usage("2026-11-16", "2026-11-16"), Ok(()));
    assert_eq!(usage("2026-11-16", "2026-11-15"), Err(QueryError::EmptyRange));
    assert_eq!(usage("2026-01-01", "2026-04-02"), Ok(()));
    assert_eq!(usage("2026-01-01", "2026-04-03"), Err(QueryError::RangeTooLong { days: 92 }));
    assert_eq!(usage("-009999-01-01", "9999-12-31"), Err(QueryError::RangeTooLong { days: 92 }));
    let from = world.now().wall;
    let timeline = |length: Duration| {
        world.engine.timeline(&ProfileId::default(), from, from.checked_add(length).unwrap()).map(|_| ())
    };
    assert_eq!(timeline(hours(42 * 24)), Ok(()));
    assert_eq!(timeline(hours(42 * 24) + minutes(1)), Err(QueryError::RangeTooLong { days: 42 }));
    assert_eq!(timeline(Duration::ZERO), Err(QueryError::EmptyRange));
    let all_of_time =
        world.engine.timeline(&ProfileId::default(), jiff::Timestamp::MIN, jiff::Timestamp::MAX);
    assert_eq!(all_of_time.map(|_| ()), Err(QueryError::RangeTooLong { days: 42 }));
}

#[test]
fn events_carry_the_session_whole() {
    // S10.4.
    let mut game = entry_with_max_run(minutes(30));
    game.warnings = WarningPolicy::new(vec![warning(minutes(5))]);
    let mut world = EngineHarness::new(policy(vec![game]), MONDAY_NOON);
    let LaunchDecision::Approved(plan) = world.request_launch("game") else { panic!() };
    let started = world.engine.start_session(&plan.session_id, "handle".to_owned(), world.now()).unwrap();
    let EventKind::SessionStarted { session } = world.event_kind(&started[0]) else { panic!() };
    assert_eq!((session.phase, session.remaining), (SessionPhase::Running, Some(Millis(1_800_000))));
    assert_eq!(world.engine.get_state(world.now()).session, Some(session));

    let events = world.run_for(minutes(25));
    let warned = events.iter().find(|event| matches!(event, CoreEvent::Warning { .. })).unwrap();
    let EventKind::WarningIssued { session, threshold_secs, message, .. } = world.event_kind(warned) else {
        panic!()
    };
    assert_eq!((session.phase, session.remaining), (SessionPhase::Warned, Some(Millis(300_000))));
    assert_eq!((threshold_secs, message.as_str()), (300, "game: 5 minutes"));

    let events = world.run_for(minutes(5));
    let due = events.iter().find(|event| matches!(event, CoreEvent::ExpireDue { .. })).unwrap();
    let EventKind::SessionExpired { session, end } = world.event_kind(due) else { panic!() };
    assert_eq!((session.phase, end), (SessionPhase::Expiring, EndReason::Expired));

    let ended: Vec<EventKind> = world.exit().iter().map(|event| world.event_kind(event)).collect();
    let session_id = session.session_id;
    assert_eq!(
        ended,
        [EventKind::SessionEnded { session_id, end: EndReason::Expired }, EventKind::EntriesChanged {}]
    );
    // An event of a session that is gone becomes the current state.
    let late = world.event_kind(due);
    assert_eq!(late, EventKind::StateChanged { snapshot: world.engine.get_state(world.now()) });
    let reloaded = world.event_kind(&CoreEvent::PolicyReloaded { entry_count: 1 });
    assert_eq!(reloaded, EventKind::PolicyReloaded { entry_count: 1, language: Some(Language::English) });
}

#[test]
fn a_stopped_session_expires_with_the_reason_stopped() {
    // S10.4.
    let mut world = EngineHarness::new(policy(vec![entry("game")]), MONDAY_NOON);
    let session_id = world.launch("game").session_id;
    let stop = StopRequest { by: StopRequester::Admin, mode: StopMode::Force, actor: "parent".to_owned() };
    let _ = world.engine.stop_current(&stop, world.now());
    let event = world.event_kind(&CoreEvent::ExpireDue { session_id });
    let by = StopRequester::Admin;
    assert!(
        matches!(event, EventKind::SessionExpired { end: EndReason::Stopped { by: stopped_by }, .. } if stopped_by == by)
    );
}

#[test]
fn a_refusal_has_a_code_and_a_sentence() {
    // S3.8, S10.
    let check = |error: ApiError, code: ErrorCode, sentence: &str| {
        assert_eq!((error.code, error.sentence.as_str()), (code, sentence));
    };
    let ceiling = GrantError::AboveCeiling { left: minutes(10) };
    check(ceiling.into(), ErrorCode::OverCeiling, "The policy allows at most 10 minutes more on that day.");
    let latest = shepherd_core::policy::MinuteOfDay::new(20, 0).unwrap();
    let too_late = GrantError::TooLate { latest };
    check(too_late.into(), ErrorCode::OverCeiling, "The policy allows no opening after 20:00.");
    check(GrantError::NoSession.into(), ErrorCode::NoSession, "Nothing is running.");
    check(GrantError::SessionEnding.into(), ErrorCode::NoSession, "The session is already being ended.");
    check(
        GrantError::AlreadyDecided.into(),
        ErrorCode::AlreadyDecided,
        "The request has already been decided.",
    );
    let chess: EntryId = "chess".parse().unwrap();
    check(GrantError::UnknownEntry(chess.clone()).into(), ErrorCode::UnknownEntry, "No such entry `chess`.");
    check(QueryError::UnknownEntry(chess).into(), ErrorCode::UnknownEntry, "No such entry `chess`.");
    check(
        QueryError::RangeTooLong { days: 42 }.into(),
        ErrorCode::InvalidRange,
        "The time range is longer than 42 days.",
    );
    let unknown_mode = |known: &[&str]| UnknownModeError {
        mode: "grandma".to_owned(),
        known: known.iter().map(|mode| (*mode).to_owned()).collect(),
    };
    check(
        unknown_mode(&["holiday", "school"]).into(),
        ErrorCode::UnknownMode,
        "No such mode `grandma`; the modes are `holiday`, `school`.",
    );
    check(
        unknown_mode(&[]).into(),
        ErrorCode::UnknownMode,
        "No such mode `grandma`; the policy has no modes.",
    );
}

#[test]
fn an_entry_shows_the_time_left_today_and_its_grants() {
    // S2.7, S3.2.
    let mut game = entry("game");
    game.limits.daily_quota = DailyQuota::every_day(hours(1));
    game.limits.max_run = Some(minutes(30));
    game.budgets = vec!["games".parse().unwrap()];
    let mut other = entry("other");
    other.limits.max_run = Some(minutes(30));
    let policy = policy_with(vec![game, other, entry("free")], |rules| {
        rules.budgets.insert("games".parse().unwrap(), budget(minutes(50)));
    });
    let mut world = EngineHarness::new(policy, MONDAY_NOON);
    let left = |world: &EngineHarness| world.view("game").left_today;
    assert_eq!(left(&world), Some(minutes(50).into()), "the budget has less");
    assert_eq!(world.view("free").left_today, None);
    world.launch("game");
    world.run_for(minutes(20));
    world.exit();
    assert_eq!(left(&world), Some(minutes(30).into()));
    let now = world.now();
    let others = NewGrant { scope: entry_scope("other"), ..grant(2, extra(minutes(5))) };
    world.engine.grant(NewGrant { scope: entry_scope("game"), ..grant(1, extra(minutes(15))) }, now).unwrap();
    world.engine.grant(others, now).unwrap();
    assert_eq!(left(&world), Some(minutes(45).into()));
    let grants = world.view("game").grants;
    assert_eq!(grants.len(), 1, "{grants:?}");
    assert_eq!((grants[0].gift, grants[0].by.as_str()), (extra(minutes(15)), "parent"));
    assert_eq!(grants[0].lapses_at, wall_time(BERLIN, "2026-11-17 00:00"));
    world.engine.revoke(&GrantId::from_random(1), "parent", now).unwrap();
    assert_eq!(world.view("game").grants, []);
}

#[test]
fn the_timeline_distinguishes_unlockable_and_closed_times() {
    // S3.10.
    let mut game = entry("game");
    game.availability = AvailabilityPolicy::Windows(vec![window(Weekdays::ALL, (15, 0), (18, 0))]);
    game.unlock = Some(UnlockRule { entry_id: "maths".parse().unwrap(), at_least: minutes(10) });
    let mut world = EngineHarness::new(policy(vec![entry("maths"), game]), MONDAY_NOON);
    world.launch("maths");
    world.run_for(minutes(10));
    world.exit();
    let (from, to) = (wall_time(BERLIN, "2026-11-16 00:00"), wall_time(BERLIN, "2026-11-18 00:00"));
    let timeline = world.engine.timeline(&ProfileId::default(), from, to).unwrap();
    let [maths, game] = timeline.entries.as_slice() else { panic!("{timeline:?}") };
    assert_eq!((&maths.unlock, maths.unlockable.as_slice()), (&None, [].as_slice()));
    let on = |day: &str| {
        let at = |hour: &str| wall_time(BERLIN, &format!("2026-11-{day} {hour}:00"));
        [TimeInterval { from: at("15"), to: at("18") }]
    };
    assert_eq!((game.intervals.as_slice(), game.unlockable.as_slice()), (&on("16")[..], &on("17")[..]));
    let unlock = game.unlock.as_ref().unwrap();
    assert_eq!((unlock.label.as_str(), unlock.needed), ("maths", minutes(10).into()));
}

#[test]
fn a_session_shows_its_run_time_without_suspends() {
    // S4.4.
    let mut game = entry("game");
    game.limits.max_run = Some(hours(1));
    let mut world = EngineHarness::new(policy(vec![game]), MONDAY_NOON);
    world.launch("game");
    let ran = |world: &EngineHarness| world.engine.get_state(world.now()).session.unwrap().ran;
    assert_eq!(ran(&world), Some(Millis(0)));
    world.run_for(minutes(20));
    world.clock.suspend(hours(2));
    assert_eq!(ran(&world), Some(minutes(20).into()));
    world.tick();
    world.run_for(minutes(10));
    assert_eq!((ran(&world), world.remaining()), (Some(minutes(30).into()), Some(minutes(30))));
}
