//! The host doesn't wake up while nothing happens (S4.7).

use std::time::Duration;

use crate::harness::{TestHost, containments, context_switches, entry, process};

/// S4.7: while a program runs and nothing happens, no thread of the host wakes up.
#[test]
fn an_idle_session_wakes_no_thread() {
    let mut test_hosts: Vec<TestHost> = containments().into_iter().map(TestHost::new).collect();
    let sessions: Vec<_> =
        test_hosts.iter_mut().map(|test_host| test_host.start(entry(process(&["sleep", "600"])))).collect();
    std::thread::sleep(Duration::from_millis(300));
    let before = context_switches();
    let threads = if cfg!(feature = "sway") { 3 } else { 2 };
    assert_eq!(before.len(), threads * test_hosts.len(), "{before:?}");
    std::thread::sleep(Duration::from_secs(3));
    assert_eq!(context_switches(), before);
    for (test_host, session) in test_hosts.iter_mut().zip(&sessions) {
        test_host.stop(session, Duration::ZERO);
    }
}
