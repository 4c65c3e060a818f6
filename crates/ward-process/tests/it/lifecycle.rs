//! Waiting, exits, ladders, and what becomes of a tree without its supervisor.

use std::time::{Duration, Instant};

use ward_process::{
    Containment, EndedBy, Exit, Ladder, Lifetime, Order, Output, SpawnError, StopCommand, Supervisor,
};

use crate::harness::{PATIENCE, Run, containments, fake_child, holding_containments, supervisor, wait_until};

fn end_of(supervisor: &Supervisor, script: &str) -> Exit {
    let run = Run::new();
    let mut tree = run.spawn(supervisor, script);
    tree.wait(Some(PATIENCE)).unwrap().expect("the tree ends").exit
}

#[test]
fn exit_codes_and_signals_are_told_in_every_containment() {
    for containment in containments() {
        let supervisor = supervisor(containment);
        assert_eq!(end_of(&supervisor, "exit 0"), Exit::Code(0), "{containment}");
        assert_eq!(end_of(&supervisor, "exit 42"), Exit::Code(42), "{containment}");
        let run = Run::new();
        let mut tree = run.spawn(&supervisor, "FOREVER");
        run.await_arrivals(1);
        tree.signal(ward_process::StopSignal::Terminate);
        let ended = tree.wait(Some(PATIENCE)).unwrap().unwrap();
        assert_eq!(ended.exit, Exit::Signal(15), "{containment}");
        assert!(ended.usage.max_resident_bytes > 0, "{containment}");
    }
}

#[test]
fn a_tree_ends_with_its_last_member_and_not_with_its_first() {
    for containment in holding_containments() {
        let run = Run::new();
        let mut tree = run.spawn(&supervisor(containment), "fork 1 [ setsid; sleep 400 ]; exit 7");
        wait_until("exit of the program", || tree.program_exit().unwrap().is_some());
        assert_eq!(tree.program_exit().unwrap(), Some(Exit::Code(7)));
        assert_eq!(tree.poll_ended().unwrap(), None, "{containment}: its child still lives");
        assert_eq!(tree.wait(Some(PATIENCE)).unwrap().unwrap().exit, Exit::Code(7));
    }
}

#[test]
fn in_a_process_group_the_rest_goes_with_the_leader() {
    let run = Run::new();
    let mut tree = run.spawn(&supervisor(Containment::ProcessGroup), "fork 2 [ FOREVER ]; sleep 200; exit 3");
    run.await_arrivals(2);
    assert_eq!(tree.wait(Some(PATIENCE)).unwrap().unwrap().exit, Exit::Code(3));
    run.assert_none_left();
}

#[test]
fn no_zombie_is_left() {
    let own = std::process::id();
    for containment in containments() {
        let supervisor = supervisor(containment);
        for _ in 0..20 {
            end_of(&supervisor, "fork 3 [ exit 1 ]; exit 0");
        }
        let children = std::fs::read_dir(format!("/proc/{own}/task"))
            .unwrap()
            .flatten()
            .map(|task| std::fs::read_to_string(task.path().join("children")).unwrap_or_default());
        assert_eq!(children.collect::<String>().trim(), "", "{containment}");
    }
}

#[test]
fn the_ladder_tells_which_rung_worked() {
    let supervisor = Supervisor::new().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let proof = directory.path().join("asked");
    let ask = StopCommand {
        program: fake_child(),
        args: vec![format!("touch {}", proof.display()).into()],
        env: vec![],
    };
    let run = Run::new();
    let mut tree = run.spawn(&supervisor, "ignore term; FOREVER");
    run.await_arrivals(1);
    let ladder = Ladder::polite(Duration::from_millis(100)).after_command(ask, Duration::from_millis(500));
    let stopped = supervisor.stop(&mut tree, ladder).unwrap();
    assert!(proof.exists(), "the program's own command was run first");
    assert_eq!(stopped.ended_by, EndedBy::Kill);
    assert!(stopped.elapsed >= Duration::from_millis(600), "each rung had its patience");
    assert_eq!(stopped.ended.exit, Exit::Signal(9));
}

#[test]
fn a_stop_command_that_hangs_or_is_missing_costs_only_its_patience() {
    let supervisor = Supervisor::new().unwrap();
    let hanging = Run::new();
    for program in [fake_child(), "/nonexistent/quit".into()] {
        let args = vec![hanging.script("ignore term; FOREVER").into()];
        let ask = StopCommand { program, args, env: vec![] };
        let run = Run::new();
        let mut tree = run.spawn(&supervisor, "FOREVER");
        run.await_arrivals(1);
        let ladder = Ladder::force().after_command(ask, Duration::from_millis(200));
        assert_eq!(supervisor.stop(&mut tree, ladder).unwrap().ended_by, EndedBy::Kill);
        wait_until("end of the stop command", || hanging.survivors().is_empty());
    }
}

#[test]
fn stopping_what_has_ended_by_itself_credits_nobody() {
    for containment in containments() {
        let supervisor = supervisor(containment);
        let run = Run::new();
        let mut tree = run.spawn(&supervisor, "exit 5");
        tree.wait(Some(PATIENCE)).unwrap().unwrap();
        let stopped = supervisor.stop(&mut tree, Ladder::force()).unwrap();
        assert_eq!((stopped.ended_by, stopped.ended.exit), (EndedBy::Itself, Exit::Code(5)));
    }
}

#[test]
fn waiting_wakes_nobody() {
    for containment in containments() {
        let run = Run::new();
        let mut tree = run.spawn(&supervisor(containment), "FOREVER");
        run.await_arrivals(1);
        let waiter = std::thread::spawn(move || {
            let before = context_switches();
            tree.wait(Some(Duration::from_millis(1_500))).unwrap();
            context_switches() - before
        });
        let switches = waiter.join().unwrap();
        // One to fall asleep, one for the end of the wait; the rest is somebody else's turn.
        assert!(switches <= 3, "{containment}: {switches} switches in 1.5 s");
    }
}

/// Voluntary ones: each is a sleep that something ended.
fn context_switches() -> u64 {
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    line.unwrap().trim().parse().unwrap()
}

#[test]
fn a_drop_ends_what_was_to_die_with_us_and_nothing_else() {
    for containment in holding_containments() {
        let supervisor = supervisor(containment);
        let mortal = Run::new();
        let order = mortal.order("fork 2 [ setsid; ignore term; FOREVER ]; FOREVER");
        let tree = supervisor.spawn(mortal.id.clone(), order.lifetime(Lifetime::DiesWithSupervisor)).unwrap();
        mortal.await_arrivals(3);
        drop(tree);
        wait_until("end with its handle", || mortal.survivors().is_empty());

        let independent = Run::new();
        let tree = independent.spawn(&supervisor, "FOREVER");
        independent.await_arrivals(1);
        let record = tree.record();
        drop(tree);
        let mut tree = supervisor.reattach(&record).unwrap();
        supervisor.stop(&mut tree, Ladder::force()).unwrap();
        independent.assert_none_left();
    }
}

#[test]
fn a_process_group_makes_no_promise_to_die_with_us() {
    let run = Run::new();
    let order = run.order("FOREVER").lifetime(Lifetime::DiesWithSupervisor);
    let error = supervisor(Containment::ProcessGroup).spawn(run.id.clone(), order).unwrap_err();
    assert!(matches!(error, SpawnError::NoPromise(Containment::ProcessGroup)));
}

#[test]
fn only_a_cgroup_can_be_frozen_and_the_others_say_so() {
    for containment in containments() {
        let run = Run::new();
        let supervisor = supervisor(containment);
        let mut tree = run.spawn(&supervisor, "ignore term; fork 2 [ setsid; FOREVER ]; FOREVER");
        run.await_arrivals(3);
        let frozen = tree.freeze(true);
        if containment == Containment::Cgroup {
            frozen.unwrap();
        } else {
            assert_eq!(frozen.unwrap_err().kind(), std::io::ErrorKind::Unsupported);
        }
        // Frozen or not, it can be killed.
        supervisor.stop(&mut tree, Ladder::force()).unwrap();
    }
}

#[test]
fn heavy_stop_one_and_start_the_next_and_none_is_mixed_up() {
    for containment in containments() {
        let supervisor = supervisor(containment);
        for round in 0..100 {
            let run = Run::new();
            let code = round % 120;
            let mut tree = run.spawn(&supervisor, &format!("exit {code}"));
            let stopping = Run::new();
            let mut stubborn = stopping.spawn(&supervisor, "FOREVER");
            let stopped = supervisor.stop(&mut stubborn, Ladder::force()).unwrap();
            assert_eq!(stopped.ended.exit, Exit::Signal(9), "{containment}");
            let ended = tree.wait(Some(PATIENCE)).unwrap().unwrap();
            assert_eq!(ended.exit, Exit::Code(code), "{containment}");
        }
    }
}

#[test]
fn two_trees_of_one_name_are_refused_where_the_name_holds_them() {
    if !containments().contains(&Containment::Cgroup) {
        return;
    }
    let supervisor = supervisor(Containment::Cgroup);
    let run = Run::new();
    let mut tree = run.spawn(&supervisor, "FOREVER");
    let error = supervisor.spawn(run.id.clone(), run.order("FOREVER")).unwrap_err();
    assert!(matches!(error, SpawnError::Cgroup { .. }), "{error}");
    run.await_arrivals(1);
    supervisor.stop(&mut tree, Ladder::force()).unwrap();
}

#[test]
fn a_wait_ends_on_time_when_the_tree_does_not() {
    let run = Run::new();
    let supervisor = Supervisor::new().unwrap();
    let mut tree =
        supervisor.spawn(run.id.clone(), run.order("FOREVER").stdout(Output::Capture { limit: 10 })).unwrap();
    let start = Instant::now();
    assert_eq!(tree.wait(Some(Duration::from_millis(100))).unwrap(), None);
    assert!(start.elapsed() >= Duration::from_millis(100));
    supervisor.stop(&mut tree, Ladder::force()).unwrap();
    let _ = Order::new("/bin/true");
}
