//! SIGTERM (S9.3): by policy the session is ended or left, and what was used is on record either way (S9.2b).

use std::os::unix::net::UnixDatagram;
use std::time::{Duration, Instant};

use rustix::process::{Signal, kill_process};
use shepherd_api::{AuditKind, EndReason, ReasonCode, StopRequester};

use crate::harness::{PATIENCE, ShepherddFixture, is_alive};

const POLICY: &str = r#"
config_version = 1
on_shutdown = "END"

[[entries]]
id = "nap"
argv = ["sleep", "TOKEN"]
always = true
max_run = "3s"
cooldown_after_run = "1h"

[[entries]]
id = "stubborn"
argv = ["sh", "-c", "trap '' TERM; exec sleep TOKEN"]
always = true
stop_grace = "500ms"
"#;

fn policy(on_shutdown: &str) -> String {
    POLICY.replace("END", on_shutdown)
}

#[test]
fn a_daemon_that_goes_down_ends_its_session_if_the_policy_says_so() {
    for (entry, signal) in [("nap", Signal::TERM), ("stubborn", Signal::INT)] {
        let mut household = ShepherddFixture::running(&policy("end-sessions"));
        let session = household.launch(entry);
        household.wait_for_program();
        kill_process(household.daemon_pid(), signal).unwrap();
        assert_eq!(household.wait().code(), Some(0), "{}", household.log());
        household.assert_no_processes_left();
        household.assert_chain_is_sound();
        household.start();
        let ended = EndReason::Stopped { by: StopRequester::Policy };
        let is_its_end = |what: &AuditKind| matches!(what, AuditKind::SessionEnded { session_id, end, .. } if *session_id == session.session_id && *end == ended);
        assert_eq!(household.count_audit_records(is_its_end), 1, "{entry}");
        assert_eq!(household.count_audit_records(|what| *what == AuditKind::DaemonStopped), 1);
        assert!(household.recorded_usage(entry) > Duration::ZERO);
        if entry == "nap" {
            let reasons = household.refusal(entry).reasons;
            assert_eq!(reasons.iter().map(ReasonCode::code).collect::<Vec<_>>(), ["cooldown"]);
        }
    }
}

#[test]
fn a_session_that_is_left_is_taken_back_with_its_original_end() {
    let mut household = ShepherddFixture::running(&policy("leave-sessions"));
    let launched = Instant::now();
    let session = household.launch("nap");
    let player = household.wait_for_program();
    assert_eq!(household.end().code(), Some(0));
    assert!(is_alive(player), "it was left");
    household.start();
    let state = household.state().session.expect("it was taken back");
    assert_eq!(state.session_id, session.session_id);
    assert!(
        Duration::from(state.remaining.unwrap()) + launched.elapsed()
            <= Duration::from_secs(3) + Duration::from_millis(50)
    );
    household.wait_until_idle();
    let took = launched.elapsed();
    assert!(took >= Duration::from_secs(3), "never early: {took:?}");
    assert!(took < Duration::from_secs(8), "never late: {took:?}");
    assert_eq!(
        household.count_audit_records(|what| matches!(
            what,
            AuditKind::SessionEnded { end: EndReason::Expired, .. }
        )),
        1
    );
}

/// Whoever has said that it is ready takes signals as they are meant. The saying itself takes a while here, so that
/// they find it there.
#[test]
fn a_signal_right_after_the_start_is_taken_as_it_is_meant() {
    for signals in [&[Signal::TERM][..], &[Signal::HUP, Signal::TERM]] {
        let household = ShepherddFixture::new(&policy("leave-sessions"));
        let socket = household.folder().join("notify");
        let told = UnixDatagram::bind(&socket).unwrap();
        told.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut household = household
            .with_variable("NOTIFY_SOCKET", socket.to_str().unwrap())
            .with_injected_fault("sendto,sendmsg", "delay_exit=300000");
        household.spawn();
        let mut message = [0; 1_024];
        let length = told.recv(&mut message).unwrap();
        assert!(message[..length].starts_with(b"READY=1"), "{:?}", &message[..length]);
        for signal in signals {
            kill_process(household.daemon_pid(), *signal).unwrap();
        }
        assert_eq!(household.wait().code(), Some(0), "{}", household.log());
        assert!(household.log().contains("the daemon has stopped"), "{}", household.log());
    }
}
