//! Entries that stand for being logged in (S19.2).

use std::collections::BTreeSet;

use shepherd_api::{EntryKind, ReasonCode};
use shepherd_core::LoginCheck;
use shepherd_core::policy::{
    DailyQuota, EntrySlot, IdleTime, LoginCounting, LoginPolicy, Policy, PolicyEntry, PolicyError,
    PolicyRules, TerminalState,
};
use shepherd_util::ProfileId;

use crate::harness::{BERLIN, EngineHarness, MONDAY_NOON, entry, entry_in_window, hours, policy, wall_time};

const ACCOUNT: &str = "1001";

fn login() -> PolicyEntry {
    PolicyEntry {
        entry_id: "computer".parse().unwrap(),
        kind: EntryKind::login(),
        slot: EntrySlot::Login,
        ..entry_in_window((15, 0), (19, 0))
    }
}

fn check(world: &EngineHarness) -> LoginCheck {
    world.engine.check_login(&ProfileId::default(), ACCOUNT, world.now()).expect("the policy has a login")
}

// S19.2
#[test]
fn a_login_is_refused_outside_its_hours_until_they_begin() {
    let mut world = EngineHarness::new(policy(vec![login()]), MONDAY_NOON);
    let opens = Some(wall_time(BERLIN, "2026-11-16 15:00"));
    let outside = ReasonCode::OutsideHours { next_opening: opens };
    let expected = LoginCheck { entry_id: "computer".parse().unwrap(), reasons: vec![outside], opens };
    assert_eq!(check(&world), expected);
    world.advance(hours(3));
    assert_eq!(check(&world), LoginCheck { reasons: Vec::new(), opens: None, ..expected });
}

// S19.2
#[test]
fn a_login_without_time_opens_when_both_time_and_hours_are_there_again() {
    let mut no_time = login();
    no_time.limits.daily_quota = DailyQuota {
        base: [Some(std::time::Duration::ZERO), Some(hours(1)), None, None, None, None, None],
        ..DailyQuota::default()
    };
    let world = EngineHarness::new(policy(vec![no_time]), "2026-11-16 16:00");
    let check = check(&world);
    assert_eq!(check.reasons.iter().map(ReasonCode::code).collect::<Vec<_>>(), ["quota-exhausted"]);
    assert_eq!(check.opens, Some(wall_time(BERLIN, "2026-11-17 15:00")));
}

// S19.2
#[test]
fn a_program_that_runs_is_no_reason_against_a_login() {
    let mut world = EngineHarness::new(policy(vec![login(), entry("game")]), "2026-11-16 16:00");
    world.launch("game");
    assert_eq!(check(&world).reasons, []);
}

// S19.2
#[test]
fn a_login_is_never_launched() {
    let mut world = EngineHarness::new(policy(vec![login()]), "2026-11-16 16:00");
    assert_eq!(world.reason_codes("computer"), [""; 0], "it is open");
    assert_eq!(world.denied_codes("computer"), ["login-entry"]);
}

// S19.2
#[test]
fn only_profiles_of_the_entry_are_limited() {
    let mut annas = login();
    annas.profiles = Some(BTreeSet::from(["anna".parse().unwrap()]));
    let rules = |entries: Vec<PolicyEntry>| {
        let profile = PolicyRules::default().profiles.into_values().next().unwrap();
        let profiles = ["anna", "ben"].map(|name| (name.parse().unwrap(), profile.clone()));
        Policy::new(PolicyRules { entries, profiles: profiles.into(), ..PolicyRules::default() })
    };
    let world = EngineHarness::new(rules(vec![annas.clone()]).unwrap(), MONDAY_NOON);
    let login_of = |name: &str| world.engine.check_login(&name.parse().unwrap(), ACCOUNT, world.now());
    assert!(login_of("anna").is_some());
    assert_eq!(login_of("ben"), None);
    assert_eq!(login_of("nobody"), None);

    let everybodys = PolicyEntry { entry_id: "second".parse().unwrap(), ..login() };
    let two_logins = PolicyError::TwoLogins {
        profile: "anna".parse().unwrap(),
        first: "computer".parse().unwrap(),
        second: "second".parse().unwrap(),
    };
    assert_eq!(rules(vec![annas, everybodys]), Err(two_logins));
}

// S19.2
#[test]
fn a_terminal_counts_by_its_state_and_the_policy() {
    use IdleTime::{Counts, Free};
    use LoginCounting::{Active, Always, Unlocked};
    let terminal = |word: &str| TerminalState {
        active: word.contains('a'),
        locked: word.contains('l'),
        idle: word.contains('i'),
    };
    for (counts, idle, counting) in [
        (Active, Counts, "a al ai ali"),
        (Active, Free, "a al"),
        (Unlocked, Counts, "a ai"),
        (Unlocked, Free, "a"),
        (Always, Counts, "- a l i al ai li ali"),
        (Always, Free, "- a l al"),
    ] {
        let login = LoginPolicy { counts, idle, ..LoginPolicy::default() };
        let all = ["-", "a", "l", "i", "al", "ai", "li", "ali"];
        let counted: Vec<_> = all.into_iter().filter(|word| login.counts(terminal(word))).collect();
        assert_eq!(counted.join(" "), counting, "{counts:?} {idle:?}");
    }
}
