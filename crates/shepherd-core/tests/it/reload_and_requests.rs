//! Changes during a session: another policy, a failing store, and requests for time (S2.7, S7.3, S8.4b).

use std::time::Duration;

use shepherd_api::{AuditKind, TimeRequestState};
use shepherd_core::policy::{
    AvailabilityPolicy, DailyQuota, DayRule, DisabledReason, OnReload, Policy, PolicyEntry, UnlockRule,
};
use shepherd_core::{CoreEvent, GrantError, NewTimeRequest};
use shepherd_util::{GrantId, ProfileId, RequestId};

use crate::harness::{
    EngineHarness, MONDAY_NOON, entry, entry_with_max_run, has_expiry, hours, minutes, policy, policy_with,
};
use crate::queries::{add_modes, date_exception, entry_with_quota_by_mode};

fn reload(world: &mut EngineHarness, policy: Policy) -> Vec<CoreEvent> {
    let events = world.engine.reload(policy, None, "parent", world.now());
    world.sync();
    events
}

fn policy_with_max_run(run: Duration, on_reload: OnReload) -> Policy {
    let game = entry_with_max_run(run);
    policy_with(vec![game, entry("piano")], |rules| rules.on_reload = on_reload)
}

#[test]
fn a_running_session_keeps_its_plan_over_a_reload() {
    // S7.3.
    for run in [minutes(5), hours(5)] {
        let mut world = EngineHarness::new(policy_with_max_run(minutes(30), OnReload::KeepPlan), MONDAY_NOON);
        world.launch("game");
        world.run_for(minutes(10));
        let events = reload(&mut world, policy_with_max_run(run, OnReload::KeepPlan));
        let expected = [CoreEvent::PolicyReloaded { entry_count: 2 }, CoreEvent::EntryAvailabilityChanged];
        assert_eq!(events, expected);
        assert_eq!(world.play_until_expired(), minutes(20));
    }
}

#[test]
fn a_reload_that_replans_shortens_and_never_lengthens() {
    // S7.3: ten of thirty minutes have passed.
    for (run, left) in [(minutes(15), minutes(5)), (minutes(5), minutes(0)), (hours(5), minutes(20))] {
        let mut world = EngineHarness::new(policy_with_max_run(minutes(30), OnReload::Replan), MONDAY_NOON);
        let session_id = world.launch("game").session_id;
        world.run_for(minutes(10));
        let events = reload(&mut world, policy_with_max_run(run, OnReload::Replan));
        let event = CoreEvent::DeadlineChanged { session_id, remaining: Some(left) };
        assert_eq!(events.contains(&event), left != minutes(20), "{run:?}");
        assert_eq!(world.remaining(), Some(left), "{run:?}");
    }
}

#[test]
fn a_reload_that_replans_ends_the_session_if_its_window_is_closed() {
    // S7.3.
    let mut closed = policy_with_max_run(hours(1), OnReload::Replan).rules().clone();
    closed.exceptions = vec![date_exception("2026-11-16", "2026-11-16", DayRule::Closed)];
    let mut world = EngineHarness::new(policy_with_max_run(minutes(30), OnReload::Replan), MONDAY_NOON);
    world.launch("game");
    reload(&mut world, Policy::new(closed).unwrap());
    let events = world.tick();
    assert!(events.iter().any(|event| matches!(event, CoreEvent::ExpireDue { .. })), "{events:?}");
}

#[test]
fn a_reload_that_replans_ends_a_session_that_the_new_policy_denies() {
    // S7.3.
    let denials: [fn(&mut PolicyEntry); 3] = [
        |game| game.disabled = Some(DisabledReason { reason: None }),
        |game| game.limits.daily_quota = DailyQuota::every_day(minutes(5)),
        |game| game.unlock = Some(UnlockRule { entry_id: "piano".parse().unwrap(), at_least: minutes(5) }),
    ];
    for deny in denials {
        let mut world = EngineHarness::new(policy_with_max_run(minutes(30), OnReload::Replan), MONDAY_NOON);
        world.launch("game");
        world.run_for(minutes(10));
        let mut rules = world.engine.policy().rules().clone();
        deny(&mut rules.entries[0]);
        reload(&mut world, Policy::new(rules).unwrap());
        assert!(has_expiry(&world.tick()));
    }
}

#[test]
fn a_removed_entry_ends_as_planned_and_cannot_be_launched_again() {
    // S7.3.
    for on_reload in [OnReload::KeepPlan, OnReload::Replan] {
        let mut world = EngineHarness::new(policy_with_max_run(minutes(30), on_reload), MONDAY_NOON);
        world.launch("game");
        let smaller = policy_with(vec![entry("piano")], |rules| rules.on_reload = on_reload);
        reload(&mut world, smaller);
        assert!(world.play_until_expired() <= minutes(30));
        assert_eq!(world.used("game"), world.used("game").min(minutes(30)));
        assert_eq!(world.denied_codes("game"), ["unknown-entry"]);
        world.launch("piano");
    }
}

#[test]
fn a_mode_that_vanished_is_no_longer_chosen() {
    // S7.3.
    let mut world = EngineHarness::new(policy_with(vec![entry_with_quota_by_mode()], add_modes), MONDAY_NOON);
    world.engine.switch_mode(Some("holiday".to_owned()), "parent", world.now()).unwrap();
    let mut at_school = entry_with_quota_by_mode();
    if let AvailabilityPolicy::Windows(windows) = &mut at_school.availability {
        windows.truncate(1);
    }
    at_school.limits.daily_quota.by_mode.clear();
    let without = policy_with(vec![at_school], |rules| {
        add_modes(rules);
        rules.modes.names.remove("holiday");
        rules.modes.by_date.clear();
    });
    reload(&mut world, without);
    assert_eq!(world.engine.get_state(world.now()).mode, "school");
    assert_eq!(world.store.snapshot.mode, None);
    assert_eq!(world.denied_codes("game"), ["outside-hours"]);
}

#[test]
fn a_rejected_policy_is_recorded_and_changes_nothing() {
    // S7.3.
    let mut world = EngineHarness::new(policy_with_max_run(minutes(30), OnReload::KeepPlan), MONDAY_NOON);
    let before = world.engine.policy().clone();
    world.engine.reload_failed(vec!["line 3: no".to_owned()], "parent", world.now());
    world.sync();
    assert_eq!(*world.engine.policy(), before);
    let rejection = AuditKind::PolicyRejected { faults: vec!["line 3: no".to_owned()] };
    assert_eq!(world.audit.last().map(|event| &event.what), Some(&rejection));
}

#[test]
fn a_store_that_fails_denies_until_it_works() {
    // S8.4b.
    let mut world = EngineHarness::new(policy_with_max_run(minutes(30), OnReload::KeepPlan), MONDAY_NOON);
    world.launch("game");
    world.engine.store_failed("disk full".to_owned());
    assert_eq!(world.denied_codes("piano"), ["store-unavailable", "session-active"]);
    assert_eq!(world.play_until_expired(), minutes(30), "what takes away happens anyway");
    assert_eq!(world.denied_codes("piano"), ["store-unavailable"]);
    assert!(!world.view("piano").enabled);
    assert_eq!(world.view("piano").next_available, None);
    world.engine.store_recovered();
    world.launch("piano");
}

fn request(id: u128, amount: Duration) -> NewTimeRequest {
    NewTimeRequest {
        request_id: RequestId::from_random(id),
        profile: ProfileId::default(),
        entry_id: "game".parse().unwrap(),
        amount,
        note: Some("please".to_owned()),
        actor: "child".to_owned(),
    }
}

fn states(world: &EngineHarness) -> Vec<TimeRequestState> {
    world.engine.snapshot().requests.iter().map(|request| request.state.clone()).collect()
}

#[test]
fn a_request_can_be_seen_granted_denied_or_lapse() {
    // S2.7.
    let mut game = entry("game");
    game.limits.daily_quota = DailyQuota::every_day(Duration::ZERO);
    let mut world = EngineHarness::new(policy(vec![game]), MONDAY_NOON);
    let ids: Vec<RequestId> = (1..=3).map(RequestId::from_random).collect();
    for id in 1..=3 {
        world.engine.request_time(request(id, minutes(20)), world.now()).unwrap();
    }
    assert_eq!(states(&world), [TimeRequestState::Asked, TimeRequestState::Asked, TimeRequestState::Asked]);
    for id in &ids {
        world.engine.mark_request_seen(id, "parent", world.now()).unwrap();
    }
    assert_eq!(states(&world), [TimeRequestState::Seen, TimeRequestState::Seen, TimeRequestState::Seen]);
    let grant_id = GrantId::from_random(1);
    let less = Some(minutes(10));
    world.engine.grant_request(&ids[0], less, grant_id.clone(), "parent", world.now()).unwrap();
    let why = Some("homework".to_owned());
    world.engine.deny_request(&ids[1], why.clone(), "parent", world.now()).unwrap();
    world.sync();
    assert_eq!(world.view("game").max_run_if_started_now.map(Duration::from), Some(minutes(10)));
    world.run_for(hours(23));
    assert_eq!(states(&world)[2], TimeRequestState::Seen);
    let is_lapse = |event: &CoreEvent| matches!(event, CoreEvent::RequestChanged { request } if request.state == TimeRequestState::Lapsed);
    assert_eq!(world.run_for(hours(1)).iter().filter(|event| is_lapse(event)).count(), 1);
    let ends = [
        TimeRequestState::Granted { grant_id: grant_id.clone() },
        TimeRequestState::Denied { why },
        TimeRequestState::Lapsed,
    ];
    assert_eq!(states(&world), ends);
    // A decided request can't be decided again.
    for id in &ids {
        let again = world.engine.grant_request(id, None, GrantId::from_random(9), "parent", world.now());
        assert_eq!(again, Err(GrantError::AlreadyDecided));
        assert_eq!(
            world.engine.deny_request(id, None, "parent", world.now()),
            Err(GrantError::AlreadyDecided)
        );
    }
    let decisions: Vec<&str> = world
        .audit
        .iter()
        .filter_map(|event| match &event.what {
            AuditKind::RequestDecided { decision, .. } => Some(decision.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(decisions, ["seen", "seen", "seen", "granted", "denied", "lapsed"]);
    // After two weeks, requests are forgotten.
    world.run_for(hours(24 * 15));
    assert_eq!(states(&world), []);
}

#[test]
fn a_request_for_nothing_known_is_refused() {
    // S2.7.
    let mut world = EngineHarness::new(policy(vec![entry("piano")]), MONDAY_NOON);
    assert_eq!(
        world.engine.request_time(request(1, minutes(5)), world.now()),
        Err(GrantError::UnknownEntry("game".parse().unwrap()))
    );
    let nobody = RequestId::from_random(7);
    assert_eq!(
        world.engine.deny_request(&nobody, None, "parent", world.now()),
        Err(GrantError::UnknownRequest(nobody))
    );
}

#[test]
fn a_request_the_ceiling_forbids_stays_open() {
    // S2.7.
    let mut game = entry("game");
    game.limits.daily_quota = DailyQuota::every_day(Duration::ZERO);
    let policy = policy_with(vec![game], |rules| rules.ceilings.extra_per_day = Some(minutes(10)));
    let mut world = EngineHarness::new(policy, MONDAY_NOON);
    world.engine.request_time(request(1, minutes(20)), world.now()).unwrap();
    let id = RequestId::from_random(1);
    let refused = world.engine.grant_request(&id, None, GrantId::from_random(1), "parent", world.now());
    assert_eq!(refused, Err(GrantError::AboveCeiling { left: minutes(10) }));
    assert_eq!(states(&world), [TimeRequestState::Asked]);
}
