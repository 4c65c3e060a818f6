//! Escapees: members that move to another cgroup, as the service manager of a user does on request. With
//! `EscapeePolicy::Held` they stay members, whichever other members exit, and also after a crash of the
//! supervisor (S6.2, S9.1).
//!
//! Only root can move processes between cgroups, so these tests do nothing for other users.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use ward_process::{
    Containment, EndedBy, EscapeePolicy, ProcessExit, ProcessTree, ReattachError, StopLadder, StopSignal,
    Supervisor, TreeLifetime,
};

use crate::escape::tracing_is_open;
use crate::harness::{
    PATIENCE, TestRun, becomes_true_within, fake_child, holding_containments, is_root, kill, start_tree,
    supervisor, wait_until,
};

/// Time to watch a tree that should keep running. It is long enough to notice a wrong end.
const MOMENT: Duration = Duration::from_millis(100);

/// A cgroup next to the tree's.
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

    /// Replaces `ELSEWHERE` in a script by the path of this group.
    fn script(&self, script: &str) -> String {
        script.replace("ELSEWHERE", self.0.to_str().unwrap())
    }
}

impl Drop for OtherCgroup {
    fn drop(&mut self) {
        // The kernel may refuse for a moment to remove a group whose last member has just ended.
        becomes_true_within(PATIENCE, || std::fs::remove_dir(&self.0).is_ok());
    }
}

fn spawn_with_keeper(run: &TestRun, supervisor: &Supervisor, script: &str) -> ProcessTree {
    supervisor.spawn(run.id.clone(), run.spec(script).escapees(EscapeePolicy::Held)).unwrap()
}

/// Returns the containments that must hold a program that moves itself; none if the current user can't use
/// cgroups.
fn containments_with_groups() -> Vec<Containment> {
    if is_root() { holding_containments() } else { Vec::new() }
}

/// Runs a script until `members` processes have arrived, checks that all are members, stops the tree, and
/// checks that no process is left.
fn check(script: &str, members: usize, by: EndedBy) {
    for containment in containments_with_groups() {
        let supervisor = supervisor(containment);
        let run = TestRun::new();
        let elsewhere = OtherCgroup::new(&run);
        let mut tree = spawn_with_keeper(&run, &supervisor, &elsewhere.script(script));
        run.wait_until_sleeping(members);
        assert_eq!(tree.wait(Some(MOMENT)).unwrap(), None, "{containment}: {script}: ended too early");
        let survivors = run.survivors();
        let members = tree.processes();
        let membership = tree.membership();
        for pid in survivors {
            if containment == Containment::Cgroup {
                assert!(members.contains(&pid), "{containment}: {script}: {pid} is not in {members:?}");
            }
            assert!(membership.contains(pid), "{containment}: {script}: {pid} is not a member");
        }
        let grace = if by == EndedBy::Kill { MOMENT } else { PATIENCE };
        let stopped = supervisor.stop(&mut tree, StopLadder::polite(grace)).unwrap();
        run.assert_none_left();
        assert_eq!(stopped.ended_by, by, "{containment}: {script}");
    }
}

#[test]
fn an_escaped_program_ends_on_the_polite_signal() {
    check("leave ELSEWHERE; FOREVER", 1, EndedBy::Rung(0));
}

#[test]
fn an_escaped_program_that_ignores_signals_is_killed() {
    check("ignore term; leave ELSEWHERE; fork 2 [ FOREVER ]; FOREVER", 3, EndedBy::Kill);
}

#[test]
fn an_escapee_keeps_the_tree_running_after_its_wrapper_exited() {
    check("fork 1 [ leave ELSEWHERE; FOREVER ]; sleep 50; exit 0", 1, EndedBy::Rung(0));
}

#[test]
fn an_escaped_daemon_with_an_empty_environment_is_killed() {
    check("daemon [ leave ELSEWHERE; forget [ ignore term; FOREVER ] ]; exit 0", 1, EndedBy::Kill);
}

#[test]
fn escapees_and_the_members_of_the_group_end_together() {
    let script =
        "fork 3 [ FOREVER ]; fork 3 [ leave ELSEWHERE; setsid; fork 2 [ FOREVER ]; FOREVER ]; FOREVER";
    check(script, 13, EndedBy::Rung(0));
}

#[test]
fn a_stopped_escapee_acts_on_the_polite_signal() {
    check("leave ELSEWHERE; fork 2 [ arrive; stop; FOREVER ]; arrive; stop; FOREVER", 3, EndedBy::Rung(0));
}

#[test]
fn heavy_escapees_that_fork_while_being_killed_are_killed() {
    for containment in containments_with_groups() {
        let supervisor = supervisor(containment);
        let run = TestRun::new();
        let elsewhere = OtherCgroup::new(&run);
        let script = elsewhere.script("fork 1 [ leave ELSEWHERE; bomb 150; FOREVER ]; exit 0");
        let mut tree = spawn_with_keeper(&run, &supervisor, &script);
        wait_until("30 forks", || run.survivors().len() >= 30);
        supervisor.stop(&mut tree, StopLadder::force()).unwrap();
        run.assert_none_left();
    }
}

#[test]
fn an_escapee_in_a_frozen_group_is_killed() {
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
fn a_hangup_ends_members_and_escapees_alike() {
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
fn a_tree_ends_with_its_escapees_and_has_the_exit_of_its_program() {
    for containment in containments_with_groups() {
        let supervisor = supervisor(containment);
        let run = TestRun::new();
        let elsewhere = OtherCgroup::new(&run);
        let folder = tempfile::tempdir().unwrap();
        let release = folder.path().join("release");
        let script = format!("fork 1 [ leave ELSEWHERE; arrive; await {} ]; exit 7", release.display());
        let mut tree = spawn_with_keeper(&run, &supervisor, &elsewhere.script(&script));
        wait_until("the exit of the wrapper", || tree.program_exit().unwrap() == Some(ProcessExit::Code(7)));
        assert_eq!(tree.wait(Some(MOMENT)).unwrap(), None, "{containment}");
        std::fs::write(release, "").unwrap();
        assert_eq!(tree.wait(Some(PATIENCE)).unwrap().unwrap().exit, ProcessExit::Code(7), "{containment}");
    }
}

#[test]
fn escapees_are_members_again_after_the_supervisor_was_killed() {
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
fn escapees_are_members_again_even_if_their_empty_group_was_removed() {
    if !is_root() {
        return;
    }
    let run = TestRun::new();
    let elsewhere = OtherCgroup::new(&run);
    let script = elsewhere.script("ignore term; leave ELSEWHERE; FOREVER");
    let (process, record) = start_tree(&run, Containment::Cgroup, "held", &script);
    run.wait_until_sleeping(1);
    kill(process);
    // A service manager removes empty groups below a service that has failed.
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
fn escapees_of_a_tree_that_dies_with_its_supervisor_end_after_kill_9() {
    for containment in containments_with_groups() {
        let run = TestRun::new();
        let elsewhere = OtherCgroup::new(&run);
        let script = "fork 2 [ leave ELSEWHERE; ignore term; FOREVER ]; FOREVER";
        let (process, record) = start_tree(&run, containment, "dies", &elsewhere.script(script));
        run.wait_until_sleeping(3);
        kill(process);
        run.wait_until_gone(&record);
    }
}

#[test]
fn dropping_the_handle_kills_the_escapees_of_a_tree_that_dies_with_its_supervisor() {
    for containment in containments_with_groups() {
        let supervisor = supervisor(containment);
        let run = TestRun::new();
        let elsewhere = OtherCgroup::new(&run);
        let spec = run.spec(&elsewhere.script("fork 1 [ leave ELSEWHERE; ignore term; FOREVER ]; FOREVER"));
        let spec = spec.lifetime(TreeLifetime::DiesWithSupervisor);
        drop(supervisor.spawn(run.id.clone(), spec).unwrap_or_else(|error| panic!("{error}")));
        wait_until("the end of all members", || run.survivors().is_empty());
    }
}

/// A zombie that an outside tracer doesn't let be reaped counts as ended, so the tree needn't wait for its
/// keeper.
#[test]
fn a_tracer_of_a_member_can_not_keep_a_tree_with_a_keeper_from_ending() {
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
    wait_until("the tracer", || std::fs::read_to_string(&status).unwrap().contains(&traced));
    let stopped = supervisor.stop(&mut tree, StopLadder::polite(MOMENT)).unwrap();
    assert_eq!(stopped.ended.exit, ProcessExit::Unknown);
    tracer.kill().unwrap();
    tracer.wait().unwrap();
    run.assert_none_left();
}
