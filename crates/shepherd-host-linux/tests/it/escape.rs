//! The tricks of ward-process's escape suite, as entries (S6.2, S6.2b).

use std::time::Duration;

use shepherd_core::policy::{ResourceLimits, RunPolicy};

use crate::harness::{MarkedScript, SHORT_GRACE, TEST_TIMEOUT, TestHost, holding_containments, wait_until};

/// By what a tree ends.
#[derive(Clone, Copy, PartialEq)]
enum StopCause {
    Request,
    Kill,
}

/// Runs a script until so many have arrived, stops it, and lets nothing be left.
fn assert_tree_ends(script: &str, members: usize, by: StopCause) {
    for containment in holding_containments() {
        let mut ground = TestHost::new(containment);
        let token = MarkedScript::new();
        let session = ground.start(token.entry(script));
        token.wait_for_arrivals(members);
        let grace = if by == StopCause::Kill { SHORT_GRACE } else { TEST_TIMEOUT };
        ground.stop(&session, grace);
        token.assert_none_left();
        ground.assert_no_event(Duration::from_millis(20));
    }
}

#[test]
fn obedient_children_end_when_they_are_asked() {
    assert_tree_ends("fork 3 [ FOREVER ]; FOREVER", 4, StopCause::Request);
}

#[test]
fn children_that_ignore_every_signal_are_killed() {
    assert_tree_ends("ignore term; fork 3 [ FOREVER ]; FOREVER", 4, StopCause::Kill);
}

#[test]
fn sessions_and_groups_of_their_own_do_not_help() {
    assert_tree_ends(
        "fork 3 [ setsid; ignore term; FOREVER ]; fork 3 [ setpgid; FOREVER ]; FOREVER",
        7,
        StopCause::Kill,
    );
}

#[test]
fn a_double_forked_daemon_does_not_get_away() {
    assert_tree_ends("fork 4 [ daemon [ ignore term; FOREVER ] ]; FOREVER", 5, StopCause::Kill);
}

#[test]
fn a_wrapper_that_hands_over_and_leaves_frees_nothing() {
    assert_tree_ends("daemon [ FOREVER ]; exit 0", 1, StopCause::Request);
}

#[test]
fn another_name_and_no_descriptors_do_not_help() {
    assert_tree_ends(
        "fork 2 [ setsid; rename systemd; close; FOREVER ]; rename init; close; FOREVER",
        3,
        StopCause::Request,
    );
}

#[test]
fn a_stopped_program_is_ended() {
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
fn a_program_that_kills_or_stops_its_parent_gains_nothing() {
    for trick in ["kill-parent", "stop-parent"] {
        for containment in holding_containments() {
            let mut ground = TestHost::new(containment);
            // With root's keeper as the parent, the program is somebody else's, as those of a real daemon are.
            let token = MarkedScript::for_all_users();
            let script = format!("ignore term; fork 2 [ FOREVER ]; arrive; sleep 200; {trick}; FOREVER");
            let session = ground.start(token.entry_of_another_user(&script));
            token.wait_for_arrivals(3);
            ground.stop(&session, SHORT_GRACE);
            token.assert_none_left();
        }
    }
}

/// Capped in time by the script and in number by what this machine can keep.
#[test]
fn heavy_a_fork_bomb_is_ended() {
    for containment in holding_containments() {
        let mut ground = TestHost::new(containment);
        let token = MarkedScript::new();
        let mut entry = token.entry("bomb 150; FOREVER");
        let limits = ResourceLimits { processes: Some(200), ..ResourceLimits::default() };
        entry.run = RunPolicy { limits, ..RunPolicy::default() };
        let session = ground.start(entry);
        wait_until("bomb", || token.survivors().len() >= 30);
        ground.stop(&session, Duration::ZERO);
        token.assert_none_left();
    }
}
