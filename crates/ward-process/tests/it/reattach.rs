//! Trees whose supervisor was killed are found again beyond doubt, or said to be gone (S5.2, S9.1).

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use ward_process::{Containment, Exit, Ladder, ReattachError, TreeRecord};

use crate::harness::{
    PATIENCE, Run, containments, fake_child, fake_supervisor, holding_containments, supervisor, wait_until,
};

/// Starts a supervisor in a process of its own, with the tree of `run`.
fn start_elsewhere(run: &Run, containment: Containment, lifetime: &str, script: &str) -> (Child, TreeRecord) {
    let mut process = Command::new(fake_supervisor())
        .args([&format!("{containment:?}"), lifetime, run.id.as_str()])
        .arg(fake_child())
        .arg(run.script(script))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let fields: Vec<&str> = line.split_whitespace().collect();
    let record = TreeRecord {
        id: run.id.clone(),
        containment,
        pid: fields[0].parse().unwrap(),
        start_time: fields[1].parse().unwrap(),
        boot: fields[2].to_owned(),
        cgroup: fields[3].parse().ok().filter(|inode| *inode != 0),
    };
    (process, record)
}

fn kill(mut process: Child) {
    process.kill().unwrap();
    process.wait().unwrap();
}

#[test]
fn a_tree_outlives_its_killed_supervisor_and_is_taken_back_whole() {
    for containment in containments() {
        let run = Run::new();
        let script = "ignore term; fork 3 [ FOREVER ]; FOREVER";
        let (process, record) = start_elsewhere(&run, containment, "independent", script);
        run.await_arrivals(4);
        kill(process);
        assert_eq!(run.arrived(), 4, "{containment}");
        let kept = serde_json::to_string(&record).unwrap();
        let record: TreeRecord = serde_json::from_str(&kept).unwrap();
        let supervisor = supervisor(containment);
        let mut tree = supervisor.reattach(&record).unwrap();
        assert_eq!(tree.record(), record);
        assert_eq!(tree.wait(Some(Duration::from_millis(50))).unwrap(), None);
        let stopped = supervisor.stop(&mut tree, Ladder::polite(Duration::from_millis(100))).unwrap();
        assert_eq!(stopped.ended.exit, Exit::Unknown, "only a parent is told");
        run.assert_none_left();
        assert!(matches!(supervisor.reattach(&record), Err(ReattachError::Gone(_))), "{containment}");
    }
}

#[test]
fn a_tree_that_ended_alone_is_gone_and_its_end_is_noticed() {
    for containment in containments() {
        let supervisor = supervisor(containment);
        let run = Run::new();
        let (process, record) = start_elsewhere(&run, containment, "independent", "sleep 300");
        kill(process);
        match supervisor.reattach(&record) {
            Ok(mut tree) => assert!(tree.wait(Some(PATIENCE)).unwrap().is_some(), "{containment}"),
            Err(ReattachError::Gone(_)) => {}
            Err(error) => panic!("{containment}: {error}"),
        }
    }
}

#[test]
fn another_process_with_the_same_number_is_never_taken_for_ours() {
    for containment in containments() {
        let supervisor = supervisor(containment);
        let run = Run::new();
        let bystander = Run::new();
        let mut other = bystander.spawn(&supervisor, "FOREVER");
        let real = other.record();
        // A number that was given again, an earlier boot, a group that was made again.
        let mut forgeries = vec![
            TreeRecord { start_time: real.start_time - 1, id: run.id.clone(), ..real.clone() },
            TreeRecord { boot: "another".into(), ..real.clone() },
        ];
        if containment == Containment::Cgroup {
            forgeries.push(TreeRecord { cgroup: Some(1), ..real.clone() });
        }
        for forged in forgeries {
            let result = supervisor.reattach(&forged);
            assert!(matches!(result, Err(ReattachError::Gone(_))), "{containment}: {result:?}");
        }
        bystander.await_arrivals(1);
        assert_eq!(bystander.arrived(), 1, "{containment}: nobody was touched");
        supervisor.stop(&mut other, Ladder::force()).unwrap();
    }
}

#[test]
fn a_tree_known_only_by_its_name_is_found() {
    for containment in holding_containments() {
        let supervisor = supervisor(containment);
        let run = Run::new();
        assert_eq!(supervisor.find(&run.id).unwrap(), None);
        let (process, record) =
            start_elsewhere(&run, containment, "independent", "fork 2 [ setsid; FOREVER ]; FOREVER");
        run.await_arrivals(3);
        kill(process);
        assert_eq!(supervisor.find(&run.id).unwrap(), Some(record.clone()), "{containment}");
        let mut tree = supervisor.reattach(&record).unwrap();
        supervisor.stop(&mut tree, Ladder::force()).unwrap();
        run.assert_none_left();
    }
}

#[test]
fn what_was_to_die_with_its_supervisor_does_so_even_after_kill_9() {
    for containment in holding_containments() {
        let run = Run::new();
        let script = "ignore term; fork 2 [ daemon [ FOREVER ] ]; FOREVER";
        let (process, _) = start_elsewhere(&run, containment, "dies", script);
        run.await_arrivals(3);
        kill(process);
        wait_until("end without the supervisor", || run.survivors().is_empty());
    }
}

#[test]
fn a_tree_is_not_taken_back_by_a_supervisor_of_another_kind() {
    let run = Run::new();
    let all = containments();
    let mut tree = run.spawn(&supervisor(all[0]), "FOREVER");
    let result = supervisor(all[1]).reattach(&tree.record());
    assert!(matches!(result, Err(ReattachError::OtherContainment { .. })));
    supervisor(all[0]).stop(&mut tree, Ladder::force()).unwrap();
}
