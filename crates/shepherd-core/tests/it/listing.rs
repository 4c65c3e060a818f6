//! A listing reads the stored usage once instead of searching for each entry (S3.2). The result must be the same.

use std::collections::BTreeMap;

use shepherd_api::ReasonCode;
use shepherd_core::policy::{DailyQuota, Day, Profile};
use shepherd_core::{
    CoreEngine, EngineEnvironment, HostCapabilities, PauseEnd, StoredState, UsageCounter, UsageKey,
};
use shepherd_util::{BootInstant, ClockReading, MonotonicInstant, ProfileId};

use crate::harness::{BERLIN, boot, entry, hours, minutes, policy_with, wall_time, zone};

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
