//! Ending those who became members later than the others (S6.2).

use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use ward_process::{Containment, EscapeePolicy, ProcessSpec, StopLadder, TreeLifetime};

use crate::harness::{containments, supervisor, wait_until};

/// The first sleep is there from the start, two others come when the file does.
fn order(first: &str, second: &str, signal: &Path) -> ProcessSpec {
    let signal = signal.display();
    let script = format!(
        "sleep {first} & while [ ! -e {signal} ]; do sleep 0.01; done; (sleep {second} & sleep {second} &) & wait"
    );
    ProcessSpec::new("/bin/sh").args(["-c".to_owned(), script]).env("PATH", "/usr/bin:/bin")
}

/// A time to sleep that no other run has.
fn token() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    format!("6{:07}{:04}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

fn sleeping(token: &str) -> Vec<i32> {
    let meant = format!("sleep\0{token}\0").into_bytes();
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    // A zombie has no command line.
    pids.filter(|pid| std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line == meant)).collect()
}

fn check(containment: Containment, change: impl Fn(ProcessSpec) -> ProcessSpec) {
    let (first, second, folder) = (token(), token(), tempfile::tempdir().unwrap());
    let signal = folder.path().join("signal");
    let (supervisor, id) = (supervisor(containment), format!("census-{first}").parse().unwrap());
    let mut tree = supervisor.spawn(id, change(order(&first, &second, &signal))).unwrap();
    wait_until("the first", || sleeping(&first).len() == 1);
    let (resident, census) = (sleeping(&first), tree.member_snapshot());
    std::fs::write(&signal, "").unwrap();
    wait_until("those who come later", || sleeping(&second).len() == 2);
    wait_until("an end of those who came later", || tree.kill_all_except(&census) == 0);
    assert_eq!(sleeping(&second), [0; 0], "{containment}");
    assert_eq!(sleeping(&first), resident, "{containment}");
    supervisor.stop(&mut tree, StopLadder::force()).unwrap();
    assert_eq!(sleeping(&first), [0; 0], "{containment}");
}

#[test]
fn those_who_came_later_are_ended_and_the_others_stay() {
    for containment in containments() {
        check(containment, |order| order);
    }
}

#[test]
fn with_a_keeper_later_members_are_killed_and_earlier_ones_stay() {
    for containment in containments() {
        check(containment, |order| order.escapees(EscapeePolicy::Held));
        if containment != Containment::ProcessGroup {
            check(containment, |order| order.lifetime(TreeLifetime::DiesWithSupervisor));
        }
    }
}
