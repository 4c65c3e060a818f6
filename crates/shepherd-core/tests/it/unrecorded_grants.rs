//! Grants whose record can't be written are undone (S8.2).

use jiff::SignedDuration;
use shepherd_api::{AuditKind, StopMode, StopRequester, TimeRequestState};
use shepherd_core::policy::DailyQuota;
use shepherd_core::{CoreEvent, GrantError, LaunchDecision, NewTimeRequest, StopRequest};
use shepherd_util::{GrantId, RequestId};

use crate::harness::{
    EngineHarness, MONDAY_NOON, entry, entry_with_max_run, extra, grant, hours, minutes, policy, policy_with,
};

const DETAIL: &str = "the disk is full";

/// Returns an engine in which the daily quota of the only entry is exhausted.
fn world_with_exhausted_quota() -> EngineHarness {
    let mut game = entry("game");
    game.limits.daily_quota = DailyQuota::every_day(minutes(10));
    let mut world = EngineHarness::new(policy(vec![game]), MONDAY_NOON);
    world.launch("game");
    world.play_until_expired();
    assert_eq!(world.denied_codes("game"), ["quota-exhausted"]);
    world
}

#[test]
fn an_unrecorded_grant_is_undone() {
    let mut world = world_with_exhausted_quota();
    world.engine.grant(grant(1, extra(minutes(5))), world.now()).unwrap();
    assert!(world.view("game").enabled);
    world.engine.lose_last_grant(DETAIL, world.now());
    assert_eq!(world.denied_codes("game"), ["quota-exhausted"]);
}

#[test]
fn an_unrecorded_decision_is_undone_and_can_be_made_again() {
    let mut world = world_with_exhausted_quota();
    let (request_id, grant_id) = (RequestId::from_random(1), GrantId::from_random(2));
    let new = NewTimeRequest {
        request_id: request_id.clone(),
        profile: world.engine.policy().default_profile(),
        entry_id: "game".parse().unwrap(),
        amount: minutes(5),
        note: None,
        actor: "child".to_owned(),
    };
    world.engine.request_time(new, world.now()).unwrap();
    world.engine.grant_request(&request_id, None, grant_id.clone(), "parent", world.now()).unwrap();
    assert!(world.view("game").enabled);
    let events = world.engine.lose_last_grant(DETAIL, world.now());
    let grant = Box::new(world.engine.find_grant(&grant_id).unwrap());
    assert!(events.contains(&CoreEvent::GrantChanged { grant }), "{events:?}");
    let request = Box::new(world.engine.find_request(&request_id).unwrap());
    assert!(events.contains(&CoreEvent::RequestChanged { request }), "{events:?}");
    assert_eq!(world.engine.find_request(&request_id).unwrap().state, TimeRequestState::Asked);
    assert_eq!(world.denied_codes("game"), ["quota-exhausted"]);
    world.engine.grant_request(&request_id, None, GrantId::from_random(3), "parent", world.now()).unwrap();
    assert!(world.view("game").enabled);
}

#[test]
fn an_unrecorded_mode_is_undone() {
    let test_policy = policy_with(vec![entry("game")], |rules| {
        rules.modes.names = ["school", "holiday"].map(str::to_owned).into();
        rules.modes.default = "school".to_owned();
    });
    let mut world = EngineHarness::new(test_policy, MONDAY_NOON);
    world.engine.switch_mode(Some("school".to_owned()), "parent", world.now()).unwrap();
    world.engine.switch_mode(Some("holiday".to_owned()), "parent", world.now()).unwrap();
    world.engine.lose_last_grant(DETAIL, world.now());
    assert_eq!(world.engine.get_state(world.now()).mode, "school");
}

#[test]
fn an_unrecorded_confirmation_leaves_the_clock_untrusted() {
    let mut world = EngineHarness::new(policy(vec![entry("game")]), MONDAY_NOON);
    world.run_for(hours(1));
    world.move_wall(SignedDuration::from_hours(-24));
    assert_eq!(world.denied_codes("game"), ["clock-untrusted"]);
    world.engine.confirm_clock("parent", world.now());
    assert!(world.view("game").enabled);
    world.engine.lose_last_grant(DETAIL, world.now());
    assert_eq!(world.denied_codes("game"), ["clock-untrusted"]);
    let records = world.audit.iter().filter(|line| matches!(line.what, AuditKind::ClockUntrusted { .. }));
    assert_eq!(records.count(), 2, "it is on record why");
}

#[test]
fn an_unrecorded_launch_ends_and_costs_nothing() {
    let mut world = EngineHarness::new(policy(vec![entry("game")]), MONDAY_NOON);
    let LaunchDecision::Approved(_) = world.request_launch("game") else { panic!("denied") };
    world.engine.lose_last_grant(DETAIL, world.now());
    assert_eq!(world.engine.take_host_orders(), [], "nothing was started");
    assert_eq!(world.engine.get_state(world.now()).session, None);
    assert!(world.view("game").enabled);
}

/// S3.5b, S3.6: an approved session has an end that can be moved, an ending session has none.
#[test]
fn a_launching_session_can_be_extended_and_an_ending_one_cannot() {
    let game = entry_with_max_run(minutes(30));
    let mut world = EngineHarness::new(policy(vec![game]), MONDAY_NOON);
    let extend = |world: &mut EngineHarness, id| {
        world.engine.extend_current(minutes(10), &GrantId::from_random(id), "parent", world.now())
    };
    assert_eq!(extend(&mut world, 1), Err(GrantError::NoSession));
    let LaunchDecision::Approved(plan) = world.request_launch("game") else { panic!("denied") };
    extend(&mut world, 2).unwrap();
    assert_eq!(world.remaining(), Some(minutes(40)));
    world.engine.start_session(&plan.session_id, "handle".to_owned(), world.now()).unwrap();
    assert_eq!(world.remaining(), Some(minutes(40)));
    let stop = StopRequest { by: StopRequester::User, mode: StopMode::Graceful, actor: "child".to_owned() };
    let _ = world.engine.stop_current(&stop, world.now());
    assert_eq!(extend(&mut world, 3), Err(GrantError::SessionEnding));
}
