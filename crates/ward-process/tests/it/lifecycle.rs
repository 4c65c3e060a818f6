//! The life of a tree: waiting, exits, the stop ladder, dropped handles, freezing and cleanup.

use std::time::{Duration, Instant};

use std::os::unix::fs::{MetadataExt, PermissionsExt};

use ward_process::{
    Containment, EndedBy, OutputTarget, ProcessExit, ProcessSpec, RungOutcome, RungPatience, SpawnError,
    StopAction, StopCommand, StopLadder, StopRung, Supervisor, TreeLifetime, UserIdentity,
};

use crate::harness::{
    PATIENCE, TestRun, containments, context_switches, fake_child, holding_containments, is_root, supervisor,
    wait_until, zombies,
};

fn run_to_exit(supervisor: &Supervisor, script: &str) -> ProcessExit {
    let run = TestRun::new();
    let mut tree = run.spawn(supervisor, script);
    tree.wait(Some(PATIENCE)).unwrap().expect("the tree ends").exit
}

#[test]
fn exit_codes_and_signals_are_reported_in_every_containment() {
    for containment in containments() {
        let supervisor = supervisor(containment);
        assert_eq!(run_to_exit(&supervisor, "exit 0"), ProcessExit::Code(0), "{containment}");
        assert_eq!(run_to_exit(&supervisor, "exit 42"), ProcessExit::Code(42), "{containment}");
        let run = TestRun::new();
        let mut tree = run.spawn(&supervisor, "FOREVER");
        run.wait_until_sleeping(1);
        tree.signal(ward_process::StopSignal::Terminate);
        let ended = tree.wait(Some(PATIENCE)).unwrap().unwrap();
        assert_eq!(ended.exit, ProcessExit::Signal(15), "{containment}");
        assert!(ended.usage.max_resident_bytes > 0, "{containment}");
    }
}

#[test]
fn a_tree_ends_with_its_last_member_and_not_with_its_first() {
    for containment in holding_containments() {
        let run = TestRun::new();
        let directory = tempfile::tempdir().unwrap();
        let release = directory.path().join("release");
        let script = format!("fork 1 [ setsid; await {} ]; exit 7", release.display());
        let mut tree = run.spawn(&supervisor(containment), &script);
        // A tree with a keeper has a descriptor that becomes readable at the exit of the program.
        if let Some(exit_fd) = tree.program_exit_fd() {
            let mut fds = [rustix::event::PollFd::from_borrowed_fd(exit_fd, rustix::event::PollFlags::IN)];
            let timeout = rustix::event::Timespec::try_from(PATIENCE).unwrap();
            assert_eq!(rustix::event::poll(&mut fds, Some(&timeout)).unwrap(), 1, "{containment}");
        }
        wait_until("the exit of the program", || tree.program_exit().unwrap().is_some());
        assert_eq!(tree.program_exit().unwrap(), Some(ProcessExit::Code(7)));
        assert_eq!(tree.poll_ended().unwrap(), None, "{containment}: a child is still alive");
        std::fs::write(&release, "").unwrap();
        assert_eq!(tree.wait(Some(PATIENCE)).unwrap().unwrap().exit, ProcessExit::Code(7));
    }
}

#[test]
fn in_a_process_group_the_other_members_end_with_the_leader() {
    let run = TestRun::new();
    let directory = tempfile::tempdir().unwrap();
    let release = directory.path().join("release");
    let script = format!("fork 2 [ FOREVER ]; await {}; exit 3", release.display());
    let mut tree = run.spawn(&supervisor(Containment::ProcessGroup), &script);
    run.wait_until_sleeping(2);
    std::fs::write(release, "").unwrap();
    assert_eq!(tree.wait(Some(PATIENCE)).unwrap().unwrap().exit, ProcessExit::Code(3));
    run.assert_none_left();
}

#[test]
fn in_a_process_group_the_members_end_also_if_the_leader_ends_during_a_poll() {
    for _ in 0..100 {
        let run = TestRun::new();
        let mut tree = run.spawn(&supervisor(Containment::ProcessGroup), "fork 1 [ FOREVER ]; exit 3");
        // Without a pause, so that the leader often ends while it is looked at.
        let deadline = Instant::now() + PATIENCE;
        while tree.poll_ended().unwrap().is_none() {
            assert!(Instant::now() < deadline, "a member outlives its leader");
        }
        run.assert_none_left();
    }
}

#[test]
fn no_zombie_is_left() {
    for containment in containments() {
        let supervisor = supervisor(containment);
        for _ in 0..20 {
            run_to_exit(&supervisor, "fork 3 [ exit 1 ]; exit 0");
        }
        assert_eq!(zombies(), Vec::<String>::new(), "{containment}");
    }
}

#[test]
fn members_created_with_clone_parent_are_reaped_with_their_tree() {
    for containment in containments() {
        let run = TestRun::new();
        let mut tree = run.spawn(&supervisor(containment), "stray 50; exit 0");
        tree.wait(Some(PATIENCE)).unwrap().unwrap();
        assert_eq!(zombies(), Vec::<String>::new(), "{containment}");
    }
}

#[test]
fn a_dropped_tree_leaves_neither_a_zombie_nor_a_group_for_long() {
    for containment in containments() {
        let supervisor = supervisor(containment);
        let run = TestRun::new();
        drop(run.spawn(&supervisor, "sleep 50; exit 0"));
        // Every spawn reaps and removes what dropped handles left behind.
        wait_until("the removal of zombies and cgroups", || {
            run_to_exit(&supervisor, "exit 0");
            zombies().is_empty() && !run.group().exists()
        });
    }
}

#[test]
fn a_name_is_free_again_when_its_tree_has_ended() {
    for containment in containments() {
        let supervisor = supervisor(containment);
        let run = TestRun::new();
        for _ in 0..20 {
            let mut tree = run.spawn(&supervisor, "exit 0");
            while tree.poll_ended().unwrap().is_none() {
                std::thread::yield_now();
            }
        }
    }
}

#[test]
fn the_stop_report_says_which_rung_worked() {
    for containment in containments() {
        let supervisor = supervisor(containment);
        let directory = tempfile::tempdir().unwrap();
        let release = directory.path().join("release");
        let ask = StopCommand {
            program: fake_child(),
            args: vec![format!("touch {}", release.display()).into()],
            env: vec![],
        };
        // The longest valid tree name, used twice: the stop command must run each time.
        let mut run = TestRun::new();
        run.id = format!("{:x<100}", run.id.as_str()).parse().unwrap();
        for _ in 0..2 {
            let script = format!("ignore term; arrive; await {}; exit 0; FOREVER", release.display());
            let mut tree = run.spawn(&supervisor, &script);
            run.wait_until_sleeping(1);
            let missing = StopCommand { program: "/nonexistent/quit".into(), ..ask.clone() };
            let mut ladder = StopLadder::polite(Duration::from_millis(50)).after_command(missing, PATIENCE);
            let patience = RungPatience::Fixed(PATIENCE);
            ladder.rungs.push(StopRung { action: StopAction::Run(ask.clone()), patience });
            let stopped = supervisor.stop(&mut tree, ladder).unwrap();
            assert_eq!(stopped.ended_by, EndedBy::Rung(2), "{containment}");
            assert_eq!(stopped.ended.exit, ProcessExit::Code(0), "{containment}");
            let [RungOutcome::NotStarted { reason }, RungOutcome::NoEffect, RungOutcome::Worked] =
                stopped.rungs.as_slice()
            else {
                panic!("{containment}: {:?}", stopped.rungs);
            };
            assert!(reason.contains("/nonexistent/quit"), "{reason}");
            assert!(stopped.elapsed >= Duration::from_millis(50), "the signal rung was cut short");
            assert_eq!(zombies(), Vec::<String>::new(), "{containment}: the command was not reaped");
            std::fs::remove_file(&release).unwrap();
        }
    }
}

#[test]
fn a_tree_that_ignores_every_rung_is_killed_and_so_is_a_hanging_stop_command() {
    for containment in containments() {
        let supervisor = supervisor(containment);
        let hanging = TestRun::new();
        let args = vec![hanging.script("ignore term; FOREVER").into()];
        let ask = StopCommand { program: fake_child(), args, env: vec![] };
        let run = TestRun::new();
        let mut tree = run.spawn(&supervisor, "ignore term; FOREVER");
        run.wait_until_sleeping(1);
        let ladder =
            StopLadder::polite(Duration::from_millis(50)).after_command(ask, Duration::from_millis(200));
        let stopped = supervisor.stop(&mut tree, ladder).unwrap();
        assert_eq!(stopped.ended_by, EndedBy::Kill);
        assert_eq!(stopped.rungs, [RungOutcome::NoEffect, RungOutcome::NoEffect]);
        assert_eq!(stopped.ended.exit, ProcessExit::Signal(9));
        assert!(stopped.elapsed >= Duration::from_millis(250), "a rung was cut short");
        hanging.assert_none_left();
        assert_eq!(zombies(), Vec::<String>::new(), "{containment}");
    }
}

#[test]
fn a_stop_command_has_no_more_rights_than_its_tree() {
    // Only root can start programs as another user.
    for containment in containments().into_iter().filter(|_| is_root()) {
        let directory = tempfile::tempdir().unwrap();
        std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
        let proof = directory.path().join("asked");
        let ask =
            StopCommand { program: "/usr/bin/touch".into(), args: vec![proof.clone().into()], env: vec![] };
        let supervisor = supervisor(containment);
        let run = TestRun::new();
        let script = format!("until [ -e {} ]; do sleep 0.02; done", proof.display());
        let spec = ProcessSpec::new("/bin/sh").args(["-c", &script]).env("PATH", "/usr/bin:/bin");
        let spec = spec.identity(UserIdentity::new(65_534, 65_534, &[]));
        let tree = supervisor.spawn(run.id.clone(), spec).unwrap();
        // The same holds after a restart, because the record contains the user.
        let mut tree = supervisor.reattach(&tree.record()).unwrap();
        let stopped = supervisor.stop(&mut tree, StopLadder::force().after_command(ask, PATIENCE)).unwrap();
        assert_eq!(stopped.ended_by, EndedBy::Rung(0), "{containment}");
        assert_eq!(std::fs::metadata(&proof).unwrap().uid(), 65_534, "{containment}");
    }
}

#[test]
fn stopping_a_tree_that_has_ended_reports_that_it_ended_by_itself() {
    for containment in containments() {
        let supervisor = supervisor(containment);
        let run = TestRun::new();
        let mut tree = run.spawn(&supervisor, "exit 5");
        tree.wait(Some(PATIENCE)).unwrap().unwrap();
        let stopped = supervisor.stop(&mut tree, StopLadder::force()).unwrap();
        assert_eq!((stopped.ended_by, stopped.ended.exit), (EndedBy::Itself, ProcessExit::Code(5)));
    }
}

#[test]
fn heavy_waiting_causes_no_wake_ups() {
    for containment in containments() {
        let run = TestRun::new();
        let mut tree = run.spawn(&supervisor(containment), "FOREVER");
        run.wait_until_sleeping(1);
        let waiter = std::thread::spawn(move || {
            let before = context_switches();
            tree.wait(Some(Duration::from_millis(1_500))).unwrap();
            context_switches() - before
        });
        let switches = waiter.join().unwrap();
        // One switch to fall asleep and one at the end of the wait; the rest is tolerance for a busy machine.
        assert!(switches <= 3, "{containment}: {switches} switches in 1.5 s");
    }
}

#[test]
fn dropping_a_handle_kills_only_a_tree_that_dies_with_its_supervisor() {
    for containment in holding_containments() {
        let supervisor = supervisor(containment);
        let mortal = TestRun::new();
        let spec = mortal.spec("fork 2 [ setsid; ignore term; FOREVER ]; FOREVER");
        let tree =
            supervisor.spawn(mortal.id.clone(), spec.lifetime(TreeLifetime::DiesWithSupervisor)).unwrap();
        mortal.wait_until_sleeping(3);
        drop(tree);
        wait_until("the end of all members", || mortal.survivors().is_empty());

        let independent = TestRun::new();
        let tree = independent.spawn(&supervisor, "FOREVER");
        independent.wait_until_sleeping(1);
        let record = tree.record();
        drop(tree);
        let mut tree = supervisor.reattach(&record).unwrap();
        supervisor.stop(&mut tree, StopLadder::force()).unwrap();
        independent.assert_none_left();
    }
}

#[test]
fn a_process_group_can_not_be_made_to_die_with_its_supervisor() {
    let run = TestRun::new();
    let spec = run.spec("FOREVER").lifetime(TreeLifetime::DiesWithSupervisor);
    let error = supervisor(Containment::ProcessGroup).spawn(run.id.clone(), spec).unwrap_err();
    assert!(matches!(error, SpawnError::CannotDieWithSupervisor(Containment::ProcessGroup)));
}

#[test]
fn only_a_cgroup_can_be_frozen_and_other_containments_return_an_error() {
    for containment in containments() {
        let run = TestRun::new();
        let supervisor = supervisor(containment);
        let directory = tempfile::tempdir().unwrap();
        let (release, proof) = (directory.path().join("release"), directory.path().join("proof"));
        let script = format!("arrive; await {}; touch {}; FOREVER", release.display(), proof.display());
        let mut tree = run.spawn(&supervisor, &script);
        run.wait_until_sleeping(1);
        if containment == Containment::Cgroup {
            tree.freeze().unwrap();
            let events = run.group().join("cgroup.events");
            wait_until("the frozen state", || std::fs::read_to_string(&events).unwrap().contains("frozen 1"));
            std::fs::write(&release, "").unwrap();
            let before = processor_time();
            assert_eq!(tree.wait(Some(Duration::from_millis(600))).unwrap(), None);
            let used = processor_time() - before;
            assert!(used < Duration::from_millis(200), "waiting for a frozen tree spins: {used:?}");
            assert!(!proof.exists(), "a frozen program ran");
            tree.thaw().unwrap();
            wait_until("the thawed program", || proof.exists());
            tree.freeze().unwrap();
        } else {
            assert_eq!(tree.freeze().unwrap_err().kind(), std::io::ErrorKind::Unsupported);
            assert_eq!(tree.thaw().unwrap_err().kind(), std::io::ErrorKind::Unsupported);
        }
        // A frozen tree can be killed too.
        supervisor.stop(&mut tree, StopLadder::force()).unwrap();
    }
}

#[test]
fn heavy_trees_that_start_and_stop_in_turn_are_not_mixed_up() {
    for containment in containments() {
        let supervisor = supervisor(containment);
        for round in 0..100 {
            let run = TestRun::new();
            let code = round % 120;
            let mut tree = run.spawn(&supervisor, &format!("exit {code}"));
            let stopping = TestRun::new();
            let mut stubborn = stopping.spawn(&supervisor, "FOREVER");
            let stopped = supervisor.stop(&mut stubborn, StopLadder::force()).unwrap();
            assert_eq!(stopped.ended.exit, ProcessExit::Signal(9), "{containment}");
            let ended = tree.wait(Some(PATIENCE)).unwrap().unwrap();
            assert_eq!(ended.exit, ProcessExit::Code(code), "{containment}");
        }
    }
}

#[test]
fn a_second_tree_of_the_same_name_is_refused_only_with_cgroups() {
    for containment in containments() {
        let supervisor = supervisor(containment);
        let run = TestRun::new();
        let mut tree = run.spawn(&supervisor, "FOREVER");
        run.wait_until_sleeping(1);
        let second = supervisor.spawn(run.id.clone(), run.spec("FOREVER"));
        match second {
            Err(error) => {
                assert!(matches!(error, SpawnError::Cgroup { .. }), "{containment}: {error}");
                assert_eq!(containment, Containment::Cgroup);
            }
            Ok(mut second) => {
                assert_ne!(containment, Containment::Cgroup);
                supervisor.stop(&mut second, StopLadder::force()).unwrap();
            }
        }
        assert_eq!(tree.poll_ended().unwrap(), None, "{containment}: the first tree ended");
        supervisor.stop(&mut tree, StopLadder::force()).unwrap();
    }
}

/// Returns the processor time of this thread.
fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.try_into().unwrap()
}

#[test]
fn a_wait_returns_at_its_limit_while_the_tree_runs() {
    let run = TestRun::new();
    let supervisor = Supervisor::new().unwrap();
    let mut tree = supervisor
        .spawn(run.id.clone(), run.spec("FOREVER").stdout(OutputTarget::Capture { limit: 10 }))
        .unwrap();
    let start = Instant::now();
    assert_eq!(tree.wait(Some(Duration::from_millis(100))).unwrap(), None);
    assert!(start.elapsed() >= Duration::from_millis(100));
    supervisor.stop(&mut tree, StopLadder::force()).unwrap();
}
