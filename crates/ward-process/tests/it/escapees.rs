//! Members that move to another cgroup, as the service manager of their user moves them on request: where leavers are
//! held they stay members, whoever else exits, and after a crash of the supervisor, too (S6.2, S9.1).
//!
//! Only root has cgroups to leave; for everybody else there is nothing to be left.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use ward_process::{
    Containment, EndedBy, EscapeePolicy, ProcessExit, ProcessTree, ReattachError, StopLadder, StopSignal,
    Supervisor, TreeLifetime,
};

use crate::escape::tracing_is_open;
use crate::harness::{
    PATIENCE, TestRun, fake_child, holding_containments, is_root, kill, start_tree, supervisor, wait_until,
};

/// Long enough for an end that comes too early to be seen.
const MOMENT: Duration = Duration::from_millis(100);

/// A group that is not the tree's, beside it.
struct OtherCgroup(PathBuf);

impl OtherCgroup {
    fn new(run: &TestRun) -> Self {
        let group = run.group().with_file_name(format!("elsewhere-{}", run.id));
        std::fs::create_dir(&group).unwrap();
        Self(group)
    }

    fn path(&self) -> &Path {
        &self.0
    }

    /// `ELSEWHERE` in a script is this group.
    fn script(&self, script: &str) -> String {
        script.replace("ELSEWHERE", self.0.to_str().unwrap())
    }
}

impl Drop for OtherCgroup {
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

fn spawn_with_keeper(run: &TestRun, supervisor: &Supervisor, script: &str) -> ProcessTree {
    supervisor.spawn(run.id.clone(), run.order(script).escapees(EscapeePolicy::Held)).unwrap()
}

/// The containments that a program with the right to move itself is to be held by.
fn containments_with_groups() -> Vec<Containment> {
    if is_root() { holding_containments() } else { Vec::new() }
}

/// Runs a script until so many have arrived, stops it, and lets nothing be left.
fn check(script: &str, members: usize, by: EndedBy) {
    for containment in containments_with_groups() {
        let supervisor = supervisor(containment);
        let run = TestRun::new();
        let elsewhere = OtherCgroup::new(&run);
        let mut tree = spawn_with_keeper(&run, &supervisor, &elsewhere.script(script));
        run.wait_until_sleeping(members);
        assert_eq!(tree.wait(Some(MOMENT)).unwrap(), None, "{containment}: {script}: it runs");
        let survivors = run.survivors();
        let members = tree.processes();
        let membership = tree.membership();
        for pid in survivors {
            if containment == Containment::Cgroup {
                assert!(members.contains(&pid), "{containment}: {script}: {pid} is none of {members:?}");
            }
            assert!(membership.contains(pid), "{containment}: {script}: {pid} is no member");
        }
        let grace = if by == EndedBy::Kill { MOMENT } else { PATIENCE };
        let stopped = supervisor.stop(&mut tree, StopLadder::polite(grace)).unwrap();
        run.assert_none_left();
        assert_eq!(stopped.ended_by, by, "{containment}: {script}");
    }
}

#[test]
fn a_program_that_moves_itself_is_asked_and_ended() {
    check("leave ELSEWHERE; FOREVER", 1, EndedBy::Rung(0));
}

#[test]
fn a_program_that_moves_itself_and_ignores_signals_is_killed() {
    check("ignore term; leave ELSEWHERE; fork 2 [ FOREVER ]; FOREVER", 3, EndedBy::Kill);
}

#[test]
fn what_a_wrapper_moved_before_it_exited_is_the_tree() {
    check("fork 1 [ leave ELSEWHERE; FOREVER ]; sleep 50; exit 0", 1, EndedBy::Rung(0));
}

#[test]
fn a_daemon_that_was_moved_and_forgot_its_environment_is_killed() {
    check("daemon [ leave ELSEWHERE; forget [ ignore term; FOREVER ] ]; exit 0", 1, EndedBy::Kill);
}

#[test]
fn those_who_stay_and_those_who_leave_end_together() {
    let script =
        "fork 3 [ FOREVER ]; fork 3 [ leave ELSEWHERE; setsid; fork 2 [ FOREVER ]; FOREVER ]; FOREVER";
    check(script, 13, EndedBy::Rung(0));
}

#[test]
fn a_stopped_leaver_hears_the_polite_signal() {
    check("leave ELSEWHERE; fork 2 [ arrive; stop; FOREVER ]; arrive; stop; FOREVER", 3, EndedBy::Rung(0));
}

#[test]
fn heavy_leavers_that_fork_while_being_killed_are_killed() {
    for containment in containments_with_groups() {
        let supervisor = supervisor(containment);
        let run = TestRun::new();
        let elsewhere = OtherCgroup::new(&run);
        let script = elsewhere.script("fork 1 [ leave ELSEWHERE; bomb 150; FOREVER ]; exit 0");
        let mut tree = spawn_with_keeper(&run, &supervisor, &script);
        wait_until("bomb", || run.survivors().len() >= 30);
        supervisor.stop(&mut tree, StopLadder::force()).unwrap();
        run.assert_none_left();
    }
}

#[test]
fn a_frozen_group_elsewhere_keeps_nobody_alive() {
    for containment in containments_with_groups() {
        let supervisor = supervisor(containment);
        let run = TestRun::new();
        let elsewhere = OtherCgroup::new(&run);
        let mut tree = spawn_with_keeper(&run, &supervisor, &elsewhere.script("leave ELSEWHERE; FOREVER"));
        run.wait_until_sleeping(1);
        std::fs::write(elsewhere.path().join("cgroup.freeze"), "1").unwrap();
        supervisor.stop(&mut tree, StopLadder::polite(MOMENT)).unwrap();
        run.assert_none_left();
    }
}

#[test]
fn each_member_is_asked_once() {
    for containment in containments_with_groups() {
        let supervisor = supervisor(containment);
        let run = TestRun::new();
        let elsewhere = OtherCgroup::new(&run);
        let script = elsewhere.script("fork 1 [ leave ELSEWHERE; FOREVER ]; FOREVER");
        let mut tree = spawn_with_keeper(&run, &supervisor, &script);
        run.wait_until_sleeping(2);
        tree.signal(StopSignal::Hangup);
        assert_eq!(tree.wait(Some(PATIENCE)).unwrap().unwrap().exit, ProcessExit::Signal(1), "{containment}");
        run.assert_none_left();
    }
}

#[test]
fn the_end_of_leavers_is_the_end_of_the_tree_and_the_program_tells_how() {
    for containment in containments_with_groups() {
        let supervisor = supervisor(containment);
        let run = TestRun::new();
        let elsewhere = OtherCgroup::new(&run);
        let proof = tempfile::tempdir().unwrap();
        let release = proof.path().join("release");
        let script = format!("fork 1 [ leave ELSEWHERE; arrive; await {} ]; exit 7", release.display());
        let mut tree = spawn_with_keeper(&run, &supervisor, &elsewhere.script(&script));
        wait_until("exit of the wrapper", || tree.program_exit().unwrap() == Some(ProcessExit::Code(7)));
        assert_eq!(tree.wait(Some(MOMENT)).unwrap(), None, "{containment}");
        std::fs::write(release, "").unwrap();
        assert_eq!(tree.wait(Some(PATIENCE)).unwrap().unwrap().exit, ProcessExit::Code(7), "{containment}");
    }
}

#[test]
fn leavers_are_held_again_after_the_supervisor_was_killed() {
    for script in ["leave ELSEWHERE; FOREVER", "fork 1 [ leave ELSEWHERE; FOREVER ]; sleep 50; exit 0"] {
        for containment in containments_with_groups() {
            let run = TestRun::new();
            let elsewhere = OtherCgroup::new(&run);
            let (process, record) = start_tree(&run, containment, "held", &elsewhere.script(script));
            run.wait_until_sleeping(1);
            kill(process);
            let supervisor = supervisor(containment);
            let mut tree = supervisor.reattach(&record).unwrap();
            assert_eq!(tree.record(), record);
            assert_eq!(tree.wait(Some(MOMENT)).unwrap(), None, "{containment}: {script}");
            supervisor.stop(&mut tree, StopLadder::polite(PATIENCE)).unwrap();
            run.assert_none_left();
            assert!(matches!(supervisor.reattach(&record), Err(ReattachError::Gone(_))), "{containment}");
        }
    }
}

#[test]
fn leavers_are_held_again_when_somebody_has_removed_their_empty_group() {
    if !is_root() {
        return;
    }
    let run = TestRun::new();
    let elsewhere = OtherCgroup::new(&run);
    let script = elsewhere.script("ignore term; leave ELSEWHERE; FOREVER");
    let (process, record) = start_tree(&run, Containment::Cgroup, "held", &script);
    run.wait_until_sleeping(1);
    kill(process);
    // A service manager tidies up below a service that has failed.
    std::fs::remove_dir(run.group()).unwrap();
    let supervisor = supervisor(Containment::Cgroup);
    let mut tree = supervisor.reattach(&record).unwrap();
    assert_eq!(tree.wait(Some(MOMENT)).unwrap(), None);
    let members = tree.processes();
    assert_eq!(members.len(), 1, "{members:?}");
    assert!(run.survivors().contains(&members[0]));
    supervisor.stop(&mut tree, StopLadder::polite(MOMENT)).unwrap();
    run.assert_none_left();
    assert!(matches!(supervisor.reattach(&record), Err(ReattachError::Gone(_))));
}

#[test]
fn leavers_of_a_tree_that_dies_with_its_supervisor_do_so_after_kill_9() {
    for containment in containments_with_groups() {
        let run = TestRun::new();
        let elsewhere = OtherCgroup::new(&run);
        let script = "fork 2 [ leave ELSEWHERE; ignore term; FOREVER ]; FOREVER";
        let (process, record) = start_tree(&run, containment, "dies", &elsewhere.script(script));
        run.wait_until_sleeping(3);
        kill(process);
        wait_until("end without the supervisor", || run.survivors().is_empty());
        wait_until("nothing left", || {
            matches!(supervisor(containment).reattach(&record), Err(ReattachError::Gone(_)))
        });
    }
}

#[test]
fn a_dropped_handle_ends_the_leavers_of_a_tree_that_dies_with_it() {
    for containment in containments_with_groups() {
        let supervisor = supervisor(containment);
        let run = TestRun::new();
        let elsewhere = OtherCgroup::new(&run);
        let order = run.order(&elsewhere.script("fork 1 [ leave ELSEWHERE; ignore term; FOREVER ]; FOREVER"));
        let order = order.lifetime(TreeLifetime::DiesWithSupervisor);
        drop(supervisor.spawn(run.id.clone(), order).unwrap_or_else(|error| panic!("{error}")));
        wait_until("end", || run.survivors().is_empty());
    }
}

/// What a tracer outside does not let be reaped is dead all the same; its keeper need not wait for it.
#[test]
fn a_tracer_of_a_member_keeps_no_tree_that_has_a_keeper() {
    if !is_root() || !tracing_is_open() {
        return;
    }
    let supervisor = supervisor(Containment::Cgroup);
    let run = TestRun::new();
    let mut tree = spawn_with_keeper(&run, &supervisor, "FOREVER");
    run.wait_until_sleeping(1);
    let member = tree.processes()[0];
    let script = format!("trace {member}; sleep 600000");
    let mut tracer = Command::new(fake_child()).arg(script).spawn().unwrap();
    let traced = format!("TracerPid:\t{}\n", tracer.id());
    let status = format!("/proc/{member}/status");
    wait_until("tracer", || std::fs::read_to_string(&status).unwrap().contains(&traced));
    let stopped = supervisor.stop(&mut tree, StopLadder::polite(MOMENT)).unwrap();
    assert_eq!(stopped.ended.exit, ProcessExit::Unknown);
    tracer.kill().unwrap();
    tracer.wait().unwrap();
    run.assert_none_left();
}
