//! Programs that a service manager moves out of the cgroup of their session, as it does for any client that asks. They stay
//! part of the session, and end with it (S6.2, S6.2b). Only root has cgroups, so other users skip these tests.

use std::path::PathBuf;
use std::time::Duration;

use shepherd_host_api::{HostAdapter, HostEvent, HostStopRequest};
use ward_process::Containment;

use crate::harness::{
    MarkedScript, SHORT_GRACE, TEST_TIMEOUT, TestHost, becomes_true_within, is_root, new_session, wait_until,
};
use crate::restart::{kill_daemon, next_host, read_handle, start_daemon};

/// Long enough to notice a session that ends too early.
const SETTLE_TIME: Duration = Duration::from_millis(150);

/// A cgroup outside of the session.
struct ForeignCgroup(PathBuf);

impl ForeignCgroup {
    fn new() -> Self {
        let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
        let mount = mounts.lines().find(|line| line.split(' ').nth(2) == Some("cgroup2")).unwrap();
        let name = format!("elsewhere-{}", new_session());
        let group = PathBuf::from(mount.split(' ').nth(1).unwrap()).join(name);
        std::fs::create_dir(&group).unwrap();
        Self(group)
    }

    /// Moves a process, as systemd does when a user asks for a new unit around it.
    fn attach(&self, pid: i32) {
        std::fs::write(self.0.join("cgroup.procs"), pid.to_string()).unwrap();
    }
}

impl Drop for ForeignCgroup {
    fn drop(&mut self) {
        // The kernel may take a moment to release the last member.
        becomes_true_within(TEST_TIMEOUT, || std::fs::remove_dir(&self.0).is_ok());
    }
}

/// Runs a script as another user, moves all its processes to another cgroup, and stops it.
fn assert_moved_tree_ends(script: &str, members: usize) {
    if !is_root() {
        return;
    }
    let elsewhere = ForeignCgroup::new();
    let mut test_host = TestHost::new(Containment::Cgroup);
    let marked = MarkedScript::for_all_users();
    let session = test_host.start(marked.entry_of_another_user(script));
    marked.wait_for_arrivals(members);
    marked.survivors().into_iter().for_each(|pid| elsewhere.attach(pid));
    // Processes that are forked later start in the other cgroup.
    wait_until("the expected members", || marked.survivors().len() == members);
    test_host.assert_no_event(SETTLE_TIME);
    test_host.stop(&session, SHORT_GRACE);
    marked.assert_none_left();
}

#[test]
fn a_program_that_was_moved_is_ended() {
    assert_moved_tree_ends("FOREVER", 1);
}

#[test]
fn a_tree_that_was_moved_and_does_not_obey_is_ended() {
    assert_moved_tree_ends(
        "ignore term; fork 2 [ FOREVER ]; daemon [ forget [ ignore term; FOREVER ] ]; FOREVER",
        4,
    );
}

#[test]
fn daemons_of_a_wrapper_that_were_moved_are_ended() {
    assert_moved_tree_ends("fork 2 [ daemon [ FOREVER ] ]; exit 0", 2);
}

#[test]
fn a_moved_program_is_reattached_after_a_crash_and_ended() {
    if !is_root() {
        return;
    }
    for script in ["ignore term; FOREVER", "daemon [ ignore term; FOREVER ]; exit 0"] {
        let (elsewhere, folder) = (ForeignCgroup::new(), tempfile::tempdir().unwrap());
        let (marked, session_id) = (MarkedScript::new(), new_session());
        let mut first = start_daemon(Containment::Cgroup, folder.path(), &session_id, &marked.script(script));
        let handle = read_handle(&mut first);
        marked.wait_for_arrivals(1);
        marked.survivors().into_iter().for_each(|pid| elsewhere.attach(pid));
        wait_until("one member", || marked.survivors().len() == 1);
        kill_daemon(first);
        let mut test_host = next_host(Containment::Cgroup, folder.path());
        test_host.host.reattach(&session_id, Some(&handle));
        assert_eq!(test_host.next_event(), HostEvent::Reattached { session_id: session_id.clone(), handle });
        test_host.assert_no_event(SETTLE_TIME);
        test_host.host.stop(HostStopRequest { session_id, grace: SHORT_GRACE });
        assert!(matches!(test_host.next_event(), HostEvent::Exited { .. }));
        marked.assert_none_left();
        test_host.wait_for_cleanup();
    }
}
