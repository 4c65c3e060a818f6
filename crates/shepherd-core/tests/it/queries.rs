//! Queries: listings, `why` and the timeline, with exceptions, modes, quotas and profiles (S2.3, S2.4, S3.2, S3.9,
//! S3.10).

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use shepherd_api::{AuditKind, EntryKind, ReasonCode, RuleOutcomeView, TimeInterval};
use shepherd_core::policy::{
    AvailabilityPolicy, BreakRule, DailyQuota, DateException, Day, DayRule, DisabledReason, HouseholdModes,
    MinuteOfDay, PolicyEntry, PolicyRules, Profile, SystemAccount, UnlockRule, WarningPolicy, Weekdays,
};
use shepherd_core::{
    CoreEngine, CoreEvent, HostCapabilities, LaunchDecision, LaunchRequest, QueryError, UsageCounter,
};
use shepherd_util::{EntryId, ProfileId, SessionId};

use crate::engine_driver::EngineDriver;
use crate::harness::{
    BERLIN, EngineHarness, MONDAY_NOON, budget, entry, entry_in_window, hours, minutes, policy, policy_with,
    wall_time, warning, window,
};

pub(crate) fn day(text: &str) -> Day {
    Day::from_date(text.parse().unwrap())
}

pub(crate) fn afternoon_entry() -> PolicyEntry {
    entry_in_window((15, 0), (18, 0))
}

fn interval(from: &str, to: &str) -> TimeInterval {
    TimeInterval { from: wall_time(BERLIN, from), to: wall_time(BERLIN, to) }
}

/// Returns the intervals of the only entry, in Berlin's local time.
fn check_week(engine: &CoreEngine, from: &str, to: &str, expected: &[(&str, &str)]) {
    let timeline =
        engine.timeline(&ProfileId::default(), wall_time(BERLIN, from), wall_time(BERLIN, to)).unwrap();
    let expected: Vec<TimeInterval> = expected.iter().map(|(from, to)| interval(from, to)).collect();
    assert_eq!(timeline.entries.last().unwrap().intervals, expected);
}

#[test]
fn a_listing_shows_the_longest_run_or_the_reasons_and_the_next_opening() {
    // S3.2.
    let mut disabled = entry("broken");
    disabled.disabled = Some(DisabledReason { reason: Some("lost".to_owned()) });
    let mut piano = entry("piano");
    piano.icon_ref = Some("piano.svg".to_owned());
    let world = EngineHarness::new(policy(vec![afternoon_entry(), disabled, piano]), MONDAY_NOON);
    let views = world.engine.list_entries(world.now());
    let three = Some(wall_time(BERLIN, "2026-11-16 15:00"));
    let listed: Vec<_> = views
        .iter()
        .map(|view| (view.entry_id.as_str(), view.enabled, view.max_run_if_started_now, view.next_available))
        .collect();
    assert_eq!(
        listed,
        [("game", false, None, three), ("broken", false, None, None), ("piano", true, None, None)],
        "in the order of the policy"
    );
    assert_eq!(views[0].reasons, [ReasonCode::OutsideHours { next_opening: three }]);
    assert_eq!(views[1].reasons, [ReasonCode::Disabled { reason: Some("lost".to_owned()) }]);
    assert_eq!((views[2].kind.as_str(), views[2].icon_ref.as_deref()), ("process", Some("piano.svg")));
    let later = world.engine.list_entries_at(&ProfileId::default(), wall_time(BERLIN, "2026-11-16 16:00"));
    assert_eq!(later[0].max_run_if_started_now.map(Duration::from), Some(hours(2)));
}

#[test]
fn queries_change_nothing() {
    // S3.9: queries take `&self`, write nothing, and give the same answer twice.
    let mut world = EngineHarness::new(policy(vec![afternoon_entry(), entry("piano")]), MONDAY_NOON);
    world.launch("piano");
    let (engine, now) = (&world.engine, world.now());
    let (profile, game) = (ProfileId::default(), "game".parse().unwrap());
    let before = engine.stored_state();
    let ask = || {
        (
            engine.list_entries(now),
            engine.list_entries_at(&profile, now.wall),
            engine.why(&profile, &game, now),
            engine.timeline(&profile, now.wall, wall_time(BERLIN, "2026-11-23 12:00")),
            engine.get_state(now),
            engine.next_due(),
        )
    };
    assert_eq!(ask(), ask());
    assert_eq!(engine.stored_state(), before);
    world.engine.checkpoint_usage(now);
    assert_eq!(world.engine.take_writes(), []);
}

/// Returns the decisions, events and writes of a varied simulation as text, in order.
fn run_scripted_day() -> String {
    let mut game = afternoon_entry();
    game.limits.max_run = Some(minutes(30));
    game.limits.cooldown_after_run = minutes(2);
    game.budgets = vec!["games".parse().unwrap()];
    game.warnings = WarningPolicy::new(vec![warning(minutes(5))]);
    let policy = policy_with(vec![game], |rules| {
        rules.budgets.insert("games".parse().unwrap(), budget(hours(1)));
        rules.breaks = Some(BreakRule { after: minutes(50), length: minutes(10) });
    });
    let mut world = EngineHarness::new(policy, "2026-11-16 15:00");
    let mut history = String::new();
    for step in 0..80_u128 {
        let now = world.now();
        let line = match step % 8 {
            0 => format!("{:?}", world.engine.request_launch(&launch_request("game", None, step), now)),
            1 => {
                let id = SessionId::from_random(step - 1);
                format!("{:?}", world.engine.start_session(&id, "handle".to_owned(), now))
            }
            7 => {
                let exit = shepherd_core::ExitInfo {
                    session_id: SessionId::from_random(step - 7),
                    code: Some(0),
                    signal: None,
                };
                format!("{:?}", world.engine.notify_session_exited(&exit, now))
            }
            _ => format!("{:?}", world.engine.tick(now)),
        };
        history += &format!("{step}: {line} {:?}\n", world.engine.take_writes());
        world.clock.advance(minutes(4));
    }
    history
}

#[test]
fn the_same_inputs_give_the_same_outputs_byte_for_byte() {
    // S3.9, writes included.
    let (once, again) = (run_scripted_day(), run_scripted_day());
    assert!(once.contains("Warning") && once.contains("BreakNeeded") && once.contains("AddUsage"));
    assert_eq!(once, again);
}

fn launch_request(id: &str, profile: Option<&str>, session: u128) -> LaunchRequest {
    LaunchRequest {
        entry_id: id.parse().unwrap(),
        profile: profile.map(|name| name.parse().unwrap()),
        session_id: SessionId::from_random(session),
        actor: "test".to_owned(),
        display: None,
    }
}

#[test]
fn why_shows_every_rule_and_its_values() {
    // S3.10, S3.8: an entry that every rule denies.
    let mut maths = entry("maths");
    maths.limits.cooldown_after_run = minutes(30);
    let mut game = entry("game");
    game.kind = EntryKind::Vm { driver: "qemu".to_owned(), args: BTreeMap::new() };
    game.profiles = Some(BTreeSet::from(["anna".parse().unwrap()]));
    game.disabled = Some(DisabledReason { reason: None });
    game.availability = AvailabilityPolicy::Windows(vec![window(Weekdays::WEEKENDS, (9, 0), (10, 0))]);
    game.limits.daily_quota = DailyQuota::every_day(Duration::ZERO);
    game.limits.weekly_quota = Some(Duration::ZERO);
    game.limits.max_run = Some(minutes(20));
    game.budgets = vec!["games".parse().unwrap()];
    game.unlock = Some(UnlockRule { entry_id: "maths".parse().unwrap(), at_least: hours(9) });
    let with_profiles = policy_with(vec![maths, game], |rules| {
        rules
            .profiles
            .insert("anna".parse().unwrap(), Profile { label: "Anna".to_owned(), accounts: Vec::new() });
        let mut games = budget(Duration::ZERO);
        games.weekly = Some(Duration::ZERO);
        rules.budgets.insert("games".parse().unwrap(), games);
        rules.breaks = Some(BreakRule { after: minutes(10), length: minutes(30) });
    });
    let mut world = EngineHarness::new(with_profiles, MONDAY_NOON);
    let mut host = HostCapabilities::all_supported();
    host.spawn_kinds_supported.remove("vm");
    world.engine =
        EngineDriver::new(world.engine.policy().clone(), world.store.clone(), host, world.place.clone());
    let profile = ProfileId::default();
    let started = world.engine.request_launch(&launch_request("maths", Some("default"), 1), world.now());
    assert!(matches!(started, LaunchDecision::Approved(_)));
    world.engine.start_session(&SessionId::from_random(1), "handle".to_owned(), world.now()).unwrap();
    world.run_for(minutes(10));
    world.engine.store_failed("disk full".to_owned());
    let why = world.engine.why(&profile, &"game".parse().unwrap(), world.now()).unwrap().rules;
    let rules: Vec<(&str, &str)> = why
        .iter()
        .map(|rule| match &rule.outcome {
            RuleOutcomeView::Refuses { reason } => (rule.rule.as_str(), reason.code()),
            RuleOutcomeView::Passes => (rule.rule.as_str(), "allows"),
            RuleOutcomeView::Limits { .. } => (rule.rule.as_str(), "allows-for"),
            RuleOutcomeView::LimitsUntil { .. } => (rule.rule.as_str(), "allows-until"),
        })
        .collect();
    assert_eq!(
        rules,
        [
            ("profile", "not-for-profile"),
            ("disabled", "disabled"),
            ("host", "host-cannot-run"),
            ("clock", "allows"),
            ("store", "store-unavailable"),
            ("seat", "session-active"),
            ("hours", "outside-hours"),
            ("cooldown", "allows"),
            ("break", "break-needed"),
            ("unlock", "not-unlocked"),
            ("daily-quota", "quota-exhausted"),
            ("weekly-quota", "quota-exhausted"),
            ("budget-daily", "quota-exhausted"),
            ("budget-weekly", "quota-exhausted"),
            ("max-run", "allows-for"),
        ]
    );
    assert!(why.iter().all(|rule| !rule.facts.is_empty()));
    world.exit();
    let codes = |world: &EngineHarness, id: &str| -> Vec<&'static str> {
        let why = world.engine.why(&profile, &id.parse().unwrap(), world.now()).unwrap();
        why.rules
            .iter()
            .filter_map(|rule| match &rule.outcome {
                RuleOutcomeView::Refuses { reason } => Some(reason.code()),
                _ => None,
            })
            .collect()
    };
    assert_eq!(codes(&world, "maths"), ["store-unavailable", "cooldown", "break-needed"]);
    world.clock.move_wall(jiff::SignedDuration::from_hours(-2));
    assert_eq!(codes(&world, "maths"), ["clock-untrusted", "store-unavailable", "cooldown", "break-needed"]);
    let nothing: EntryId = "nothing".parse().unwrap();
    let unknown = Err(QueryError::UnknownEntry(nothing.clone()));
    assert_eq!(world.engine.why(&profile, &nothing, world.now()), unknown);
}

#[test]
fn a_week_can_be_drawn() {
    // S3.10.
    let mut game = entry("game");
    game.availability = AvailabilityPolicy::Windows(vec![
        window(Weekdays::WEEKDAYS, (15, 0), (16, 0)),
        window(Weekdays::WEEKENDS, (9, 0), (12, 0)),
        window(Weekdays::WEEKENDS, (12, 0), (13, 0)),
        window(Weekdays::default().with(4), (22, 0), (1, 0)),
    ]);
    let mut world = EngineHarness::new(policy(vec![game]), MONDAY_NOON);
    world.tick();
    let week = [
        ("2026-11-16 15:00", "2026-11-16 16:00"),
        ("2026-11-17 15:00", "2026-11-17 16:00"),
        ("2026-11-18 15:00", "2026-11-18 16:00"),
        ("2026-11-19 15:00", "2026-11-19 16:00"),
        ("2026-11-20 15:00", "2026-11-20 16:00"),
        ("2026-11-20 22:00", "2026-11-21 01:00"),
        ("2026-11-21 09:00", "2026-11-21 13:00"),
        ("2026-11-22 09:00", "2026-11-22 13:00"),
    ];
    check_week(&world.engine, MONDAY_NOON, "2026-11-23 12:00", &week);
    // The range cuts intervals at its ends.
    check_week(
        &world.engine,
        "2026-11-16 15:20",
        "2026-11-16 15:40",
        &[("2026-11-16 15:20", "2026-11-16 15:40")],
    );
}

#[test]
fn a_used_up_quota_is_missing_from_the_week_until_it_refills() {
    // S3.10.
    let mut game = afternoon_entry();
    game.limits.daily_quota = DailyQuota::every_day(minutes(30));
    let mut world = EngineHarness::new(policy(vec![game]), "2026-11-16 15:00");
    world.launch("game");
    world.play_until_expired();
    check_week(
        &world.engine,
        "2026-11-16 15:30",
        "2026-11-18 00:00",
        &[("2026-11-17 15:00", "2026-11-17 18:00")],
    );
}

pub(crate) fn date_exception(from: &str, to: &str, rule: DayRule) -> DateException {
    DateException { from: day(from), to: day(to), label: "exception".to_owned(), entries: None, rule }
}

#[test]
fn exceptions_override_the_week() {
    // S2.3: a closed day, an open day, other windows, another weekday; the last exception for a day applies.
    let mut game = entry("game");
    game.availability = AvailabilityPolicy::Windows(vec![
        window(Weekdays::WEEKDAYS, (15, 0), (18, 0)),
        window(Weekdays::default().with(6), (9, 0), (22, 0)),
    ]);
    let minute = |hour| MinuteOfDay::new(hour, 0).unwrap();
    let exceptions = vec![
        date_exception("2026-11-16", "2026-11-18", DayRule::Closed),
        date_exception("2026-11-17", "2026-11-17", DayRule::Open),
        date_exception("2026-11-19", "2026-11-19", DayRule::AsOn(6)),
        date_exception(
            "2026-11-20",
            "2026-11-20",
            DayRule::Windows(vec![(minute(8), minute(9)), (minute(23), minute(2))]),
        ),
    ];
    let policy = policy_with(vec![game], |rules| rules.exceptions = exceptions);
    let world = EngineHarness::new(policy, "2026-11-16 00:00");
    let week = [
        ("2026-11-17 00:00", "2026-11-18 00:00"),
        ("2026-11-19 09:00", "2026-11-19 22:00"),
        ("2026-11-20 08:00", "2026-11-20 09:00"),
        ("2026-11-20 23:00", "2026-11-21 02:00"),
        ("2026-11-22 09:00", "2026-11-22 22:00"),
    ];
    check_week(&world.engine, "2026-11-16 00:00", "2026-11-23 00:00", &week);
}

#[test]
fn an_exception_can_be_for_some_entries_and_closes_what_is_always_open() {
    // S2.3.
    let closed = DateException {
        entries: Some(BTreeSet::from(["piano".parse().unwrap()])),
        ..date_exception("2026-11-16", "2026-11-16", DayRule::Closed)
    };
    let policy = policy_with(vec![entry("flute"), entry("piano")], |rules| rules.exceptions = vec![closed]);
    let mut world = EngineHarness::new(policy, MONDAY_NOON);
    world.launch("flute");
    world.exit();
    assert_eq!(world.denied_codes("piano"), ["outside-hours"]);
    assert_eq!(world.view("piano").next_available, Some(wall_time(BERLIN, "2026-11-17 00:00")));
}

#[test]
fn a_window_of_the_previous_evening_reaches_into_a_closed_day() {
    // S2.3: 22:00–01:00 belongs to the day it starts on.
    let game = entry_in_window((22, 0), (1, 0));
    let policy = policy_with(vec![game], |rules| {
        rules.exceptions = vec![date_exception("2026-11-17", "2026-11-17", DayRule::Closed)];
    });
    let world = EngineHarness::new(policy, MONDAY_NOON);
    let nights = [("2026-11-16 22:00", "2026-11-17 01:00"), ("2026-11-18 22:00", "2026-11-19 01:00")];
    check_week(&world.engine, MONDAY_NOON, "2026-11-19 12:00", &nights);
}

pub(crate) fn add_modes(rules: &mut PolicyRules) {
    rules.modes = HouseholdModes {
        names: ["school", "holiday"].map(str::to_owned).into(),
        default: "school".to_owned(),
        by_date: vec![(day("2026-11-18"), day("2026-11-18"), "holiday".to_owned())],
    };
}

pub(crate) fn entry_with_quota_by_mode() -> PolicyEntry {
    let mut game = entry("game");
    let mut school = window(Weekdays::ALL, (15, 0), (16, 0));
    school.modes = Some(BTreeSet::from(["school".to_owned()]));
    let mut holiday = window(Weekdays::ALL, (9, 0), (20, 0));
    holiday.modes = Some(BTreeSet::from(["holiday".to_owned()]));
    game.availability = AvailabilityPolicy::Windows(vec![school, holiday]);
    game.limits.daily_quota = DailyQuota {
        base: [Some(minutes(30)); 7],
        by_mode: BTreeMap::from([("holiday".to_owned(), [Some(hours(3)); 7])]),
    };
    game
}

#[test]
fn the_mode_is_switched_by_date_and_by_command() {
    // S2.4.
    let mut world = EngineHarness::new(policy_with(vec![entry_with_quota_by_mode()], add_modes), MONDAY_NOON);
    let week = [
        ("2026-11-16 15:00", "2026-11-16 16:00"),
        ("2026-11-17 15:00", "2026-11-17 16:00"),
        ("2026-11-18 09:00", "2026-11-18 20:00"),
        ("2026-11-19 15:00", "2026-11-19 16:00"),
    ];
    check_week(&world.engine, MONDAY_NOON, "2026-11-20 12:00", &week);
    assert_eq!(world.denied_codes("game"), ["outside-hours"]);
    let events = world.engine.switch_mode(Some("holiday".to_owned()), "parent", world.now());
    assert_eq!(events, Ok(vec![CoreEvent::EntryAvailabilityChanged]));
    assert_eq!(world.engine.get_state(world.now()).mode, "holiday");
    assert_eq!(world.view("game").max_run_if_started_now.map(Duration::from), Some(hours(3)));
    let unknown = world.engine.switch_mode(Some("party".to_owned()), "parent", world.now());
    let known = ["holiday", "school"].map(str::to_owned).into();
    assert_eq!(unknown, Err(shepherd_core::UnknownModeError { mode: "party".to_owned(), known }));
    world.engine.switch_mode(None, "parent", world.now()).unwrap();
    world.sync();
    assert_eq!(world.denied_codes("game"), ["outside-hours"]);
    let switched_to = |mode: Option<&str>| AuditKind::ModeSwitched { mode: mode.map(str::to_owned) };
    assert!(
        world.audit.iter().any(|event| event.what == switched_to(Some("holiday")) && event.actor == "parent")
    );
    assert!(world.audit.iter().any(|event| event.what == switched_to(None)));
}

#[test]
fn use_across_midnight_and_the_change_is_charged_to_the_right_days() {
    // S4.6, S4.3, S9.1: the daemon is down from before midnight until after the clock has jumped.
    for (evening, away, today) in [
        ("2026-03-28 23:30", minutes(30) + hours(4), hours(4)),
        ("2026-10-24 23:30", minutes(30) + hours(4), hours(4)),
    ] {
        let mut world = EngineHarness::new(policy(vec![entry("piano")]), evening);
        world.launch("piano");
        world.crash();
        world.clock.advance(away);
        let _ = world
            .engine
            .recover(shepherd_core::SessionLiveness::Alive { handle: "handle".to_owned() }, world.now());
        world.sync();
        let used: Vec<Duration> = world.store.usage.values().copied().collect();
        assert_eq!(used, [minutes(30), today], "{evening}");
    }
}

fn add_family_profiles(rules: &mut PolicyRules) {
    rules.profiles = ["anna", "ben"]
        .map(|name| (name.parse().unwrap(), Profile { label: name.to_owned(), accounts: Vec::new() }))
        .into();
    rules.budgets.insert("games".parse().unwrap(), budget(hours(1)));
}

#[test]
fn children_have_their_own_entries_and_their_own_time() {
    // S8.1: an entry for one child only; use is counted for each child, also of a shared budget.
    let mut chess = entry("chess");
    chess.budgets = vec!["games".parse().unwrap()];
    let mut shooter = entry("shooter");
    shooter.profiles = Some(BTreeSet::from(["ben".parse().unwrap()]));
    let mut world = EngineHarness::new(policy_with(vec![chess, shooter], add_family_profiles), MONDAY_NOON);
    let (anna, ben): (ProfileId, ProfileId) = ("anna".parse().unwrap(), "ben".parse().unwrap());
    let names = |world: &EngineHarness, profile: &ProfileId| -> Vec<String> {
        let views = world.engine.list_entries_for(profile, world.now());
        views.iter().map(|view| view.entry_id.to_string()).collect()
    };
    assert_eq!(names(&world, &anna), ["chess"]);
    assert_eq!(names(&world, &ben), ["chess", "shooter"]);
    let denied = |world: &mut EngineHarness, id: &str, profile: &str| -> Vec<&'static str> {
        match world.engine.request_launch(&launch_request(id, Some(profile), 99), world.now()) {
            LaunchDecision::Approved(_) => Vec::new(),
            LaunchDecision::Denied { reasons } => reasons.iter().map(ReasonCode::code).collect(),
        }
    };
    assert_eq!(denied(&mut world, "shooter", "anna"), ["not-for-profile"]);
    assert_eq!(denied(&mut world, "chess", "carl"), ["not-for-profile"], "nobody we know");
    assert_eq!(world.denied_codes("chess"), ["not-for-profile"], "the request names no profile");
    let LaunchDecision::Approved(plan) =
        world.engine.request_launch(&launch_request("chess", Some("anna"), 100), world.now())
    else {
        panic!()
    };
    let _ = world.engine.start_session(&plan.session_id, "handle".to_owned(), world.now()).unwrap();
    world.sync();
    assert_eq!(world.play_until_expired(), hours(1));
    assert_eq!(denied(&mut world, "chess", "anna"), ["quota-exhausted"]);
    assert!(world.engine.list_entries_for(&ben, world.now()).iter().all(|view| view.enabled));
    let keys: Vec<(&str, bool)> = world
        .store
        .usage
        .keys()
        .map(|key| (key.profile.as_str(), matches!(key.counter, UsageCounter::Budget(_))))
        .collect();
    assert_eq!(keys, [("anna", false), ("anna", true)]);
}

#[test]
fn a_host_that_runs_as_root_needs_a_user_for_each_entry() {
    // S6.5.
    let (mut own, mut shared) = (entry("own"), entry("shared"));
    own.run.user = Some("kid".to_owned());
    shared.run.user = None;
    for (accounts, of_shared) in [
        (vec![], &["account-missing"][..]),
        (vec![SystemAccount::Group("family".to_owned())], &["account-missing"]),
        (vec![SystemAccount::Uid(1_000), SystemAccount::User("anna".to_owned())], &[]),
    ] {
        let test_policy = policy_with(vec![own.clone(), shared.clone()], |rules| {
            rules.profiles.values_mut().for_each(|profile| profile.accounts.clone_from(&accounts));
        });
        let mut world = EngineHarness::new(test_policy.clone(), MONDAY_NOON);
        let host = HostCapabilities { needs_account: true, ..HostCapabilities::all_supported() };
        world.engine = EngineDriver::new(test_policy, world.store.clone(), host, world.place.clone());
        assert_eq!(world.reason_codes("own"), Vec::<&str>::new());
        assert_eq!(world.reason_codes("shared"), of_shared, "{accounts:?}");
    }
    let world = EngineHarness::new(policy(vec![shared]), MONDAY_NOON);
    assert_eq!(world.reason_codes("shared"), Vec::<&str>::new(), "any other host runs it as its own user");
}

#[test]
fn an_entry_whose_login_does_not_exist_is_refused_until_the_login_is_created() {
    // S5.1, S6.5.
    let (mut own, shared) = (entry("own"), entry("shared"));
    own.run.user = Some("kid".to_owned());
    let test_policy = policy_with(vec![own, shared], |rules| {
        let accounts = vec![SystemAccount::User("anna".to_owned())];
        rules.profiles.values_mut().for_each(|profile| profile.accounts.clone_from(&accounts));
    });
    assert_eq!(test_policy.named_logins().collect::<Vec<_>>(), ["kid", "anna"]);
    let mut world = EngineHarness::new(test_policy.clone(), MONDAY_NOON);
    for (can_switch_user, of_shared) in [(true, &["login-not-found"][..]), (false, &[])] {
        let host = HostCapabilities { can_switch_user, ..HostCapabilities::all_supported() };
        world.engine = EngineDriver::new(test_policy.clone(), world.store.clone(), host, world.place.clone());
        let missing: BTreeSet<String> = ["anna", "kid"].map(str::to_owned).into();
        let changed = vec![CoreEvent::EntryAvailabilityChanged];
        assert_eq!(world.engine.update_missing_logins(missing.clone()), changed);
        assert_eq!(world.engine.update_missing_logins(missing), vec![]);
        assert_eq!(world.reason_codes("own"), ["login-not-found"]);
        assert_eq!(world.reason_codes("shared"), of_shared, "the daemon's own user runs it otherwise");
        assert_eq!(world.engine.update_missing_logins(["kid".to_owned()].into()), changed);
        assert_eq!(world.reason_codes("shared"), Vec::<&str>::new());
        assert_eq!(world.engine.update_missing_logins(BTreeSet::new()), changed);
        assert_eq!(world.reason_codes("own"), Vec::<&str>::new());
    }
}
