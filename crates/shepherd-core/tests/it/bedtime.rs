//! Bedtime closes everything of a profile at night (S19.4).

use std::time::Duration;

use jiff::{Timestamp, ToSpan};
use shepherd_api::{AuditKind, GrantKind, ReasonCode, RuleOutcomeView};
use shepherd_core::policy::{
    BedtimeNights, BedtimePolicy, DateException, Day, DayRule, HouseholdModes, MinuteOfDay, NightHours,
    OnReload, PolicyEntry, PolicyError, PolicyRules, TimeCost, WarningPolicy, Weekdays,
};
use shepherd_core::{GrantError, NewGrant};
use shepherd_util::{GrantId, ProfileId};

use crate::harness::{
    BERLIN, EngineHarness, entry, entry_in_window, extra, grant, has_expiry, hours, minutes, policy_with,
    wall_time, warning, warnings,
};

/// Returns a night from `"20:00-07:00"`.
pub(crate) fn night(text: &str) -> Option<NightHours> {
    let time = |text: &str| {
        let (hour, minute) = text.split_once(':').unwrap();
        MinuteOfDay::new(hour.parse().unwrap(), minute.parse().unwrap()).unwrap()
    };
    let (start, end) = text.split_once('-').unwrap();
    Some(NightHours::new(time(start), time(end)).unwrap())
}

fn nights(school_nights: &str, weekends: &str) -> BedtimeNights {
    BedtimeNights { school_nights: night(school_nights), weekends: night(weekends) }
}

fn set_bedtime(rules: &mut PolicyRules, school_nights: &str, weekends: &str) {
    let bedtime = BedtimePolicy { nights: nights(school_nights, weekends), ..BedtimePolicy::default() };
    rules.bedtimes.insert(ProfileId::default(), bedtime);
}

/// A household whose bedtime is 20:00 to 07:00 on school nights, and 21:30 to 08:00 on weekends.
fn usual_rules(rules: &mut PolicyRules) {
    set_bedtime(rules, "20:00-07:00", "21:30-08:00");
}

fn world(entries: Vec<PolicyEntry>, at: &str) -> EngineHarness {
    EngineHarness::new(policy_with(entries, usual_rules), at)
}

/// Returns the end of bedtime at a time, or `None` if the entry `game` is open.
fn bedtime_until(world: &EngineHarness, at: &str) -> Option<String> {
    let views = world.engine.list_entries_at(&ProfileId::default(), wall_time(BERLIN, at));
    let game = views.into_iter().find(|view| view.entry_id.as_str() == "game").unwrap();
    match game.reasons.as_slice() {
        [] => None,
        [ReasonCode::Bedtime { until: Some(until) }] => {
            assert_eq!(game.next_available, Some(*until));
            let local = until.to_zoned(crate::harness::zone(BERLIN));
            Some(local.strftime("%a %H:%M").to_string())
        }
        other => panic!("{at}: {other:?}"),
    }
}

/// Checks the end of bedtime at some times; an empty text is no bedtime.
fn check(world: &EngineHarness, expected: &[(&str, &str)]) {
    for (at, until) in expected {
        let until = (!until.is_empty()).then(|| (*until).to_owned());
        assert_eq!(bedtime_until(world, at), until, "at {at}");
    }
}

#[test]
fn the_day_after_a_night_decides_which_night_it_is() {
    // S19.4: 16 November 2026 is a Monday.
    let world = world(vec![entry("game")], "2026-11-16 12:00");
    check(
        &world,
        &[
            ("2026-11-15 19:59:59", ""),
            ("2026-11-15 20:00", "Mon 07:00"),
            ("2026-11-16 06:59:59", "Mon 07:00"),
            ("2026-11-16 07:00", ""),
            ("2026-11-16 20:00", "Tue 07:00"),
            ("2026-11-19 23:00", "Fri 07:00"),
            ("2026-11-20 20:30", ""),
            ("2026-11-20 21:30", "Sat 08:00"),
            ("2026-11-21 07:30", "Sat 08:00"),
            ("2026-11-21 21:00", ""),
            ("2026-11-22 00:00", "Sun 08:00"),
            ("2026-11-22 08:00", ""),
            ("2026-11-22 20:00", "Mon 07:00"),
        ],
    );
}

#[test]
fn a_bedtime_after_midnight_belongs_to_the_evening_before() {
    // S19.4: the night from Friday to Saturday begins on Saturday.
    let rules = |rules: &mut PolicyRules| set_bedtime(rules, "22:00-24:00", "00:30-09:00");
    let world = EngineHarness::new(policy_with(vec![entry("game")], rules), "2026-11-16 12:00");
    check(
        &world,
        &[
            ("2026-11-20 00:30", ""),
            ("2026-11-20 23:00", ""),
            ("2026-11-21 00:29", ""),
            ("2026-11-21 00:30", "Sat 09:00"),
            ("2026-11-22 08:59", "Sun 09:00"),
            ("2026-11-22 22:00", "Mon 00:00"),
            ("2026-11-23 00:30", ""),
        ],
    );
}

#[test]
fn the_mode_and_the_exceptions_of_the_day_after_decide() {
    // S19.4: holidays from Wednesday 23 December to Wednesday 6 January, and a week "as on a Sunday" before.
    let world = EngineHarness::new(
        policy_with(vec![entry("game")], |rules| {
            let by_mode = [("holiday".to_owned(), nights("22:00-09:00", "23:00-10:00"))].into();
            let bedtime = BedtimePolicy { nights: nights("20:00-07:00", "21:30-08:00"), by_mode };
            rules.bedtimes.insert(ProfileId::default(), bedtime);
            let day = |text: &str| Day::from_date(text.parse().unwrap());
            rules.modes = HouseholdModes {
                names: ["school", "holiday"].map(str::to_owned).into(),
                default: "school".to_owned(),
                by_date: vec![(day("2026-12-23"), day("2027-01-06"), "holiday".to_owned())],
            };
            let exception = |from: &str, to: &str, rule| DateException {
                from: day(from),
                to: day(to),
                label: String::new(),
                entries: None,
                rule,
            };
            rules.exceptions = vec![
                exception("2026-11-16", "2026-11-20", DayRule::AsOn(6)),
                exception("2026-11-18", "2026-11-18", DayRule::Open),
                DateException {
                    entries: Some(["other".parse().unwrap()].into()),
                    ..exception("2026-11-24", "2026-11-24", DayRule::AsOn(6))
                },
            ];
            rules.entries.push(entry("other"));
        }),
        "2026-11-10 12:00",
    );
    check(
        &world,
        &[
            // The night before the week that is like a Sunday.
            ("2026-11-15 20:30", ""),
            ("2026-11-15 21:30", "Mon 08:00"),
            // An exception that opens a day doesn't move its bedtime.
            ("2026-11-17 21:45", "Wed 08:00"),
            ("2026-11-22 20:30", "Mon 07:00"),
            // An exception for other entries is no other day.
            ("2026-11-23 20:30", "Tue 07:00"),
            // The last night before the holidays, and their last night.
            ("2026-12-22 21:30", ""),
            ("2026-12-22 22:00", "Wed 09:00"),
            ("2026-12-25 22:30", ""),
            ("2026-12-25 23:00", "Sat 10:00"),
            ("2027-01-05 21:30", ""),
            ("2027-01-06 20:00", "Thu 07:00"),
        ],
    );
    let mut world = world;
    world.engine.switch_mode(Some("holiday".to_owned()), "parent", world.now()).unwrap();
    check(&world, &[("2026-11-23 20:30", ""), ("2026-11-23 22:00", "Tue 09:00")]);
}

#[test]
fn bedtime_follows_the_wall_clock_when_the_clocks_change() {
    // S4.3, S19.4: on 29 March 2026 a night is an hour shorter, on 25 October an hour longer.
    let day = |rules: &mut PolicyRules| set_bedtime(rules, "20:00-07:00", "21:30-02:30");
    let world = EngineHarness::new(policy_with(vec![entry("game")], day), "2026-01-05 12:00");
    let length = |evening: &str| -> Duration {
        let begins = wall_time(BERLIN, evening);
        let why = world.engine.why_at(&ProfileId::default(), &"game".parse().unwrap(), begins).unwrap();
        let ends = why.entry.next_available.unwrap();
        Duration::try_from(ends.duration_since(begins)).unwrap()
    };
    // 02:30 doesn't come, so the night ends when the clock shows 03:00.
    assert_eq!(length("2026-03-28 21:30"), minutes(4 * 60 + 30));
    // 02:30 comes twice. It is bedtime again when the clock goes back to 02:00.
    assert_eq!(length("2026-10-24 21:30"), minutes(5 * 60));
    check(&world, &[("2026-10-25 03:00", "")]);
    let second: Timestamp = "2026-10-25T01:15:00Z".parse().unwrap();
    let views = world.engine.list_entries_at(&ProfileId::default(), second);
    assert_eq!(views[0].next_available, Some("2026-10-25T01:30:00Z".parse().unwrap()));
    assert_eq!(length("2026-03-29 20:00"), hours(11));
}

#[test]
fn an_opening_that_bedtime_covers_is_none() {
    // S3.2, S19.4: the window from 20:30 to 23:00 opens only on the nights of the weekend, and 06:00 to 07:30 at 07:00.
    let mut late = entry_in_window((20, 30), (23, 0));
    late.label = "late".to_owned();
    let mut early = entry("early");
    early.availability = entry_in_window((6, 0), (7, 30)).availability;
    let mut never = entry("never");
    never.availability = entry_in_window((2, 0), (3, 0)).availability;
    let world = world(vec![late, early, never], "2026-11-16 12:00");
    let next = |id: &str, expected: Option<&str>| {
        let view = world.view(id);
        let next_opening = expected.map(|at| wall_time(BERLIN, at));
        assert_eq!(view.reasons, [ReasonCode::OutsideHours { next_opening }], "{id}");
        assert_eq!(view.next_available, next_opening, "{id}");
    };
    next("game", Some("2026-11-20 20:30"));
    next("early", Some("2026-11-17 07:00"));
    next("never", None);
    // Both reasons end, and then the entry is open.
    let views = world.engine.list_entries_at(&ProfileId::default(), wall_time(BERLIN, "2026-11-16 20:15"));
    let codes: Vec<&str> = views[0].reasons.iter().map(ReasonCode::code).collect();
    assert_eq!(codes, ["outside-hours", "bedtime"]);
    assert_eq!(views[0].next_available, Some(wall_time(BERLIN, "2026-11-20 20:30")));
}

#[test]
fn a_running_session_is_warned_and_ended_by_bedtime() {
    // S3.4, S19.4: entries that are free or earn time have a bedtime, too. Windows that touch it change nothing.
    let mut game = entry_in_window((15, 0), (20, 0));
    game.cost = TimeCost::Free;
    game.warnings = WarningPolicy::new(vec![warning(minutes(5)), warning(minutes(1))]);
    if let shepherd_core::policy::AvailabilityPolicy::Windows(windows) = &mut game.availability {
        windows.push(crate::harness::window(Weekdays::ALL, (20, 0), (22, 0)));
    }
    let mut world = world(vec![game], "2026-11-16 19:30");
    assert_eq!(world.view("game").max_run_if_started_now, Some(minutes(30).into()));
    world.launch("game");
    let events = world.run_for(minutes(30));
    assert_eq!(warnings(&events), [300, 60]);
    assert!(has_expiry(&events));
    world.exit();
    assert_eq!(world.denied_codes("game"), ["bedtime"]);
}

#[test]
fn the_end_of_bedtime_is_announced() {
    // S4.7, S19.4.
    let mut world = world(vec![entry("game")], "2026-11-16 19:00");
    world.tick();
    for (wait, enabled) in [(hours(1), false), (hours(11), true)] {
        assert_eq!(world.engine.next_due().unwrap().total_since(world.now().mono), wait);
        world.clock.advance(wait);
        assert_eq!(world.tick(), [shepherd_core::CoreEvent::EntryAvailabilityChanged]);
        assert_eq!(world.view("game").enabled, enabled);
    }
}

fn open_until(id: u128, until: &str) -> NewGrant {
    grant(id, GrantKind::OpenUntil { until: wall_time(BERLIN, until) })
}

#[test]
fn a_grant_puts_bedtime_off_and_opens_it() {
    // S2.7, S19.4.
    let mut game = entry("game");
    game.warnings = WarningPolicy::new(vec![warning(minutes(5))]);
    let mut world = world(vec![game], "2026-11-16 19:30");
    world.launch("game");
    let events = world.run_for(minutes(26));
    assert_eq!(warnings(&events), [300]);
    world.grant(open_until(1, "2026-11-16 20:20"));
    assert_eq!(world.remaining(), Some(minutes(24)));
    assert_eq!(warnings(&world.run_for(minutes(20))), [300], "again before the new end");
    world.exit();
    // 20:16: it is bedtime, but opened.
    assert_eq!(world.view("game").max_run_if_started_now, Some(minutes(4).into()));
    world.run_for(minutes(4));
    assert_eq!(world.reason_codes("game"), ["bedtime"]);
    world.grant(open_until(2, "2026-11-16 20:40"));
    world.launch("game");
    assert_eq!(world.remaining(), Some(minutes(20)));
    // Taken back, the bedtime ends the session at once.
    world.revoke(2);
    assert!(has_expiry(&world.run_for(minutes(1))));
}

#[test]
fn a_grant_that_ends_by_day_leaves_the_next_bedtime() {
    // S19.4: opened until 07:30, the entry stays open until the next bedtime.
    let mut world = world(vec![entry("game")], "2026-11-16 06:30");
    world.grant(open_until(1, "2026-11-16 07:30"));
    assert_eq!(world.view("game").max_run_if_started_now, Some(minutes(13 * 60 + 30).into()));
    // Extra time opens no bedtime.
    let mut game = entry("game");
    game.limits.max_run = Some(hours(1));
    let mut world = EngineHarness::new(policy_with(vec![game], usual_rules), "2026-11-16 20:30");
    world.grant(grant(2, extra(minutes(20))));
    assert_eq!(world.reason_codes("game"), ["bedtime"]);
    // A grant in advance is when bedtime ends, as far as is known.
    let early = NewGrant {
        valid_from: Some(wall_time(BERLIN, "2026-11-17 06:00")),
        ..open_until(3, "2026-11-17 06:30")
    };
    world.grant(early);
    assert_eq!(world.view("game").next_available, Some(wall_time(BERLIN, "2026-11-17 06:00")));
}

#[test]
fn an_extension_lets_a_session_go_on_into_bedtime_also_after_a_reload() {
    // S2.7, S7.3, S19.4.
    let rules = |rules: &mut PolicyRules| {
        usual_rules(rules);
        rules.on_reload = OnReload::Replan;
    };
    let policy = policy_with(vec![entry("game")], rules);
    let mut world = EngineHarness::new(policy.clone(), "2026-11-16 19:30");
    world.launch("game");
    world.engine.extend_current(minutes(20), &GrantId::from_random(1), "parent", world.now()).unwrap();
    assert_eq!(world.remaining(), Some(minutes(50)));
    world.run_for(minutes(40));
    world.engine.reload(policy, None, "parent", world.now());
    assert_eq!(world.remaining(), Some(minutes(10)), "the reload keeps the extension");
    // An earlier bedtime in the new rules ends the session.
    let earlier = policy_with(vec![entry("game")], |policy| {
        rules(policy);
        set_bedtime(policy, "18:00-07:00", "21:30-08:00");
    });
    world.engine.reload(earlier, None, "parent", world.now());
    assert!(has_expiry(&world.tick()));
}

#[test]
fn a_new_bedtime_shortens_a_session_only_if_it_is_planned_again() {
    // S7.3, S19.4.
    for (on_reload, left) in [(OnReload::KeepPlan, None), (OnReload::Replan, Some(minutes(30)))] {
        let mut world = EngineHarness::new(policy_with(vec![entry("game")], |_| {}), "2026-11-16 19:30");
        world.launch("game");
        let later = policy_with(vec![entry("game")], |rules| {
            usual_rules(rules);
            rules.on_reload = on_reload;
        });
        world.engine.reload(later, None, "parent", world.now());
        assert_eq!(world.remaining(), left, "{on_reload:?}");
    }
}

#[test]
fn the_ceiling_of_the_evening_holds_all_night() {
    // S2.7, S19.4: nothing after 20:30, and 00:30 is after that.
    let ceiling = MinuteOfDay::new(20, 30).unwrap();
    let rules = |rules: &mut PolicyRules| {
        usual_rules(rules);
        rules.ceilings.open_until = Some(ceiling);
    };
    for (at, until, allowed) in [
        ("2026-11-16 19:50", "2026-11-16 20:20", true),
        ("2026-11-16 19:50", "2026-11-16 20:50", false),
        ("2026-11-16 20:10", "2026-11-16 20:30", true),
        ("2026-11-16 23:30", "2026-11-16 23:50", false),
        ("2026-11-17 00:30", "2026-11-17 00:50", false),
        ("2026-11-17 06:30", "2026-11-17 06:50", false),
        ("2026-11-17 07:00", "2026-11-17 20:30", true),
    ] {
        let mut world = EngineHarness::new(policy_with(vec![entry("game")], rules), at);
        let result = world.engine.grant(open_until(1, until), world.now()).map(drop);
        let expected = if allowed { Ok(()) } else { Err(GrantError::TooLate { latest: ceiling }) };
        assert_eq!(result, expected, "{at}");
    }
}

#[test]
fn why_and_the_timeline_show_bedtime() {
    // S3.10, S19.4.
    let world = world(vec![entry("game")], "2026-11-16 12:00");
    let outcome = |at: &str| {
        let at = wall_time(BERLIN, at);
        let why = world.engine.why_at(&ProfileId::default(), &"game".parse().unwrap(), at).unwrap();
        let rule = why.rules.into_iter().find(|rule| rule.rule == "bedtime").unwrap();
        (rule.facts.split(" (").next().unwrap().to_owned(), rule.outcome)
    };
    let until = |at: &str| wall_time(BERLIN, at);
    assert_eq!(
        outcome("2026-11-16 19:00"),
        ("not bedtime".to_owned(), RuleOutcomeView::LimitsUntil { until: until("2026-11-16 20:00") })
    );
    let reason = ReasonCode::Bedtime { until: Some(until("2026-11-17 07:00")) };
    assert_eq!(outcome("2026-11-16 21:00"), ("bedtime".to_owned(), RuleOutcomeView::Refuses { reason }));
    let (from, to) = (until("2026-11-16 06:00"), until("2026-11-18 00:00"));
    let timeline = world.engine.timeline(&ProfileId::default(), from, to).unwrap();
    let spans = |intervals: &[shepherd_api::TimeInterval]| -> Vec<String> {
        let time = |at: Timestamp| at.to_zoned(crate::harness::zone(BERLIN)).strftime("%a %H:%M").to_string();
        intervals.iter().map(|span| format!("{}-{}", time(span.from), time(span.to))).collect()
    };
    assert_eq!(
        spans(&timeline.bedtimes),
        ["Mon 06:00-Mon 07:00", "Mon 20:00-Tue 07:00", "Tue 20:00-Wed 00:00"]
    );
    assert_eq!(spans(&timeline.entries[0].intervals), ["Mon 07:00-Mon 20:00", "Tue 07:00-Tue 20:00"]);
}

#[test]
fn a_bedtime_is_for_its_profile_only_and_needs_a_known_one() {
    // S19.4.
    let zoe: ProfileId = "zoe".parse().unwrap();
    let household = |rules: &mut PolicyRules| {
        usual_rules(rules);
        let profile = rules.profiles.values().next().unwrap().clone();
        rules.profiles.insert(zoe.clone(), profile);
    };
    let mut world = EngineHarness::new(policy_with(vec![entry("game")], household), "2026-11-16 21:00");
    assert_eq!(world.reason_codes("game"), ["bedtime"]);
    let views = world.engine.list_entries_for(&zoe, world.now());
    assert!(views[0].enabled && views[0].max_run_if_started_now.is_none());
    world.launch_for("game", "zoe");
    assert!(world.audit.iter().any(|event| matches!(event.what, AuditKind::SessionStarted { .. })));
    let mut rules = PolicyRules { entries: vec![entry("game")], ..PolicyRules::default() };
    rules.bedtimes.insert(zoe.clone(), BedtimePolicy::default());
    assert_eq!(shepherd_core::policy::Policy::new(rules), Err(PolicyError::UnknownBedtime(zoe)));
    let tomorrow = wall_time(BERLIN, "2026-11-16 21:00") + 24.hours();
    assert_eq!(world.engine.list_entries_at(&ProfileId::default(), tomorrow)[0].reasons.len(), 1);
}

#[test]
fn a_bedtime_in_an_unknown_mode_is_refused() {
    let mut rules = PolicyRules::default();
    let by_mode = [("holiday".to_owned(), BedtimeNights::default())].into();
    rules.bedtimes.insert(ProfileId::default(), BedtimePolicy { by_mode, ..BedtimePolicy::default() });
    let refused = shepherd_core::policy::Policy::new(rules);
    assert_eq!(refused, Err(PolicyError::UnknownMode("holiday".to_owned())));
}

#[test]
fn bedtime_moves_with_the_zone_of_the_machine() {
    // S4.3, S19.4: without a zone in the policy. A running session keeps its end.
    let rules = |rules: &mut PolicyRules| {
        usual_rules(rules);
        rules.zone = None;
    };
    let mut world = EngineHarness::new(policy_with(vec![entry("game")], rules), "2026-11-16 19:30");
    world.launch("game");
    world.engine.zone_changed(crate::harness::zone("America/New_York"), world.now());
    assert_eq!(world.remaining(), Some(minutes(30)));
    world.run_for(minutes(30));
    world.exit();
    // It is 14:00 in New York.
    assert_eq!(world.view("game").max_run_if_started_now, Some(hours(6).into()));
}
