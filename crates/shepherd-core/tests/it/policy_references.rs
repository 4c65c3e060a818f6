//! A policy with a name that refers to nothing is refused (S7.2).

use std::collections::BTreeSet;
use std::time::Duration;

use shepherd_api::EntryKind;
use shepherd_core::policy::{
    AvailabilityPolicy, DailyQuota, DateException, Day, DayRule, EarningRule, MediaLibrary, Policy,
    PolicyEntry, PolicyError, PolicyRules, UnlockRule, Weekdays,
};

use crate::harness::{budget, entry, hours, minutes, window};

/// Checks the same change with a name that exists and with one that doesn't.
fn check(change: impl Fn(&mut PolicyRules, &mut PolicyEntry, &str), expect: &PolicyError) {
    let build = |name: &str| {
        let (mut rules, mut game) = (PolicyRules::default(), entry("game"));
        rules.budgets.insert("known".parse().unwrap(), budget(hours(1)));
        rules.modes.names.insert("known".to_owned());
        let paths = vec!["/films".to_owned()];
        rules.libraries.insert("known".to_owned(), MediaLibrary { paths, player: None });
        let profile = rules.profiles.values().next().unwrap().clone();
        rules.profiles.insert("known".parse().unwrap(), profile);
        change(&mut rules, &mut game, name);
        rules.entries = vec![entry("known"), game];
        Policy::new(rules)
    };
    assert!(build("known").is_ok(), "{expect}");
    assert_eq!(build("lost").unwrap_err(), *expect);
}

fn quota_for_mode(name: &str) -> DailyQuota {
    DailyQuota { by_mode: [(name.to_owned(), [Some(hours(1)); 7])].into(), ..DailyQuota::default() }
}

#[test]
fn every_name_in_a_policy_refers_to_something() {
    let game = || "game".parse().unwrap();
    let unknown_budget = PolicyError::UnknownBudget { entry: game(), budget: "lost".parse().unwrap() };
    let unknown_mode = PolicyError::UnknownMode("lost".to_owned());
    check(|_, game, name| game.budgets = vec![name.parse().unwrap()], &unknown_budget);
    check(
        |_, game, name| {
            let (for_each, earned, ceiling) = (minutes(20), minutes(10), minutes(30));
            game.earns = Some(EarningRule { budget: name.parse().unwrap(), for_each, earned, ceiling });
        },
        &unknown_budget,
    );
    check(
        |_, game, name| game.profiles = Some(BTreeSet::from([name.parse().unwrap()])),
        &PolicyError::UnknownProfile { entry: game(), profile: "lost".parse().unwrap() },
    );
    check(
        |_, game, name| {
            game.unlock = Some(UnlockRule { entry_id: name.parse().unwrap(), at_least: minutes(5) });
        },
        &PolicyError::UnknownEntry { entry: game(), other: "lost".parse().unwrap() },
    );
    check(
        |_, game, name| game.kind = EntryKind::Media { library_id: name.to_owned(), args: Vec::new() },
        &PolicyError::UnknownLibrary { entry: game(), library: "lost".to_owned() },
    );
    check(
        |rules, _, name| {
            rules.exceptions = vec![DateException {
                from: Day(0),
                to: Day(1),
                label: "holiday".to_owned(),
                entries: Some(BTreeSet::from([name.parse().unwrap()])),
                rule: DayRule::Closed,
            }];
        },
        &PolicyError::UnknownException { exception: "holiday".to_owned(), entry: "lost".parse().unwrap() },
    );
    check(
        |_, game, name| {
            let mut afternoon = window(Weekdays::ALL, (15, 0), (18, 0));
            afternoon.modes = Some(BTreeSet::from([name.to_owned()]));
            game.availability = AvailabilityPolicy::Windows(vec![afternoon]);
        },
        &unknown_mode,
    );
    check(|_, game, name| game.limits.daily_quota = quota_for_mode(name), &unknown_mode);
    check(
        |rules, _, name| rules.budgets.values_mut().for_each(|budget| budget.daily = quota_for_mode(name)),
        &unknown_mode,
    );
    check(|rules, _, name| rules.modes.default = name.to_owned(), &unknown_mode);
    check(|rules, _, name| rules.modes.by_date = vec![(Day(0), Day(1), name.to_owned())], &unknown_mode);
}

#[test]
fn names_are_unique_and_rates_have_a_denominator() {
    let twice = PolicyRules { entries: vec![entry("game"), entry("game")], ..PolicyRules::default() };
    assert_eq!(Policy::new(twice), Err(PolicyError::DuplicateEntry("game".parse().unwrap())));
    let nobody = PolicyRules { profiles: std::collections::BTreeMap::new(), ..PolicyRules::default() };
    assert_eq!(Policy::new(nobody), Err(PolicyError::NoProfile));
    let mut maths = entry("maths");
    let (earned, ceiling) = (minutes(10), minutes(30));
    maths.earns =
        Some(EarningRule { budget: "games".parse().unwrap(), for_each: Duration::ZERO, earned, ceiling });
    let mut rules = PolicyRules { entries: vec![maths], ..PolicyRules::default() };
    rules.budgets.insert("games".parse().unwrap(), budget(hours(1)));
    assert_eq!(Policy::new(rules), Err(PolicyError::EarnsForNothing("maths".parse().unwrap())));
}
