//! The host doesn't wake up while nothing happens (S4.7).

use std::time::Duration;

use crate::harness::{TestHost, assert_no_thread_wakes, containments, context_switches, entry, process};

/// S4.7: while a program runs and nothing happens, no thread of the host wakes up.
#[test]
fn an_idle_session_wakes_no_thread() {
    let mut test_hosts: Vec<TestHost> = containments().into_iter().map(TestHost::new).collect();
    let sessions: Vec<_> =
        test_hosts.iter_mut().map(|test_host| test_host.start(entry(process(&["sleep", "600"])))).collect();
    let threads = if cfg!(feature = "sway") { 3 } else { 2 };
    let counts = context_switches();
    assert_eq!(counts.len(), threads * test_hosts.len(), "{counts:?}");
    assert_no_thread_wakes(Duration::from_secs(3));
    for (test_host, session) in test_hosts.iter_mut().zip(&sessions) {
        test_host.stop(session, Duration::ZERO);
    }
}
