//! Two hundred sessions of as many profiles, beside one session of the same policy (S19.1): the cost of a session must hardly
//! grow with the number of the others.

use std::hint::black_box;
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use shepherd_core::policy::{AvailabilityPolicy, Policy, PolicyRules, Profile};
use shepherd_core::{
    CoreEngine, EngineEnvironment, HostCapabilities, LaunchDecision, LaunchRequest, StoredState,
};
use shepherd_util::{BootId, ClockReading, MonotonicInstant, ProfileId, SessionId};
use ward_bench::{BenchmarkBaseline, BenchmarkLimit, BenchmarkRow, median, millis, report, timed};

use super::{CoreBenchError, HOUR, ROUNDS, entry};

const SESSIONS: usize = 200;
/// The time between two rounds: long enough that a tick charges every session.
const STEP: Duration = Duration::from_secs(5);

/// The microseconds that each session costs.
#[derive(Default)]
struct SessionCosts {
    ticks: Vec<f64>,
    saves: Vec<f64>,
}

pub(super) fn measure(wall: Timestamp) -> Result<(), CoreBenchError> {
    let (mut alone, mut crowd) = (SessionCosts::default(), SessionCosts::default());
    let start = ClockReading { wall, mono: MonotonicInstant::BOOT.after(HOUR) };
    let (mut one, mut many) = (engine(1, start)?, engine(SESSIONS, start)?);
    let mut now = start;
    for _ in 0..ROUNDS {
        now = ClockReading { wall: now.wall.checked_add(STEP)?, mono: now.mono.after(STEP) };
        round(&mut many, now, &mut crowd);
        // As often as the sessions of the other engine, so that a busy machine disturbs both measurements equally.
        for _ in 0..SESSIONS {
            now = ClockReading { wall: now.wall.checked_add(STEP / 100)?, mono: now.mono.after(STEP / 100) };
            round(&mut one, now, &mut alone);
        }
    }
    for (what, mut crowd, mut alone) in
        [("tick that charges", crowd.ticks, alone.ticks), ("usage saved", crowd.saves, alone.saves)]
    {
        let baseline = BenchmarkBaseline { name: "one session".to_owned(), figure: median(&mut alone) };
        report(&BenchmarkRow {
            bench: format!("core: {what}, each of {SESSIONS} sessions"),
            unit: "µs".to_owned(),
            figure: median(&mut crowd),
            baseline: Some(baseline),
            // Ordered tables cost the logarithm of their size, and a look at all others for each session much more.
            bar: BenchmarkLimit::RatioAtMost(2.5),
        })?;
    }
    Ok(())
}

fn round(engine: &mut CoreEngine, now: ClockReading, costs: &mut SessionCosts) {
    let each = |took: Duration, engine: &CoreEngine| millis(took) * 1_000.0 / engine.sessions().len() as f64;
    let (effects, took) = timed(|| engine.tick(now));
    drop(black_box(effects));
    costs.ticks.push(each(took, engine));
    let later = ClockReading { mono: now.mono.after(Duration::from_millis(1)), ..now };
    let (effects, took) = timed(|| engine.checkpoint_usage(later));
    drop(black_box(effects));
    costs.saves.push(each(took, engine));
}

/// Returns an engine whose profiles all have an entry of their own, and in which so many of these entries run.
fn engine(sessions: usize, now: ClockReading) -> Result<CoreEngine, CoreBenchError> {
    let zone = TimeZone::get("Europe/Berlin")?;
    let profile = |number: usize| format!("child-{number}").parse::<ProfileId>();
    let mut rules = PolicyRules { zone: Some(zone.clone()), ..PolicyRules::default() };
    for number in 0..SESSIONS {
        let label = format!("Child {number}");
        rules.profiles.insert(profile(number)?, Profile { label, accounts: Vec::new() });
        let mut entry = entry(number)?;
        entry.profiles = Some([profile(number)?].into());
        entry.availability = AvailabilityPolicy::Always;
        (entry.limits.max_run, entry.limits.weekly_quota) = (None, None);
        entry.limits.daily_quota = Default::default();
        entry.budgets.clear();
        rules.entries.push(entry);
    }
    let boot: BootId = "3f1c1e9a-5d0b-4c57-9f0e-0a8a5c1d2b3e".parse()?;
    let place = EngineEnvironment { boot, zone };
    let capabilities = HostCapabilities::all_supported();
    let mut engine = CoreEngine::new(Policy::new(rules)?, StoredState::default(), capabilities, place);
    for number in 0..sessions {
        let session_id = SessionId::from_random(number as u128);
        let request = LaunchRequest {
            entry_id: format!("game-{number}").parse()?,
            profile: Some(profile(number)?),
            session_id: session_id.clone(),
            actor: "bench".to_owned(),
            display: None,
        };
        let launched = engine.request_launch(&request, now);
        assert!(matches!(launched.answer, LaunchDecision::Approved(_)), "the launch is approved");
        engine.start_session(&session_id, String::new(), now).answer?;
    }
    Ok(engine)
}
