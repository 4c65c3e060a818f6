//! Daemons that are killed, and what the next one finds (S9.1, S9.2).

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use shepherd_host_api::{HostAdapter, HostEvent, HostSessionHandle, HostSpawnRequest, HostStopRequest};
use shepherd_util::{ProfileId, SessionId};
use ward_process::Containment;

use crate::harness::{
    MarkedScript, SHORT_GRACE, TestHost, containments, entry, fake_daemon_host, fake_entry,
    holding_containments, new_session, process, wait_until,
};

pub(crate) fn start_daemon(
    containment: Containment,
    state: &Path,
    session_id: &SessionId,
    script: &str,
) -> Child {
    Command::new(fake_daemon_host())
        .args([&format!("{containment:?}"), state.to_str().unwrap(), session_id.as_str()])
        .args([fake_entry().to_str().unwrap(), script])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

pub(crate) fn kill_daemon(mut daemon: Child) {
    daemon.kill().unwrap();
    daemon.wait().unwrap();
}

pub(crate) fn next_host(containment: Containment, state: &Path) -> TestHost {
    TestHost::with_options(|options| {
        options.containment = Some(containment);
        options.state_folder = state.to_owned();
    })
}

#[test]
fn a_program_whose_daemon_was_killed_is_taken_back_and_ended() {
    for containment in containments() {
        let folder = tempfile::tempdir().unwrap();
        let (token, session_id) = (MarkedScript::new(), new_session());
        let script = token.script("ignore term; fork 2 [ FOREVER ]; FOREVER");
        let mut first = start_daemon(containment, folder.path(), &session_id, &script);
        let mut handle = String::new();
        BufReader::new(first.stdout.take().unwrap()).read_line(&mut handle).unwrap();
        token.wait_for_arrivals(3);
        kill_daemon(first);
        let mut ground = next_host(containment, folder.path());
        assert_eq!(ground.host.recorded_sessions(), std::slice::from_ref(&session_id));
        let handle = HostSessionHandle::new(handle.trim_end().to_owned());
        ground.host.reattach(&session_id, Some(&handle));
        assert_eq!(ground.next_event(), HostEvent::Reattached { session_id: session_id.clone(), handle });
        assert_eq!(token.survivors().len(), 3, "{containment}");
        ground.host.stop(HostStopRequest { session_id: session_id.clone(), grace: SHORT_GRACE });
        assert!(matches!(ground.next_event(), HostEvent::Exited { .. }));
        token.assert_none_left();
        ground.wait_for_cleanup();
    }
}

/// Whatever the moment: what runs is found by what was written down, and what was not written down does not run.
#[test]
fn a_daemon_that_is_killed_at_any_moment_leaves_nothing_that_the_next_can_not_find() {
    for containment in holding_containments() {
        for moment in 0..12 {
            let folder = tempfile::tempdir().unwrap();
            let (token, session_id) = (MarkedScript::new(), new_session());
            let first = start_daemon(containment, folder.path(), &session_id, &token.script("FOREVER"));
            std::thread::sleep(Duration::from_millis(4 * moment));
            kill_daemon(first);
            let mut ground = next_host(containment, folder.path());
            ground.host.reattach(&session_id, None);
            match ground.next_event() {
                HostEvent::Reattached { .. } => {
                    ground.host.stop(HostStopRequest { session_id, grace: Duration::ZERO });
                    assert!(matches!(ground.next_event(), HostEvent::Exited { .. }));
                }
                HostEvent::Gone { .. } => {}
                event => panic!("{event:?}"),
            }
            // One that was about to be born and lost its daemon leaves by itself, but nobody waits for it.
            wait_until("empty machine", || token.survivors().is_empty());
            ground.wait_for_cleanup();
        }
    }
}

#[test]
fn a_program_of_another_containment_is_taken_back_too() {
    let (ours, others) = (Containment::ProcessGroup, containments()[0]);
    let folder = tempfile::tempdir().unwrap();
    let (token, session_id) = (MarkedScript::new(), new_session());
    let script = token.script("fork 1 [ setsid; FOREVER ]; FOREVER");
    let first = start_daemon(others, folder.path(), &session_id, &script);
    token.wait_for_arrivals(2);
    kill_daemon(first);
    let mut ground = next_host(ours, folder.path());
    ground.host.reattach(&session_id, None);
    assert!(matches!(ground.next_event(), HostEvent::Reattached { .. }));
    ground.host.stop(HostStopRequest { session_id, grace: Duration::ZERO });
    assert!(matches!(ground.next_event(), HostEvent::Exited { .. }));
    token.assert_none_left();
}

/// S9.2: a reboot never leaves a session running.
#[test]
fn a_program_of_another_boot_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    let (token, session_id) = (MarkedScript::new(), new_session());
    let mut first = start_daemon(containments()[0], folder.path(), &session_id, &token.script("FOREVER"));
    let mut handle = String::new();
    BufReader::new(first.stdout.take().unwrap()).read_line(&mut handle).unwrap();
    kill_daemon(first);
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let earlier = handle.replace(boot.trim_end(), "00000000-0000-0000-0000-000000000000");
    assert_ne!(handle, earlier);
    let mut ground = next_host(containments()[0], folder.path());
    ground.host.reattach(&session_id, Some(&HostSessionHandle::new(earlier)));
    assert_eq!(ground.next_event(), HostEvent::Gone { session_id: session_id.clone() });
    // It was only said to be of another boot.
    ground.host.reattach(&session_id, Some(&HostSessionHandle::new(handle.trim_end().to_owned())));
    assert!(matches!(ground.next_event(), HostEvent::Reattached { .. }));
    ground.host.stop(HostStopRequest { session_id, grace: Duration::ZERO });
    assert!(matches!(ground.next_event(), HostEvent::Exited { .. }));
}

/// What may still run is not said to be gone: nothing else is started, and it is looked for until it is found.
#[test]
fn no_session_starts_while_an_earlier_one_is_unresolved() {
    let (containment, folder) = (containments()[0], tempfile::tempdir().unwrap());
    let (token, session_id) = (MarkedScript::new(), new_session());
    let mut first =
        start_daemon(containment, folder.path(), &session_id, &token.script("ignore term; FOREVER"));
    BufReader::new(first.stdout.take().unwrap()).read_line(&mut String::new()).unwrap();
    token.wait_for_arrivals(1);
    kill_daemon(first);
    // What was written down can't be read for a while.
    let written = folder.path().join(format!("sessions/{session_id}.handle"));
    let aside = folder.path().join("aside");
    std::fs::rename(&written, &aside).unwrap();
    std::fs::create_dir(&written).unwrap();
    let mut ground = next_host(containment, folder.path());
    ground.host.reattach(&session_id, None);
    match ground.next_event() {
        HostEvent::ReattachPending { session_id: doubtful, detail } => {
            assert_eq!(doubtful, session_id);
            assert!(detail.contains("can't be read"), "{detail}");
        }
        event => panic!("{event:?}"),
    }
    let order = HostSpawnRequest {
        session_id: new_session(),
        entry: entry(process(&["true"])),
        profile: ProfileId::default(),
    };
    ground.host.spawn(order);
    match ground.next_event() {
        HostEvent::SpawnFailed { failure, .. } => {
            assert!(failure.detail.contains(&format!("session {session_id} may still run")), "{failure}");
        }
        event => panic!("{event:?}"),
    }
    // An order to end it is kept for when it is found.
    ground.host.stop(HostStopRequest { session_id: session_id.clone(), grace: SHORT_GRACE });
    std::fs::remove_dir(&written).unwrap();
    std::fs::rename(&aside, &written).unwrap();
    assert!(matches!(ground.next_event(), HostEvent::Reattached { .. }));
    assert!(matches!(ground.next_event(), HostEvent::Exited { .. }));
    token.assert_none_left();
    ground.wait_for_cleanup();
    let session = ground.start(entry(process(&["true"])));
    ground.wait_for_exit(&session);
}
