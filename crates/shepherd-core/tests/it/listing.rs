//! A listing reads the stored usage once instead of searching for each entry (S3.2). The result must be the same.

use std::collections::BTreeMap;

use shepherd_api::ReasonCode;
use shepherd_core::policy::{
    AvailabilityPolicy, DailyQuota, Day, DayRule, PolicyEntry, Profile, TimeWindow, Weekdays,
};
use shepherd_core::{
    CoreEngine, EngineEnvironment, HostCapabilities, PauseEnd, StoredState, UsageCounter, UsageKey,
};
use shepherd_util::{BootInstant, ClockReading, MonotonicInstant, ProfileId};

use crate::harness::{BERLIN, boot, entry, hours, minutes, policy_with, wall_time, window, zone};
use crate::queries::date_exception;

const NOON: &str = "2026-11-16 12:00";

/// Returns an engine with entries in this order, each with one hour a day, for Anna and Ben.
fn engine(entries: &[&str], used: &[(&str, &str, u64)], pauses: &[(&str, &str)]) -> CoreEngine {
    let entries = entries.iter().map(|id| {
        let mut entry = entry(id);
        entry.limits.daily_quota = DailyQuota::every_day(hours(1));
        entry
    });
    let profile =
        |name: &str| (name.parse().unwrap(), Profile { label: name.to_owned(), accounts: Vec::new() });
    let policy = policy_with(entries.collect(), |rules| rules.profiles = ["anna", "ben"].map(profile).into());
    let day = Day::from_date("2026-11-16".parse().unwrap());
    let usage = used.iter().map(|(profile, entry, used)| {
        let counter = UsageCounter::Entry(entry.parse().unwrap());
        (UsageKey { profile: profile.parse().unwrap(), counter, day }, minutes(*used))
    });
    let until = PauseEnd {
        wall: wall_time(BERLIN, "2026-11-16 12:10"),
        boot: BootInstant::new(boot(1), MonotonicInstant::BOOT.after(hours(5) + minutes(10))),
    };
    let cooldowns = pauses
        .iter()
        .map(|(profile, entry)| ((profile.parse().unwrap(), entry.parse().unwrap()), until))
        .collect::<BTreeMap<_, _>>();
    let store = StoredState { usage: usage.collect(), cooldowns, ..StoredState::default() };
    let place = EngineEnvironment { boot: boot(1), zone: zone(BERLIN) };
    CoreEngine::new(policy, store, HostCapabilities::all_supported(), place)
}

/// Checks the remaining minutes of each entry in a listing, or the code of its denial. Asking about each entry alone
/// must give the same answers.
fn check(engine: &CoreEngine, profile: &str, expected: &[(&str, Result<u64, &str>)]) {
    let profile: ProfileId = profile.parse().unwrap();
    let now = ClockReading { wall: wall_time(BERLIN, NOON), mono: MonotonicInstant::BOOT.after(hours(5)) };
    let views = engine.list_entries_for(&profile, now);
    let listed: Vec<_> = views
        .iter()
        .map(|view| {
            let left = view.max_run_if_started_now.map(|left| left.0 / 60_000);
            let refused = || view.reasons.iter().map(ReasonCode::code).next().unwrap();
            (view.entry_id.as_str(), left.ok_or_else(refused))
        })
        .collect();
    assert_eq!(listed, expected);
    let singly = views.iter().map(|view| engine.why(&profile, &view.entry_id, now).unwrap().entry);
    assert_eq!(views, singly.collect::<Vec<_>>());
}

#[test]
fn usage_and_cooldowns_are_found_in_any_policy_order() {
    // The stored usage includes entries that the policy no longer has: before, between and after its own.
    let used = [
        ("anna", "aardvark", 59),
        ("anna", "ant", 10),
        ("anna", "crow", 59),
        ("anna", "mole", 20),
        ("anna", "zebra", 30),
        ("anna", "zoo", 59),
        ("ben", "bee", 40),
    ];
    let pauses = [("anna", "cat"), ("anna", "mole"), ("ben", "ant"), ("ben", "zebra")];
    let engine = engine(&["zebra", "ant", "mole", "bee"], &used, &pauses);
    check(&engine, "anna", &[("zebra", Ok(30)), ("ant", Ok(50)), ("mole", Err("cooldown")), ("bee", Ok(60))]);
    check(
        &engine,
        "ben",
        &[("zebra", Err("cooldown")), ("ant", Err("cooldown")), ("mole", Ok(60)), ("bee", Ok(20))],
    );
}

#[test]
fn a_profile_without_records_has_used_nothing() {
    let engine = engine(&["bee", "ant"], &[("ben", "ant", 10)], &[("ben", "bee")]);
    check(&engine, "anna", &[("bee", Ok(60)), ("ant", Ok(60))]);
}

fn in_windows(id: &str, windows: &[TimeWindow]) -> PolicyEntry {
    PolicyEntry { availability: AvailabilityPolicy::Windows(windows.to_vec()), ..entry(id) }
}

fn engine_of(entries: Vec<PolicyEntry>, exceptions: &[(&str, DayRule, Option<&str>)]) -> CoreEngine {
    let exceptions = exceptions.iter().map(|(day, rule, only)| {
        let mut exception = date_exception(day, day, rule.clone());
        exception.entries = only.map(|id| [id.parse().unwrap()].into());
        exception
    });
    let policy = policy_with(entries, |rules| rules.exceptions = exceptions.collect());
    let place = EngineEnvironment { boot: boot(1), zone: zone(BERLIN) };
    CoreEngine::new(policy, StoredState::default(), HostCapabilities::all_supported(), place)
}

#[test]
fn entries_with_equal_hours_are_listed_as_if_each_was_asked_about_alone() {
    // S3.2.
    let (morning, evening) = (window(Weekdays::ALL, (7, 0), (9, 0)), window(Weekdays::ALL, (18, 0), (2, 0)));
    let both = [morning.clone(), evening.clone()];
    let entries = vec![
        in_windows("both", &both),
        in_windows("closed-today", &both),
        in_windows("both-too", &both),
        in_windows("morning", &[morning]),
        in_windows("evening", &[evening]),
        entry("always"),
        entry("not-today"),
        entry("always-too"),
    ];
    let closed = |id| ("2026-11-16", DayRule::Closed, Some(id));
    let engine = engine_of(entries, &[closed("closed-today"), closed("not-today")]);
    let profile = ProfileId::default();
    for time in
        ["2026-11-15 23:59", "2026-11-16 01:00", "2026-11-16 08:00", "2026-11-16 12:00", "2026-11-16 20:00"]
    {
        let now =
            ClockReading { wall: wall_time(BERLIN, time), mono: MonotonicInstant::BOOT.after(hours(5)) };
        let views = engine.list_entries_for(&profile, now);
        let singly = views.iter().map(|view| engine.why(&profile, &view.entry_id, now).unwrap().entry);
        assert_eq!(views, singly.collect::<Vec<_>>(), "{time}");
        let hours_of = |id: &str| {
            let view = views.iter().find(|view| view.entry_id.as_str() == id).unwrap();
            (view.enabled, view.max_run_if_started_now, view.next_available)
        };
        assert_eq!(hours_of("both"), hours_of("both-too"), "{time}");
        assert_eq!(hours_of("always"), hours_of("always-too"), "{time}");
    }
}

#[test]
fn the_end_of_hours_is_found_behind_the_last_rule_for_a_date() {
    // S3.4: open all week except Sundays from 23:00.
    let windows =
        [window(Weekdays::ALL, (0, 0), (23, 0)), window(Weekdays::WEEKDAYS.with(5), (23, 0), (24, 0))];
    let open = |day| (day, DayRule::Open, None);
    let check = |exceptions: &[(&str, DayRule, Option<&str>)], at: &str, closes: &str| {
        let engine = engine_of(vec![in_windows("game", &windows)], exceptions);
        let now = ClockReading { wall: wall_time(BERLIN, at), mono: MonotonicInstant::BOOT.after(hours(5)) };
        let left = engine.list_entries(now).first().unwrap().max_run_if_started_now.unwrap();
        let end = now.wall.checked_add(std::time::Duration::from(left)).unwrap();
        assert_eq!(end, wall_time(BERLIN, closes), "{at}");
    };
    for at in ["2026-11-16 00:00", "2026-11-18 12:00", "2026-11-22 22:59"] {
        check(&[], at, "2026-11-22 23:00");
        check(&[open("2026-11-22")], at, "2026-11-29 23:00");
        check(&[open("2026-11-22"), open("2026-11-29")], at, "2026-12-06 23:00");
        check(&[open("2026-11-15")], at, "2026-11-22 23:00");
    }
}

#[test]
fn hours_that_touch_every_day_have_no_end_but_that_of_an_exception() {
    // S3.4.
    let all_day = [window(Weekdays::ALL, (0, 0), (24, 0))];
    let run = |exceptions: &[(&str, DayRule, Option<&str>)]| {
        let engine = engine_of(vec![in_windows("game", &all_day)], exceptions);
        let now =
            ClockReading { wall: wall_time(BERLIN, NOON), mono: MonotonicInstant::BOOT.after(hours(5)) };
        engine.list_entries(now).first().unwrap().max_run_if_started_now.map(std::time::Duration::from)
    };
    let until = |civil: &str| {
        let length = wall_time(BERLIN, civil).duration_since(wall_time(BERLIN, NOON));
        Some(std::time::Duration::try_from(length).unwrap())
    };
    assert_eq!(run(&[]), None);
    assert_eq!(run(&[("2026-11-20", DayRule::Open, None)]), None);
    assert_eq!(run(&[("2027-11-20", DayRule::Closed, None)]), until("2027-11-20 00:00"));
}
