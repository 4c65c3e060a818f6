//! What is written down, by which act, and in whose name (S8.3).

use std::collections::BTreeSet;

use jiff::SignedDuration;
use shepherd_api::{AuditKind, StopMode, StopRequester};
use shepherd_core::policy::{Modes, Policy, WarningPolicy};
use shepherd_core::{ExitInfo, NewRequest, SessionFate, StopRequest};
use shepherd_util::{GrantId, ProfileId, RequestId, SessionId};

use crate::harness::{World, entry, extra, grant, minutes, policy_with, warning, zone};

fn household() -> Policy {
    let mut game = entry("game");
    game.limits.max_run = Some(minutes(30));
    game.warnings = WarningPolicy::new(vec![warning(minutes(5))]);
    policy_with(vec![game], |rules| {
        rules.zone = None;
        rules.ceilings.extra_per_day = Some(minutes(60));
        rules.modes = Modes {
            names: ["school", "holiday"].map(str::to_owned).into(),
            default: "school".to_owned(),
            by_date: Vec::new(),
        };
    })
}

fn new_world() -> World {
    World::new(household(), "2026-11-16 12:00")
}

fn playing() -> World {
    let mut world = new_world();
    world.launch("game");
    world
}

fn ask_for_time(world: &mut World) -> RequestId {
    let request_id = RequestId::from_random(1);
    let request = NewRequest {
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

fn asked() -> World {
    let mut world = new_world();
    ask_for_time(&mut world);
    world
}

fn given() -> World {
    let mut world = playing();
    world.engine.grant(grant(1, extra(minutes(10))), world.now()).unwrap();
    world
}

/// The name of a kind, as a reader of the log sees it.
fn name(what: &AuditKind) -> String {
    let json = serde_json::to_value(what).unwrap();
    let tag = json["event"].as_str().expect("a line says what happened");
    match what {
        AuditKind::RequestDecided { decision, .. } => format!("{tag} {decision}"),
        _ => tag.to_owned(),
    }
}

/// The lines that one act leaves, each with its actor.
fn check(mut world: World, act: impl FnOnce(&mut World), expected: &[&str]) -> BTreeSet<String> {
    world.tick();
    world.sync();
    world.audit.clear();
    act(&mut world);
    world.sync();
    let lines: Vec<String> =
        world.audit.iter().map(|event| format!("{}: {}", event.actor, name(&event.what))).collect();
    assert_eq!(lines, expected);
    world.audit.iter().map(|event| name(&event.what)).collect()
}

fn launches() -> Vec<BTreeSet<String>> {
    vec![
        check(new_world(), |world| drop(world.ask("game")), &["test: launch_approved"]),
        check(playing(), |world| drop(world.ask("game")), &["test: launch_denied"]),
        check(
            new_world(),
            |world| drop(world.launch("game")),
            &["test: launch_approved", "policy: session_started"],
        ),
    ]
}

fn lives() -> Vec<BTreeSet<String>> {
    let stop = |world: &mut World| {
        let (by, mode) = (StopRequester::User, StopMode::Graceful);
        let _ = world.engine.stop_current(&StopRequest { by, mode, actor: "child".to_owned() }, world.now());
    };
    let strange_exit = |world: &mut World| {
        let exit = ExitInfo { session_id: SessionId::from_random(99), code: None, signal: None };
        world.engine.notify_session_exited(&exit, world.now());
    };
    vec![
        check(playing(), |world| drop(world.run_for(minutes(25))), &["policy: warning_given"]),
        check(
            playing(),
            |world| drop(world.run_for(minutes(31))),
            &["policy: warning_given", "policy: stop_requested"],
        ),
        check(playing(), stop, &["child: stop_requested"]),
        check(playing(), |world| drop(world.exit()), &["policy: session_ended"]),
        check(playing(), strange_exit, &[]),
    ]
}

fn gifts() -> Vec<BTreeSet<String>> {
    let extend = |world: &mut World| {
        let id = GrantId::from_random(2);
        world.engine.extend_current(minutes(5), &id, "parent", world.now()).unwrap();
    };
    let give = |world: &mut World, amount| {
        drop(world.engine.grant(grant(2, extra(amount)), world.now()));
    };
    let revoke = |world: &mut World| {
        world.engine.revoke(&GrantId::from_random(1), "parent", world.now()).unwrap();
    };
    vec![
        check(new_world(), |world| give(world, minutes(5)), &["parent: granted"]),
        check(playing(), |world| give(world, minutes(5)), &["parent: granted", "policy: deadline_changed"]),
        check(playing(), |world| give(world, minutes(90)), &["parent: command_refused"]),
        check(playing(), extend, &["parent: granted", "policy: deadline_changed"]),
        check(given(), revoke, &["parent: grant_revoked", "policy: deadline_changed"]),
    ]
}

fn requests() -> Vec<BTreeSet<String>> {
    let id = RequestId::from_random(1);
    let see = |world: &mut World| world.engine.see_request(&id, "parent", world.now()).unwrap();
    let grant = |world: &mut World| {
        let grant_id = GrantId::from_random(1);
        drop(world.engine.grant_request(&id, None, grant_id, "parent", world.now()).unwrap());
    };
    let deny = |world: &mut World| world.engine.deny_request(&id, None, "parent", world.now()).unwrap();
    let wait = |world: &mut World| drop(world.run_for(minutes(24 * 60)));
    vec![
        check(new_world(), |world| drop(ask_for_time(world)), &["child: time_requested"]),
        check(asked(), see, &["parent: request_decided seen"]),
        check(asked(), grant, &["parent: granted", "parent: request_decided granted"]),
        check(asked(), deny, &["parent: request_decided denied"]),
        check(asked(), wait, &["policy: request_decided lapsed"]),
    ]
}

fn surroundings() -> Vec<BTreeSet<String>> {
    let back = SignedDuration::from_hours(-1);
    let reload = |world: &mut World| drop(world.engine.reload(household(), None, "parent", world.now()));
    let reject = |world: &mut World| {
        world.engine.reload_failed(vec!["no".to_owned()], "parent", world.now());
    };
    let holiday = |world: &mut World| {
        drop(world.engine.switch_mode(Some("holiday".to_owned()), "parent", world.now()).unwrap());
    };
    let confirm = |world: &mut World| {
        world.move_wall(back);
        drop(world.engine.confirm_clock("parent", world.now()));
    };
    let catch_up = |world: &mut World| {
        world.move_wall(back);
        world.run_for(minutes(51));
    };
    let travel = |world: &mut World| drop(world.engine.zone_changed(zone("Asia/Tokyo"), world.now()));
    let restart = |world: &mut World| {
        world.crash();
        drop(world.engine.recover(SessionFate::Gone, world.now()));
    };
    vec![
        check(new_world(), reload, &["parent: policy_loaded"]),
        check(new_world(), reject, &["parent: policy_rejected"]),
        check(new_world(), holiday, &["parent: mode_switched"]),
        check(new_world(), confirm, &["policy: clock_untrusted", "parent: clock_trusted"]),
        check(new_world(), catch_up, &["policy: clock_untrusted", "policy: clock_trusted"]),
        check(new_world(), travel, &["policy: zone_changed"]),
        check(new_world(), restart, &["policy: daemon_started"]),
        check(playing(), restart, &["policy: daemon_started", "policy: session_ended"]),
        check(playing(), |world| drop(world.engine.shut_down(world.now())), &["policy: daemon_stopped"]),
    ]
}

#[test]
fn every_act_leaves_its_line_and_every_line_has_its_act() {
    let rows = [launches(), lives(), gifts(), requests(), surroundings()];
    let written: BTreeSet<String> = rows.into_iter().flatten().flatten().collect();
    let kinds: BTreeSet<String> =
        written.iter().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect();
    assert_eq!(kinds, all_kinds());
}

/// Every kind of line but the notes, which are the daemon's own.
fn all_kinds() -> BTreeSet<String> {
    let schema = serde_json::to_value(schemars::schema_for!(AuditKind)).unwrap();
    let kinds = schema["oneOf"].as_array().expect("one of several kinds").iter();
    let kinds = kinds.map(|kind| kind["properties"]["event"]["const"].as_str().unwrap().to_owned());
    kinds.filter(|kind| kind != "note").collect()
}
