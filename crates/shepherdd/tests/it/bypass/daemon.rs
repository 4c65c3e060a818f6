//! The daemon, the machine and the disk under it.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use shepherd_api::{AuditKind, EndReason};

use crate::clock::first_reason;
use crate::disk_failures::{fill_disk, fixture_on_small_disk};
use crate::harness::{ShepherddFixture, in_mount_namespace, wait_until};

const POLICY: &str = r#"
config_version = 1

[defaults]
always = true
cooldown_after_run = "1h"

[[entries]]
id = "long"
argv = ["sleep", "TOKEN"]

[[entries]]
id = "run"
argv = ["sleep", "TOKEN"]
max_run = "3s"
"#;

/// A session that is on record as running.
fn start_playing(entry: &str) -> (ShepherddFixture, i32) {
    let household = ShepherddFixture::running(POLICY);
    household.launch(entry);
    let player = household.wait_for_program();
    wait_until("it is on record", || {
        household.count_audit_records(|what| matches!(what, AuditKind::SessionStarted { .. })) == 1
    });
    (household, player)
}

fn send(pid: i32, signal: Signal) {
    kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
}

pub(super) fn reboot() {
    let (mut household, player) = start_playing("long");
    household.kill();
    send(player, Signal::KILL);
    wait_until("it is gone", || household.program_pids().is_empty());
    let boot = household.folder().join("boot");
    std::fs::write(&boot, "0b1d5c2e-6f0a-4b7d-8e53-9c1f2a3b4c5d\n").unwrap();
    let mount =
        format!("mount --bind {} /proc/sys/kernel/random/boot_id && exec \"$0\" \"$@\"", boot.display());
    let mut household = household.with_wrapper(&in_mount_namespace(&["sh", "-c", &mount]));
    household.start();
    assert_eq!(household.state().session, None);
    assert!(household.recorded_usage("long") > Duration::ZERO);
    assert_eq!(first_reason(&household, "long"), "cooldown");
    assert_eq!(
        household
            .count_audit_records(|what| matches!(what, AuditKind::SessionEnded { end: EndReason::Lost, .. })),
        1
    );
}

pub(super) fn log_out() {
    for signal in [Signal::HUP, Signal::TERM] {
        let (household, player) = start_playing("long");
        std::thread::sleep(Duration::from_millis(300));
        send(player, signal);
        household.wait_until_idle();
        assert!(household.recorded_usage("long") >= Duration::from_millis(300));
        assert_eq!(first_reason(&household, "long"), "cooldown");
        assert_eq!(household.count_audit_records(|what| matches!(what, AuditKind::SessionEnded { .. })), 1);
    }
}

/// The three seconds of `run`, but for the moment that the launch took.
fn assert_all_is_charged(household: &ShepherddFixture) {
    let used = household.recorded_usage("run");
    assert!(used + Duration::from_millis(700) >= Duration::from_secs(3), "{used:?}");
}

pub(super) fn killing_the_daemon() {
    let launched = Instant::now();
    let (mut household, _) = start_playing("run");
    for _ in 0..3 {
        household.kill();
        household.start();
        assert!(household.state().session.is_some(), "it is taken back");
    }
    household.wait_until_idle();
    let took = launched.elapsed();
    assert!(took >= Duration::from_secs(3) && took < Duration::from_secs(10), "{took:?}");
    assert_all_is_charged(&household);

    // One that nobody starts again until the time is long over ends what runs as soon as it comes.
    let (mut household, _) = start_playing("run");
    household.kill();
    std::thread::sleep(Duration::from_secs(4));
    assert!(!household.program_pids().is_empty(), "nobody ends it meanwhile");
    household.start();
    household.wait_until_idle();
    assert_all_is_charged(&household);
}

/// Sends bytes on a connection of their own; what came back within a moment.
fn send_raw(household: &ShepherddFixture, message: &[u8]) -> String {
    let mut stream = UnixStream::connect(household.socket()).unwrap();
    for set in [UnixStream::set_read_timeout, UnixStream::set_write_timeout] {
        set(&stream, Some(Duration::from_millis(100))).unwrap();
    }
    // It may be closed before all of it is sent, and that is right.
    let _ = stream.write_all(message);
    let mut answers = Vec::new();
    let _ = stream.read_to_end(&mut answers);
    String::from_utf8_lossy(&answers).into_owned()
}

pub(super) fn crashing_the_daemon() {
    let launched = Instant::now();
    let (household, _) = start_playing("run");
    let hello = b"{\"type\":\"hello\",\"api_version\":1,\"client\":\"child\"}\n".to_vec();
    let request = |command: &str| {
        [&hello[..], format!("{{\"type\":\"request\",\"id\":1,\"command\":{command}}}\n").as_bytes()].concat()
    };
    let messages = [
        b"\n\n\n".to_vec(),
        vec![0; 70_000],
        vec![0xff; 4_096],
        [&hello[..], &[b'['; 200_000]].concat(),
        [&hello[..], b"{\"a\":".repeat(50_000).as_slice()].concat(),
        [&hello[..], &hello[..]].concat(),
        request("{\"type\":\"launch\",\"entry_id\":\"../../etc/passwd\"}"),
        request("{\"type\":\"extend_current\",\"by\":-1}"),
        request("{\"type\":\"extend_current\",\"by\":1e400}"),
        request("{\"type\":\"list_entries\",\"at_time\":\"-009999-01-02T01:59:59Z\"}"),
        request(
            "{\"type\":\"timeline\",\"from\":\"-009999-01-02T01:59:59Z\",\"to\":\"9999-12-30T22:00:00Z\"}",
        ),
        request("{\"type\":\"usage\",\"from\":\"-9999-01-01\",\"to\":\"9999-12-31\"}"),
        request("{\"type\":\"read_audit\",\"after\":18446744073709551615,\"limit\":4294967295}"),
        request("{\"type\":\"request_time\",\"entry_id\":\"run\",\"minutes\":4294967295}"),
        request("{\"type\":\"set_policy\",\"text\":\"\\u0000\"}"),
        request("{\"type\":\"shutdown\"}"),
    ];
    for message in &messages {
        send_raw(&household, message);
    }
    let answers = send_raw(&household, &request("{\"type\":\"get_state\"}"));
    assert!(answers.contains("\"snapshot\""), "requests of this form are understood: {answers}");
    household.wait_until_idle();
    let took = launched.elapsed();
    assert!(took >= Duration::from_secs(3) && took < Duration::from_secs(10), "{took:?}");
    assert!(crate::harness::is_alive(household.daemon_pid().as_raw_nonzero().get()), "{}", household.log());
    assert_eq!(first_reason(&household, "run"), "cooldown", "it is the same daemon, with the same policy");
}

pub(super) fn filling_the_disk() {
    let household = fixture_on_small_disk();
    let launched = Instant::now();
    let allowed = Duration::from(household.launch("nap").remaining.unwrap());
    household.wait_for_program();
    fill_disk(&household);
    wait_until("the trouble is noticed", || {
        household.refusal("nap");
        household.failed_check("store").is_some()
    });
    household.wait_until_idle();
    let took = launched.elapsed();
    assert!(took >= allowed && took < allowed + Duration::from_secs(6), "{took:?} of {allowed:?}");
    assert_eq!(first_reason(&household, "nap"), "store-unavailable");
}
