//! Roles over a real socket (S11.3): denied, recorded, changed during a connection, and with real users.

use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

use rustix::process::{Gid, Uid, geteuid};
use rustix::thread::{set_thread_gid, set_thread_uid};
use serde_json::{Value, json};
use shepherd_api::ClientRole;
use shepherd_ipc::{AccessRules, ConnectionLimits, MAX_FRAME};

use crate::support::{FixedRole, IpcTestDaemon, RawClient, wait_until};

fn code(reply: &Value) -> &str {
    reply["result"]["err"]["code"].as_str().unwrap_or("ok")
}

#[test]
fn a_command_beyond_the_role_is_denied_with_a_reason_and_recorded() {
    let daemon = IpcTestDaemon::with_role(ClientRole::Observer);
    let mut raw = daemon.connect_raw();
    assert_eq!(raw.hello()["role"], "observer");
    assert_eq!(code(&raw.call(1, &json!({"type": "get_state"}))), "ok");
    let denied = raw.call(2, &json!({"type": "launch", "entry_id": "tuxmath"}));
    assert_eq!(code(&denied), "not-permitted");
    assert_eq!(denied["result"]["err"]["sentence"], "Permission denied: you may only watch.");
    let uid = geteuid().as_raw();
    wait_until("it is recorded", || {
        *daemon.records.lock().unwrap() == [format!("uid {uid} launch unrecorded 0")]
    });
}

#[test]
fn recorded_refusals_are_rate_limited() {
    let daemon = IpcTestDaemon::with_role(ClientRole::Observer);
    for _ in 0..5 {
        let mut raw = daemon.connect_greeted();
        for id in 0..20 {
            assert_eq!(code(&raw.call(id, &json!({"type": "reload_config"}))), "not-permitted");
        }
    }
    assert_eq!(daemon.hub.counts().refused, 100);
    assert_eq!(daemon.records.lock().unwrap().len(), 10);
}

#[test]
fn changed_rules_apply_to_connected_clients() {
    let daemon = IpcTestDaemon::with_role(ClientRole::Admin);
    let mut raw = daemon.connect_greeted();
    let reload = json!({"type": "set_policy", "text": "#"});
    assert_eq!(code(&raw.call(1, &reload)), "ok");
    daemon.hub.set_authorizer(Arc::new(FixedRole(Some(ClientRole::Shell))));
    assert_eq!(code(&raw.call(2, &reload)), "not-permitted");
    daemon.hub.set_authorizer(Arc::new(FixedRole(Some(ClientRole::Admin))));
    assert_eq!(code(&raw.call(3, &reload)), "ok");
    // A client that may no longer connect gets an error, is disconnected, and can't connect again.
    daemon.hub.set_authorizer(Arc::new(FixedRole(None)));
    assert_eq!(raw.closing_code(), "not-permitted");
    assert_eq!(daemon.connect_raw().closing_code(), "not-permitted");
    let uid = geteuid().as_raw();
    wait_until("the attempt is recorded", || {
        daemon.records.lock().unwrap().contains(&format!("uid {uid} connect unrecorded 0"))
    });
}

#[test]
fn the_client_learns_the_daemons_uid_from_the_kernel() {
    let authority = AccessRules { owner_uid: geteuid().as_raw(), ..AccessRules::default() };
    let daemon = IpcTestDaemon::with_authorizer(ConnectionLimits::default(), authority);
    assert_eq!(daemon.connect_raw().hello()["role"], "admin");
}

/// Connects as another user, and returns the result. On Linux, credentials belong to a thread, and a socket has the
/// credentials of the thread that connected.
fn as_user<T: Send>(
    daemon: &IpcTestDaemon,
    uid: u32,
    gid: u32,
    talk: impl FnOnce(RawClient) -> T + Send,
) -> T {
    let socket = daemon.socket();
    std::thread::scope(|scope| {
        let other = scope.spawn(move || {
            set_thread_gid(Gid::from_raw(gid)).unwrap();
            set_thread_uid(Uid::from_raw(uid)).unwrap();
            talk(RawClient::connect(&socket))
        });
        other.join().unwrap()
    })
}

/// Returns the role of a user in the welcome, or the code of the refusal.
fn first_message(mut raw: RawClient) -> Value {
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
    let authority = AccessRules {
        owner_uid: 65_000,
        users: [(child, ClientRole::Shell)].into(),
        groups: [(family, ClientRole::Observer)].into(),
        ..AccessRules::default()
    };
    if !geteuid().is_root() {
        // Without privileges the test has only one user, whom these rules don't name.
        let daemon = IpcTestDaemon::with_authorizer(ConnectionLimits::default(), authority);
        assert_ne!(own, child);
        assert_eq!(first_message(daemon.connect_raw()), "not-permitted");
        return;
    }
    let limits = ConnectionLimits { clients_per_user: 3, ..ConnectionLimits::default() };
    let daemon = IpcTestDaemon::with_authorizer(limits, authority);
    std::fs::set_permissions(daemon.folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    for (uid, gid, expected) in [
        (child, child, "shell"),
        (65_000, 1, "admin"),
        (65_002, family, "observer"),
        (65_002, 65_002, "not-permitted"),
        (65_534, 0, "not-permitted"),
    ] {
        assert_eq!(as_user(&daemon, uid, gid, first_message), expected, "uid {uid} gid {gid}");
    }
    let denied = as_user(&daemon, child, child, |mut raw| {
        raw.hello();
        raw.call(1, &json!({"type": "extend_current", "by": 3_600_000}))
    });
    assert_eq!(code(&denied), "not-permitted");
    // A child that uses all its connections leaves those of other users free, and its records are short.
    let places: Vec<RawClient> = (0..3).map(|_| as_user(&daemon, child, child, |raw| raw)).collect();
    assert_eq!(as_user(&daemon, child, child, first_message), "too-many-clients");
    assert_eq!(first_message(daemon.connect_raw()), "admin");
    drop(places);
    let too_long = as_user(&daemon, 65_002, family, |mut raw| {
        raw.hello();
        let _ = std::io::Write::write_all(&mut raw.stream, &[b' '; MAX_FRAME + 1]);
        json!(raw.closing_code())
    });
    assert_eq!(too_long, "message-too-large");
    wait_until("refusals are recorded", || {
        let records = daemon.records.lock().unwrap();
        records.iter().any(|record| record == "uid 65001 extend_current unrecorded 0")
    });
}
