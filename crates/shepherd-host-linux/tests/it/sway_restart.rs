//! A Sway that the host started goes on with its session, even if the host ends or the policy changes (S9.1).

use std::path::Path;
use std::time::Duration;

use shepherd_core::policy::{CompositorConfig, PolicyRules};
use shepherd_host_api::{HostAdapter, HostEvent, HostStopRequest};
use ward_process::Containment;

use crate::harness::{StartedProgram, TEST_TIMEOUT, TestHost, assert_stays, containments, wait_until};
use crate::sway::{await_window, listener_pid, own_socket};
use crate::sway_desktop::{SwayDesktop, alive, process_tree, windows_at};

fn own_sway_rules(desktop: &SwayDesktop) -> PolicyRules {
    PolicyRules {
        compositor: Some(CompositorConfig::Start { argv: desktop.argv(), user: None }),
        ..PolicyRules::default()
    }
}

fn host_on(desktop: &SwayDesktop, state: &Path, containment: Containment) -> TestHost {
    let mut test_host = TestHost::with_options(|options| {
        options.containment = Some(containment);
        options.state_folder = state.to_owned();
        options.socket_folder = desktop.home();
    });
    test_host.apply_rules(own_sway_rules(desktop));
    wait_until("a Sway", || test_host.host.capabilities().can_force_fullscreen);
    test_host
}

fn start_terminal(test_host: &mut TestHost, desktop: &SwayDesktop) -> StartedProgram {
    let session = test_host.start(desktop.entry(&["foot", "sleep", "600"]));
    await_window(test_host, &session);
    session
}

#[test]
fn a_session_keeps_its_sway_when_the_host_ends_and_the_next_host_reattaches_both() {
    for containment in containments() {
        let (desktop, state) = (SwayDesktop::prepare(), tempfile::tempdir().unwrap());
        let mut first = host_on(&desktop, state.path(), containment);
        let session_id = start_terminal(&mut first, &desktop).session_id;
        let socket = own_socket(&desktop);
        let (sway, windows) = (process_tree(listener_pid(&socket)), windows_at(&socket));
        assert_eq!(windows.len(), 1);
        drop(first);
        assert_eq!(windows_at(&socket), windows, "{containment}");
        let mut next = host_on(&desktop, state.path(), containment);
        assert_eq!(
            (process_tree(listener_pid(&socket)), own_socket(&desktop)),
            (sway.clone(), socket),
            "{containment}"
        );
        next.host.reattach(&session_id, None);
        assert!(matches!(next.next_event(), HostEvent::Reattached { .. }));
        assert_eq!(next.next_event(), HostEvent::WindowReady { session_id: session_id.clone() });
        next.host.stop(HostStopRequest { session_id: session_id.clone(), grace: TEST_TIMEOUT });
        // The processes from before the session are not known, so Sway is replaced.
        let events = [next.next_event(), next.next_event()];
        assert!(events.iter().any(|event| matches!(event, HostEvent::Exited { .. })), "{events:?}");
        assert_eq!(alive(&sway), [0; 0], "{containment}");
        wait_until("another Sway", || next.host.capabilities().can_force_fullscreen);
        let sway = process_tree(listener_pid(&own_socket(&desktop)));
        drop(next);
        assert_eq!(alive(&sway), [0; 0], "{containment}: without a session, Sway ends with the host");
    }
}

#[test]
fn a_session_keeps_its_sway_when_the_policy_changes() {
    let (desktop, state) = (SwayDesktop::prepare(), tempfile::tempdir().unwrap());
    let mut test_host = host_on(&desktop, state.path(), containments()[0]);
    let session = start_terminal(&mut test_host, &desktop);
    let socket = own_socket(&desktop);
    let (sway, windows) = (process_tree(listener_pid(&socket)), windows_at(&socket));
    assert_eq!(windows.len(), 1);
    test_host.apply_rules(PolicyRules::default());
    assert_stays("the window stays", Duration::from_millis(300), || windows_at(&socket) == windows);
    // The first policy again: the running Sway is used.
    test_host.apply_rules(own_sway_rules(&desktop));
    wait_until("a connection", || test_host.host.capabilities().can_force_fullscreen);
    assert_eq!(process_tree(listener_pid(&socket)), sway);
    test_host.apply_rules(PolicyRules::default());
    test_host.stop(&session, TEST_TIMEOUT);
    wait_until("the end of Sway", || alive(&sway).is_empty());
}
