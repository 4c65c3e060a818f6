//! The display of a client's desktop on its way through the engine (S6.8).

use std::collections::BTreeMap;

use shepherd_api::{ClientDisplay, EntryKind};
use shepherd_core::{LaunchDecision, LaunchRequest, SessionPlan, UserDisplay};
use shepherd_util::SessionId;

use crate::harness::{EngineHarness, MONDAY_NOON, entry_with_max_run, minutes, policy};

fn display() -> UserDisplay {
    let named = ClientDisplay { x11: Some(":0".to_owned()), ..ClientDisplay::default() };
    UserDisplay::from_client(&named, 1001).unwrap()
}

/// Launches an entry with this environment from a desktop, and returns the plan.
fn plan_with(env: &[(&str, &str)]) -> SessionPlan {
    let env: BTreeMap<String, String> =
        env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let mut game = entry_with_max_run(minutes(30));
    game.kind = EntryKind::Process { argv: vec!["game".to_owned()], env, cwd: None };
    let mut world = EngineHarness::new(policy(vec![game]), MONDAY_NOON);
    let request = LaunchRequest {
        entry_id: "game".parse().unwrap(),
        profile: None,
        session_id: SessionId::from_random(1),
        actor: "child".to_owned(),
        display: Some(display()),
    };
    match world.engine.request_launch(&request, world.now()) {
        LaunchDecision::Approved(plan) => SessionPlan::clone(&plan),
        LaunchDecision::Denied { reasons } => panic!("{reasons:?}"),
    }
}

#[test]
fn the_plan_has_the_display_of_the_client() {
    assert_eq!(plan_with(&[]).display, Some(display()));
    assert_eq!(plan_with(&[("HOME", "/home/anna")]).display, Some(display()));
}

#[test]
fn a_display_in_the_policy_replaces_that_of_the_client() {
    for name in ["DISPLAY", "WAYLAND_DISPLAY"] {
        assert_eq!(plan_with(&[(name, "wayland-1")]).display, None, "{name}");
    }
}
