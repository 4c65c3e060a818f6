//! Random households, from a seed: the same seed, the same household.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use jiff::{SignedDuration, ToSpan};
use shepherd_core::policy::{
    AvailabilityPolicy, DailyQuota, DateException, Day, DayRule, DisabledReason, EarningRule, HouseholdModes,
    MinuteOfDay, PolicyEntry, PolicyRules, TimeBudget, TimeCost, TimeWindow, UnlockRule, WeekdayAmounts,
    Weekdays,
};
use shepherd_core::{EngineSnapshot, PauseEnd, StoredState, UsageCounter, UsageKey};
use shepherd_util::{BootInstant, MonotonicInstant, ProfileId};

use super::naive::WatchedMinutes;
use crate::harness::{boot, entry, minutes, zone};

/// Zones with a year in which something happens; of a year without a change every week is as good as another.
const PLACES: [(&str, i16); 12] = [
    ("Europe/Berlin", 2026),
    ("America/New_York", 2026),
    ("Australia/Lord_Howe", 2026),
    ("America/Sao_Paulo", 2017),
    ("America/Sao_Paulo", 2018),
    ("Africa/Casablanca", 2026),
    ("Asia/Kathmandu", 2026),
    ("Pacific/Apia", 2011),
    ("Antarctica/Troll", 2026),
    ("Asia/Beirut", 2026),
    ("America/Havana", 2026),
    ("Africa/Cairo", 2026),
];

/// A week to ask about, and more than another one in which the answers may lie.
const WATCHED_DAYS: usize = 16;

pub(super) struct OracleRng(u64);

impl OracleRng {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// SplitMix64: small, and good enough to be unpredictable for us.
    fn next_number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.next_number() % bound
    }

    fn percent(&mut self, chance: u64) -> bool {
        self.below(100) < chance
    }

    pub(super) fn index(&mut self, length: usize) -> usize {
        usize::try_from(self.below(length as u64)).unwrap()
    }

    fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.index(of.len())]
    }

    fn below_u16(&mut self, bound: u16) -> u16 {
        u16::try_from(self.below(u64::from(bound))).unwrap()
    }

    fn random_option<T>(&mut self, chance: u64, make: impl FnOnce(&mut Self) -> T) -> Option<T> {
        self.percent(chance).then(|| make(self))
    }

    fn random_list<T>(&mut self, least: u64, most: u64, mut make: impl FnMut(&mut Self) -> T) -> Vec<T> {
        let count = least + self.below(most - least + 1);
        (0..count).map(|_| make(self)).collect()
    }
}

/// Everything that an answer depends on.
pub(super) struct OracleHousehold {
    pub(super) rules: PolicyRules,
    pub(super) store: StoredState,
    pub(super) watch: WatchedMinutes,
}

impl OracleHousehold {
    pub(super) fn random(dice: &mut OracleRng) -> Self {
        let (name, year) = *dice.pick(&PLACES);
        let zone = zone(name);
        let new_year = jiff::civil::date(year, 1, 1).to_zoned(zone.clone()).unwrap().timestamp();
        let year_end = new_year + SignedDuration::from_hours(365 * 24);
        let jumps: Vec<Timestamp> =
            zone.following(new_year).map(|jump| jump.timestamp()).take_while(|at| *at < year_end).collect();
        let anchor = if jumps.is_empty() || dice.percent(15) { new_year } else { *dice.pick(&jumps) };
        let start = anchor - SignedDuration::from_mins(i64::try_from(dice.below(7 * 1440)).unwrap());
        let first = Day::from_date(zone.to_datetime(start).date());
        let modes = HouseholdModes {
            names: ["school", "holiday"].map(str::to_owned).into(),
            default: "school".to_owned(),
            by_date: dice.random_list(0, 2, |dice| {
                let (from, to) = days(dice, first);
                (from, to, mode(dice))
            }),
        };
        let budgets = ["games", "screen"].map(|id| (id.parse().unwrap(), budget(dice)));
        let rules = PolicyRules {
            zone: Some(zone.clone()),
            entries: vec![maths(dice), game(dice), game_called(dice, "film")],
            budgets: budgets.into(),
            modes,
            exceptions: dice.random_list(0, 3, |dice| exception(dice, first)),
            ..PolicyRules::default()
        };
        let store = stored(dice, first, start);
        let watch = WatchedMinutes::new(&zone, start, WATCHED_DAYS * 1440);
        Self { rules, store, watch }
    }
}

fn days(dice: &mut OracleRng, first: Day) -> (Day, Day) {
    let from = first.plus_days(i32::from(dice.below_u16(10)) - 1);
    (from, from.plus_days(i32::from(dice.below_u16(4))))
}

fn mode(dice: &mut OracleRng) -> String {
    (*dice.pick(&["school", "holiday"])).to_owned()
}

/// Often near the hours at which clocks jump.
fn time_of_day(dice: &mut OracleRng) -> MinuteOfDay {
    let hour = if dice.percent(50) { dice.below_u16(4) } else { dice.below_u16(24) };
    let minute = if dice.percent(60) { *dice.pick(&[0, 15, 30, 45, 59]) } else { dice.below_u16(60) };
    MinuteOfDay::new(hour, minute).unwrap()
}

fn end_of_window(dice: &mut OracleRng) -> MinuteOfDay {
    if dice.percent(10) { MinuteOfDay::END } else { time_of_day(dice) }
}

fn window(dice: &mut OracleRng) -> TimeWindow {
    let mut weekdays = Weekdays::default();
    for _ in 0..=dice.below(5) {
        weekdays = weekdays.with(usize::from(dice.below_u16(7)));
    }
    TimeWindow {
        days: if dice.percent(40) { Weekdays::ALL } else { weekdays },
        start: time_of_day(dice),
        end: end_of_window(dice),
        modes: dice.random_option(25, |dice| BTreeSet::from([mode(dice)])),
    }
}

fn length(dice: &mut OracleRng) -> Duration {
    let seconds = if dice.percent(30) { dice.below(60) } else { 0 };
    let most = if dice.percent(80) { 180 } else { 1600 };
    minutes(dice.below(most)) + Duration::from_secs(seconds)
}

fn amounts(dice: &mut OracleRng) -> WeekdayAmounts {
    if dice.percent(50) {
        return [Some(length(dice)); 7];
    }
    std::array::from_fn(|_| {
        dice.random_option(70, |dice| if dice.percent(20) { Duration::ZERO } else { length(dice) })
    })
}

fn daily(dice: &mut OracleRng) -> DailyQuota {
    if dice.percent(40) {
        return DailyQuota::default();
    }
    let base = amounts(dice);
    let by_mode: BTreeMap<_, _> =
        dice.random_option(30, |dice| (mode(dice), amounts(dice))).into_iter().collect();
    DailyQuota { base, by_mode }
}

fn budget(dice: &mut OracleRng) -> TimeBudget {
    let weekly = dice.random_option(30, |dice| length(dice) * 3);
    TimeBudget { label: "budget".to_owned(), daily: daily(dice), weekly }
}

fn game_called(dice: &mut OracleRng, id: &str) -> PolicyEntry {
    let mut game = entry(id);
    if dice.percent(90) {
        game.availability = AvailabilityPolicy::Windows(dice.random_list(1, 4, window));
    }
    game.limits.max_run = dice.random_option(40, |dice| length(dice) + minutes(1));
    game.limits.daily_quota = daily(dice);
    game.limits.weekly_quota = dice.random_option(30, |dice| length(dice) * 4);
    game.disabled = dice.random_option(4, |_| DisabledReason { reason: None });
    game.cost = if dice.percent(10) { TimeCost::Free } else { TimeCost::Counts };
    game.budgets = match dice.below(4) {
        0 => Vec::new(),
        1 => vec!["games".parse().unwrap()],
        2 => vec!["screen".parse().unwrap()],
        _ => vec!["games".parse().unwrap(), "screen".parse().unwrap()],
    };
    game
}

fn game(dice: &mut OracleRng) -> PolicyEntry {
    let mut game = game_called(dice, "game");
    game.unlock = dice
        .random_option(15, |dice| UnlockRule { entry_id: "maths".parse().unwrap(), at_least: length(dice) });
    game
}

fn maths(dice: &mut OracleRng) -> PolicyEntry {
    let mut maths = game_called(dice, "maths");
    maths.cost = TimeCost::Free;
    maths.budgets = Vec::new();
    maths.earns = dice.random_option(30, |dice| EarningRule {
        budget: "games".parse().unwrap(),
        for_each: minutes(20),
        earned: minutes(10),
        ceiling: length(dice),
    });
    maths
}

fn exception(dice: &mut OracleRng, first: Day) -> DateException {
    let (from, to) = days(dice, first);
    let rule = match dice.below(4) {
        0 => DayRule::Closed,
        1 => DayRule::Open,
        2 => DayRule::Windows(dice.random_list(1, 3, |dice| (time_of_day(dice), end_of_window(dice)))),
        _ => DayRule::AsOn(usize::from(dice.below_u16(7))),
    };
    let entries = dice.random_option(30, |_| BTreeSet::from(["game".parse().unwrap()]));
    DateException { from, to, label: "exception".to_owned(), entries, rule }
}

fn stored(dice: &mut OracleRng, first: Day, start: Timestamp) -> StoredState {
    let mut usage = BTreeMap::new();
    let entries = ["maths", "game", "film"].map(|id| UsageCounter::Entry(id.parse().unwrap()));
    let budgets = ["games", "screen"].map(|id| UsageCounter::Budget(id.parse().unwrap()));
    for counter in entries.into_iter().chain(budgets) {
        for day in 0..9 {
            let key = UsageKey {
                profile: ProfileId::default(),
                counter: counter.clone(),
                day: first.plus_days(day - 1),
            };
            usage.extend(dice.random_option(35, |dice| (key, length(dice))));
        }
    }
    let cooldowns = dice.random_option(25, |dice| {
        let wall = start + i64::try_from(dice.below(4 * 1440)).unwrap().minutes();
        let boot = BootInstant::new(boot(7), MonotonicInstant::BOOT);
        ((ProfileId::default(), "game".parse().unwrap()), PauseEnd { wall, boot })
    });
    let mode = dice.random_option(15, mode);
    StoredState {
        usage,
        cooldowns: cooldowns.into_iter().collect(),
        snapshot: EngineSnapshot { mode, ..EngineSnapshot::default() },
        heartbeat: None,
    }
}
