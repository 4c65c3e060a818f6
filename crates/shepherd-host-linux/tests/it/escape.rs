//! Programs that try to escape from their session, as in the escape tests of ward-process (S6.2, S6.2b).

use std::time::Duration;

use shepherd_core::policy::{ResourceLimits, RunPolicy};

use crate::harness::{MarkedScript, SHORT_GRACE, TEST_TIMEOUT, TestHost, holding_containments, wait_until};

#[derive(Clone, Copy, PartialEq)]
enum StopCause {
    Request,
    Kill,
}

/// Runs a script until this many processes have arrived, stops it, and checks that no process is left.
fn assert_tree_ends(script: &str, members: usize, by: StopCause) {
    for containment in holding_containments() {
        let mut test_host = TestHost::new(containment);
        let marked = MarkedScript::new();
        let session = test_host.start(marked.entry(script));
        marked.wait_for_arrivals(members);
        let grace = if by == StopCause::Kill { SHORT_GRACE } else { TEST_TIMEOUT };
        test_host.stop(&session, grace);
        marked.assert_none_left();
        test_host.assert_no_event(Duration::from_millis(20));
    }
}

#[test]
fn children_end_on_request() {
    assert_tree_ends("fork 3 [ FOREVER ]; FOREVER", 4, StopCause::Request);
}

#[test]
fn children_that_ignore_every_signal_are_killed() {
    assert_tree_ends("ignore term; fork 3 [ FOREVER ]; FOREVER", 4, StopCause::Kill);
}

#[test]
fn own_sessions_and_process_groups_do_not_escape() {
    assert_tree_ends(
        "fork 3 [ setsid; ignore term; FOREVER ]; fork 3 [ setpgid; FOREVER ]; FOREVER",
        7,
        StopCause::Kill,
    );
}

#[test]
fn a_double_forked_daemon_does_not_escape() {
    assert_tree_ends("fork 4 [ daemon [ ignore term; FOREVER ] ]; FOREVER", 5, StopCause::Kill);
}

#[test]
fn a_daemon_whose_wrapper_exits_does_not_escape() {
    assert_tree_ends("daemon [ FOREVER ]; exit 0", 1, StopCause::Request);
}

#[test]
fn another_name_and_closed_descriptors_do_not_escape() {
    assert_tree_ends(
        "fork 2 [ setsid; rename systemd; close; FOREVER ]; rename init; close; FOREVER",
        3,
        StopCause::Request,
    );
}

#[test]
fn a_program_stopped_by_a_signal_is_ended() {
    assert_tree_ends(
        "ignore term; fork 3 [ setsid; arrive; stop; FOREVER ]; arrive; stop; FOREVER",
        4,
        StopCause::Kill,
    );
}

#[test]
fn a_member_that_forgets_its_environment_is_ended() {
    assert_tree_ends("fork 2 [ daemon [ forget [ ignore term; FOREVER ] ] ]; FOREVER", 3, StopCause::Kill);
}

#[test]
fn a_program_that_kills_or_stops_its_parent_does_not_escape() {
    for trick in ["kill-parent", "stop-parent"] {
        for containment in holding_containments() {
            let mut test_host = TestHost::new(containment);
            // As root, the program runs as another user than its keeper, as with a real daemon.
            let marked = MarkedScript::for_all_users();
            let release = marked.file("release");
            let waits = format!("ignore term; fork 2 [ FOREVER ]; arrive; await {}", release.display());
            let session =
                test_host.start(marked.entry_of_another_user(&format!("{waits}; {trick}; FOREVER")));
            marked.wait_for_arrivals(3);
            std::fs::write(release, "").unwrap();
            test_host.stop(&session, SHORT_GRACE);
            marked.assert_none_left();
        }
    }
}

/// The script limits the time of the fork bomb, and the entry limits the number of its processes.
#[test]
fn heavy_a_fork_bomb_is_ended() {
    for containment in holding_containments() {
        let mut test_host = TestHost::new(containment);
        let marked = MarkedScript::new();
        let mut entry = marked.entry("bomb 150; FOREVER");
        let limits = ResourceLimits { processes: Some(200), ..ResourceLimits::default() };
        entry.run = RunPolicy { limits, ..RunPolicy::default() };
        let session = test_host.start(entry);
        wait_until("bomb", || marked.survivors().len() >= 30);
        test_host.stop(&session, Duration::ZERO);
        marked.assert_none_left();
    }
}
