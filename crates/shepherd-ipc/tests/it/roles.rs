//! Roles over a real socket (S11.3): denied, recorded, changed while connected, and real other users.

use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

use rustix::process::{Gid, Uid, geteuid};
use rustix::thread::{set_thread_gid, set_thread_uid};
use serde_json::{Value, json};
use shepherd_api::Role;
use shepherd_ipc::{Authority, Limits, MAX_FRAME};

use crate::support::{Daemon, Everybody, Raw, eventually};

fn code(reply: &Value) -> &str {
    reply["result"]["err"]["code"].as_str().unwrap_or("ok")
}

#[test]
fn a_command_beyond_the_role_is_denied_with_a_reason_and_recorded() {
    let daemon = Daemon::with_role(Role::Observer);
    let mut raw = daemon.raw();
    assert_eq!(raw.hello()["role"], "observer");
    assert_eq!(code(&raw.call(1, &json!({"type": "get_state"}))), "ok");
    let denied = raw.call(2, &json!({"type": "launch", "entry_id": "tuxmath"}));
    assert_eq!(code(&denied), "not-permitted");
    assert_eq!(
        denied["result"]["err"]["sentence"],
        "`launch` needs the role shell; this client's is observer."
    );
    let uid = geteuid().as_raw();
    eventually("it is recorded", || {
        *daemon.records.lock().unwrap() == [format!("uid {uid} launch unrecorded 0")]
    });
}

#[test]
fn nobody_fills_the_disk_with_being_refused() {
    let daemon = Daemon::with_role(Role::Observer);
    for _ in 0..5 {
        let mut raw = daemon.greeted();
        for id in 0..20 {
            assert_eq!(code(&raw.call(id, &json!({"type": "reload_config"}))), "not-permitted");
        }
    }
    assert_eq!(daemon.hub.counts().refused, 100);
    assert_eq!(daemon.records.lock().unwrap().len(), 10);
}

#[test]
fn other_rules_hold_for_those_who_are_connected() {
    let daemon = Daemon::with_role(Role::Admin);
    let mut raw = daemon.greeted();
    let reload = json!({"type": "set_policy", "text": "#"});
    assert_eq!(code(&raw.call(1, &reload)), "ok");
    daemon.hub.set_gatekeeper(Arc::new(Everybody(Some(Role::Shell))));
    assert_eq!(code(&raw.call(2, &reload)), "not-permitted");
    daemon.hub.set_gatekeeper(Arc::new(Everybody(Some(Role::Admin))));
    assert_eq!(code(&raw.call(3, &reload)), "ok");
    // Who may not be here at all is told and sent away, and does not come in again.
    daemon.hub.set_gatekeeper(Arc::new(Everybody(None)));
    assert_eq!(raw.closing_code(), "not-permitted");
    assert_eq!(daemon.raw().closing_code(), "not-permitted");
    let uid = geteuid().as_raw();
    eventually("the attempt is recorded", || {
        daemon.records.lock().unwrap().contains(&format!("uid {uid} connect unrecorded 0"))
    });
}

#[test]
fn whoever_runs_the_daemon_is_known_by_the_kernel() {
    let authority = Authority { owner_uid: geteuid().as_raw(), ..Authority::default() };
    let daemon = Daemon::with(Limits::default(), authority);
    assert_eq!(daemon.raw().hello()["role"], "admin");
}

/// What comes of a connection of another user. Credentials are a thread's own on Linux, and the socket has those
/// of the thread that connected.
fn as_user<T: Send>(daemon: &Daemon, uid: u32, gid: u32, talk: impl FnOnce(Raw) -> T + Send) -> T {
    let socket = daemon.socket();
    std::thread::scope(|scope| {
        let other = scope.spawn(move || {
            set_thread_gid(Gid::from_raw(gid)).unwrap();
            set_thread_uid(Uid::from_raw(uid)).unwrap();
            talk(Raw::connect(&socket))
        });
        other.join().unwrap()
    })
}

/// The role that a user is welcomed with, or the code with which it is sent away.
fn first_word(mut raw: Raw) -> Value {
    let _ = std::io::Write::write_all(
        &mut raw.stream,
        b"{\"type\":\"hello\",\"api_version\":1,\"client\":\"x\"}\n",
    );
    let word = raw.read().unwrap();
    if word["type"] == "welcome" { word["role"].clone() } else { word["error"]["code"].clone() }
}

#[test]
fn real_other_users_have_their_own_roles() {
    let (own, child, family) = (geteuid().as_raw(), 65_001, 65_100);
    let authority = Authority {
        owner_uid: 65_000,
        users: [(child, Role::Shell)].into(),
        groups: [(family, Role::Observer)].into(),
        ..Authority::default()
    };
    if !geteuid().is_root() {
        // Without privileges there is one user to be: a stranger to these rules.
        let daemon = Daemon::with(Limits::default(), authority);
        assert_ne!(own, child);
        assert_eq!(first_word(daemon.raw()), "not-permitted");
        return;
    }
    let limits = Limits { clients_of_one_user: 3, ..Limits::default() };
    let daemon = Daemon::with(limits, authority);
    std::fs::set_permissions(daemon.folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    for (uid, gid, expected) in [
        (child, child, "shell"),
        (65_000, 1, "admin"),
        (65_002, family, "observer"),
        (65_002, 65_002, "not-permitted"),
        (65_534, 0, "not-permitted"),
    ] {
        assert_eq!(as_user(&daemon, uid, gid, first_word), expected, "uid {uid} gid {gid}");
    }
    let denied = as_user(&daemon, child, child, |mut raw| {
        raw.hello();
        raw.call(1, &json!({"type": "extend_current", "by": 3_600_000}))
    });
    assert_eq!(code(&denied), "not-permitted");
    // A child that takes all its places leaves the others theirs, and its lines are short.
    let places: Vec<Raw> = (0..3).map(|_| as_user(&daemon, child, child, |raw| raw)).collect();
    assert_eq!(as_user(&daemon, child, child, first_word), "too-many-clients");
    assert_eq!(first_word(daemon.raw()), "admin");
    drop(places);
    let too_long = as_user(&daemon, 65_002, family, |mut raw| {
        raw.hello();
        let _ = std::io::Write::write_all(&mut raw.stream, &[b' '; MAX_FRAME + 1]);
        json!(raw.closing_code())
    });
    assert_eq!(too_long, "message-too-large");
    eventually("refusals are recorded", || {
        let records = daemon.records.lock().unwrap();
        records.iter().any(|record| record == "uid 65001 extend_current unrecorded 0")
    });
}
