//! The escape suite: each trick, in every containment that claims to hold it (S6.2, S6.2b).

use std::process::Command;
use std::time::{Duration, Instant};

use ward_process::{Containment, EndedBy, StopLadder, StopSignal, TreeLifetime};

use crate::harness::{
    PATIENCE, TestRun, containments, fake_child, holding_containments, is_root, supervisor, wait_until,
};

/// For what will not go anyway.
const GRACE: Duration = Duration::from_millis(300);

/// Runs a script until so many have arrived, stops it, and lets nothing be left.
fn check_in(containments: Vec<Containment>, script: &str, members: usize, by: EndedBy) {
    for containment in containments {
        let supervisor = supervisor(containment);
        let run = TestRun::new();
        let mut tree = run.spawn(&supervisor, script);
        run.wait_until_sleeping(members);
        let grace = if by == KILL { GRACE } else { PATIENCE };
        let stopped = supervisor.stop(&mut tree, StopLadder::polite(grace)).unwrap();
        run.assert_none_left();
        assert_eq!(stopped.ended_by, by, "{containment}: {script}");
        assert_eq!(tree.processes(), Vec::<i32>::new(), "{containment}");
    }
}

fn check(script: &str, members: usize, by: EndedBy) {
    check_in(holding_containments(), script, members, by);
}

const TERM: EndedBy = EndedBy::Rung(0);
const KILL: EndedBy = EndedBy::Kill;

#[test]
fn obedient_children_end_on_the_polite_rung_in_every_containment() {
    check_in(containments(), "fork 3 [ FOREVER ]; FOREVER", 4, TERM);
}

#[test]
fn children_that_ignore_every_signal_are_killed_in_every_containment() {
    check_in(containments(), "ignore term; fork 3 [ FOREVER ]; FOREVER", 4, KILL);
}

#[test]
fn a_double_forked_daemon_outlives_neither_its_parent_nor_the_stop() {
    check("daemon [ FOREVER ]; exit 0", 1, TERM);
}

#[test]
fn daemons_that_ignore_sigterm_are_killed() {
    check("fork 4 [ daemon [ ignore term; FOREVER ] ]; FOREVER", 5, KILL);
}

#[test]
fn sessions_and_groups_of_their_own_do_not_help() {
    check("fork 3 [ setsid; ignore term; FOREVER ]; fork 3 [ setpgid; FOREVER ]; FOREVER", 7, KILL);
}

#[test]
fn another_name_and_no_descriptors_do_not_help() {
    check("fork 2 [ setsid; rename systemd; close; FOREVER ]; rename init; close; FOREVER", 3, TERM);
}

#[test]
fn an_exec_chain_stays_inside() {
    check("fork 2 [ exec 20 setsid; exec 5 FOREVER ]; exec 10 FOREVER", 3, TERM);
}

#[test]
fn orphans_of_orphans_stay_inside() {
    check("fork 2 [ fork 2 [ fork 2 [ FOREVER ]; exit 0 ]; exit 0 ]; exit 0", 8, TERM);
}

#[test]
fn a_stopped_tree_hears_the_polite_signal() {
    check("fork 3 [ arrive; stop; FOREVER ]; arrive; stop; FOREVER", 4, TERM);
}

#[test]
fn a_stopped_tree_that_ignores_signals_is_killed() {
    check("ignore term; fork 3 [ setsid; arrive; stop; FOREVER ]; arrive; stop; FOREVER", 4, KILL);
}

#[test]
fn heavy_a_tree_of_a_thousand_is_gone_to_the_last_leaf() {
    check("tree 9 [ setsid; ignore term; FOREVER ]", 512, KILL);
}

#[test]
fn heavy_children_that_fork_while_being_killed_are_killed() {
    for containment in holding_containments() {
        let supervisor = supervisor(containment);
        let run = TestRun::new();
        let mut tree = run.spawn(&supervisor, "bomb 150; FOREVER");
        wait_until("bomb", || run.survivors().len() >= 30);
        supervisor.stop(&mut tree, StopLadder::force()).unwrap();
        run.assert_none_left();
    }
}

#[test]
fn a_program_that_kills_its_keeper_gains_nothing() {
    for containment in holding_containments() {
        let supervisor = supervisor(containment);
        let run = TestRun::new();
        let script = "fork 2 [ daemon [ ignore term; FOREVER ] ]; arrive; sleep 300; kill-parent; FOREVER";
        let order = run.order(script).lifetime(TreeLifetime::DiesWithSupervisor);
        let mut tree = supervisor.spawn(run.id.clone(), order).unwrap();
        run.wait_until_sleeping(3);
        if containment != Containment::PidNamespace {
            // The keeper can be killed, by its own user or by root; with that the tree is over.
            assert!(tree.wait(Some(PATIENCE)).unwrap().is_some(), "{containment}");
        } else {
            // An init can't be killed from inside.
            assert_eq!(tree.wait(Some(Duration::from_millis(500))).unwrap(), None);
            supervisor.stop(&mut tree, StopLadder::force()).unwrap();
        }
        run.assert_none_left();
    }
}

#[test]
fn a_program_that_stops_its_keeper_is_killed_all_the_same() {
    for containment in [Containment::PidNamespace, Containment::Subreaper] {
        let supervisor = supervisor(containment);
        let run = TestRun::new();
        let mut tree = run.spawn(&supervisor, "ignore term; fork 2 [ FOREVER ]; stop-parent; FOREVER");
        run.wait_until_sleeping(3);
        supervisor.stop(&mut tree, StopLadder::polite(GRACE)).unwrap();
        run.assert_none_left();
    }
}

#[test]
fn a_program_that_stops_its_keeper_at_once_keeps_nobody_waiting_for_its_start() {
    for containment in holding_containments() {
        let supervisor = supervisor(containment);
        for _ in 0..20 {
            let run = TestRun::new();
            let order = run.order("stop-parent; FOREVER").lifetime(TreeLifetime::DiesWithSupervisor);
            let mut tree = supervisor.spawn(run.id.clone(), order).unwrap();
            supervisor.stop(&mut tree, StopLadder::force()).unwrap();
            run.assert_none_left();
        }
    }
}

#[test]
fn a_member_that_forgets_its_environment_is_still_a_member() {
    check("fork 2 [ daemon [ forget [ ignore term; FOREVER ] ] ]; FOREVER", 3, KILL);
}

#[test]
fn a_process_group_says_that_it_can_be_left() {
    for containment in containments() {
        let held = !matches!(containment, Containment::ProcessGroup | Containment::Subreaper);
        assert_eq!(containment.is_escapable(), !held);
    }
    // What it can't hold is gone from its sight: the honest name is all the protection there is.
    let supervisor = supervisor(Containment::ProcessGroup);
    let run = TestRun::new();
    let mut tree = run.spawn(&supervisor, "fork 1 [ setsid; FOREVER ]; FOREVER");
    run.wait_until_sleeping(2);
    supervisor.stop(&mut tree, StopLadder::force()).unwrap();
    assert_eq!(run.survivors().len(), 1);
}

#[test]
fn a_polite_signal_reaches_groups_inside_the_group() {
    for containment in containments().into_iter().filter(|kind| *kind == Containment::Cgroup) {
        let supervisor = supervisor(containment);
        let run = TestRun::new();
        let mut tree = run.spawn(&supervisor, "fork 1 [ FOREVER ]; FOREVER");
        run.wait_until_sleeping(2);
        let inner = run.group().join("inner/most");
        std::fs::create_dir_all(&inner).unwrap();
        for pid in run.survivors() {
            std::fs::write(inner.join("cgroup.procs"), pid.to_string()).unwrap();
        }
        assert_eq!(tree.processes().len(), 2);
        tree.signal(StopSignal::Hangup);
        assert!(tree.wait(Some(PATIENCE)).unwrap().is_some());
        run.assert_none_left();
    }
}

#[test]
fn who_comes_while_the_others_are_asked_is_asked_as_well() {
    for containment in holding_containments() {
        let supervisor = supervisor(containment);
        for _ in 0..5 {
            let run = TestRun::new();
            let directory = tempfile::tempdir().unwrap();
            let off = directory.path().join("off");
            // Not for ever: one that is never hit must not fill the table of processes.
            let script = format!("touch {}; hop 1500; FOREVER", off.display());
            let mut tree = run.spawn(&supervisor, &script);
            wait_until("departure", || off.exists());
            let stopped = supervisor.stop(&mut tree, StopLadder::polite(PATIENCE)).unwrap();
            assert_eq!(stopped.ended_by, EndedBy::Rung(0), "{containment}: {stopped:?}");
            run.assert_none_left();
        }
    }
}

#[test]
fn a_signal_after_the_end_reaches_nobody() {
    for containment in containments() {
        let run = TestRun::new();
        let mut tree = run.spawn(&supervisor(containment), "exit 0");
        tree.wait(Some(PATIENCE)).unwrap().unwrap();
        tree.signal(StopSignal::Interrupt);
        tree.kill();
        assert_eq!(tree.processes(), Vec::<i32>::new());
    }
}

/// Windows are matched to sessions this way, on another thread than the one that ends them (S6.7).
#[test]
fn who_is_a_member_can_be_asked_on_another_thread() {
    for containment in containments() {
        let supervisor = supervisor(containment);
        let (run, other) = (TestRun::new(), TestRun::new());
        let mut tree = run.spawn(&supervisor, "fork 2 [ fork 1 [ FOREVER ]; FOREVER ]; FOREVER");
        let mut stranger = other.spawn(&supervisor, "FOREVER");
        run.wait_until_sleeping(5);
        other.wait_until_sleeping(1);
        let (members, strangers) = (run.survivors(), other.survivors());
        let membership = tree.membership();
        std::thread::spawn(move || {
            assert!(members.iter().all(|pid| membership.contains(*pid)), "{containment}");
            let own = std::process::id().cast_signed();
            let others = strangers.into_iter().chain([own, 1, 0, -1, i32::MAX]);
            assert_eq!(
                others.filter(|pid| membership.contains(*pid)).collect::<Vec<i32>>(),
                Vec::<i32>::new(),
                "{containment}"
            );
        })
        .join()
        .unwrap();
        for tree in [&mut tree, &mut stranger] {
            supervisor.stop(tree, StopLadder::force()).unwrap();
        }
    }
}

#[test]
fn a_daemon_that_left_its_parent_is_a_member_still() {
    for containment in holding_containments() {
        let supervisor = supervisor(containment);
        let run = TestRun::new();
        let mut tree = run.spawn(&supervisor, "daemon [ FOREVER ]; exit 0");
        run.wait_until_sleeping(1);
        let membership = tree.membership();
        assert!(run.survivors().into_iter().all(|pid| membership.contains(pid)), "{containment}");
        let gone = run.survivors();
        supervisor.stop(&mut tree, StopLadder::force()).unwrap();
        assert!(!gone.into_iter().any(|pid| membership.contains(pid)), "{containment}");
    }
}

/// Whether one process of a user may trace another that it has not started.
pub(crate) fn tracing_is_open() -> bool {
    let scope = std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").unwrap_or_default();
    matches!(scope.trim(), "" | "0") || (is_root() && scope.trim() != "3")
}

/// A zombie that its tracer does not let go is nobody's tree any more.
#[test]
fn a_tracer_outside_that_never_waits_keeps_no_tree() {
    if !tracing_is_open() {
        return;
    }
    for containment in containments() {
        let supervisor = supervisor(containment);
        let run = TestRun::new();
        let mut tree = run.spawn(&supervisor, "FOREVER");
        run.wait_until_sleeping(1);
        let root = tree.record().root.expect("it runs").pid;
        let script = format!("trace {root}; sleep 600000");
        let mut tracer = Command::new(fake_child()).arg(script).spawn().unwrap();
        let mut refused = false;
        wait_until("tracer", || {
            refused = tracer.try_wait().unwrap().is_some();
            let status = std::fs::read_to_string(format!("/proc/{root}/status")).unwrap();
            refused || status.contains(&format!("TracerPid:\t{}\n", tracer.id()))
        });
        // A keeper lets no ordinary user trace it.
        let kept = matches!(containment, Containment::PidNamespace | Containment::Subreaper);
        assert!(!refused || kept, "{containment}");
        let started = Instant::now();
        let stopped = supervisor.stop(&mut tree, StopLadder::polite(GRACE));
        let stopped = stopped.unwrap_or_else(|error| panic!("{containment}: {error:?}"));
        assert!(started.elapsed() < PATIENCE, "{containment}: {stopped:?}");
        let _ = tracer.kill();
        tracer.wait().unwrap();
        run.assert_none_left();
    }
}
