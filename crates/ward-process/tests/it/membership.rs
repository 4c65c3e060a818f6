//! Checks if a process is a member of a tree (S6.7).

use ward_process::StopLadder;

use crate::harness::{TestRun, containments, holding_containments, supervisor};

/// The host matches windows to sessions this way, on another thread than the one that stops the tree (S6.7).
#[test]
fn membership_can_be_checked_on_another_thread() {
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
fn a_daemon_without_its_parent_is_still_a_member() {
    for containment in holding_containments() {
        let supervisor = supervisor(containment);
        let run = TestRun::new();
        let mut tree = run.spawn(&supervisor, "daemon [ FOREVER ]; exit 0");
        run.wait_until_sleeping(1);
        let membership = tree.membership();
        assert!(run.survivors().into_iter().all(|pid| membership.contains(pid)), "{containment}");
        let killed = run.survivors();
        supervisor.stop(&mut tree, StopLadder::force()).unwrap();
        assert!(!killed.into_iter().any(|pid| membership.contains(pid)), "{containment}");
    }
}
