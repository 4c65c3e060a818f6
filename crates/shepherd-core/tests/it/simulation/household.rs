//! Random policies: two children, four entries, two budgets, and every kind of rule.

use std::collections::{BTreeMap, BTreeSet};

use shepherd_core::policy::{
    AvailabilityPolicy, BreakRule, DailyQuota, DateException, Day, DayRule, EarningRule, HouseholdModes,
    MinuteOfDay, OnReload, OnShutdown, Policy, PolicyEntry, PolicyRules, Profile, SuspendedTime, TimeBudget,
    TimeCost, TimeWindow, WarningPolicy, WeekdayAmounts, Weekdays,
};

use super::rng::SimulationRng;
use crate::harness::{entry, minutes, warning, zone};

pub(super) const CHILDREN: [&str; 2] = ["anna", "ben"];
pub(super) const ENTRIES: [&str; 4] = ["maths", "game", "film", "piano"];
pub(super) const BUDGETS: [&str; 2] = ["games", "screen"];
pub(super) const MODES: [&str; 2] = ["school", "holiday"];
pub(super) const ZONES: [&str; 5] =
    ["Europe/Berlin", "Pacific/Apia", "America/New_York", "Asia/Kathmandu", "Australia/Lord_Howe"];

/// What the parents might have decided, in a life that begins on this day.
pub(super) fn random_policy(dice: &mut SimulationRng, first: Day) -> Policy {
    let mut entries = vec![maths(dice), game(dice, "game"), game(dice, "film")];
    // An entry that comes and goes with the policy.
    entries.extend(dice.random_option(70, |dice| game(dice, "piano")));
    let profile = |id: &str| (id.parse().unwrap(), Profile { label: id.to_owned(), accounts: Vec::new() });
    let budgets = BUDGETS.map(|id| (id.parse().unwrap(), budget(dice)));
    Policy::new(PolicyRules {
        zone: dice.random_option(20, |dice| zone(dice.pick::<&str>(&ZONES))),
        profiles: CHILDREN.map(profile).into(),
        entries,
        budgets: budgets.into(),
        modes: modes(dice, first),
        exceptions: (0..dice.roll(3)).map(|_| exception(dice, first)).collect(),
        breaks: dice
            .random_option(40, |dice| BreakRule { after: dice.minutes(10, 60), length: dice.minutes(5, 40) }),
        suspended_time: *dice.pick(&[SuspendedTime::Free, SuspendedTime::Free, SuspendedTime::Counts]),
        on_reload: *dice.pick(&[OnReload::KeepPlan, OnReload::Replan]),
        on_shutdown: *dice.pick(&[OnShutdown::LeaveSessions, OnShutdown::EndSessions]),
        clock_tolerance: minutes(*dice.pick(&[1, 10, 60])),
        ..PolicyRules::default()
    })
    .unwrap()
}

fn modes(dice: &mut SimulationRng, first: Day) -> HouseholdModes {
    let dated = dice.random_option(30, |dice| {
        let (from, to) = days(dice, first);
        (from, to, mode(dice))
    });
    HouseholdModes {
        names: MODES.map(str::to_owned).into(),
        default: "school".to_owned(),
        by_date: dated.into_iter().collect(),
    }
}

fn mode(dice: &mut SimulationRng) -> String {
    (*dice.pick(&MODES)).to_owned()
}

fn days(dice: &mut SimulationRng, first: Day) -> (Day, Day) {
    let from = first.plus_days(i32::try_from(dice.roll(4)).unwrap() - 1);
    (from, from.plus_days(i32::try_from(dice.roll(3)).unwrap()))
}

fn time_of_day(dice: &mut SimulationRng) -> MinuteOfDay {
    let minute = *dice.pick(&[0, 0, 15, 30, 59]);
    MinuteOfDay::new(u16::try_from(dice.roll(24)).unwrap(), minute).unwrap()
}

fn window(dice: &mut SimulationRng) -> TimeWindow {
    let days = *dice.pick(&[Weekdays::ALL, Weekdays::ALL, Weekdays::WEEKDAYS, Weekdays::WEEKENDS]);
    let end = if dice.percent(10) { MinuteOfDay::END } else { time_of_day(dice) };
    let modes = dice.random_option(20, |dice| BTreeSet::from([mode(dice)]));
    TimeWindow { days, start: time_of_day(dice), end, modes }
}

fn amounts(dice: &mut SimulationRng) -> WeekdayAmounts {
    if dice.percent(60) {
        return [Some(dice.minutes(10, 120)); 7];
    }
    std::array::from_fn(|_| dice.random_option(80, |dice| dice.minutes(0, 120)))
}

fn daily(dice: &mut SimulationRng) -> DailyQuota {
    if dice.percent(40) {
        return DailyQuota::default();
    }
    let base = amounts(dice);
    let by_mode: BTreeMap<_, _> =
        dice.random_option(20, |dice| (mode(dice), amounts(dice))).into_iter().collect();
    DailyQuota { base, by_mode }
}

fn budget(dice: &mut SimulationRng) -> TimeBudget {
    let weekly = dice.random_option(50, |dice| dice.minutes(30, 300));
    TimeBudget { label: "budget".to_owned(), daily: daily(dice), weekly }
}

fn game(dice: &mut SimulationRng, id: &str) -> PolicyEntry {
    let mut game = entry(id);
    if dice.percent(60) {
        let windows = (0..=dice.roll(3)).map(|_| window(dice)).collect();
        game.availability = AvailabilityPolicy::Windows(windows);
    }
    game.limits.max_run = dice.random_option(60, |dice| dice.minutes(1, 60));
    game.limits.daily_quota = daily(dice);
    game.limits.weekly_quota = dice.random_option(40, |dice| dice.minutes(30, 200));
    game.limits.cooldown_after_run = dice.random_option(40, |dice| dice.minutes(1, 40)).unwrap_or_default();
    let thresholds = [20, 10, 5, 1].into_iter().filter(|_| dice.percent(60));
    game.warnings = WarningPolicy::new(thresholds.map(|before| warning(minutes(before))).collect());
    game.cost = if dice.percent(10) { TimeCost::Free } else { TimeCost::Counts };
    game.budgets =
        BUDGETS.into_iter().filter(|_| dice.percent(50)).map(|budget| budget.parse().unwrap()).collect();
    game
}

/// Learning is mostly free, and may earn time for games.
fn maths(dice: &mut SimulationRng) -> PolicyEntry {
    let mut maths = game(dice, "maths");
    if dice.percent(30) {
        return maths;
    }
    maths.cost = TimeCost::Free;
    maths.earns = dice.random_option(80, |dice| EarningRule {
        budget: "games".parse().unwrap(),
        for_each: dice.minutes(1, 20),
        earned: dice.minutes(1, 20),
        ceiling: dice.minutes(10, 60),
    });
    maths
}

fn exception(dice: &mut SimulationRng, first: Day) -> DateException {
    let (from, to) = days(dice, first);
    let rule = match dice.roll(4) {
        0 => DayRule::Closed,
        1 => DayRule::Open,
        2 => DayRule::Windows((0..=dice.roll(2)).map(|_| (time_of_day(dice), time_of_day(dice))).collect()),
        _ => DayRule::AsOn(dice.index(7)),
    };
    // Not for the one that comes and goes.
    let entries = dice.random_option(30, |dice| BTreeSet::from([dice.pick(&ENTRIES[..3]).parse().unwrap()]));
    DateException { from, to, label: "exception".to_owned(), entries, rule }
}
