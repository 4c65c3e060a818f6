//! The administrator's PIN (S11.3b).

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use shepherd_api::{AdminPin, ClientRole};
use shepherd_ipc::{ConnectionLimits, PinState, PinStore, PinStoreError};

use crate::support::{FixedRole, IpcTestDaemon, RawClient, wait_until};

fn pin(text: &str) -> AdminPin {
    AdminPin::try_from(text.to_owned()).unwrap()
}

fn reply_code(reply: &Value) -> &str {
    let result = &reply["result"];
    result["err"]["code"].as_str().or(result["ok"]["type"].as_str()).unwrap()
}

/// A daemon with the PIN 4711.
fn daemon_with_pin(limits: ConnectionLimits) -> IpcTestDaemon {
    let daemon = IpcTestDaemon::with_authorizer(limits, FixedRole(Some(ClientRole::Admin)));
    let mut parent = daemon.connect_greeted();
    let reply = parent.call(1, &json!({"type": "set_pin", "pin": "4711"}));
    assert_eq!(reply["result"]["ok"], json!({"type": "pin_changed", "set": true}));
    daemon
}

fn authenticate(raw: &mut RawClient, pin: &str) -> String {
    reply_code(&raw.call(9, &json!({"type": "authenticate", "pin": pin}))).to_owned()
}

fn try_admin_command(raw: &mut RawClient) -> String {
    reply_code(&raw.call(8, &json!({"type": "set_policy", "text": "#"}))).to_owned()
}

#[test]
fn admin_commands_need_the_pin_once_it_is_set() {
    let daemon = IpcTestDaemon::start();
    let mut parent = daemon.connect_greeted();
    let mut before = daemon.connect_greeted();
    assert_eq!(try_admin_command(&mut before), "policy_applied");
    assert_eq!(authenticate(&mut before, "4711"), "wrong-pin", "none is set");
    parent.call(1, &json!({"type": "set_pin", "pin": "4711"}));
    // Not even a client that was an administrator before; only the one that set the PIN.
    assert_eq!(try_admin_command(&mut before), "pin-required");
    assert_eq!(try_admin_command(&mut parent), "policy_applied");
    let mut raw = daemon.connect_raw();
    assert_eq!(raw.hello()["role"], "shell");
    assert_eq!(authenticate(&mut raw, "4712"), "wrong-pin");
    assert_eq!(try_admin_command(&mut raw), "pin-required");
    let reply = raw.call(2, &json!({"type": "authenticate", "pin": "4711"}));
    assert_eq!(reply["result"]["ok"], json!({"type": "authenticated", "role": "admin"}));
    assert_eq!(try_admin_command(&mut raw), "policy_applied");
    wait_until("the attempt is recorded", || {
        daemon.records.lock().unwrap().iter().any(|line| line == "authenticated raw")
    });
    // The PIN elevates one connection only.
    assert_eq!(try_admin_command(&mut daemon.connect_greeted()), "pin-required");
    // The PIN is not stored in plain text, and other users can't read the file.
    let file = daemon.folder.path().join("pin.json");
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.contains("$argon2id$") && !text.contains("4711"), "{text}");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn a_new_pin_ends_all_earlier_elevations() {
    let daemon = daemon_with_pin(ConnectionLimits::default());
    let mut other = daemon.connect_greeted();
    let mut parent = daemon.connect_greeted();
    assert_eq!(authenticate(&mut other, "4711"), "authenticated");
    assert_eq!(authenticate(&mut parent, "4711"), "authenticated");
    assert_eq!(reply_code(&parent.call(1, &json!({"type": "set_pin", "pin": "0815"}))), "pin_changed");
    assert_eq!(try_admin_command(&mut other), "pin-required");
    assert_eq!(try_admin_command(&mut parent), "policy_applied");
    assert_eq!(authenticate(&mut other, "4711"), "wrong-pin");
    // Without a PIN, every client has the role of the rules again.
    assert_eq!(parent.call(2, &json!({"type": "set_pin", "pin": null}))["result"]["ok"]["set"], false);
    assert_eq!(try_admin_command(&mut other), "policy_applied");
}

#[test]
fn elevation_expires_without_admin_commands() {
    let daemon = daemon_with_pin(ConnectionLimits {
        pin_elevation_lifetime: Duration::from_secs(1),
        ..ConnectionLimits::default()
    });
    let mut raw = daemon.connect_greeted();
    assert_eq!(authenticate(&mut raw, "4711"), "authenticated");
    assert_eq!(try_admin_command(&mut raw), "policy_applied");
    // An earlier attempt would renew the elevation, so the whole lifetime has to pass.
    std::thread::sleep(Duration::from_millis(1_100));
    assert_eq!(try_admin_command(&mut raw), "pin-required");
}

#[test]
fn the_pin_elevates_only_accounts_that_may_be_administrators() {
    let daemon = daemon_with_pin(ConnectionLimits::default());
    daemon.hub.set_authorizer(Arc::new(FixedRole(Some(ClientRole::Shell))));
    let mut child = daemon.connect_greeted();
    for _ in 0..10 {
        // The PIN is not even checked, so a child can't lock the parents out.
        assert_eq!(authenticate(&mut child, "4711"), "not-permitted");
    }
    assert_eq!(try_admin_command(&mut child), "not-permitted");
    let uid = rustix::process::geteuid().as_raw();
    wait_until("each try is on record", || {
        let records = daemon.records.lock().unwrap();
        records.iter().filter(|line| **line == format!("uid {uid} authenticate unrecorded 0")).count() == 10
    });
}

#[test]
fn a_pin_that_could_not_be_changed_changes_nothing() {
    let daemon = daemon_with_pin(ConnectionLimits::default());
    let (mut parent, mut other) = (daemon.connect_greeted(), daemon.connect_greeted());
    assert_eq!(authenticate(&mut parent, "4711"), "authenticated");
    assert_eq!(authenticate(&mut other, "4711"), "authenticated");
    // A folder in place of the file can't be overwritten, not even by root.
    fs::create_dir(daemon.folder.path().join("pin.json.new")).unwrap();
    let failed = parent.call(1, &json!({"type": "set_pin", "pin": "0815"}));
    assert_eq!(reply_code(&failed), "store-unavailable");
    assert_eq!(try_admin_command(&mut other), "policy_applied", "the elevation with the old PIN stays");
    assert_eq!(try_admin_command(&mut parent), "policy_applied");
    wait_until("the failed change is recorded", || {
        daemon.records.lock().unwrap().iter().any(|line| line == "pin of raw: false")
    });
}

#[test]
fn failed_attempts_throttle_even_the_correct_pin_across_restarts() {
    let daemon = daemon_with_pin(ConnectionLimits::default());
    for _ in 0..3 {
        assert_eq!(authenticate(&mut daemon.connect_greeted(), "0000"), "wrong-pin");
    }
    let refused = daemon.connect_greeted().call(1, &json!({"type": "authenticate", "pin": "4711"}));
    assert_eq!(reply_code(&refused), "rate-limited");
    let wait = refused["result"]["err"]["retry_after"].as_u64().unwrap();
    assert!((1..=2_000).contains(&wait), "{refused}");
    let folder = daemon.stop();
    let restarted = Instant::now();
    let daemon = IpcTestDaemon::in_folder(
        folder,
        ConnectionLimits::default(),
        Arc::new(FixedRole(Some(ClientRole::Admin))),
    );
    let mut raw = daemon.connect_greeted();
    assert_eq!(authenticate(&mut raw, "4711"), "rate-limited");
    wait_until("the wait is over", || authenticate(&mut raw, "4711") == "authenticated");
    assert!(restarted.elapsed() >= Duration::from_millis(1_500), "a restart shortened the wait");
}

#[test]
fn heavy_while_a_pin_is_checked_others_are_served() {
    let daemon = daemon_with_pin(ConnectionLimits::default());
    let mut guessers: Vec<_> = (0..20).map(|_| daemon.connect_greeted()).collect();
    for raw in &mut guessers {
        raw.request(1, &json!({"type": "authenticate", "pin": "0000"}));
    }
    let started = Instant::now();
    daemon.assert_serves();
    assert!(started.elapsed() < Duration::from_secs(5));
    // All attempts came at once, but only three were checked.
    let outcomes: Vec<_> =
        guessers.iter_mut().map(|raw| reply_code(&raw.read().unwrap()).to_owned()).collect();
    assert_eq!(outcomes.iter().filter(|outcome| *outcome == "wrong-pin").count(), 3, "{outcomes:?}");
    assert_eq!(outcomes.iter().filter(|outcome| *outcome == "rate-limited").count(), 17, "{outcomes:?}");
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

#[test]
fn an_attempt_that_can_not_be_counted_is_not_checked() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data").join("pin.json");
    fs::create_dir(path.parent().unwrap()).unwrap();
    let keeper = PinStore::open(path.clone()).unwrap();
    block_on(keeper.set(Some(pin("4711")))).unwrap();
    // Not even root can write into a removed folder.
    fs::remove_dir_all(path.parent().unwrap()).unwrap();
    let refused = block_on(keeper.verify(1000, pin("4711")));
    assert!(matches!(refused, Err(PinStoreError::File { .. })), "{refused:?}");
    let kept = block_on(keeper.set(None));
    assert!(matches!(kept, Err(PinStoreError::File { .. })), "{kept:?}");
    assert_eq!(keeper.state(), PinState::Set, "what could not be written does not count");
}

#[test]
fn a_file_that_other_users_can_write_is_not_trusted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pin.json");
    let set = |text: &str, mode| {
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        PinStore::open(path.clone())
    };
    let good = r#"{"hash":null,"failures":{"all":0,"by_uid":{}}}"#;
    assert!(set(good, 0o600).is_ok());
    for (text, mode) in [
        (good, 0o644),
        (good, 0o620),
        ("", 0o600),
        ("{}", 0o600),
        (r#"{"hash":"4711","failures":{"all":0,"by_uid":{}}}"#, 0o600),
    ] {
        assert!(matches!(set(text, mode), Err(PinStoreError::File { .. })), "{mode:o} {text}");
    }
    fs::rename(&path, folder.path().join("elsewhere")).unwrap();
    assert!(PinStore::open(path.clone()).is_ok(), "no file is no PIN");
    std::os::unix::fs::symlink(folder.path().join("elsewhere"), &path).unwrap();
    assert!(matches!(PinStore::open(path), Err(PinStoreError::File { .. })), "a link");
}

#[test]
fn a_file_that_can_not_be_read_is_not_written_over_by_guessing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pin.json");
    let keeper = PinStore::open(path.clone()).unwrap();
    block_on(keeper.set(Some(pin("4711")))).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    let before = fs::read(&path).unwrap();
    assert!(PinStore::open(path.clone()).is_err());
    let locked = PinStore::new_locked(path.clone());
    assert_eq!(locked.state(), PinState::Set);
    for guess in ["4711", "0000"] {
        let refused = block_on(locked.verify(1000, pin(guess)));
        assert!(matches!(refused, Err(PinStoreError::Locked)), "{refused:?}");
    }
    assert_eq!(fs::read(&path).unwrap(), before);
    // After the repair, the old PIN applies again.
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    block_on(PinStore::open(path.clone()).unwrap().verify(1000, pin("4711"))).unwrap();
    // An administrator can also set another PIN.
    block_on(locked.set(Some(pin("0815")))).unwrap();
    block_on(locked.verify(1000, pin("0815"))).unwrap();
}
