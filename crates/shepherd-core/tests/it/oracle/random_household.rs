//! Random households. The same seed gives the same household.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use jiff::{SignedDuration, ToSpan};
use shepherd_core::policy::{
    AvailabilityPolicy, BedtimeNights, BedtimePolicy, DailyQuota, DateException, Day, DayRule,
    DisabledReason, EarningRule, HouseholdModes, MinuteOfDay, NightHours, PolicyEntry, PolicyRules,
    TimeBudget, TimeCost, TimeWindow, UnlockRule, WeekdayAmounts, Weekdays,
};
use shepherd_core::{EngineSnapshot, PauseEnd, StoredState, UsageCounter, UsageKey};
use shepherd_util::{BootInstant, MonotonicInstant, ProfileId};

use super::naive::WatchedMinutes;
use crate::harness::{boot, entry, minutes, zone};

/// Zones with a year in which their clock changes. In a year without a change, all weeks are alike.
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

/// The days to ask about, and the longer range in which answers may lie.
const WATCHED_DAYS: usize = 16;

pub(super) struct OracleRng(u64);

impl OracleRng {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// SplitMix64 is small, and random enough for this test.
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

/// All data that an answer depends on.
pub(super) struct OracleHousehold {
    pub(super) rules: PolicyRules,
    pub(super) store: StoredState,
    pub(super) watch: WatchedMinutes,
}

impl OracleHousehold {
    pub(super) fn random(rng: &mut OracleRng) -> Self {
        let (name, year) = *rng.pick(&PLACES);
        let zone = zone(name);
        let new_year = jiff::civil::date(year, 1, 1).to_zoned(zone.clone()).unwrap().timestamp();
        let year_end = new_year + SignedDuration::from_hours(365 * 24);
        let jumps: Vec<Timestamp> =
            zone.following(new_year).map(|jump| jump.timestamp()).take_while(|at| *at < year_end).collect();
        let anchor = if jumps.is_empty() || rng.percent(15) { new_year } else { *rng.pick(&jumps) };
        let start = anchor - SignedDuration::from_mins(i64::try_from(rng.below(7 * 1440)).unwrap());
        let first = Day::from_date(zone.to_datetime(start).date());
        let modes = HouseholdModes {
            names: ["school", "holiday"].map(str::to_owned).into(),
            default: "school".to_owned(),
            by_date: rng.random_list(0, 2, |rng| {
                let (from, to) = days(rng, first);
                (from, to, mode(rng))
            }),
        };
        let budgets = ["games", "screen"].map(|id| (id.parse().unwrap(), budget(rng)));
        let rules = PolicyRules {
            zone: Some(zone.clone()),
            entries: vec![maths(rng), game(rng), game_called(rng, "film")],
            budgets: budgets.into(),
            modes,
            exceptions: rng.random_list(0, 3, |rng| exception(rng, first)),
            bedtimes: rng
                .random_option(50, bedtime)
                .map(|bedtime| (ProfileId::default(), bedtime))
                .into_iter()
                .collect(),
            ..PolicyRules::default()
        };
        let store = stored(rng, first, start);
        let watch = WatchedMinutes::new(&zone, start, WATCHED_DAYS * 1440);
        Self { rules, store, watch }
    }
}

fn days(rng: &mut OracleRng, first: Day) -> (Day, Day) {
    let from = first.plus_days(i32::from(rng.below_u16(10)) - 1);
    (from, from.plus_days(i32::from(rng.below_u16(4))))
}

fn mode(rng: &mut OracleRng) -> String {
    (*rng.pick(&["school", "holiday"])).to_owned()
}

/// Returns a time that is often near a change of the clock.
fn time_of_day(rng: &mut OracleRng) -> MinuteOfDay {
    let hour = if rng.percent(50) { rng.below_u16(4) } else { rng.below_u16(24) };
    let minute = if rng.percent(60) { *rng.pick(&[0, 15, 30, 45, 59]) } else { rng.below_u16(60) };
    MinuteOfDay::new(hour, minute).unwrap()
}

fn end_of_window(rng: &mut OracleRng) -> MinuteOfDay {
    if rng.percent(10) { MinuteOfDay::END } else { time_of_day(rng) }
}

fn window(rng: &mut OracleRng) -> TimeWindow {
    let mut weekdays = Weekdays::default();
    for _ in 0..=rng.below(5) {
        weekdays = weekdays.with(usize::from(rng.below_u16(7)));
    }
    TimeWindow {
        days: if rng.percent(40) { Weekdays::ALL } else { weekdays },
        start: time_of_day(rng),
        end: end_of_window(rng),
        modes: rng.random_option(25, |rng| BTreeSet::from([mode(rng)])),
    }
}

fn length(rng: &mut OracleRng) -> Duration {
    let seconds = if rng.percent(30) { rng.below(60) } else { 0 };
    let most = if rng.percent(80) { 180 } else { 1600 };
    minutes(rng.below(most)) + Duration::from_secs(seconds)
}

fn amounts(rng: &mut OracleRng) -> WeekdayAmounts {
    if rng.percent(50) {
        return [Some(length(rng)); 7];
    }
    std::array::from_fn(|_| {
        rng.random_option(70, |rng| if rng.percent(20) { Duration::ZERO } else { length(rng) })
    })
}

fn daily(rng: &mut OracleRng) -> DailyQuota {
    if rng.percent(40) {
        return DailyQuota::default();
    }
    let base = amounts(rng);
    let by_mode: BTreeMap<_, _> =
        rng.random_option(30, |rng| (mode(rng), amounts(rng))).into_iter().collect();
    DailyQuota { base, by_mode }
}

fn budget(rng: &mut OracleRng) -> TimeBudget {
    let weekly = rng.random_option(30, |rng| length(rng) * 3);
    TimeBudget { label: "budget".to_owned(), daily: daily(rng), weekly }
}

fn game_called(rng: &mut OracleRng, id: &str) -> PolicyEntry {
    let mut game = entry(id);
    if rng.percent(90) {
        game.availability = AvailabilityPolicy::Windows(rng.random_list(1, 4, window));
    }
    game.limits.max_run = rng.random_option(40, |rng| length(rng) + minutes(1));
    game.limits.daily_quota = daily(rng);
    game.limits.weekly_quota = rng.random_option(30, |rng| length(rng) * 4);
    game.disabled = rng.random_option(4, |_| DisabledReason { reason: None });
    game.cost = if rng.percent(10) { TimeCost::Free } else { TimeCost::Counts };
    game.budgets = match rng.below(4) {
        0 => Vec::new(),
        1 => vec!["games".parse().unwrap()],
        2 => vec!["screen".parse().unwrap()],
        _ => vec!["games".parse().unwrap(), "screen".parse().unwrap()],
    };
    game
}

fn game(rng: &mut OracleRng) -> PolicyEntry {
    let mut game = game_called(rng, "game");
    game.unlock =
        rng.random_option(15, |rng| UnlockRule { entry_id: "maths".parse().unwrap(), at_least: length(rng) });
    game
}

fn maths(rng: &mut OracleRng) -> PolicyEntry {
    let mut maths = game_called(rng, "maths");
    maths.cost = TimeCost::Free;
    maths.budgets = Vec::new();
    maths.earns = rng.random_option(30, |rng| EarningRule {
        budget: "games".parse().unwrap(),
        for_each: minutes(20),
        earned: minutes(10),
        ceiling: length(rng),
    });
    maths
}

fn bedtime(rng: &mut OracleRng) -> BedtimePolicy {
    let nights = nights(rng);
    let by_mode = rng.random_option(30, |rng| (mode(rng), self::nights(rng))).into_iter().collect();
    BedtimePolicy { nights, by_mode }
}

fn nights(rng: &mut OracleRng) -> BedtimeNights {
    // Some begin after midnight, near a change of the clock. Not every pair of times is a night.
    let mut night = || {
        let tries = (0..20).map(|_| NightHours::new(end_of_window(rng), end_of_window(rng)).ok());
        tries.flatten().next().filter(|_| rng.percent(90))
    };
    BedtimeNights { school_nights: night(), weekends: night() }
}

fn exception(rng: &mut OracleRng, first: Day) -> DateException {
    let (from, to) = days(rng, first);
    let rule = match rng.below(4) {
        0 => DayRule::Closed,
        1 => DayRule::Open,
        2 => DayRule::Windows(rng.random_list(1, 3, |rng| (time_of_day(rng), end_of_window(rng)))),
        _ => DayRule::AsOn(usize::from(rng.below_u16(7))),
    };
    let entries = rng.random_option(30, |_| BTreeSet::from(["game".parse().unwrap()]));
    DateException { from, to, label: "exception".to_owned(), entries, rule }
}

fn stored(rng: &mut OracleRng, first: Day, start: Timestamp) -> StoredState {
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
            usage.extend(rng.random_option(35, |rng| (key, length(rng))));
        }
    }
    let cooldowns = rng.random_option(25, |rng| {
        let wall = start + i64::try_from(rng.below(4 * 1440)).unwrap().minutes();
        let boot = BootInstant::new(boot(7), MonotonicInstant::BOOT);
        ((ProfileId::default(), "game".parse().unwrap()), PauseEnd { wall, boot })
    });
    let mode = rng.random_option(15, mode);
    StoredState {
        usage,
        cooldowns: cooldowns.into_iter().collect(),
        sessions: BTreeMap::new(),
        snapshot: EngineSnapshot { mode, ..EngineSnapshot::default() },
        heartbeat: None,
    }
}
