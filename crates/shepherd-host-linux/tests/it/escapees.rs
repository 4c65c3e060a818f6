//! Programs that a service manager moves out of the group of their session, as it does for whoever asks: the session
//! goes on, and ends them (S6.2, S6.2b). Only root has groups; for everybody else there is none to be left.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::time::Duration;

use shepherd_host_api::{HostAdapter, HostEvent, HostSessionHandle, HostStopRequest};
use ward_process::Containment;

use crate::harness::{MarkedScript, SHORT_GRACE, TestHost, is_root, new_session, wait_until};
use crate::restart::{kill_daemon, next_host, start_daemon};

/// Long enough for an end that comes too early to be seen.
const SETTLE_TIME: Duration = Duration::from_millis(150);

/// A group of somebody else's.
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

    /// What PID 1 does when the user of a process asks for a unit around it.
    fn attach(&self, pid: i32) {
        std::fs::write(self.0.join("cgroup.procs"), pid.to_string()).unwrap();
    }
}

impl Drop for ForeignCgroup {
    fn drop(&mut self) {
        // The kernel may take a moment to let go of the last member.
        for _ in 0..1_000 {
            if std::fs::remove_dir(&self.0).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

/// Runs a script as another user, has all of it moved, and ends it.
fn assert_moved_tree_ends(script: &str, members: usize) {
    if !is_root() {
        return;
    }
    let elsewhere = ForeignCgroup::new();
    let mut ground = TestHost::new(Containment::Cgroup);
    let token = MarkedScript::for_all_users();
    let session = ground.start(token.entry_of_another_user(script));
    token.wait_for_arrivals(members);
    token.survivors().into_iter().for_each(|pid| elsewhere.attach(pid));
    // Those who come after are born there.
    wait_until("all that stay", || token.survivors().len() == members);
    ground.assert_no_event(SETTLE_TIME);
    ground.stop(&session, SHORT_GRACE);
    token.assert_none_left();
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
fn what_a_wrapper_left_behind_elsewhere_is_ended() {
    assert_moved_tree_ends("fork 2 [ daemon [ FOREVER ] ]; exit 0", 2);
}

#[test]
fn what_was_moved_is_taken_back_after_a_crash_and_ended() {
    if !is_root() {
        return;
    }
    for script in ["ignore term; FOREVER", "daemon [ ignore term; FOREVER ]; exit 0"] {
        let (elsewhere, folder) = (ForeignCgroup::new(), tempfile::tempdir().unwrap());
        let (token, session_id) = (MarkedScript::new(), new_session());
        let mut first = start_daemon(Containment::Cgroup, folder.path(), &session_id, &token.script(script));
        let mut handle = String::new();
        BufReader::new(first.stdout.take().unwrap()).read_line(&mut handle).unwrap();
        token.wait_for_arrivals(1);
        token.survivors().into_iter().for_each(|pid| elsewhere.attach(pid));
        wait_until("one that stays", || token.survivors().len() == 1);
        kill_daemon(first);
        let mut ground = next_host(Containment::Cgroup, folder.path());
        let handle = HostSessionHandle::new(handle.trim_end().to_owned());
        ground.host.reattach(&session_id, Some(&handle));
        assert_eq!(ground.next_event(), HostEvent::Reattached { session_id: session_id.clone(), handle });
        ground.assert_no_event(SETTLE_TIME);
        ground.host.stop(HostStopRequest { session_id, grace: SHORT_GRACE });
        assert!(matches!(ground.next_event(), HostEvent::Exited { .. }));
        token.assert_none_left();
        ground.wait_for_cleanup();
    }
}
