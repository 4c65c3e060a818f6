//! Many sessions one after the other, and one for a long time.

use std::time::Duration;

use shepherd_host_api::{HostAdapter, HostEvent, HostStopRequest};

use crate::harness::{TestHost, containments, entry, process};

/// S6.2b: stop one and launch the next at once, a thousand times, and none is mixed up.
#[test]
fn heavy_a_thousand_sessions_stopped_and_started_at_once_are_never_mixed_up() {
    let mut ground = TestHost::new(containments()[0]);
    let sleeper = || entry(process(&["/bin/sleep", "600"]));
    let mut session = ground.start(sleeper()).session_id;
    for _ in 0..1_000 {
        ground.host.stop(HostStopRequest { session_id: session.clone(), grace: Duration::from_secs(600) });
        let next = ground.spawn(sleeper());
        let (mut ended, mut started) = (0, 0);
        while (ended, started) != (1, 1) {
            match ground.events.blocking_recv().unwrap() {
                HostEvent::Exited { session_id, .. } if session_id == session => ended += 1,
                HostEvent::Spawned { session_id, .. } if session_id == next => started += 1,
                event => panic!("{event:?} came between {session} and {next}"),
            }
        }
        session = next;
    }
    ground.host.stop(HostStopRequest { session_id: session.clone(), grace: Duration::ZERO });
    assert!(matches!(ground.next_event(), HostEvent::Exited { session_id, .. } if session_id == session));
}

/// S4.7: while a program runs and nothing happens, no thread of the host wakes up.
#[test]
fn an_idle_session_wakes_no_thread() {
    let mut grounds: Vec<TestHost> = containments().into_iter().map(TestHost::new).collect();
    let sessions: Vec<_> =
        grounds.iter_mut().map(|ground| ground.start(entry(process(&["sleep", "600"])))).collect();
    std::thread::sleep(Duration::from_millis(300));
    let before = context_switches();
    let threads = if cfg!(feature = "sway") { 3 } else { 2 };
    assert_eq!(before.len(), threads * grounds.len(), "{before:?}");
    std::thread::sleep(Duration::from_secs(3));
    assert_eq!(context_switches(), before);
    for (ground, session) in grounds.iter_mut().zip(&sessions) {
        ground.stop(session, Duration::ZERO);
    }
}

/// How often each thread of the host has gone to sleep or was put to sleep.
pub(crate) fn context_switches() -> Vec<(String, Vec<String>)> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten();
    let mut found: Vec<_> = tasks
        .filter_map(|task| {
            let name = std::fs::read_to_string(task.path().join("comm")).ok()?;
            let status = std::fs::read_to_string(task.path().join("status")).ok()?;
            let counts =
                status.lines().filter(|line| line.contains("ctxt_switches")).map(str::to_owned).collect();
            name.starts_with("host-").then_some((name, counts))
        })
        .collect();
    found.sort();
    found
}
