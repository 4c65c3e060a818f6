//! Trees whose supervisor was killed are taken back reliably, or reported as gone (S5.2, S9.1).

use std::os::unix::process::CommandExt;
use std::process::Child;
use std::time::Duration;

use ward_process::sandbox::{Sandbox, SandboxStrictness};
use ward_process::{
    Containment, ProcessExit, ProcessIdentity, ProcessSpec, ReattachError, SpawnError, StopLadder, TreeRecord,
};

use crate::harness::{
    PATIENCE, TestRun, containments, holding_containments, is_root, kill, start_tree, supervisor, wait_until,
};

#[test]
fn a_tree_outlives_its_killed_supervisor_and_is_reattached_whole() {
    for containment in containments() {
        let run = TestRun::new();
        let script = "ignore term; fork 3 [ FOREVER ]; FOREVER";
        let (process, record) = start_tree(&run, containment, "independent", script);
        run.wait_until_sleeping(4);
        kill(process);
        assert_eq!(run.count_sleeping(), 4, "{containment}");
        let json = serde_json::to_string(&record).unwrap();
        let record: TreeRecord = serde_json::from_str(&json).unwrap();
        let supervisor = supervisor(containment);
        let mut tree = supervisor.reattach(&record).unwrap();
        assert_eq!(tree.record(), record);
        assert_eq!(tree.wait(Some(Duration::from_millis(50))).unwrap(), None);
        let stopped = supervisor.stop(&mut tree, StopLadder::polite(Duration::from_millis(100))).unwrap();
        assert_eq!(stopped.ended.exit, ProcessExit::Unknown, "only the parent gets the status");
        run.assert_none_left();
        assert!(matches!(supervisor.reattach(&record), Err(ReattachError::Gone(_))), "{containment}");
    }
}

#[test]
fn the_end_of_a_tree_without_a_supervisor_is_detected() {
    for containment in containments() {
        let supervisor = supervisor(containment);
        let run = TestRun::new();
        let (process, record) = start_tree(&run, containment, "independent", "sleep 300");
        kill(process);
        match supervisor.reattach(&record) {
            Ok(mut tree) => assert!(tree.wait(Some(PATIENCE)).unwrap().is_some(), "{containment}"),
            Err(ReattachError::Gone(_)) => {}
            Err(error) => panic!("{containment}: {error}"),
        }
    }
}

#[test]
fn another_process_with_the_same_pid_is_not_taken_for_the_root() {
    for containment in containments() {
        let supervisor = supervisor(containment);
        let run = TestRun::new();
        let bystander = TestRun::new();
        let mut other = bystander.spawn(&supervisor, "FOREVER");
        let real = other.record();
        let root = real.root.unwrap();
        let earlier = ProcessIdentity { start_time: root.start_time - 1, ..root };
        // Records with a reused pid, of an earlier boot, and with a group that was created again.
        let mut forgeries = vec![
            TreeRecord { root: Some(earlier), id: run.id.clone(), ..real.clone() },
            TreeRecord { boot: "another".into(), ..real.clone() },
        ];
        if containment == Containment::Cgroup {
            forgeries.push(TreeRecord { cgroup: Some(1), ..real.clone() });
        }
        for forged in forgeries {
            let result = supervisor.reattach(&forged);
            assert!(matches!(result, Err(ReattachError::Gone(_))), "{containment}: {result:?}");
        }
        bystander.wait_until_sleeping(1);
        assert_eq!(bystander.count_sleeping(), 1, "{containment}: the bystander was killed");
        supervisor.stop(&mut other, StopLadder::force()).unwrap();
    }
}

#[test]
fn a_tree_known_only_by_its_name_is_found_by_its_cgroup() {
    for containment in containments() {
        let supervisor = supervisor(containment);
        let run = TestRun::new();
        if containment != Containment::Cgroup {
            assert_eq!(supervisor.find_record(&run.id).unwrap_err().kind(), std::io::ErrorKind::Unsupported);
            continue;
        }
        assert_eq!(supervisor.find_record(&run.id).unwrap(), None);
        let (process, record) =
            start_tree(&run, containment, "independent", "fork 2 [ setsid; FOREVER ]; FOREVER");
        run.wait_until_sleeping(3);
        kill(process);
        let found = supervisor.find_record(&run.id).unwrap().unwrap();
        assert_eq!(found, TreeRecord { root: None, ..record });
        let mut tree = supervisor.reattach(&found).unwrap();
        supervisor.stop(&mut tree, StopLadder::force()).unwrap();
        run.assert_none_left();
    }
}

#[test]
fn the_record_stored_before_the_start_is_enough_to_reattach() {
    for containment in containments() {
        let supervisor = supervisor(containment);
        let run = TestRun::new();
        let mut stored = None;
        let tree = supervisor
            .spawn_recorded(run.id.clone(), run.spec("fork 2 [ FOREVER ]; FOREVER"), |record| {
                assert_eq!(run.survivors(), Vec::<i32>::new(), "{containment}: the program runs already");
                stored = Some(record.clone());
                Ok(())
            })
            .unwrap();
        run.wait_until_sleeping(3);
        let stored = stored.unwrap();
        let root = stored.root.or(tree.record().root);
        assert_eq!(TreeRecord { root, ..stored.clone() }, tree.record(), "{containment}");
        drop(tree);
        let mut tree = supervisor.reattach(&stored).unwrap();
        supervisor.stop(&mut tree, StopLadder::force()).unwrap();
        run.assert_none_left();
    }
}

#[test]
fn a_program_whose_record_could_not_be_stored_never_runs() {
    for containment in containments() {
        let supervisor = supervisor(containment);
        let run = TestRun::new();
        let proof = tempfile::tempdir().unwrap();
        let script = format!("touch {}/ran", proof.path().display());
        let result = supervisor
            .spawn_recorded(run.id.clone(), run.spec(&script), |_| Err(std::io::Error::other("disk full")));
        assert!(matches!(result, Err(SpawnError::NotRecorded(_))), "{containment}: {result:?}");
        // The same holds if the supervisor dies before the record is stored.
        if containment != Containment::Cgroup {
            let (process, record) = start_tree(&run, containment, "hesitate", &script);
            kill(process);
            wait_until("the end at the start barrier", || {
                matches!(supervisor.reattach(&record), Err(ReattachError::Gone(_)))
            });
        }
        assert!(!proof.path().join("ran").exists(), "{containment}");
    }
}

#[test]
fn a_tree_that_dies_with_its_supervisor_ends_even_after_kill_9() {
    for containment in holding_containments() {
        let run = TestRun::new();
        let script = "ignore term; fork 2 [ daemon [ FOREVER ] ]; FOREVER";
        let (process, record) = start_tree(&run, containment, "dies", script);
        run.wait_until_sleeping(3);
        kill(process);
        run.wait_until_gone(&record);
    }
}

#[test]
fn a_supervisor_with_another_containment_can_not_reattach() {
    let run = TestRun::new();
    let all = containments();
    let mut tree = run.spawn(&supervisor(all[0]), "FOREVER");
    let result = supervisor(all[1]).reattach(&tree.record());
    assert!(matches!(result, Err(ReattachError::ContainmentMismatch { .. })));
    supervisor(all[0]).stop(&mut tree, StopLadder::force()).unwrap();
}

#[test]
fn a_process_with_a_reused_pid_is_not_signalled() {
    let supervisor = supervisor(Containment::ProcessGroup);
    let run = TestRun::new();
    let release = tempfile::tempdir().unwrap();
    let mut tree = run.spawn(&supervisor, &format!("await {}/release", release.path().display()));
    let record = tree.record();
    let pid = record.root.unwrap().pid;
    // Two handles: the original one, which reaps the root, and a reattached one.
    let mut reattached = supervisor.reattach(&record).unwrap();
    std::fs::write(release.path().join("release"), "").unwrap();
    tree.wait(Some(PATIENCE)).unwrap().unwrap();
    let mut other = is_root().then(|| process_with_pid(pid));
    reattached.kill();
    reattached.signal(ward_process::StopSignal::Terminate);
    assert_eq!(reattached.processes(), Vec::<i32>::new());
    assert!(reattached.poll_ended().unwrap().is_some());
    if let Some(other) = &mut other {
        assert_eq!(other.try_wait().unwrap(), None, "a bystander was signalled");
        other.kill().unwrap();
        other.wait().unwrap();
    }
}

/// Starts a process with this pid in a process group of its own. Only root can choose a pid.
fn process_with_pid(pid: i32) -> Child {
    for _ in 0..5_000 {
        std::fs::write("/proc/sys/kernel/ns_last_pid", (pid - 1).to_string()).unwrap();
        let mut child = std::process::Command::new("/bin/sleep").arg("60").process_group(0).spawn().unwrap();
        if child.id().cast_signed() == pid {
            return child;
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }
    panic!("could not get the pid {pid} again");
}

#[test]
fn a_temporary_folder_is_removed_with_its_tree_and_not_with_its_handle() {
    let sandbox = Sandbox { strictness: SandboxStrictness::BestEffort, ..Sandbox::system_read_only() };
    for containment in containments() {
        let supervisor = supervisor(containment);
        let run = TestRun::new();
        let spec = ProcessSpec::new("/bin/sleep").args(["600"]).sandbox(sandbox.clone());
        let tree = supervisor.spawn(run.id.clone(), spec).unwrap();
        let record = tree.record();
        let folder = record.private_folder.clone().unwrap();
        drop(tree);
        assert!(folder.exists(), "{containment}: the program still runs");
        let mut tree = supervisor.reattach(&record).unwrap();
        assert_eq!(tree.record(), record, "{containment}");
        supervisor.stop(&mut tree, StopLadder::force()).unwrap();
        assert!(!folder.exists(), "{containment}");

        // The folders of a tree that ended without a handle and of a program that never started are removed
        // too.
        std::fs::create_dir(&folder).unwrap();
        assert!(matches!(supervisor.reattach(&record), Err(ReattachError::Gone(_))));
        assert!(!folder.exists(), "{containment}");
        let spec = ProcessSpec::new("/nonexistent/program").sandbox(sandbox.clone());
        let before = private_folders();
        assert!(supervisor.spawn(run.id.clone(), spec).is_err());
        assert_eq!(private_folders(), before, "{containment}");
    }
}

/// Returns the names of the private folders that this process has created.
fn private_folders() -> Vec<std::ffi::OsString> {
    let prefix = format!("ward-{}-", std::process::id());
    let names = std::fs::read_dir("/tmp").unwrap().flatten().map(|entry| entry.file_name());
    names.filter(|name| name.to_string_lossy().starts_with(&prefix)).collect()
}
