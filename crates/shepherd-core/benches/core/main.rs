//! Benchmarks of the engine: a listing, a launch, a tick, the timeline of a week, and many sessions at once.

mod many_sessions;

use std::collections::BTreeMap;
use std::hint::black_box;
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use shepherd_api::{EntryKind, EntryView};
use shepherd_core::policy::{
    AvailabilityPolicy, BedtimeNights, BedtimePolicy, DailyQuota, Day, EntrySlot, LimitsPolicy, MinuteOfDay,
    NightHours, Policy, PolicyEntry, PolicyRules, TimeBudget, TimeCost, TimeWindow, WarningPolicy, Weekdays,
};
use shepherd_core::{
    CoreEngine, EngineEnvironment, HostCapabilities, LaunchDecision, LaunchRequest, StoredState,
    UsageCounter, UsageKey,
};
use shepherd_util::{BootId, ClockReading, MonotonicInstant, ProfileId, SessionId};
use ward_bench::{BenchmarkBaseline, BenchmarkLimit, BenchmarkRow, median, millis, report, timed};

/// Rounds for a steady median on a noisy machine.
const ROUNDS: usize = 101;

/// A Monday afternoon in Berlin, when one of the windows is open.
const NOW: &str = "2026-11-16T15:30:00Z";

/// The night before, when all windows are closed and a listing has to find the next opening of each entry.
const NIGHT: &str = "2026-11-16T02:30:00Z";

const HOUR: Duration = Duration::from_secs(3600);

type CoreBenchError = Box<dyn std::error::Error>;

fn window(days: Weekdays, from: u16, to: u16, minute: u16) -> Option<TimeWindow> {
    let (start, end) = (MinuteOfDay::new(from, minute)?, MinuteOfDay::new(to, minute)?);
    Some(TimeWindow { days, start, end, modes: None })
}

fn entry(number: usize) -> Result<PolicyEntry, CoreBenchError> {
    // The windows differ between entries; otherwise one search would serve all of them.
    let minute = u16::try_from(number % 12)? * 5;
    let windows = [
        window(Weekdays::WEEKDAYS, 7, 8, minute),
        window(Weekdays::WEEKDAYS, 15, 18, minute),
        window(Weekdays::WEEKENDS, 9, 20, minute),
    ];
    Ok(PolicyEntry {
        entry_id: format!("game-{number}").parse()?,
        label: format!("Game {number}"),
        icon_ref: Some(format!("game-{number}")),
        kind: EntryKind::Process {
            argv: vec![format!("/usr/games/game-{number}")],
            env: BTreeMap::new(),
            cwd: None,
        },
        profiles: None,
        availability: AvailabilityPolicy::Windows(windows.into_iter().flatten().collect()),
        limits: LimitsPolicy {
            max_run: Some(HOUR),
            daily_quota: DailyQuota::every_day(HOUR * 2),
            weekly_quota: Some(HOUR * 10),
            cooldown_after_run: Duration::from_secs(600),
            ..LimitsPolicy::default()
        },
        warnings: WarningPolicy::default(),
        disabled: None,
        budgets: vec!["games".parse()?, "screen".parse()?],
        cost: TimeCost::Counts,
        earns: None,
        slot: EntrySlot::Foreground,
        unlock: None,
        run: shepherd_core::policy::RunPolicy::default(),
    })
}

/// Returns an engine with this number of entries, each with three windows, two budgets and two weeks of usage.
fn engine(entries: usize, wall: Timestamp) -> Result<CoreEngine, CoreBenchError> {
    engine_with(entries, wall, None)
}

/// Returns the same engine with this bedtime.
fn engine_with(
    entries: usize,
    wall: Timestamp,
    bedtime: Option<BedtimePolicy>,
) -> Result<CoreEngine, CoreBenchError> {
    let zone = TimeZone::get("Europe/Berlin")?;
    let budget = |daily| TimeBudget {
        label: "budget".to_owned(),
        daily: DailyQuota::every_day(daily),
        weekly: Some(HOUR * 40),
    };
    let today = Day::from_date(zone.to_datetime(wall).date());
    let rules = PolicyRules {
        zone: Some(zone.clone()),
        entries: (0..entries).map(entry).collect::<Result<_, _>>()?,
        bedtimes: bedtime.map(|bedtime| (ProfileId::default(), bedtime)).into_iter().collect(),
        budgets: [("games".parse()?, budget(HOUR * 4)), ("screen".parse()?, budget(HOUR * 5))].into(),
        ..PolicyRules::default()
    };
    let mut store = StoredState::default();
    let own = rules.entries.iter().map(|entry| UsageCounter::Entry(entry.entry_id.clone()));
    let shared = rules.budgets.keys().cloned().map(UsageCounter::Budget);
    for counter in own.chain(shared) {
        for ago in 0..14 {
            let day = today.plus_days(-ago);
            let key = UsageKey { profile: ProfileId::default(), counter: counter.clone(), day };
            store.usage.insert(key, HOUR / 2);
        }
    }
    let boot: BootId = "3f1c1e9a-5d0b-4c57-9f0e-0a8a5c1d2b3e".parse()?;
    let place = EngineEnvironment { boot, zone };
    Ok(CoreEngine::new(Policy::new(rules)?, store, HostCapabilities::all_supported(), place))
}

fn listing(engine: &CoreEngine, now: ClockReading, open: bool) -> f64 {
    let (views, took) = timed(|| engine.list_entries(now));
    let is_expected = |view: &EntryView| view.enabled == open && view.next_available.is_none() == open;
    assert!(black_box(views).iter().all(is_expected), "all entries are open, or closed until the morning");
    millis(took)
}

/// Measures several listings in a row. They take as long as one listing of a larger policy, so that a busy machine
/// disturbs both measurements equally.
fn listings(engine: &CoreEngine, now: ClockReading, times: u32) -> f64 {
    let (views, took) = timed(|| (0..times).map(|_| engine.list_entries(now)).collect::<Vec<_>>());
    drop(black_box(views));
    millis(took) / f64::from(times)
}

/// Measures the tick that follows every command of a client, in microseconds.
fn idle_tick(engine: &mut CoreEngine, now: ClockReading) -> f64 {
    let (events, took) = timed(|| engine.tick(now));
    assert!(black_box(events).is_empty(), "nothing is due");
    millis(took) * 1_000.0
}

/// Measures a launch in microseconds. Each launch is undone, so that the next one finds the same engine.
fn launch(engine: &mut CoreEngine, request: &LaunchRequest, now: ClockReading) -> f64 {
    let (decision, took) = timed(|| engine.request_launch(request, now));
    let answer = black_box(decision).answer;
    assert!(matches!(answer, LaunchDecision::Approved(_)), "the launch is approved");
    drop(engine.launch_failed(&request.session_id, "taken back".to_owned(), now));
    millis(took) * 1_000.0
}

fn main() -> Result<(), CoreBenchError> {
    let wall: Timestamp = NOW.parse()?;
    let now = ClockReading { wall, mono: MonotonicInstant::BOOT.after(HOUR) };
    // The largest engine is built last: its temporary allocations would fragment the heap for the others.
    let (hundred, mut thousand, asleep) = (engine(100, wall)?, engine(1_000, wall)?, engine(1_000, wall)?);
    let (from, to) = (MinuteOfDay::new(20, 0), MinuteOfDay::new(7, 0));
    let usual = from.zip(to).and_then(|(from, to)| NightHours::new(from, to).ok());
    let nights_of_week = BedtimeNights { school_nights: usual, weekends: usual };
    let bedtime = BedtimePolicy { nights: nights_of_week, by_mode: BTreeMap::new() };
    let in_bed = engine_with(1_000, wall, Some(bedtime))?;
    let many = engine(10_000, wall)?;
    let request = LaunchRequest {
        entry_id: "game-77".parse()?,
        profile: None,
        session_id: SessionId::from_random(1),
        actor: "bench".to_owned(),
        display: None,
    };
    let week = wall.checked_add(HOUR * 24 * 7)?;
    let night = ClockReading { wall: NIGHT.parse()?, ..now };
    let (mut small, mut large, mut launches, mut weeks) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut bedtimes = Vec::new();
    let (mut nights, mut ticks, mut looks, mut ten) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        small.push(listing(&thousand, now, true));
        nights.push(listing(&asleep, night, false));
        bedtimes.push(listing(&in_bed, night, false));
        // The first launches after a listing are slower, because the allocator reuses the memory of the listing.
        launches.extend((0..5).map(|_| launch(&mut thousand, &request, now)));
        // After the end of a session the engine searches for its next change; later ticks reuse the result.
        looks.push(idle_tick(&mut thousand, now));
        ticks.push(idle_tick(&mut thousand, now));
        if round % 5 == 0 {
            large.push(listings(&many, now, 1) / 10.0);
            ten.push(listings(&thousand, now, 10));
            let (timeline, took) = timed(|| hundred.timeline(&ProfileId::default(), wall, week));
            assert_eq!(black_box(timeline)?.entries.len(), 100);
            weeks.push(millis(took));
        }
    }
    let row = |bench: &str, unit: &str, figure, bar| BenchmarkRow {
        bench: bench.to_owned(),
        unit: unit.to_owned(),
        figure,
        baseline: None,
        bar,
    };
    report(&row(
        "core: list_entries of 1,000 entries",
        "ms",
        median(&mut small),
        BenchmarkLimit::AtMost(1.0),
    ))?;
    report(&BenchmarkRow {
        baseline: Some(BenchmarkBaseline { name: "ten times of 1,000".to_owned(), figure: median(&mut ten) }),
        ..row(
            "core: list_entries of 10,000, a thousand of them",
            "ms",
            median(&mut large),
            BenchmarkLimit::RatioAtMost(1.5),
        )
    })?;
    report(&row(
        "core: list_entries of 1,000 entries at night",
        "ms",
        median(&mut nights),
        BenchmarkLimit::AtMost(1.0),
    ))?;
    report(&row(
        "core: list_entries of 1,000 entries in bedtime",
        "ms",
        median(&mut bedtimes),
        BenchmarkLimit::AtMost(1.0),
    ))?;
    report(&row(
        "core: tick with nothing due, 1,000 entries",
        "µs",
        median(&mut ticks),
        BenchmarkLimit::AtMost(2.0),
    ))?;
    report(&row(
        "core: tick after a session, 1,000 entries",
        "µs",
        median(&mut looks),
        BenchmarkLimit::AtMost(500.0),
    ))?;
    report(&row(
        "core: request_launch among 1,000 entries",
        "µs",
        median(&mut launches),
        BenchmarkLimit::AtMost(20.0),
    ))?;
    report(&row(
        "core: timeline of a week of 100 entries",
        "ms",
        median(&mut weeks),
        BenchmarkLimit::AtMost(20.0),
    ))?;
    many_sessions::measure(wall)
}
