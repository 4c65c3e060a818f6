//! The shutdown by SIGTERM (S9.3): the policy decides whether the session ends, and its usage is recorded (S9.2b).

use std::os::unix::net::UnixDatagram;
use std::time::{Duration, Instant};

use rustix::process::{Signal, kill_process};
use shepherd_api::{AuditKind, EndReason, ReasonCode, StopRequester};

use crate::harness::{PATIENCE, ShepherddFixture, is_alive, policy, sleep_entry, stubborn_entry};

const POLICY: &str = policy!(
    "on_shutdown = \"END\"\n",
    sleep_entry!(
        "nap",
        r#"max_run = "3s"
cooldown_after_run = "1h""#
    ),
    stubborn_entry!("stubborn", r#"stop_grace = "500ms""#)
);

fn policy(on_shutdown: &str) -> String {
    POLICY.replace("END", on_shutdown)
}

#[test]
fn a_shutdown_ends_the_session_if_the_policy_says_so() {
    for (entry, signal) in [("nap", Signal::TERM), ("stubborn", Signal::INT)] {
        let mut fixture = ShepherddFixture::running(&policy("end-sessions"));
        let session = fixture.launch(entry);
        fixture.wait_for_program();
        kill_process(fixture.daemon_pid(), signal).unwrap();
        assert_eq!(fixture.wait().code(), Some(0), "{}", fixture.log());
        fixture.assert_no_processes_left();
        fixture.assert_chain_is_sound();
        fixture.start();
        let ended = EndReason::Stopped { by: StopRequester::Policy };
        let is_its_end = |what: &AuditKind| matches!(what, AuditKind::SessionEnded { session_id, end, .. } if *session_id == session.session_id && *end == ended);
        assert_eq!(fixture.count_audit_records(is_its_end), 1, "{entry}");
        assert_eq!(fixture.count_audit_records(|what| *what == AuditKind::DaemonStopped), 1);
        assert!(fixture.recorded_usage(entry) > Duration::ZERO);
        if entry == "nap" {
            let reasons = fixture.refusal(entry).reasons;
            assert_eq!(reasons.iter().map(ReasonCode::code).collect::<Vec<_>>(), ["cooldown"]);
        }
    }
}

#[test]
fn heavy_a_session_is_reattached_with_its_original_end() {
    let mut fixture = ShepherddFixture::running(&policy("leave-sessions"));
    let launched = Instant::now();
    let session = fixture.launch("nap");
    let player = fixture.wait_for_program();
    let running = Instant::now();
    assert_eq!(fixture.end().code(), Some(0));
    assert!(is_alive(player), "it was left");
    fixture.start();
    let ran = running.elapsed();
    let state = fixture.state().session.expect("it was taken back");
    assert_eq!(state.session_id, session.session_id);
    // The daemon rounds to milliseconds.
    let remaining = Duration::from(state.remaining.unwrap());
    assert!(remaining + ran <= Duration::from_millis(3_001), "{remaining:?} left after {ran:?}");
    fixture.wait_until_idle();
    let took = launched.elapsed();
    assert!(took >= Duration::from_secs(3), "never early: {took:?}");
    assert!(took < Duration::from_secs(8), "never late: {took:?}");
    assert_eq!(fixture.recorded_ends(), [EndReason::Expired]);
}

/// The daemon handles signals as soon as it reports that it is ready. The report is delayed here, so that the signals
/// arrive during it.
#[test]
fn a_signal_right_after_the_start_is_handled() {
    for signals in [&[Signal::TERM][..], &[Signal::HUP, Signal::TERM]] {
        let fixture = ShepherddFixture::new(&policy("leave-sessions"));
        let socket = fixture.folder().join("notify");
        let notify_socket = UnixDatagram::bind(&socket).unwrap();
        notify_socket.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut fixture = fixture
            .with_variable("NOTIFY_SOCKET", socket.to_str().unwrap())
            .with_injected_fault("sendto,sendmsg", "delay_exit=300000");
        fixture.spawn();
        let mut message = [0; 1_024];
        let length = notify_socket.recv(&mut message).unwrap();
        assert!(message[..length].starts_with(b"READY=1"), "{:?}", &message[..length]);
        for signal in signals {
            kill_process(fixture.daemon_pid(), *signal).unwrap();
        }
        assert_eq!(fixture.wait().code(), Some(0), "{}", fixture.log());
        assert!(fixture.log().contains("the daemon has stopped"), "{}", fixture.log());
    }
}
