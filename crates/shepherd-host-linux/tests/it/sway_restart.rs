//! A Sway of our own goes on with its session, whatever becomes of the host and of the policy (S9.1).

use std::path::Path;

use shepherd_core::policy::{Compositor, Rules};
use shepherd_host_api::{Host, HostEvent, StopOrder};
use ward_process::Containment;

use crate::harness::{Ground, PATIENCE, Session, containments, wait_until};
use crate::sway::{await_window, listener, own_socket};
use crate::sway_desktop::{Desktop, alive, family, windows_at};

fn rules(desktop: &Desktop) -> Rules {
    Rules { compositor: Some(Compositor::Start { argv: desktop.argv() }), ..Rules::default() }
}

fn ground(desktop: &Desktop, state: &Path, containment: Containment) -> Ground {
    let mut ground = Ground::with(|options| {
        options.containment = Some(containment);
        options.state_folder = state.to_owned();
        options.socket_folder = desktop.home();
    });
    ground.apply(rules(desktop));
    wait_until("a Sway", || ground.host.capabilities().can_force_fullscreen);
    ground
}

fn start_terminal(ground: &mut Ground, desktop: &Desktop) -> Session {
    let session = ground.start(desktop.entry(&["foot", "sleep", "600"]));
    await_window(ground, &session);
    session
}

#[test]
fn a_host_that_leaves_leaves_a_session_its_sway_and_the_next_takes_both_back() {
    for containment in containments() {
        let (desktop, state) = (Desktop::prepared(), tempfile::tempdir().unwrap());
        let mut first = ground(&desktop, state.path(), containment);
        let session_id = start_terminal(&mut first, &desktop).session_id;
        let socket = own_socket(&desktop);
        let (sway, windows) = (family(listener(&socket)), windows_at(&socket));
        assert_eq!(windows.len(), 1);
        drop(first);
        assert_eq!(windows_at(&socket), windows, "{containment}");
        let mut next = ground(&desktop, state.path(), containment);
        assert_eq!(
            (family(listener(&socket)), own_socket(&desktop)),
            (sway.clone(), socket),
            "{containment}"
        );
        next.host.reattach(&session_id, None);
        assert!(matches!(next.next(), HostEvent::Reattached { .. }));
        assert_eq!(next.next(), HostEvent::WindowReady { session_id: session_id.clone() });
        next.host.stop(StopOrder { session_id: session_id.clone(), grace: PATIENCE });
        // Nobody knows who was there before the session, so that Sway is started afresh.
        let told = [next.next(), next.next()];
        assert!(told.iter().any(|event| matches!(event, HostEvent::Exited { .. })), "{told:?}");
        assert_eq!(alive(&sway), [0; 0], "{containment}");
        wait_until("another Sway", || next.host.capabilities().can_force_fullscreen);
        let sway = family(listener(&own_socket(&desktop)));
        drop(next);
        assert_eq!(alive(&sway), [0; 0], "{containment}: without a session it ends with the host");
    }
}

#[test]
fn another_policy_takes_no_sway_from_a_session() {
    let (desktop, state) = (Desktop::prepared(), tempfile::tempdir().unwrap());
    let mut ground = ground(&desktop, state.path(), containments()[0]);
    let session = start_terminal(&mut ground, &desktop);
    let socket = own_socket(&desktop);
    let (sway, windows) = (family(listener(&socket)), windows_at(&socket));
    assert_eq!(windows.len(), 1);
    ground.apply(Rules::default());
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert_eq!(windows_at(&socket), windows);
    // The one that there was is what is wanted again.
    ground.apply(rules(&desktop));
    wait_until("a connection", || ground.host.capabilities().can_force_fullscreen);
    assert_eq!(family(listener(&socket)), sway);
    ground.apply(Rules::default());
    ground.stop(&session, PATIENCE);
    wait_until("the end of Sway", || alive(&sway).is_empty());
}
