//! Random policies: two children, four entries, two budgets, and every kind of rule.

use std::collections::{BTreeMap, BTreeSet};

use shepherd_core::policy::{
    AvailabilityPolicy, BedtimeNights, BedtimePolicy, BreakRule, DailyQuota, DateException, Day, DayRule,
    EarningRule, HouseholdModes, MinuteOfDay, NightHours, OnReload, OnShutdown, Policy, PolicyEntry,
    PolicyRules, Profile, SuspendedTime, TimeBudget, TimeCost, TimeWindow, WarningPolicy, WeekdayAmounts,
    Weekdays,
};

use super::rng::SimulationRng;
use crate::harness::{entry, minutes, warning, zone};

pub(super) const CHILDREN: [&str; 2] = ["anna", "ben"];
pub(super) const ENTRIES: [&str; 4] = ["maths", "game", "film", "piano"];
pub(super) const BUDGETS: [&str; 2] = ["games", "screen"];
pub(super) const MODES: [&str; 2] = ["school", "holiday"];
pub(super) const ZONES: [&str; 5] =
    ["Europe/Berlin", "Pacific/Apia", "America/New_York", "Asia/Kathmandu", "Australia/Lord_Howe"];

/// Returns a random policy for a simulation that starts on this day.
pub(super) fn random_policy(rng: &mut SimulationRng, first: Day) -> Policy {
    let mut entries = vec![maths(rng), game(rng, "game"), game(rng, "film")];
    // This entry is missing from some policies.
    entries.extend(rng.random_option(70, |rng| game(rng, "piano")));
    let profile = |id: &str| (id.parse().unwrap(), Profile { label: id.to_owned(), accounts: Vec::new() });
    let budgets = BUDGETS.map(|id| (id.parse().unwrap(), budget(rng)));
    Policy::new(PolicyRules {
        zone: rng.random_option(20, |rng| zone(rng.pick::<&str>(&ZONES))),
        profiles: CHILDREN.map(profile).into(),
        entries,
        budgets: budgets.into(),
        modes: modes(rng, first),
        exceptions: (0..rng.roll(3)).map(|_| exception(rng, first)).collect(),
        breaks: rng
            .random_option(40, |rng| BreakRule { after: rng.minutes(10, 60), length: rng.minutes(5, 40) }),
        suspended_time: *rng.pick(&[SuspendedTime::Free, SuspendedTime::Free, SuspendedTime::Counts]),
        on_reload: *rng.pick(&[OnReload::KeepPlan, OnReload::Replan]),
        on_shutdown: *rng.pick(&[OnShutdown::LeaveSessions, OnShutdown::EndSessions]),
        clock_tolerance: minutes(*rng.pick(&[1, 10, 60])),
        bedtimes: CHILDREN.into_iter().filter_map(|id| Some((id.parse().unwrap(), bedtime(rng)?))).collect(),
        ..PolicyRules::default()
    })
    .unwrap()
}

fn modes(rng: &mut SimulationRng, first: Day) -> HouseholdModes {
    let dated = rng.random_option(30, |rng| {
        let (from, to) = days(rng, first);
        (from, to, mode(rng))
    });
    HouseholdModes {
        names: MODES.map(str::to_owned).into(),
        default: "school".to_owned(),
        by_date: dated.into_iter().collect(),
    }
}

fn mode(rng: &mut SimulationRng) -> String {
    (*rng.pick(&MODES)).to_owned()
}

fn days(rng: &mut SimulationRng, first: Day) -> (Day, Day) {
    let from = first.plus_days(i32::try_from(rng.roll(4)).unwrap() - 1);
    (from, from.plus_days(i32::try_from(rng.roll(3)).unwrap()))
}

fn time_of_day(rng: &mut SimulationRng) -> MinuteOfDay {
    let minute = *rng.pick(&[0, 0, 15, 30, 59]);
    MinuteOfDay::new(u16::try_from(rng.roll(24)).unwrap(), minute).unwrap()
}

fn window(rng: &mut SimulationRng) -> TimeWindow {
    let days = *rng.pick(&[Weekdays::ALL, Weekdays::ALL, Weekdays::WEEKDAYS, Weekdays::WEEKENDS]);
    let end = if rng.percent(10) { MinuteOfDay::END } else { time_of_day(rng) };
    let modes = rng.random_option(20, |rng| BTreeSet::from([mode(rng)]));
    TimeWindow { days, start: time_of_day(rng), end, modes }
}

fn amounts(rng: &mut SimulationRng) -> WeekdayAmounts {
    if rng.percent(60) {
        return [Some(rng.minutes(10, 120)); 7];
    }
    std::array::from_fn(|_| rng.random_option(80, |rng| rng.minutes(0, 120)))
}

fn daily(rng: &mut SimulationRng) -> DailyQuota {
    if rng.percent(40) {
        return DailyQuota::default();
    }
    let base = amounts(rng);
    let by_mode: BTreeMap<_, _> =
        rng.random_option(20, |rng| (mode(rng), amounts(rng))).into_iter().collect();
    DailyQuota { base, by_mode }
}

fn budget(rng: &mut SimulationRng) -> TimeBudget {
    let weekly = rng.random_option(50, |rng| rng.minutes(30, 300));
    TimeBudget { label: "budget".to_owned(), daily: daily(rng), weekly }
}

fn game(rng: &mut SimulationRng, id: &str) -> PolicyEntry {
    let mut game = entry(id);
    if rng.percent(60) {
        let windows = (0..=rng.roll(3)).map(|_| window(rng)).collect();
        game.availability = AvailabilityPolicy::Windows(windows);
    }
    game.limits.max_run = rng.random_option(60, |rng| rng.minutes(1, 60));
    game.limits.daily_quota = daily(rng);
    game.limits.weekly_quota = rng.random_option(40, |rng| rng.minutes(30, 200));
    game.limits.cooldown_after_run = rng.random_option(40, |rng| rng.minutes(1, 40)).unwrap_or_default();
    let thresholds = [20, 10, 5, 1].into_iter().filter(|_| rng.percent(60));
    game.warnings = WarningPolicy::new(thresholds.map(|before| warning(minutes(before))).collect());
    game.cost = if rng.percent(10) { TimeCost::Free } else { TimeCost::Counts };
    game.budgets =
        BUDGETS.into_iter().filter(|_| rng.percent(50)).map(|budget| budget.parse().unwrap()).collect();
    game
}

/// A learning entry is mostly free, and may earn time for games.
fn maths(rng: &mut SimulationRng) -> PolicyEntry {
    let mut maths = game(rng, "maths");
    if rng.percent(30) {
        return maths;
    }
    maths.cost = TimeCost::Free;
    maths.earns = rng.random_option(80, |rng| EarningRule {
        budget: "games".parse().unwrap(),
        for_each: rng.minutes(1, 20),
        earned: rng.minutes(1, 20),
        ceiling: rng.minutes(10, 60),
    });
    maths
}

fn bedtime(rng: &mut SimulationRng) -> Option<BedtimePolicy> {
    rng.random_option(40, |rng| {
        let nights = nights(rng);
        let by_mode = rng.random_option(20, |rng| (mode(rng), self::nights(rng))).into_iter().collect();
        BedtimePolicy { nights, by_mode }
    })
}

fn nights(rng: &mut SimulationRng) -> BedtimeNights {
    let mut night = || rng.random_option(85, |rng| NightHours::new(time_of_day(rng), time_of_day(rng)).ok());
    BedtimeNights { school_nights: night().flatten(), weekends: night().flatten() }
}

fn exception(rng: &mut SimulationRng, first: Day) -> DateException {
    let (from, to) = days(rng, first);
    let rule = match rng.roll(4) {
        0 => DayRule::Closed,
        1 => DayRule::Open,
        2 => DayRule::Windows((0..=rng.roll(2)).map(|_| (time_of_day(rng), time_of_day(rng))).collect()),
        _ => DayRule::AsOn(rng.index(7)),
    };
    // The entry that is missing from some policies is not used here.
    let entries = rng.random_option(30, |rng| BTreeSet::from([rng.pick(&ENTRIES[..3]).parse().unwrap()]));
    DateException { from, to, label: "exception".to_owned(), entries, rule }
}
