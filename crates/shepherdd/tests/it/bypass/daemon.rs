//! Attempts against the daemon, the machine and the disk.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use shepherd_api::EndReason;

use crate::clock::first_reason;
use crate::disk_failures::{fill_disk, fixture_on_small_disk};
use crate::harness::{ShepherddFixture, policy, sleep_entry, wait_until};

const POLICY: &str = policy!(
    sleep_entry!("long", r#"cooldown_after_run = "1h""#),
    sleep_entry!(
        "run",
        r#"max_run = "3s"
cooldown_after_run = "1h""#
    )
);

/// Launches an entry, and waits until its start is recorded.
fn start_playing(entry: &str) -> (ShepherddFixture, i32) {
    let fixture = ShepherddFixture::running(POLICY);
    fixture.launch(entry);
    let player = fixture.wait_for_program();
    fixture.wait_until_start_is_recorded();
    (fixture, player)
}

pub(super) fn reboot() {
    let (mut fixture, player) = start_playing("long");
    fixture.kill();
    fixture.kill_program(player);
    let mut fixture = fixture.after_reboot();
    fixture.start();
    assert_eq!(fixture.state().session, None);
    assert!(fixture.recorded_usage("long") > Duration::ZERO);
    assert_eq!(first_reason(&fixture, "long"), "cooldown");
    assert_eq!(fixture.recorded_ends(), [EndReason::Lost]);
}

pub(super) fn log_out() {
    for signal in [Signal::HUP, Signal::TERM] {
        let (fixture, player) = start_playing("long");
        let played = Duration::from_millis(300);
        wait_until("300 ms of usage", || fixture.recorded_usage("long") >= played);
        kill_process(Pid::from_raw(player).unwrap(), signal).unwrap();
        fixture.wait_until_idle();
        assert!(fixture.recorded_usage("long") >= played);
        assert_eq!(first_reason(&fixture, "long"), "cooldown");
        assert_eq!(fixture.recorded_ends().len(), 1);
    }
}

/// Checks that the three seconds of `run` are charged, except for the time of the launch.
fn assert_all_is_charged(fixture: &ShepherddFixture) {
    let used = fixture.recorded_usage("run");
    assert!(used + Duration::from_millis(700) >= Duration::from_secs(3), "{used:?}");
}

pub(super) fn killing_the_daemon() {
    let launched = Instant::now();
    let (mut fixture, _) = start_playing("run");
    for _ in 0..3 {
        fixture.kill();
        fixture.start();
        assert!(fixture.state().session.is_some(), "it is taken back");
    }
    fixture.wait_until_idle();
    assert!(launched.elapsed() >= Duration::from_secs(3), "ended after {:?}", launched.elapsed());
    assert_all_is_charged(&fixture);

    // A daemon that starts after the end of the session ends it at once.
    let (mut fixture, _) = start_playing("run");
    fixture.kill();
    // The time of the session passes without a daemon.
    std::thread::sleep(Duration::from_secs(4));
    assert!(!fixture.program_pids().is_empty(), "nobody ends it meanwhile");
    fixture.start();
    fixture.wait_until_idle();
    assert_all_is_charged(&fixture);
}

/// Sends bytes on a new connection, and returns the replies of the next 100 ms.
fn send_raw(fixture: &ShepherddFixture, message: &[u8]) -> String {
    let mut stream = UnixStream::connect(fixture.socket()).unwrap();
    for set in [UnixStream::set_read_timeout, UnixStream::set_write_timeout] {
        set(&stream, Some(Duration::from_millis(100))).unwrap();
    }
    // The daemon may close the connection before all bytes are sent.
    let _ = stream.write_all(message);
    let mut answers = Vec::new();
    let _ = stream.read_to_end(&mut answers);
    String::from_utf8_lossy(&answers).into_owned()
}

pub(super) fn crashing_the_daemon() {
    let launched = Instant::now();
    let (fixture, _) = start_playing("run");
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
        send_raw(&fixture, message);
    }
    let answers = send_raw(&fixture, &request("{\"type\":\"get_state\"}"));
    assert!(answers.contains("\"snapshot\""), "requests of this form are understood: {answers}");
    fixture.wait_until_idle();
    assert!(launched.elapsed() >= Duration::from_secs(3), "ended after {:?}", launched.elapsed());
    assert!(crate::harness::is_alive(fixture.daemon_pid().as_raw_nonzero().get()), "{}", fixture.log());
    assert_eq!(first_reason(&fixture, "run"), "cooldown", "it is the same daemon, with the same policy");
}

pub(super) fn filling_the_disk() {
    let fixture = fixture_on_small_disk();
    let launched = Instant::now();
    let allowed = Duration::from(fixture.launch("nap").remaining.unwrap());
    fixture.wait_for_program();
    fill_disk(&fixture);
    wait_until("the trouble is noticed", || {
        fixture.refusal("nap");
        fixture.failed_check("store").is_some()
    });
    fixture.wait_until_idle();
    assert!(launched.elapsed() >= allowed, "ended after {:?} of {allowed:?}", launched.elapsed());
    assert_eq!(first_reason(&fixture, "nap"), "store-unavailable");
}
