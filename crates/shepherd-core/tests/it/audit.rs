//! Which action writes which record, and in whose name (S8.3).

use std::collections::BTreeSet;

use jiff::SignedDuration;
use shepherd_api::{AuditKind, StopMode, StopRequester};
use shepherd_core::policy::{HouseholdModes, Policy, WarningPolicy};
use shepherd_core::{ExitInfo, NewTimeRequest, SessionLiveness, StopRequest};
use shepherd_util::{GrantId, ProfileId, RequestId, SessionId};

use crate::harness::{EngineHarness, entry_with_max_run, extra, grant, minutes, policy_with, warning, zone};

fn test_policy() -> Policy {
    let mut game = entry_with_max_run(minutes(30));
    game.warnings = WarningPolicy::new(vec![warning(minutes(5))]);
    policy_with(vec![game], |rules| {
        rules.zone = None;
        rules.ceilings.extra_per_day = Some(minutes(60));
        rules.modes = HouseholdModes {
            names: ["school", "holiday"].map(str::to_owned).into(),
            default: "school".to_owned(),
            by_date: Vec::new(),
        };
    })
}

fn new_world() -> EngineHarness {
    EngineHarness::new(test_policy(), "2026-11-16 12:00")
}

fn world_with_running_session() -> EngineHarness {
    let mut world = new_world();
    world.launch("game");
    world
}

fn ask_for_time(world: &mut EngineHarness) -> RequestId {
    let request_id = RequestId::from_random(1);
    let request = NewTimeRequest {
        request_id: request_id.clone(),
        profile: ProfileId::default(),
        entry_id: "game".parse().unwrap(),
        amount: minutes(10),
        note: None,
        actor: "child".to_owned(),
    };
    world.engine.request_time(request, world.now()).unwrap();
    request_id
}

fn world_with_time_request() -> EngineHarness {
    let mut world = new_world();
    ask_for_time(&mut world);
    world
}

fn world_with_grant() -> EngineHarness {
    let mut world = world_with_running_session();
    world.engine.grant(grant(1, extra(minutes(10))), world.now()).unwrap();
    world
}

/// Returns the name of a kind, as the log shows it.
fn audit_kind_name(what: &AuditKind) -> String {
    let json = serde_json::to_value(what).unwrap();
    let tag = json["event"].as_str().expect("a line says what happened");
    match what {
        AuditKind::RequestDecided { decision, .. } => format!("{tag} {decision}"),
        _ => tag.to_owned(),
    }
}

/// Returns the records of one action, each with its actor.
fn check(
    mut world: EngineHarness,
    act: impl FnOnce(&mut EngineHarness),
    expected: &[&str],
) -> BTreeSet<String> {
    world.tick();
    world.sync();
    world.audit.clear();
    act(&mut world);
    world.sync();
    let lines: Vec<String> = world
        .audit
        .iter()
        .map(|event| format!("{}: {}", event.actor, audit_kind_name(&event.what)))
        .collect();
    assert_eq!(lines, expected);
    world.audit.iter().map(|event| audit_kind_name(&event.what)).collect()
}

fn launch_audit_kinds() -> Vec<BTreeSet<String>> {
    vec![
        check(new_world(), |world| drop(world.request_launch("game")), &["test: launch_approved"]),
        check(
            world_with_running_session(),
            |world| drop(world.request_launch("game")),
            &["test: launch_denied"],
        ),
        check(
            new_world(),
            |world| drop(world.launch("game")),
            &["test: launch_approved", "policy: session_started"],
        ),
    ]
}

fn session_audit_kinds() -> Vec<BTreeSet<String>> {
    let stop = |world: &mut EngineHarness| {
        let (by, mode) = (StopRequester::User, StopMode::Graceful);
        let _ = world.engine.stop_current(&StopRequest { by, mode, actor: "child".to_owned() }, world.now());
    };
    let strange_exit = |world: &mut EngineHarness| {
        let exit = ExitInfo { session_id: SessionId::from_random(99), code: None, signal: None };
        world.engine.notify_session_exited(&exit, world.now());
    };
    vec![
        check(
            world_with_running_session(),
            |world| drop(world.run_for(minutes(25))),
            &["policy: warning_given"],
        ),
        check(
            world_with_running_session(),
            |world| drop(world.run_for(minutes(31))),
            &["policy: warning_given", "policy: stop_requested"],
        ),
        check(world_with_running_session(), stop, &["child: stop_requested"]),
        check(world_with_running_session(), |world| drop(world.exit()), &["policy: session_ended"]),
        check(world_with_running_session(), strange_exit, &[]),
    ]
}

fn grant_audit_kinds() -> Vec<BTreeSet<String>> {
    let extend = |world: &mut EngineHarness| {
        let id = GrantId::from_random(2);
        world.engine.extend_current(minutes(5), &id, "parent", world.now()).unwrap();
    };
    let give = |world: &mut EngineHarness, amount| {
        drop(world.engine.grant(grant(2, extra(amount)), world.now()));
    };
    let revoke = |world: &mut EngineHarness| {
        world.revoke(1);
    };
    vec![
        check(new_world(), |world| give(world, minutes(5)), &["parent: granted"]),
        check(
            world_with_running_session(),
            |world| give(world, minutes(5)),
            &["parent: granted", "policy: deadline_changed"],
        ),
        check(world_with_running_session(), |world| give(world, minutes(90)), &["parent: command_refused"]),
        check(world_with_running_session(), extend, &["parent: granted", "policy: deadline_changed"]),
        check(world_with_grant(), revoke, &["parent: grant_revoked", "policy: deadline_changed"]),
    ]
}

fn request_audit_kinds() -> Vec<BTreeSet<String>> {
    let id = RequestId::from_random(1);
    let see = |world: &mut EngineHarness| world.engine.mark_request_seen(&id, "parent", world.now()).unwrap();
    let grant = |world: &mut EngineHarness| {
        let grant_id = GrantId::from_random(1);
        drop(world.engine.grant_request(&id, None, grant_id, "parent", world.now()).unwrap());
    };
    let deny =
        |world: &mut EngineHarness| world.engine.deny_request(&id, None, "parent", world.now()).unwrap();
    let wait = |world: &mut EngineHarness| drop(world.run_for(minutes(24 * 60)));
    vec![
        check(new_world(), |world| drop(ask_for_time(world)), &["child: time_requested"]),
        check(world_with_time_request(), see, &["parent: request_decided seen"]),
        check(world_with_time_request(), grant, &["parent: granted", "parent: request_decided granted"]),
        check(world_with_time_request(), deny, &["parent: request_decided denied"]),
        check(world_with_time_request(), wait, &["policy: request_decided lapsed"]),
    ]
}

fn environment_audit_kinds() -> Vec<BTreeSet<String>> {
    let back = SignedDuration::from_hours(-1);
    let reload =
        |world: &mut EngineHarness| drop(world.engine.reload(test_policy(), None, "parent", world.now()));
    let reject = |world: &mut EngineHarness| {
        world.engine.reload_failed(vec!["no".to_owned()], "parent", world.now());
    };
    let holiday = |world: &mut EngineHarness| {
        drop(world.engine.switch_mode(Some("holiday".to_owned()), "parent", world.now()).unwrap());
    };
    let confirm = |world: &mut EngineHarness| {
        world.move_wall(back);
        drop(world.engine.confirm_clock("parent", world.now()));
    };
    let catch_up = |world: &mut EngineHarness| {
        world.move_wall(back);
        world.run_for(minutes(51));
    };
    let travel = |world: &mut EngineHarness| drop(world.engine.zone_changed(zone("Asia/Tokyo"), world.now()));
    let restart = |world: &mut EngineHarness| {
        world.crash();
        drop(world.engine.recover(SessionLiveness::Gone, world.now()));
    };
    vec![
        check(new_world(), reload, &["parent: policy_loaded"]),
        check(new_world(), reject, &["parent: policy_rejected"]),
        check(new_world(), holiday, &["parent: mode_switched"]),
        check(new_world(), confirm, &["policy: clock_untrusted", "parent: clock_trusted"]),
        check(new_world(), catch_up, &["policy: clock_untrusted", "policy: clock_trusted"]),
        check(new_world(), travel, &["policy: zone_changed"]),
        check(new_world(), restart, &["policy: daemon_started"]),
        check(world_with_running_session(), restart, &["policy: daemon_started", "policy: session_ended"]),
        check(
            world_with_running_session(),
            |world| drop(world.engine.shut_down(world.now())),
            &["policy: daemon_stopped"],
        ),
    ]
}

#[test]
fn every_action_is_recorded_and_every_record_has_its_action() {
    let rows = [
        launch_audit_kinds(),
        session_audit_kinds(),
        grant_audit_kinds(),
        request_audit_kinds(),
        environment_audit_kinds(),
    ];
    let written: BTreeSet<String> = rows.into_iter().flatten().flatten().collect();
    let kinds: BTreeSet<String> =
        written.iter().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect();
    assert_eq!(kinds, all_kinds());
}

/// Every kind of record except notes, which only the daemon writes.
fn all_kinds() -> BTreeSet<String> {
    let schema = serde_json::to_value(schemars::schema_for!(AuditKind)).unwrap();
    let kinds = schema["oneOf"].as_array().expect("one of several kinds").iter();
    let kinds = kinds.map(|kind| kind["properties"]["event"]["const"].as_str().unwrap().to_owned());
    kinds.filter(|kind| kind != "note").collect()
}
