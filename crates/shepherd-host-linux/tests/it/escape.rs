//! The tricks of ward-process's escape suite, as entries (S6.2, S6.2b).

use std::time::Duration;

use shepherd_core::policy::{RunLimits, RunPolicy};

use crate::harness::{GRACE, Ground, PATIENCE, Token, holding_containments, wait_until};

/// By what a tree ends.
#[derive(Clone, Copy, PartialEq)]
enum By {
    Request,
    Kill,
}

/// Runs a script until so many have arrived, stops it, and lets nothing be left.
fn check(script: &str, members: usize, by: By) {
    for containment in holding_containments() {
        let mut ground = Ground::new(containment);
        let token = Token::new();
        let session = ground.start(token.entry(script));
        token.await_arrivals(members);
        let grace = if by == By::Kill { GRACE } else { PATIENCE };
        ground.stop(&session, grace);
        token.assert_none_left();
        ground.assert_silence(Duration::from_millis(20));
    }
}

#[test]
fn obedient_children_end_when_they_are_asked() {
    check("fork 3 [ FOREVER ]; FOREVER", 4, By::Request);
}

#[test]
fn children_that_ignore_every_signal_are_killed() {
    check("ignore term; fork 3 [ FOREVER ]; FOREVER", 4, By::Kill);
}

#[test]
fn sessions_and_groups_of_their_own_do_not_help() {
    check("fork 3 [ setsid; ignore term; FOREVER ]; fork 3 [ setpgid; FOREVER ]; FOREVER", 7, By::Kill);
}

#[test]
fn a_double_forked_daemon_does_not_get_away() {
    check("fork 4 [ daemon [ ignore term; FOREVER ] ]; FOREVER", 5, By::Kill);
}

#[test]
fn a_wrapper_that_hands_over_and_leaves_frees_nothing() {
    check("daemon [ FOREVER ]; exit 0", 1, By::Request);
}

#[test]
fn another_name_and_no_descriptors_do_not_help() {
    check("fork 2 [ setsid; rename systemd; close; FOREVER ]; rename init; close; FOREVER", 3, By::Request);
}

#[test]
fn a_stopped_program_is_ended() {
    check("ignore term; fork 3 [ setsid; arrive; stop; FOREVER ]; arrive; stop; FOREVER", 4, By::Kill);
}

#[test]
fn a_member_that_forgets_its_environment_is_ended() {
    check("fork 2 [ daemon [ forget [ ignore term; FOREVER ] ] ]; FOREVER", 3, By::Kill);
}

#[test]
fn a_program_that_kills_or_stops_its_parent_gains_nothing() {
    for trick in ["kill-parent", "stop-parent"] {
        for containment in holding_containments() {
            let mut ground = Ground::new(containment);
            // With root's keeper as the parent, the program is somebody else's, as those of a real daemon are.
            let token = Token::for_everybody();
            let script = format!("ignore term; fork 2 [ FOREVER ]; arrive; sleep 200; {trick}; FOREVER");
            let session = ground.start(token.entry_of_another_user(&script));
            token.await_arrivals(3);
            ground.stop(&session, GRACE);
            token.assert_none_left();
        }
    }
}

/// Capped in time by the script and in number by what this machine can keep.
#[test]
fn heavy_a_fork_bomb_is_ended() {
    for containment in holding_containments() {
        let mut ground = Ground::new(containment);
        let token = Token::new();
        let mut entry = token.entry("bomb 150; FOREVER");
        let limits = RunLimits { processes: Some(200), ..RunLimits::default() };
        entry.run = RunPolicy { limits, ..RunPolicy::default() };
        let session = ground.start(entry);
        wait_until("bomb", || token.survivors().len() >= 30);
        ground.stop(&session, Duration::ZERO);
        token.assert_none_left();
    }
}
