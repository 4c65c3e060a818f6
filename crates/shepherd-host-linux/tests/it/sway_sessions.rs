//! Several sessions on one Sway (S6.7, S19.1): the end of a session takes nothing from the others.

use std::process::Command;
use std::time::Duration;

use shepherd_core::policy::WindowDisplay;
use shepherd_host_api::{HostAdapter, HostEvent};

use crate::harness::{SHORT_GRACE, TEST_TIMEOUT, TestHost, assert_no_thread_wakes, containments, wait_until};
use crate::sway::{await_window, listener_pid, own_socket};
use crate::sway_children::{exec_entry, host_with_own_sway, processes_with_argument, unique_sleeps};
use crate::sway_desktop::{SwayDesktop, windows_at};
use crate::sway_x11::{entry_with_home, has_account};

#[test]
fn programs_that_sway_started_before_a_session_stay_when_it_ends() {
    for containment in containments() {
        let desktop = SwayDesktop::prepare();
        let (bar, first_game) = unique_sleeps();
        let (_, second_game) = unique_sleeps();
        desktop.configure(&format!("exec sleep {bar}\n"));
        let mut test_host = host_with_own_sway(&desktop, containment);
        wait_until("the bar", || processes_with_argument(&bar).len() == 1);
        let bar_processes = processes_with_argument(&bar);
        let first = test_host.start(exec_entry(&desktop, &format!("exec sleep {first_game}")));
        wait_until("the program of Sway", || processes_with_argument(&first_game).len() == 1);
        let second = test_host.start(exec_entry(&desktop, &format!("exec sleep {second_game}")));
        wait_until("the program of Sway", || processes_with_argument(&second_game).len() == 1);
        test_host.stop(&second, TEST_TIMEOUT);
        assert_eq!(processes_with_argument(&second_game), [0; 0], "{containment}");
        assert_eq!(processes_with_argument(&first_game).len(), 1, "{containment}");
        test_host.stop(&first, TEST_TIMEOUT);
        assert_eq!(processes_with_argument(&first_game), [0; 0], "{containment}");
        assert_eq!(processes_with_argument(&bar), bar_processes, "{containment}");
    }
}

/// The processes from before the first session are not known, because Sway was started anew during it.
#[test]
fn a_session_keeps_its_sway_when_an_earlier_session_ends() {
    let desktop = SwayDesktop::prepare();
    let (_, game) = unique_sleeps();
    let mut test_host = host_with_own_sway(&desktop, containments()[0]);
    let first = test_host.start(desktop.entry(&["sleep", "600"]));
    let killed = listener_pid(&own_socket(&desktop));
    Command::new("kill").args(["-9", &killed.to_string()]).status().unwrap();
    assert!(matches!(test_host.next_event(), HostEvent::Problem { session_id: None, .. }));
    wait_until("another Sway", || {
        test_host.host.capabilities().can_force_fullscreen && listener_pid(&own_socket(&desktop)) != killed
    });
    let second = test_host.start(desktop.entry(&["foot", "sleep", "600"]));
    await_window(&mut test_host, &second);
    let socket = own_socket(&desktop);
    let (sway, windows) = (listener_pid(&socket), windows_at(&socket));
    assert_eq!(windows.len(), 1);
    Command::new("swaymsg").arg("-s").arg(&socket).arg(format!("exec exec sleep {game}")).output().unwrap();
    wait_until("the program of Sway", || processes_with_argument(&game).len() == 1);
    test_host.stop(&first, TEST_TIMEOUT);
    assert_eq!(processes_with_argument(&game), [0; 0]);
    assert_eq!((listener_pid(&own_socket(&desktop)), windows_at(&socket)), (sway, windows));
    test_host.request_stop(&second, TEST_TIMEOUT);
    // Now Sway is replaced, and the host reports that it is missing for a moment.
    while !matches!(test_host.next_event(), HostEvent::Exited { .. }) {}
}

#[test]
fn an_x11_window_stays_when_another_session_ends() {
    if !has_account() {
        // Xwayland refuses every program, as the other tests of X11 show.
        return;
    }
    let desktop = SwayDesktop::prepare();
    desktop.enable_xwayland();
    let mut test_host = crate::sway_x11::host_with_own_sway(&desktop);
    let sessions = [(); 2].map(|()| {
        let session = test_host.start(entry_with_home(&desktop, &["dosbox"]));
        await_window(&mut test_host, &session);
        session
    });
    let socket = own_socket(&desktop);
    let windows = windows_at(&socket);
    assert_eq!(windows.iter().filter(|window| window.is_x11).count(), 2);
    let [first, second] = sessions;
    // Xwayland was started during the first session.
    test_host.stop(&first, SHORT_GRACE);
    wait_until("the window is gone", || windows_at(&socket).len() == 1);
    test_host.assert_no_event(Duration::from_millis(500));
    assert_eq!(windows_at(&socket)[0].pid, windows[1].pid);
    test_host.stop(&second, SHORT_GRACE);
}

#[test]
fn the_latest_of_two_fullscreen_sessions_has_the_screen_and_the_other_one_after_it() {
    let desktop = SwayDesktop::new();
    let mut test_host = TestHost::on_desktop(&desktop, containments()[0]);
    let shown = || desktop.windows().iter().map(|window| window.is_fullscreen).collect::<Vec<_>>();
    let sessions = [(); 2].map(|()| {
        let session = test_host.start(desktop.entry(&["foot", "sleep", "600"]));
        test_host.host.show_window(&session.session_id, WindowDisplay::Fullscreen);
        await_window(&mut test_host, &session);
        session
    });
    wait_until("the second window", || shown() == [false, true]);
    // S4.7: the sessions don't take the screen from each other again and again.
    assert_no_thread_wakes(Duration::from_millis(500));
    let [first, second] = &sessions;
    test_host.host.show_window(&first.session_id, WindowDisplay::Fullscreen);
    wait_until("the first window", || shown() == [true, false]);
    assert_no_thread_wakes(Duration::from_millis(500));
    test_host.stop(first, TEST_TIMEOUT);
    wait_until("the second window", || shown() == [true]);
    test_host.stop(second, TEST_TIMEOUT);
}
