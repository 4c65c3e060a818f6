//! Killing the members that joined a tree after a snapshot (S6.2).

use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use ward_process::{Containment, EscapeePolicy, MemberSnapshot, ProcessSpec, StopLadder, TreeLifetime};

use crate::harness::{TestRun, containments, holding_containments, supervisor, wait_until};

/// Describes a shell that starts one sleep at once and two more when the file `signal` exists.
fn spec(first: &str, second: &str, signal: &Path) -> ProcessSpec {
    let signal = signal.display();
    let script = format!(
        "sleep {first} & while [ ! -e {signal} ]; do sleep 0.01; done; (sleep {second} & sleep {second} &) & wait"
    );
    ProcessSpec::new("/bin/sh").args(["-c".to_owned(), script]).env("PATH", "/usr/bin:/bin")
}

/// Returns a sleep time that no other run has.
fn token() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    format!("6{:07}{:04}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

fn sleeping(token: &str) -> Vec<i32> {
    let command = format!("sleep\0{token}\0").into_bytes();
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    // A zombie has an empty command line, so it isn't found.
    pids.filter(|pid| std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line == command))
        .collect()
}

fn check(containment: Containment, change: impl Fn(ProcessSpec) -> ProcessSpec) {
    let (first, second, folder) = (token(), token(), tempfile::tempdir().unwrap());
    let signal = folder.path().join("signal");
    let (supervisor, id) = (supervisor(containment), format!("census-{first}").parse().unwrap());
    let mut tree = supervisor.spawn(id, change(spec(&first, &second, &signal))).unwrap();
    wait_until("the first sleep", || sleeping(&first).len() == 1);
    let (earlier, snapshot) = (sleeping(&first), tree.member_snapshot());
    std::fs::write(&signal, "").unwrap();
    wait_until("the later sleeps", || sleeping(&second).len() == 2);
    wait_until("the end of the later sleeps", || tree.kill_all_except(&snapshot) == 0);
    assert_eq!(sleeping(&second), [0; 0], "{containment}");
    assert_eq!(sleeping(&first), earlier, "{containment}");
    supervisor.stop(&mut tree, StopLadder::force()).unwrap();
    assert_eq!(sleeping(&first), [0; 0], "{containment}");
}

#[test]
fn later_members_are_killed_and_earlier_ones_stay() {
    for containment in containments() {
        check(containment, |spec| spec);
    }
}

#[test]
fn with_a_keeper_later_members_are_killed_and_earlier_ones_stay() {
    for containment in containments() {
        check(containment, |spec| spec.escapees(EscapeePolicy::Held));
        if containment != Containment::ProcessGroup {
            check(containment, |spec| spec.lifetime(TreeLifetime::DiesWithSupervisor));
        }
    }
}

/// Each process of the chain forks the next one and exits, so a list of members is out of date at once.
#[test]
fn a_chain_of_short_lived_later_members_is_killed() {
    for containment in holding_containments() {
        for _ in 0..10 {
            let (supervisor, run) = (supervisor(containment), TestRun::new());
            let folder = tempfile::tempdir().unwrap();
            let [begin, begun] = ["begin", "begun"].map(|name| folder.path().join(name));
            let chain = format!("await {}; touch {}; hop 1500; FOREVER", begin.display(), begun.display());
            let mut tree = run.spawn(&supervisor, &format!("fork 1 [ {chain} ]; FOREVER"));
            run.wait_until_sleeping(1);
            wait_until("the start of the chain", || tree.processes().len() == 2);
            let snapshot = tree.member_snapshot();
            std::fs::write(&begin, "").unwrap();
            wait_until("the first link", || begun.exists());
            // The first link is in the snapshot, so it has to exit by itself.
            wait_until("the second link", || tree.kill_all_except(&snapshot) > 0);
            while tree.kill_all_except(&snapshot) > 0 {}
            for _ in 0..5 {
                assert_eq!(run.survivors().len(), 1, "{containment}");
            }
            supervisor.stop(&mut tree, StopLadder::force()).unwrap();
            run.assert_none_left();
        }
    }
}

/// A process that joins later stays if it is in the session of the named process, however it was started.
/// A process group can't hold a process of another session.
#[test]
fn later_processes_in_the_session_of_a_snapshot_stay() {
    for containment in holding_containments() {
        let (kept, killed) = (token(), token());
        let script = format!("sleep {kept} & setsid sleep {killed} & wait");
        let spec = ProcessSpec::new("/bin/sh").args(["-c".to_owned(), script]).env("PATH", "/usr/bin:/bin");
        let (supervisor, id) = (supervisor(containment), format!("census-{kept}").parse().unwrap());
        let mut tree = supervisor.spawn(id, spec).unwrap();
        wait_until("the sleeps", || sleeping(&kept).len() == 1 && sleeping(&killed).len() == 1);
        let stays = MemberSnapshot::default().with_session_of(sleeping(&kept)[0]);
        wait_until("the end of the other session", || tree.kill_all_except(&stays) == 0);
        assert_eq!(sleeping(&killed), [0; 0], "{containment}");
        assert_eq!(sleeping(&kept).len(), 1, "{containment}");
        // A process that doesn't exist has no session.
        for pid in [0, i32::MAX] {
            assert_eq!(MemberSnapshot::default().with_session_of(pid), MemberSnapshot::default());
        }
        supervisor.stop(&mut tree, StopLadder::force()).unwrap();
    }
}
