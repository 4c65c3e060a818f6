//! What goes on where it was, however often the daemon is killed: the time that a program is given to end, and the
//! warnings before it (S6.2, S9.1).

use std::time::{Duration, Instant};

use rustix::process::geteuid;
use shepherd_api::{AuditKind, EventKind, StopMode};

use crate::harness::{Household, Subscriber};

const POLICY: &str = r#"
config_version = 1

[[entries]]
id = "stubborn"
argv = ["sh", "-c", "trap '' TERM; while :; do sleep TOKEN; done"]
always = true
max_run = "1s"
stop_grace = "4s"

[[entries]]
id = "long"
argv = ["sleep", "TOKEN"]
always = true
max_run = "200s"
warnings = [{ before = "120s" }, { before = "100s" }]
"#;

#[test]
fn a_program_that_resists_is_not_kept_alive_by_killing_the_daemon_again_and_again() {
    let mut household = Household::running(POLICY);
    let launched = Instant::now();
    household.launch("stubborn");
    let player = household.player();
    let mut gone = None;
    // Far more often than its grace would need to be over once.
    for _ in 0..12 {
        std::thread::sleep(Duration::from_millis(1_500));
        household.kill();
        household.start();
        if !crate::harness::is_alive(player) {
            gone = Some(launched.elapsed());
            break;
        }
    }
    let gone = gone.expect("its grace comes to an end");
    assert!(gone >= Duration::from_secs(5), "it had all of its grace: {gone:?}");
    household.until_idle();
}

/// Starts the daemon as if it had been away for longer: the clocks that nobody can set are ahead by so much.
fn start_later(household: Household, seconds: &str) -> Household {
    let user: &[&str] = if geteuid().is_root() { &[] } else { &["--map-root-user"] };
    let clocks = ["--time", "--boottime", seconds, "--monotonic", seconds];
    let mut household = household.under(&[&["unshare"], user, &clocks].concat());
    household.start();
    household
}

/// The warnings that somebody hears until the session is stopped.
fn heard(household: &Household, listener: &mut Subscriber) -> Vec<u64> {
    household.stop(StopMode::Force).unwrap();
    let mut heard = Vec::new();
    listener.wait_for(|event| match event {
        EventKind::WarningIssued { threshold_secs, .. } => {
            heard.push(*threshold_secs);
            None
        }
        EventKind::SessionEnded { .. } => Some(()),
        _ => None,
    });
    heard
}

#[test]
fn a_warning_that_fell_due_without_a_daemon_is_heard_by_whoever_listens_first_and_once() {
    let mut household = Household::running(POLICY);
    household.launch("long");
    household.player();
    household.kill();
    let household = start_later(household, "110");
    let mut first = household.subscriber();
    let mut second = household.subscriber();
    let told = first.wait_for(|event| match event {
        EventKind::WarningIssued { threshold_secs, session, .. } => {
            Some((*threshold_secs, session.remaining))
        }
        _ => None,
    });
    assert_eq!(told.0, 100);
    assert!(
        told.1.is_some_and(|left| std::time::Duration::from(left) <= Duration::from_secs(90)),
        "what is left by now: {told:?}"
    );
    assert_eq!(household.audited(|what| matches!(what, AuditKind::WarningGiven { .. })), 2);
    assert_eq!(heard(&household, &mut second), [] as [u64; 0]);
}
