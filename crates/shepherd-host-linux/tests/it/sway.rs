//! Real programs on a real Sway (S6.7, S5.1): their windows are detected, brought to the front and made fullscreen, and the
//! programs end on time.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use shepherd_core::policy::{CompositorConfig, PolicyRules, WindowDisplay};
use shepherd_host_api::{ExitStatus, HostAdapter, HostEvent};
use ward_process::Containment;

use crate::harness::{
    SHORT_GRACE, StartedProgram, TEST_TIMEOUT, TestHost, assert_no_thread_wakes, containments, is_root,
    process, wait_until,
};
use crate::sway_desktop::{DesktopWindow, SwayDesktop, alive, process_tree, windows_at};

/// Tux Paint, which ignores requests to end and the loss of its compositor once it has started.
const TUX_PAINT: &[&str] = &["tuxpaint", "--windowed", "--800x600", "--nosound", "--nolockfile"];

fn start_tux_paint(test_host: &mut TestHost, desktop: &SwayDesktop) -> (StartedProgram, Vec<(i32, String)>) {
    let session = test_host.start(desktop.entry(TUX_PAINT));
    await_window(test_host, &session);
    let processes = show_fullscreen(test_host, &session, desktop);
    wait_until("Tux Paint", || catches(processes[0].0, 13) && catches(processes[0].0, 15));
    (session, processes)
}

/// Returns whether a process has a handler for a signal.
fn catches(pid: i32, signal: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
    u64::from_str_radix(mask.trim(), 16).unwrap() & (1 << (signal - 1)) != 0
}

pub(crate) fn await_window(test_host: &mut TestHost, session: &StartedProgram) {
    let ready = HostEvent::WindowReady { session_id: session.session_id.clone() };
    assert_eq!(test_host.next_event(), ready, "{}", session.output());
}

/// Makes the window of a session fullscreen, and returns the processes of the window.
fn show_fullscreen(
    test_host: &mut TestHost,
    session: &StartedProgram,
    desktop: &SwayDesktop,
) -> Vec<(i32, String)> {
    assert_eq!(desktop.windows().iter().filter(|window| window.is_fullscreen).count(), 0);
    test_host.host.show_window(&session.session_id, WindowDisplay::Fullscreen);
    let fullscreen = |window: &DesktopWindow| window.is_fullscreen && window.is_focused;
    wait_until("fullscreen window", || desktop.windows().iter().any(fullscreen));
    process_tree(desktop.windows()[0].pid)
}

#[test]
fn a_terminal_is_detected_made_fullscreen_and_stopped_in_every_containment() {
    let desktop = SwayDesktop::new();
    for containment in containments() {
        let mut test_host = TestHost::on_desktop(&desktop, containment);
        let session = test_host.start(desktop.entry(&["foot", "sleep", "600"]));
        await_window(&mut test_host, &session);
        let processes = show_fullscreen(&mut test_host, &session, &desktop);
        assert!(processes.len() >= 2, "{processes:?}");
        // S4.7: a window that doesn't change wakes no thread.
        assert_no_thread_wakes(Duration::from_millis(500));
        let status = test_host.stop(&session, TEST_TIMEOUT);
        assert_eq!(status, ExitStatus { code: Some(230), signal: None }, "{containment}");
        assert_eq!(alive(&processes), [0; 0], "{containment}");
        assert_eq!(desktop.windows(), []);
    }
}

#[test]
fn a_program_that_ignores_everything_is_killed_when_its_grace_is_over() {
    let desktop = SwayDesktop::new();
    let mut test_host = TestHost::on_desktop(&desktop, containments()[0]);
    let (session, processes) = start_tux_paint(&mut test_host, &desktop);
    let ordered = Instant::now();
    let status = test_host.stop(&session, SHORT_GRACE);
    assert!(ordered.elapsed() >= SHORT_GRACE);
    assert_eq!(status, ExitStatus { code: None, signal: Some(9) });
    assert_eq!(alive(&processes), [0; 0]);
}

#[test]
fn a_browser_with_many_processes_leaves_none() {
    let desktop = SwayDesktop::new();
    let mut test_host = TestHost::on_desktop(&desktop, containments()[0]);
    let profile = format!("--user-data-dir={}", desktop.home().join("profile").display());
    let args = ["--ozone-platform=wayland", "--no-first-run", "--disable-gpu", &profile, "about:blank"];
    let session = test_host.start(desktop.entry(&[&["chromium"], &args[..]].concat()));
    await_window(&mut test_host, &session);
    let processes = show_fullscreen(&mut test_host, &session, &desktop);
    assert!(processes.len() >= 5, "{processes:?}");
    test_host.stop(&session, Duration::from_secs(5));
    assert_eq!(alive(&processes), [0; 0]);
}

#[test]
fn later_windows_are_fullscreen_and_so_is_the_earlier_window_afterwards() {
    let desktop = SwayDesktop::new();
    let mut test_host = TestHost::on_desktop(&desktop, containments()[0]);
    let go_on = desktop.home().join("go-on");
    let later = format!("while [ ! -e {} ]; do sleep 0.05; done; exec foot sleep 600", go_on.display());
    let session = test_host.start(desktop.entry(&["sh", "-c", &format!("foot sleep 600 & {later}")]));
    // The request comes before there is any window.
    test_host.host.show_window(&session.session_id, WindowDisplay::Fullscreen);
    await_window(&mut test_host, &session);
    let shown = || desktop.windows().iter().map(|window| window.is_fullscreen).collect::<Vec<_>>();
    wait_until("first window", || shown() == [true]);
    std::fs::write(&go_on, "").unwrap();
    wait_until("second window", || shown() == [false, true]);
    let second = desktop.windows()[1].pid;
    Command::new("kill").arg(second.to_string()).status().unwrap();
    wait_until("first window again", || shown() == [true]);
    // A window that leaves fullscreen is made fullscreen again.
    Command::new("swaymsg").arg("-s").arg(desktop.socket()).arg("fullscreen disable").output().unwrap();
    wait_until("fullscreen window", || shown() == [true]);
    test_host.stop(&session, TEST_TIMEOUT);
    test_host.assert_no_event(Duration::from_millis(50));
}

#[test]
fn a_window_outside_of_the_session_is_ignored() {
    let desktop = SwayDesktop::new();
    let mut test_host = TestHost::on_desktop(&desktop, containments()[0]);
    let session = test_host.start(desktop.entry(&["sleep", "600"]));
    test_host.host.show_window(&session.session_id, WindowDisplay::Fullscreen);
    let mut outsider = Command::new("foot")
        .args(["sleep", "600"])
        .env("WAYLAND_DISPLAY", desktop.home().join("wayland-1"))
        .env("XDG_RUNTIME_DIR", desktop.home())
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_until("the window outside of the session", || desktop.windows().len() == 1);
    test_host.assert_no_event(Duration::from_millis(500));
    assert!(!desktop.windows()[0].is_fullscreen);
    // The same program inside of a session is detected.
    let own = test_host.start(desktop.entry(&["foot", "sleep", "600"]));
    test_host.host.show_window(&own.session_id, WindowDisplay::Foreground);
    await_window(&mut test_host, &own);
    wait_until("window in front", || desktop.windows().get(1).is_some_and(|window| window.is_focused));
    assert!(desktop.windows().iter().all(|window| !window.is_fullscreen));
    for session in [session, own] {
        test_host.stop(&session, TEST_TIMEOUT);
    }
    outsider.kill().unwrap();
    outsider.wait().unwrap();
}

#[test]
fn a_session_survives_the_loss_of_sway_ends_on_time_and_a_later_sway_is_found() {
    let mut desktop = SwayDesktop::new();
    let mut test_host = TestHost::on_desktop(&desktop, containments()[0]);
    let window_capability = |test_host: &TestHost| {
        let all = test_host.host.capabilities();
        let windows = [all.can_observe_window_ready, all.can_force_foreground, all.can_force_fullscreen];
        assert!(windows.iter().all(|can| *can == windows[0]));
        windows[0]
    };
    let capable = |test_host: &TestHost| loop {
        let before = window_capability(test_host);
        let limitations = test_host.host.limitations();
        // The connection can come up between the two questions; ask again then.
        if window_capability(test_host) == before {
            let missing = limitations.iter().any(|sentence| sentence.starts_with("Windows can't"));
            assert_eq!(missing, !before, "{limitations:?}");
            break before;
        }
    };
    assert!(capable(&test_host));
    let (session, processes) = start_tux_paint(&mut test_host, &desktop);
    desktop.kill();
    match test_host.next_event() {
        HostEvent::Problem { session_id: None, detail } => {
            assert!(detail.contains("lost the connection to Sway"), "{detail}");
        }
        event => panic!("{event:?}"),
    }
    assert!(!capable(&test_host));
    let status = test_host.stop(&session, SHORT_GRACE);
    assert_eq!(status, ExitStatus { code: None, signal: Some(9) });
    assert_eq!(alive(&processes), [0; 0]);
    desktop.start();
    wait_until("another connection", || capable(&test_host));
    let session = test_host.start(desktop.entry(&["foot", "sleep", "600"]));
    await_window(&mut test_host, &session);
    test_host.stop(&session, TEST_TIMEOUT);
}

#[test]
fn the_daemons_sway_is_restarted_when_it_dies_and_ends_with_the_daemon() {
    let desktop = SwayDesktop::prepare();
    // Inside a PID namespace, Sway would not know the process ids of its clients.
    let strongest = if is_root() { Containment::Cgroup } else { Containment::PidNamespace };
    let mut test_host = TestHost::with_options(|options| {
        options.containment = Some(strongest);
        options.socket_folder = desktop.home();
    });
    let start = CompositorConfig::Start { argv: desktop.argv(), user: None };
    test_host.apply_rules(PolicyRules { compositor: Some(start), ..PolicyRules::default() });
    let mut earlier = 0;
    for _ in 0..2 {
        let connected = |test_host: &TestHost| test_host.host.capabilities().can_force_fullscreen;
        wait_until("a Sway", || connected(&test_host));
        let session = test_host.start(desktop.entry(&["foot", "sleep", "600"]));
        test_host.host.show_window(&session.session_id, WindowDisplay::Fullscreen);
        await_window(&mut test_host, &session);
        let socket = own_socket(&desktop);
        wait_until("fullscreen window", || windows_at(&socket).iter().any(|window| window.is_fullscreen));
        test_host.stop(&session, TEST_TIMEOUT);
        let sway = listener_pid(&socket);
        assert_ne!(sway, earlier);
        earlier = sway;
        Command::new("kill").args(["-9", &sway.to_string()]).status().unwrap();
        match test_host.next_event() {
            HostEvent::Problem { session_id: None, .. } => assert!(!connected(&test_host)),
            event => panic!("{event:?}"),
        }
    }
    wait_until("a third Sway", || test_host.host.capabilities().can_force_fullscreen);
    let processes = process_tree(listener_pid(&own_socket(&desktop)));
    assert_eq!(processes.len(), 1, "{processes:?}");
    drop(test_host);
    assert_eq!(alive(&processes), [0; 0]);
    let sockets = desktop.home().read_dir().unwrap().flatten();
    assert_eq!(sockets.filter(|file| file.file_name().to_string_lossy().starts_with("shepherd-")).count(), 0);
}

#[test]
fn a_program_that_starts_while_sway_is_starting_finds_it() {
    let desktop = SwayDesktop::prepare();
    let mut test_host = TestHost::with_options(|options| options.socket_folder = desktop.home());
    let start = CompositorConfig::Start { argv: desktop.argv(), user: None };
    test_host.apply_rules(PolicyRules { compositor: Some(start), ..PolicyRules::default() });
    let session = test_host.start(desktop.entry(&["foot", "sleep", "600"]));
    await_window(&mut test_host, &session);
    test_host.stop(&session, TEST_TIMEOUT);
}

pub(crate) fn own_socket(desktop: &SwayDesktop) -> std::path::PathBuf {
    let files = desktop.home().read_dir().unwrap().flatten().map(|file| file.path());
    let is_socket = |path: &std::path::PathBuf| path.extension().is_some_and(|extension| extension == "sock");
    files.into_iter().find(is_socket).unwrap()
}

pub(crate) fn listener_pid(socket: &std::path::Path) -> i32 {
    let stream = std::os::unix::net::UnixStream::connect(socket).unwrap();
    rustix::net::sockopt::socket_peercred(&stream).unwrap().pid.as_raw_nonzero().get()
}

#[test]
fn a_missing_compositor_is_reported_with_its_cure() {
    let check = |compositor: Option<CompositorConfig>, environment: &[(&str, &str)], expected: &str| {
        let mut test_host = TestHost::with_options(|options| {
            options.environment =
                environment.iter().map(|(name, value)| (name.into(), value.into())).collect();
        });
        let wanted = compositor.is_some();
        test_host.apply_rules(PolicyRules { compositor, ..PolicyRules::default() });
        if wanted {
            assert!(matches!(test_host.next_event(), HostEvent::Problem { session_id: None, .. }));
        }
        let limitations = test_host.host.limitations();
        let expected = format!("Windows can't be detected or brought to the front: {expected}.");
        assert!(limitations.contains(&expected), "{limitations:#?}");
        // Everything else works without windows.
        let session = test_host.start(crate::harness::entry(process(&["true"])));
        test_host.host.show_window(&session.session_id, WindowDisplay::Fullscreen);
        assert_eq!(test_host.wait_for_exit(&session), ExitStatus { code: Some(0), signal: None });
    };
    check(None, &[], "the policy has no `[compositor]`");
    check(
        Some(CompositorConfig::Connect { socket: Some("/nonexistent/sway".into()) }),
        &[],
        "could not connect to Sway at `/nonexistent/sway`: No such file or directory (os error 2); start Sway there, \
         or name another socket",
    );
    check(
        Some(CompositorConfig::Connect { socket: None }),
        &[],
        "the daemon's environment has neither `SWAYSOCK` nor `XDG_RUNTIME_DIR`; name the socket under \
         `[compositor]`",
    );
    check(
        Some(CompositorConfig::Connect { socket: None }),
        &[("XDG_RUNTIME_DIR", "/nonexistent"), ("SWAYSOCK", "/nonexistent/sway")],
        "no Sway of the daemon's own user is running; start one, or name its socket under `[compositor]`",
    );
    check(
        Some(CompositorConfig::Start { argv: vec!["no-such-sway".to_owned()], user: None }),
        &[],
        "program `no-such-sway` not found; install it, or give its absolute path",
    );
    check(
        Some(CompositorConfig::Start { argv: vec!["sway".to_owned()], user: Some("grandma".to_owned()) }),
        &[],
        "no such user `grandma` on this machine; create the login with `sudo adduser grandma`, or correct the name in the \
         policy",
    );
    check(
        Some(CompositorConfig::Start { argv: vec!["false".to_owned()], user: None }),
        &[],
        "Sway has exited; its log shows why",
    );
}
