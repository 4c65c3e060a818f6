//! The escape suite: every way to escape, tried in every containment that claims to prevent it (S6.2, S6.2b).

use std::process::Command;
use std::time::{Duration, Instant};

use ward_process::{Containment, EndedBy, EscapeePolicy, StopLadder, StopSignal, TreeLifetime};

use crate::harness::{
    PATIENCE, TestRun, containments, fake_child, holding_containments, is_root, supervisor, wait_until,
};

/// Grace for programs that ignore polite signals anyway.
const GRACE: Duration = Duration::from_millis(300);

/// Runs a script until `members` processes have arrived, stops the tree, and checks that no process is left.
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
fn a_double_forked_daemon_is_stopped_after_its_parent_exited() {
    check("daemon [ FOREVER ]; exit 0", 1, TERM);
}

#[test]
fn daemons_that_ignore_sigterm_are_killed() {
    check("fork 4 [ daemon [ ignore term; FOREVER ] ]; FOREVER", 5, KILL);
}

/// The kernel shows such a process as a zombie.
#[test]
fn a_program_whose_first_thread_has_ended_is_killed() {
    let policies = [EscapeePolicy::LetGo, EscapeePolicy::Held];
    for (containment, escapees) in holding_containments()
        .into_iter()
        .flat_map(|containment| policies.map(|policy| (containment, policy)))
    {
        let (supervisor, run, folder) =
            (supervisor(containment), TestRun::new(), tempfile::tempdir().unwrap());
        let ready = folder.path().join("ready");
        let script = format!("ignore term; end-first-thread; touch {}; FOREVER", ready.display());
        let mut tree = supervisor.spawn(run.id.clone(), run.spec(&script).escapees(escapees)).unwrap();
        wait_until("the second thread", || ready.exists());
        assert_eq!(run.survivors().len(), 1, "{containment}");
        assert_eq!(tree.processes(), run.survivors(), "{containment}");
        supervisor.stop(&mut tree, StopLadder::polite(GRACE)).unwrap();
        run.assert_none_left();
    }
}

#[test]
fn members_in_new_sessions_and_process_groups_are_killed() {
    check("fork 3 [ setsid; ignore term; FOREVER ]; fork 3 [ setpgid; FOREVER ]; FOREVER", 7, KILL);
}

#[test]
fn members_with_another_name_and_without_descriptors_are_stopped() {
    check("fork 2 [ setsid; rename systemd; close; FOREVER ]; rename init; close; FOREVER", 3, TERM);
}

#[test]
fn an_exec_chain_stays_in_the_tree() {
    check("fork 2 [ exec 20 setsid; exec 5 FOREVER ]; exec 10 FOREVER", 3, TERM);
}

#[test]
fn orphans_of_orphans_stay_in_the_tree() {
    check("fork 2 [ fork 2 [ fork 2 [ FOREVER ]; exit 0 ]; exit 0 ]; exit 0", 8, TERM);
}

#[test]
fn a_stopped_tree_acts_on_the_polite_signal() {
    check("fork 3 [ arrive; stop; FOREVER ]; arrive; stop; FOREVER", 4, TERM);
}

#[test]
fn a_stopped_tree_that_ignores_signals_is_killed() {
    check("ignore term; fork 3 [ setsid; arrive; stop; FOREVER ]; arrive; stop; FOREVER", 4, KILL);
}

#[test]
fn heavy_a_tree_of_a_thousand_processes_is_killed_completely() {
    check("tree 9 [ setsid; ignore term; FOREVER ]", 512, KILL);
}

#[test]
fn heavy_children_that_fork_while_being_killed_are_killed() {
    for containment in holding_containments() {
        let supervisor = supervisor(containment);
        let run = TestRun::new();
        let mut tree = run.spawn(&supervisor, "bomb 150; FOREVER");
        wait_until("30 forks", || run.survivors().len() >= 30);
        supervisor.stop(&mut tree, StopLadder::force()).unwrap();
        run.assert_none_left();
    }
}

#[test]
fn a_program_that_kills_its_keeper_is_killed_too() {
    for containment in holding_containments() {
        let supervisor = supervisor(containment);
        let run = TestRun::new();
        let directory = tempfile::tempdir().unwrap();
        let release = directory.path().join("release");
        let daemons = "fork 2 [ daemon [ ignore term; FOREVER ] ]";
        let script = format!("{daemons}; arrive; await {}; kill-parent; FOREVER", release.display());
        let spec = run.spec(&script).lifetime(TreeLifetime::DiesWithSupervisor);
        let mut tree = supervisor.spawn(run.id.clone(), spec).unwrap();
        run.wait_until_sleeping(3);
        std::fs::write(release, "").unwrap();
        if containment != Containment::PidNamespace {
            // Programs of the keeper's user, or of root, can kill the keeper. The supervisor then kills the
            // tree.
            assert!(tree.wait(Some(PATIENCE)).unwrap().is_some(), "{containment}");
        } else {
            // The init of a PID namespace can't be killed from inside.
            assert_eq!(tree.wait(Some(Duration::from_millis(500))).unwrap(), None);
            supervisor.stop(&mut tree, StopLadder::force()).unwrap();
        }
        run.assert_none_left();
    }
}

#[test]
fn a_program_that_stops_its_keeper_is_killed() {
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
fn a_program_that_stops_its_keeper_at_once_does_not_block_the_spawn() {
    for containment in holding_containments() {
        let supervisor = supervisor(containment);
        for _ in 0..20 {
            let run = TestRun::new();
            let spec = run.spec("stop-parent; FOREVER").lifetime(TreeLifetime::DiesWithSupervisor);
            let mut tree = supervisor.spawn(run.id.clone(), spec).unwrap();
            supervisor.stop(&mut tree, StopLadder::force()).unwrap();
            run.assert_none_left();
        }
    }
}

#[test]
fn a_member_with_an_empty_environment_is_still_a_member() {
    check("fork 2 [ daemon [ forget [ ignore term; FOREVER ] ] ]; FOREVER", 3, KILL);
}

#[test]
fn a_process_group_reports_that_it_is_escapable() {
    for containment in containments() {
        let escapable = matches!(containment, Containment::ProcessGroup | Containment::Subreaper);
        assert_eq!(containment.is_escapable(), escapable);
    }
    // A member in a new session really escapes from a process group.
    let supervisor = supervisor(Containment::ProcessGroup);
    let run = TestRun::new();
    let mut tree = run.spawn(&supervisor, "fork 1 [ setsid; FOREVER ]; FOREVER");
    run.wait_until_sleeping(2);
    supervisor.stop(&mut tree, StopLadder::force()).unwrap();
    assert_eq!(run.survivors().len(), 1);
}

#[test]
fn a_polite_signal_reaches_nested_cgroups() {
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
fn members_that_appear_during_the_signalling_are_signalled_too() {
    for containment in holding_containments() {
        let supervisor = supervisor(containment);
        for _ in 0..5 {
            let run = TestRun::new();
            let directory = tempfile::tempdir().unwrap();
            let started = directory.path().join("started");
            // The number of hops is bounded, so that a failing test doesn't fork forever.
            let script = format!("touch {}; hop 1500; FOREVER", started.display());
            let mut tree = run.spawn(&supervisor, &script);
            wait_until("the start of the hops", || started.exists());
            let stopped = supervisor.stop(&mut tree, StopLadder::polite(PATIENCE)).unwrap();
            assert_eq!(stopped.ended_by, EndedBy::Rung(0), "{containment}: {stopped:?}");
            run.assert_none_left();
        }
    }
}

#[test]
fn a_signal_after_the_end_of_the_tree_does_nothing() {
    for containment in containments() {
        let run = TestRun::new();
        let mut tree = run.spawn(&supervisor(containment), "exit 0");
        tree.wait(Some(PATIENCE)).unwrap().unwrap();
        tree.signal(StopSignal::Interrupt);
        tree.kill();
        assert_eq!(tree.processes(), Vec::<i32>::new());
    }
}

/// Returns true if a process may trace another process of the same user that it has not started. See
/// `ptrace(2)` on `ptrace_scope`.
pub(crate) fn tracing_is_open() -> bool {
    let scope = std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").unwrap_or_default();
    matches!(scope.trim(), "" | "0") || (is_root() && scope.trim() != "3")
}

/// A tracer that never waits keeps its tracee a zombie, which must not keep the tree from ending.
#[test]
fn a_tracer_outside_that_never_waits_can_not_keep_a_tree_from_ending() {
    if !tracing_is_open() {
        return;
    }
    for containment in containments() {
        let supervisor = supervisor(containment);
        let run = TestRun::new();
        let mut tree = run.spawn(&supervisor, "FOREVER");
        run.wait_until_sleeping(1);
        let root = tree.record().root.expect("the root runs").pid;
        let script = format!("trace {root}; sleep 600000");
        let mut tracer = Command::new(fake_child()).arg(script).spawn().unwrap();
        let mut refused = false;
        wait_until("the tracer", || {
            refused = tracer.try_wait().unwrap().is_some();
            let status = std::fs::read_to_string(format!("/proc/{root}/status")).unwrap();
            refused || status.contains(&format!("TracerPid:\t{}\n", tracer.id()))
        });
        // The root is a keeper here, and an ordinary user can't trace a keeper.
        let root_is_keeper = matches!(containment, Containment::PidNamespace | Containment::Subreaper);
        assert!(!refused || root_is_keeper, "{containment}");
        let started = Instant::now();
        let stopped = supervisor.stop(&mut tree, StopLadder::polite(GRACE));
        let stopped = stopped.unwrap_or_else(|error| panic!("{containment}: {error:?}"));
        assert!(started.elapsed() < PATIENCE, "{containment}: {stopped:?}");
        let _ = tracer.kill();
        tracer.wait().unwrap();
        run.assert_none_left();
    }
}
