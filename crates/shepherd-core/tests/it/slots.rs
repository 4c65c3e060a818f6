//! Several sessions at once (S19.1): slots, shared time, and sessions that don't count for a while.

mod random_lives;

use std::collections::BTreeMap;
use std::time::Duration;

use shepherd_api::{ReasonCode, SessionCounting, SessionSlot, StopMode, StopRequester};
use shepherd_core::policy::{
    BreakRule, DailyQuota, EarningRule, EntrySlot, Policy, PolicyEntry, PolicyRules, Profile,
};
use shepherd_core::{
    AdoptionDecision, AdoptionRequest, CoreEvent, ExitInfo, LaunchDecision, SessionLiveness, StopRequest,
    UsageCounter,
};
use shepherd_util::{ClockReading, SessionId};

use crate::harness::{
    EngineHarness, MONDAY_NOON, budget, entry, extra, has_expiry, hours, minutes, policy_with, scoped_grant,
    warning, warnings,
};

fn background(id: &str) -> PolicyEntry {
    PolicyEntry { slot: EntrySlot::Background, ..entry(id) }
}

fn login() -> PolicyEntry {
    PolicyEntry { slot: EntrySlot::Login, ..entry("login") }
}

fn on_budget(mut entry: PolicyEntry, budgets: &[&str]) -> PolicyEntry {
    entry.budgets = budgets.iter().map(|id| id.parse().unwrap()).collect();
    entry
}

/// Returns a policy of Anna and Ben, with an hour of screen time a day each.
fn family(entries: Vec<PolicyEntry>) -> Policy {
    family_with(entries, |_| {})
}

fn family_with(entries: Vec<PolicyEntry>, change: impl FnOnce(&mut PolicyRules)) -> Policy {
    policy_with(entries, |rules| {
        let profile =
            |id: &str| (id.parse().unwrap(), Profile { label: id.to_owned(), accounts: Vec::new() });
        rules.profiles = ["anna", "ben"].map(profile).into();
        rules.budgets = [("screen".parse().unwrap(), budget(hours(1)))].into();
        change(rules);
    })
}

fn codes(decision: &LaunchDecision) -> Vec<&'static str> {
    match decision {
        LaunchDecision::Approved(_) => Vec::new(),
        LaunchDecision::Denied { reasons } => reasons.iter().map(ReasonCode::code).collect(),
    }
}

fn used(world: &EngineHarness, child: &str, counter: &UsageCounter) -> Duration {
    let is_meant = |key: &&shepherd_core::UsageKey| key.profile.as_str() == child && key.counter == *counter;
    world.store.usage.iter().filter(|(key, _)| is_meant(key)).map(|(_, used)| *used).sum()
}

fn used_budget(world: &EngineHarness, child: &str) -> Duration {
    used(world, child, &UsageCounter::Budget("screen".parse().unwrap()))
}

fn used_entry(world: &EngineHarness, child: &str, id: &str) -> Duration {
    used(world, child, &UsageCounter::Entry(id.parse().unwrap()))
}

fn exit(world: &mut EngineHarness, session_id: &SessionId) -> Vec<CoreEvent> {
    let exit = ExitInfo { session_id: session_id.clone(), code: Some(0), signal: None };
    let events = world.engine.notify_session_exited(&exit, world.now());
    world.sync();
    events
}

fn left(world: &EngineHarness, session_id: &SessionId) -> Option<Duration> {
    world.engine.sessions().get(session_id).unwrap().ends.remaining(world.now().mono)
}

fn set_counting(world: &mut EngineHarness, session_id: &SessionId, counting: SessionCounting) {
    world.engine.set_counting(session_id, counting, world.now());
    world.sync();
}

fn expired(events: &[CoreEvent]) -> Vec<SessionId> {
    let expired = |event: &CoreEvent| match event {
        CoreEvent::ExpireDue { session_id } => Some(session_id.clone()),
        _ => None,
    };
    events.iter().filter_map(expired).collect()
}

#[test]
fn two_children_play_at_once_and_each_has_one_foreground() {
    let entries = vec![on_budget(entry("game"), &["screen"]), on_budget(entry("film"), &["screen"])];
    let mut world = EngineHarness::new(family(entries), MONDAY_NOON);
    let anna = world.launch_for("game", "anna");
    let ben = world.launch_for("film", "ben");
    assert_eq!(world.engine.sessions().len(), 2);
    let second = world.request_launch_for("film", Some("anna"));
    let LaunchDecision::Denied { reasons } = second else { panic!("approved") };
    // The reason names what is in the way.
    let in_the_way =
        ReasonCode::SessionActive { session_id: anna.session_id.clone(), entry_id: anna.entry_id.clone() };
    assert_eq!(reasons, [in_the_way]);
    world.run_for(minutes(20));
    exit(&mut world, &anna.session_id);
    world.run_for(minutes(10));
    exit(&mut world, &ben.session_id);
    assert_eq!((used_budget(&world, "anna"), used_budget(&world, "ben")), (minutes(20), minutes(30)));
    assert_eq!(world.store.sessions, BTreeMap::new());
}

#[test]
fn a_background_entry_runs_beside_others_but_not_twice() {
    let mut world =
        EngineHarness::new(family(vec![entry("game"), entry("film"), background("music")]), MONDAY_NOON);
    world.launch_for("music", "anna");
    world.launch_for("game", "anna");
    assert_eq!(codes(&world.request_launch_for("music", Some("anna"))), ["session-active"]);
    assert_eq!(codes(&world.request_launch_for("film", Some("anna"))), ["session-active"]);
    world.launch_for("music", "ben");
    let slots: Vec<bool> =
        world.engine.sessions().iter().map(|session| session.slot == SessionSlot::Background).collect();
    assert_eq!(slots, [true, false, true]);
}

#[test]
fn a_budget_is_charged_once_for_each_second_and_ends_both_at_the_same_moment() {
    let entries = vec![on_budget(entry("game"), &["screen"]), on_budget(background("music"), &["screen"])];
    let mut world = EngineHarness::new(family(entries), MONDAY_NOON);
    let game = world.launch_for("game", "anna").session_id;
    world.run_for(minutes(20));
    let music = world.launch_for("music", "anna").session_id;
    assert_eq!((left(&world, &game), left(&world, &music)), (Some(minutes(40)), Some(minutes(40))));
    assert_eq!(expired(&world.run_for(minutes(39))), []);
    let events = world.run_for(minutes(1));
    assert_eq!(expired(&events), [game, music]);
    assert_eq!(used_budget(&world, "anna"), hours(1));
    assert_eq!(
        (used_entry(&world, "anna", "game"), used_entry(&world, "anna", "music")),
        (hours(1), minutes(40))
    );
}

#[test]
fn sessions_that_overlap_in_part_use_the_time_of_either() {
    // 0–30 game, 20–50 music, 60–70 game: an hour of the budget in all.
    let entries = vec![on_budget(entry("game"), &["screen"]), on_budget(background("music"), &["screen"])];
    let mut world = EngineHarness::new(family(entries), MONDAY_NOON);
    let game = world.launch_for("game", "anna").session_id;
    world.advance(minutes(20));
    let music = world.launch_for("music", "anna").session_id;
    world.advance(minutes(10));
    exit(&mut world, &game);
    assert_eq!(left(&world, &music), Some(minutes(30)));
    world.advance(minutes(20));
    exit(&mut world, &music);
    assert_eq!(used_budget(&world, "anna"), minutes(50));
    world.advance(minutes(10));
    world.launch_for("game", "anna");
    assert_eq!(expired(&world.run_for(minutes(10))).len(), 1);
    assert_eq!(used_budget(&world, "anna"), hours(1));
}

#[test]
fn time_in_a_row_counts_once_and_goes_on_in_the_other_session() {
    let rules = family(vec![entry("game"), background("music")]).rules().clone();
    let breaks = Some(BreakRule { after: hours(1), length: minutes(15) });
    let policy = Policy::new(PolicyRules { breaks, ..rules }).unwrap();
    let mut world = EngineHarness::new(policy, MONDAY_NOON);
    let game = world.launch_for("game", "anna").session_id;
    world.run_for(minutes(20));
    let music = world.launch_for("music", "anna").session_id;
    assert_eq!(left(&world, &music), Some(minutes(40)), "the twenty minutes count");
    world.run_for(minutes(20));
    exit(&mut world, &game);
    assert_eq!(expired(&world.run_for(minutes(20))), std::slice::from_ref(&music), "an hour in a row");
    exit(&mut world, &music);
    assert_eq!(codes(&world.request_launch_for("game", Some("anna"))), ["break-needed"]);
    world.run_for(minutes(15));
    let again = world.launch_for("game", "anna").session_id;
    assert_eq!(left(&world, &again), Some(hours(1)));
}

#[test]
fn each_session_gets_its_own_warnings() {
    let mut game = on_budget(entry("game"), &["screen"]);
    game.warnings = shepherd_core::policy::WarningPolicy::new(vec![warning(minutes(10))]);
    let mut music = on_budget(background("music"), &["screen"]);
    music.warnings = shepherd_core::policy::WarningPolicy::new(vec![warning(minutes(5))]);
    let mut world = EngineHarness::new(family(vec![game, music]), MONDAY_NOON);
    world.launch_for("game", "anna");
    let music = world.launch_for("music", "anna").session_id;
    assert_eq!(warnings(&world.run_for(minutes(52))), [600]);
    // The music ends, which doesn't concern the game; a later one is warned again.
    exit(&mut world, &music);
    world.launch_for("music", "anna");
    assert_eq!(warnings(&world.run_for(minutes(7))), [300]);
    assert_eq!(expired(&world.run_for(minutes(1))).len(), 2);
}

#[test]
fn an_extension_of_one_session_leaves_the_other_as_it_is() {
    let entries = vec![on_budget(entry("game"), &["screen"]), on_budget(background("music"), &["screen"])];
    let mut world = EngineHarness::new(family(entries), MONDAY_NOON);
    let game = world.launch_for("game", "anna").session_id;
    let music = world.launch_for("music", "anna").session_id;
    let id = shepherd_util::GrantId::from_random(7);
    world.engine.extend_session(&game, minutes(10), &id, "parent", world.now()).unwrap();
    assert_eq!((left(&world, &game), left(&world, &music)), (Some(minutes(70)), Some(hours(1))));
    assert_eq!(expired(&world.run_for(hours(1))), std::slice::from_ref(&music));
    exit(&mut world, &music);
    assert_eq!(expired(&world.run_for(minutes(10))), [game]);
    assert_eq!(used_budget(&world, "anna"), minutes(70));
}

#[test]
fn a_grant_for_a_budget_extends_every_session_that_uses_it() {
    let entries = vec![on_budget(entry("game"), &["screen"]), on_budget(background("music"), &["screen"])];
    let mut world = EngineHarness::new(family(entries), MONDAY_NOON);
    let game = world.launch_for("game", "anna").session_id;
    let music = world.launch_for("music", "anna").session_id;
    let ben = world.launch_for("game", "ben").session_id;
    world.run_for(minutes(10));
    let mut more = scoped_grant(
        1,
        shepherd_api::EntryScope::Budget { budget_id: "screen".parse().unwrap() },
        extra(minutes(15)),
    );
    more.profile = Some("anna".parse().unwrap());
    world.grant(more);
    let lengths = [game, music, ben].map(|session_id| left(&world, &session_id).unwrap());
    assert_eq!(lengths, [minutes(65), minutes(65), minutes(50)]);
    world.revoke(1);
    assert!(!has_expiry(&world.run_for(minutes(49))));
    assert_eq!(expired(&world.run_for(minutes(1))).len(), 3);
}

#[test]
fn stopping_one_session_leaves_the_other() {
    let mut world = EngineHarness::new(family(vec![entry("game"), background("music")]), MONDAY_NOON);
    let game = world.launch_for("game", "anna").session_id;
    let music = world.launch_for("music", "anna").session_id;
    let request =
        StopRequest { by: StopRequester::User, mode: StopMode::Graceful, actor: "child".to_owned() };
    let _ = world.engine.stop_session(&game, &request, world.now());
    exit(&mut world, &game);
    assert_eq!(world.engine.sessions().only().map(|session| &session.session_id), Some(&music));
    world.sync();
    assert_eq!(world.store.sessions.keys().collect::<Vec<_>>(), [&music]);
}

#[test]
fn a_session_that_does_not_count_stands_still_but_its_window_closes() {
    let mut game = crate::harness::entry_in_window((12, 0), (14, 0));
    game.limits.max_run = Some(minutes(30));
    let mut world = EngineHarness::new(family(vec![on_budget(game, &["screen"])]), MONDAY_NOON);
    let game = world.launch_for("game", "anna").session_id;
    world.run_for(minutes(10));
    set_counting(&mut world, &game, SessionCounting::Stopped);
    assert!(!has_expiry(&world.run_for(minutes(40))));
    assert_eq!(left(&world, &game), Some(minutes(20)));
    assert_eq!(used_budget(&world, "anna"), minutes(10));
    set_counting(&mut world, &game, SessionCounting::Active);
    assert!(!has_expiry(&world.run_for(minutes(19))));
    set_counting(&mut world, &game, SessionCounting::Stopped);
    assert_eq!(left(&world, &game), Some(minutes(1)));
    assert!(!has_expiry(&world.run_for(minutes(50))));
    assert!(has_expiry(&world.run_for(minutes(1))), "the window closes at 14:00");
    assert_eq!(used_budget(&world, "anna"), minutes(29));
}

#[test]
fn shared_time_that_others_used_meanwhile_is_gone() {
    let entries = vec![on_budget(entry("game"), &["screen"]), on_budget(background("music"), &["screen"])];
    let mut world = EngineHarness::new(family(entries), MONDAY_NOON);
    let game = world.launch_for("game", "anna").session_id;
    let music = world.launch_for("music", "anna").session_id;
    world.run_for(minutes(10));
    set_counting(&mut world, &game, SessionCounting::Stopped);
    world.run_for(minutes(30));
    assert_eq!((left(&world, &game), left(&world, &music)), (Some(minutes(50)), Some(minutes(20))));
    set_counting(&mut world, &game, SessionCounting::Active);
    assert_eq!((left(&world, &game), left(&world, &music)), (Some(minutes(20)), Some(minutes(20))));
    assert_eq!(expired(&world.run_for(minutes(20))).len(), 2);
    assert_eq!((used_budget(&world, "anna"), used_entry(&world, "anna", "game")), (hours(1), minutes(30)));
}

#[test]
fn a_pause_as_long_as_the_break_is_the_break() {
    let rules = family(vec![entry("game")]).rules().clone();
    let breaks = Some(BreakRule { after: hours(1), length: minutes(15) });
    let policy = Policy::new(PolicyRules { breaks, ..rules }).unwrap();
    for (pause, expected) in [(minutes(14), minutes(10)), (minutes(15), hours(1))] {
        let mut world = EngineHarness::new(policy.clone(), MONDAY_NOON);
        let game = world.launch_for("game", "anna").session_id;
        world.run_for(minutes(50));
        set_counting(&mut world, &game, SessionCounting::Stopped);
        world.run_for(pause);
        set_counting(&mut world, &game, SessionCounting::Active);
        assert_eq!(left(&world, &game), Some(expected), "after {pause:?}");
        assert!(!has_expiry(&world.run_for(expected - minutes(1))));
        assert!(has_expiry(&world.run_for(minutes(1))));
    }
}

#[test]
fn a_session_that_does_not_count_survives_a_crash_as_it_was() {
    // S9.1.
    let game = on_budget(crate::harness::entry_with_max_run(minutes(30)), &["screen"]);
    let mut world = EngineHarness::new(family(vec![game, background("music")]), MONDAY_NOON);
    let game = world.launch_for("game", "anna").session_id;
    let music = world.launch_for("music", "anna").session_id;
    world.run_for(minutes(10));
    set_counting(&mut world, &game, SessionCounting::Stopped);
    world.advance(minutes(5));
    world.crash();
    let alive = SessionLiveness::Alive { handle: "handle".to_owned() };
    let liveness = BTreeMap::from([(game.clone(), alive), (music, SessionLiveness::Gone)]);
    world.engine.recover_each(&liveness, world.now());
    world.sync();
    assert_eq!(
        world.engine.sessions().only().map(|session| session.counting),
        Some(SessionCounting::Stopped)
    );
    assert_eq!((left(&world, &game), used_budget(&world, "anna")), (Some(minutes(20)), minutes(10)));
    set_counting(&mut world, &game, SessionCounting::Active);
    assert!(!has_expiry(&world.run_for(minutes(19))));
    assert!(has_expiry(&world.run_for(minutes(1))));
}

#[test]
fn sessions_of_one_profile_that_are_lost_together_are_charged_once() {
    // S9.2b: three hours without a daemon, in which both programs ended.
    let entries = vec![on_budget(entry("game"), &["screen"]), on_budget(background("music"), &["screen"])];
    let mut world = EngineHarness::new(family(entries), MONDAY_NOON);
    world.launch_for("game", "anna");
    world.run_for(minutes(10));
    world.launch_for("music", "anna");
    world.crash();
    world.clock.advance(hours(3));
    world.engine.recover_each(&BTreeMap::new(), world.now());
    world.sync();
    assert_eq!(used_budget(&world, "anna"), hours(1), "and no more than there was");
    assert_eq!(world.store.sessions, BTreeMap::new());
}

fn maths_earns(ceiling: Duration) -> PolicyEntry {
    let earns = Some(EarningRule {
        budget: "screen".parse().unwrap(),
        for_each: minutes(10),
        earned: minutes(5),
        ceiling,
    });
    PolicyEntry { earns, ..background("maths") }
}

#[test]
fn time_earned_meanwhile_makes_a_session_longer() {
    let entries = vec![on_budget(entry("game"), &["screen"]), maths_earns(minutes(15))];
    let mut world = EngineHarness::new(family(entries), MONDAY_NOON);
    let game = world.launch_for("game", "anna").session_id;
    world.launch_for("maths", "anna");
    assert!(!has_expiry(&world.run_for(hours(1))));
    assert_eq!(left(&world, &game), Some(minutes(15)));
    assert_eq!(expired(&world.run_for(minutes(15))), [game]);
}

#[test]
fn idle_time_earns_nothing_but_counts() {
    // S19.4.
    let mut maths = on_budget(maths_earns(hours(1)), &["screen"]);
    maths.limits.daily_quota = DailyQuota::every_day(hours(3));
    let mut world =
        EngineHarness::new(family(vec![on_budget(entry("game"), &["screen"]), maths]), MONDAY_NOON);
    let maths = world.launch_for("maths", "anna").session_id;
    world.run_for(minutes(5));
    set_counting(&mut world, &maths, SessionCounting::Idle);
    world.run_for(minutes(30));
    assert_eq!((used_entry(&world, "anna", "maths"), used_budget(&world, "anna")), (minutes(5), minutes(35)));
    set_counting(&mut world, &maths, SessionCounting::Active);
    world.run_for(minutes(5));
    exit(&mut world, &maths);
    assert_eq!(
        (used_entry(&world, "anna", "maths"), used_budget(&world, "anna")),
        (minutes(10), minutes(40))
    );
    let game = world.launch_for("game", "anna").session_id;
    assert_eq!(left(&world, &game), Some(minutes(25)), "twenty, and five that were earned");
}

fn adoption(number: u128, account: &str) -> AdoptionRequest {
    AdoptionRequest {
        entry_id: "login".parse().unwrap(),
        profile: "anna".parse().unwrap(),
        account: account.to_owned(),
        session_id: SessionId::from_random(1_000 + number),
        host_session_handle: format!("c{number}"),
        actor: "logind".to_owned(),
    }
}

fn adopt(world: &mut EngineHarness, number: u128, account: &str) -> Vec<&'static str> {
    let decision = world.engine.adopt_session(&adoption(number, account), world.now());
    world.write_heartbeat();
    world.sync();
    match decision {
        AdoptionDecision::Adopted(_) => Vec::new(),
        AdoptionDecision::Denied { reasons } => reasons.iter().map(ReasonCode::code).collect(),
    }
}

fn reasons(world: &EngineHarness, account: &str, now: ClockReading) -> Vec<&'static str> {
    let (entry_id, profile) = ("login".parse().unwrap(), "anna".parse().unwrap());
    let reasons = world.engine.adoption_reasons(&entry_id, &profile, account, now);
    reasons.iter().map(ReasonCode::code).collect()
}

#[test]
fn a_login_is_adopted_by_the_same_rules_and_runs_beside_programs() {
    // S19.2.
    let entries = vec![on_budget(login(), &["screen"]), on_budget(entry("game"), &["screen"])];
    let mut world = EngineHarness::new(family(entries), MONDAY_NOON);
    assert_eq!(reasons(&world, "anna", world.now()), [""; 0]);
    assert_eq!(adopt(&mut world, 1, "anna"), [""; 0]);
    let desktop = adoption(1, "anna").session_id;
    assert_eq!(world.store.sessions[&desktop].stage.host_session_handle(), Some("c1"));
    assert_eq!(codes(&world.request_launch_for("login", Some("anna"))), ["login-entry"]);
    assert_eq!(reasons(&world, "anna", world.now()), ["session-active"]);
    assert_eq!(adopt(&mut world, 2, "anna"), ["session-active"], "one login for each account");
    assert_eq!(adopt(&mut world, 3, "anna-school"), [""; 0]);
    world.run_for(minutes(10));
    let game = world.launch_for("game", "anna").session_id;
    world.run_for(minutes(20));
    assert_eq!(used_budget(&world, "anna"), minutes(30), "whatever runs at the same time");
    assert_eq!(used_entry(&world, "anna", "login"), minutes(30), "two logins of one entry share its time");
    let events = world.run_for(minutes(30));
    let ended: Vec<_> = expired(&events);
    assert!(ended.len() == 3 && ended.contains(&game), "{events:?}");
    for session_id in ended {
        exit(&mut world, &session_id);
    }
    assert_eq!(adopt(&mut world, 4, "anna"), ["quota-exhausted"]);
    assert_eq!(reasons(&world, "anna", world.now()), ["quota-exhausted"]);
}

#[test]
fn a_login_that_cannot_be_recorded_is_ended() {
    // S8.2.
    let mut world = EngineHarness::new(family(vec![login()]), MONDAY_NOON);
    let _ = world.engine.adopt_session(&adoption(1, "anna"), world.now());
    let events = world.engine.lose_last_grant("no space left", world.now());
    assert_eq!(expired(&events), [adoption(1, "anna").session_id]);
    world.engine.store_failed("no space left".to_owned());
    assert!(reasons(&world, "ben", world.now()).contains(&"store-unavailable"));
}

#[test]
fn an_unknown_session_has_nothing_to_count() {
    let mut world = EngineHarness::new(family(vec![entry("game")]), MONDAY_NOON);
    let before = world.engine.stored_state();
    let stranger = SessionId::from_random(99);
    assert_eq!(world.engine.set_counting(&stranger, SessionCounting::Stopped, world.now()), []);
    assert_eq!(world.engine.stored_state().sessions, before.sessions);
}
