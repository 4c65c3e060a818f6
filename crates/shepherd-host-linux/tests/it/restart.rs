//! Daemons that are killed, and the programs that the next daemon finds (S9.1, S9.2).

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

/// Waits until the daemon has started its program, and returns the handle that it prints then.
pub(crate) fn read_handle(daemon: &mut Child) -> HostSessionHandle {
    let mut handle = String::new();
    BufReader::new(daemon.stdout.take().unwrap()).read_line(&mut handle).unwrap();
    HostSessionHandle::new(handle.trim_end().to_owned())
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
fn a_program_whose_daemon_was_killed_is_reattached_and_stopped() {
    for containment in containments() {
        let folder = tempfile::tempdir().unwrap();
        let (marked, session_id) = (MarkedScript::new(), new_session());
        let script = marked.script("ignore term; fork 2 [ FOREVER ]; FOREVER");
        let mut first = start_daemon(containment, folder.path(), &session_id, &script);
        let handle = read_handle(&mut first);
        marked.wait_for_arrivals(3);
        kill_daemon(first);
        let mut test_host = next_host(containment, folder.path());
        assert_eq!(test_host.host.recorded_sessions(), std::slice::from_ref(&session_id));
        test_host.host.reattach(&session_id, Some(&handle));
        assert_eq!(test_host.next_event(), HostEvent::Reattached { session_id: session_id.clone(), handle });
        assert_eq!(marked.survivors().len(), 3, "{containment}");
        test_host.host.stop(HostStopRequest { session_id: session_id.clone(), grace: SHORT_GRACE });
        assert!(matches!(test_host.next_event(), HostEvent::Exited { .. }));
        marked.assert_none_left();
        test_host.wait_for_cleanup();
    }
}

/// Every program that runs is found by its recorded handle, and a program without a handle doesn't run.
#[test]
fn the_next_daemon_finds_every_program_of_a_daemon_killed_at_any_moment() {
    for containment in holding_containments() {
        for moment in 0..12 {
            let folder = tempfile::tempdir().unwrap();
            let (marked, session_id) = (MarkedScript::new(), new_session());
            let first = start_daemon(containment, folder.path(), &session_id, &marked.script("FOREVER"));
            // The moment of the kill.
            std::thread::sleep(Duration::from_millis(4 * moment));
            kill_daemon(first);
            let mut test_host = next_host(containment, folder.path());
            test_host.host.reattach(&session_id, None);
            match test_host.next_event() {
                HostEvent::Reattached { .. } => {
                    test_host.host.stop(HostStopRequest { session_id, grace: Duration::ZERO });
                    assert!(matches!(test_host.next_event(), HostEvent::Exited { .. }));
                }
                HostEvent::Gone { .. } => {}
                event => panic!("{event:?}"),
            }
            // A process that lost its daemon before it executed the program exits by itself, shortly after.
            wait_until("the end of all processes", || marked.survivors().is_empty());
            test_host.wait_for_cleanup();
        }
    }
}

#[test]
fn a_program_of_another_containment_is_reattached_too() {
    let (ours, others) = (Containment::ProcessGroup, containments()[0]);
    let folder = tempfile::tempdir().unwrap();
    let (marked, session_id) = (MarkedScript::new(), new_session());
    let script = marked.script("fork 1 [ setsid; FOREVER ]; FOREVER");
    let first = start_daemon(others, folder.path(), &session_id, &script);
    marked.wait_for_arrivals(2);
    kill_daemon(first);
    let mut test_host = next_host(ours, folder.path());
    test_host.host.reattach(&session_id, None);
    assert!(matches!(test_host.next_event(), HostEvent::Reattached { .. }));
    test_host.host.stop(HostStopRequest { session_id, grace: Duration::ZERO });
    assert!(matches!(test_host.next_event(), HostEvent::Exited { .. }));
    marked.assert_none_left();
}

/// S9.2: a reboot never leaves a session running.
#[test]
fn a_program_of_another_boot_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    let (marked, session_id) = (MarkedScript::new(), new_session());
    let mut first = start_daemon(containments()[0], folder.path(), &session_id, &marked.script("FOREVER"));
    let handle = read_handle(&mut first);
    kill_daemon(first);
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let earlier = handle.as_str().replace(boot.trim_end(), "00000000-0000-0000-0000-000000000000");
    assert_ne!(handle.as_str(), earlier);
    let mut test_host = next_host(containments()[0], folder.path());
    test_host.host.reattach(&session_id, Some(&HostSessionHandle::new(earlier)));
    assert_eq!(test_host.next_event(), HostEvent::Gone { session_id: session_id.clone() });
    // The program still runs, because only the handle was changed.
    test_host.host.reattach(&session_id, Some(&handle));
    assert!(matches!(test_host.next_event(), HostEvent::Reattached { .. }));
    test_host.host.stop(HostStopRequest { session_id, grace: Duration::ZERO });
    assert!(matches!(test_host.next_event(), HostEvent::Exited { .. }));
}

/// A program that may still run is not reported as gone: the host starts nothing else, and tries to reattach it.
#[test]
fn no_session_starts_while_an_earlier_one_is_unresolved() {
    let (containment, folder) = (containments()[0], tempfile::tempdir().unwrap());
    let (marked, session_id) = (MarkedScript::new(), new_session());
    let mut first =
        start_daemon(containment, folder.path(), &session_id, &marked.script("ignore term; FOREVER"));
    read_handle(&mut first);
    marked.wait_for_arrivals(1);
    kill_daemon(first);
    // The handle file can't be read for a while.
    let handle_file = folder.path().join(format!("sessions/{session_id}.handle"));
    let aside = folder.path().join("aside");
    std::fs::rename(&handle_file, &aside).unwrap();
    std::fs::create_dir(&handle_file).unwrap();
    let mut test_host = next_host(containment, folder.path());
    test_host.host.reattach(&session_id, None);
    match test_host.next_event() {
        HostEvent::ReattachPending { session_id: pending, detail } => {
            assert_eq!(pending, session_id);
            assert!(detail.contains("could not read the handle"), "{detail}");
        }
        event => panic!("{event:?}"),
    }
    let request = HostSpawnRequest {
        session_id: new_session(),
        entry: entry(process(&["true"])),
        profile: ProfileId::default(),
        display: None,
    };
    test_host.host.spawn(request);
    match test_host.next_event() {
        HostEvent::SpawnFailed { failure, .. } => {
            assert!(failure.detail.contains(&format!("session {session_id} may still run")), "{failure}");
        }
        event => panic!("{event:?}"),
    }
    // A stop request is carried out as soon as the program is reattached.
    test_host.host.stop(HostStopRequest { session_id: session_id.clone(), grace: SHORT_GRACE });
    std::fs::remove_dir(&handle_file).unwrap();
    std::fs::rename(&aside, &handle_file).unwrap();
    assert!(matches!(test_host.next_event(), HostEvent::Reattached { .. }));
    assert!(matches!(test_host.next_event(), HostEvent::Exited { .. }));
    marked.assert_none_left();
    test_host.wait_for_cleanup();
    let session = test_host.start(entry(process(&["true"])));
    test_host.wait_for_exit(&session);
}
