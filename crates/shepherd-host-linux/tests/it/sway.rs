//! Real programs on a real Sway (S6.7, S5.1): noticed, in front, filling the screen, ended on time.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use shepherd_core::policy::{CompositorConfig, PolicyRules, WindowDisplay};
use shepherd_host_api::{ExitStatus, HostAdapter, HostEvent};
use ward_process::Containment;

use crate::harness::{
    SHORT_GRACE, StartedProgram, TEST_TIMEOUT, TestHost, containments, is_root, process, wait_until,
};
use crate::many_sessions::context_switches;
use crate::sway_desktop::{DesktopWindow, SwayDesktop, alive, process_tree, windows_at};

/// Ignores that it is asked to end and that its compositor is gone, once it has come up.
const TUX_PAINT: &[&str] = &["tuxpaint", "--windowed", "--800x600", "--nosound", "--nolockfile"];

fn start_tux_paint(ground: &mut TestHost, desktop: &SwayDesktop) -> (StartedProgram, Vec<(i32, String)>) {
    let session = ground.start(desktop.entry(TUX_PAINT));
    await_window(ground, &session);
    let processes = show_fullscreen(ground, &session, desktop);
    wait_until("Tux Paint", || catches(processes[0].0, 13) && catches(processes[0].0, 15));
    (session, processes)
}

/// Whether a process has a handler of its own for a signal.
fn catches(pid: i32, signal: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
    u64::from_str_radix(mask.trim(), 16).unwrap() & (1 << (signal - 1)) != 0
}

/// S4.7: a window that is there and does not change costs nothing.
fn assert_no_thread_wakes() {
    std::thread::sleep(Duration::from_millis(300));
    let before = context_switches();
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(context_switches(), before);
}

pub(crate) fn await_window(ground: &mut TestHost, session: &StartedProgram) {
    let ready = HostEvent::WindowReady { session_id: session.session_id.clone() };
    assert_eq!(ground.next_event(), ready, "{}", session.output());
}

/// Fills the screen, and says with whose processes.
fn show_fullscreen(
    ground: &mut TestHost,
    session: &StartedProgram,
    desktop: &SwayDesktop,
) -> Vec<(i32, String)> {
    assert_eq!(desktop.windows().iter().filter(|window| window.is_fullscreen).count(), 0);
    ground.host.show_window(&session.session_id, WindowDisplay::Fullscreen);
    let fullscreen = |window: &DesktopWindow| window.is_fullscreen && window.is_focused;
    wait_until("fullscreen window", || desktop.windows().iter().any(fullscreen));
    process_tree(desktop.windows()[0].pid)
}

#[test]
fn a_terminal_is_noticed_fills_the_screen_and_goes_when_asked_in_every_containment() {
    let desktop = SwayDesktop::new();
    for containment in containments() {
        let mut ground = TestHost::on_desktop(&desktop, containment);
        let session = ground.start(desktop.entry(&["foot", "sleep", "600"]));
        await_window(&mut ground, &session);
        let processes = show_fullscreen(&mut ground, &session, &desktop);
        assert!(processes.len() >= 2, "{processes:?}");
        assert_no_thread_wakes();
        let status = ground.stop(&session, TEST_TIMEOUT);
        assert_eq!(status, ExitStatus { code: Some(230), signal: None }, "{containment}");
        assert_eq!(alive(&processes), [0; 0], "{containment}");
        assert_eq!(desktop.windows(), []);
    }
}

#[test]
fn a_program_that_ignores_everything_is_killed_when_its_grace_is_over() {
    let desktop = SwayDesktop::new();
    let mut ground = TestHost::on_desktop(&desktop, containments()[0]);
    let (session, processes) = start_tux_paint(&mut ground, &desktop);
    let ordered = Instant::now();
    let status = ground.stop(&session, SHORT_GRACE);
    assert!(ordered.elapsed() >= SHORT_GRACE);
    assert_eq!(status, ExitStatus { code: None, signal: Some(9) });
    assert_eq!(alive(&processes), [0; 0]);
}

#[test]
fn a_browser_with_many_processes_leaves_none() {
    let desktop = SwayDesktop::new();
    let mut ground = TestHost::on_desktop(&desktop, containments()[0]);
    let profile = format!("--user-data-dir={}", desktop.home().join("profile").display());
    let args = ["--ozone-platform=wayland", "--no-first-run", "--disable-gpu", &profile, "about:blank"];
    let session = ground.start(desktop.entry(&[&["chromium"], &args[..]].concat()));
    await_window(&mut ground, &session);
    let processes = show_fullscreen(&mut ground, &session, &desktop);
    assert!(processes.len() >= 5, "{processes:?}");
    ground.stop(&session, Duration::from_secs(5));
    assert_eq!(alive(&processes), [0; 0]);
}

#[test]
fn windows_that_open_later_fill_the_screen_too_and_so_does_what_was_behind_them() {
    let desktop = SwayDesktop::new();
    let mut ground = TestHost::on_desktop(&desktop, containments()[0]);
    let go_on = desktop.home().join("go-on");
    let later = format!("while [ ! -e {} ]; do sleep 0.05; done; exec foot sleep 600", go_on.display());
    let session = ground.start(desktop.entry(&["sh", "-c", &format!("foot sleep 600 & {later}")]));
    // Ordered before there is any window.
    ground.host.show_window(&session.session_id, WindowDisplay::Fullscreen);
    await_window(&mut ground, &session);
    let shown = || desktop.windows().iter().map(|window| window.is_fullscreen).collect::<Vec<_>>();
    wait_until("first window", || shown() == [true]);
    std::fs::write(&go_on, "").unwrap();
    wait_until("second window", || shown() == [false, true]);
    let second = desktop.windows()[1].pid;
    Command::new("kill").arg(second.to_string()).status().unwrap();
    wait_until("first window again", || shown() == [true]);
    // One that gives up its place gets it back.
    Command::new("swaymsg").arg("-s").arg(desktop.socket()).arg("fullscreen disable").output().unwrap();
    wait_until("fullscreen window", || shown() == [true]);
    ground.stop(&session, TEST_TIMEOUT);
    ground.assert_no_event(Duration::from_millis(50));
}

#[test]
fn a_window_of_somebody_else_is_neither_noticed_nor_touched() {
    let desktop = SwayDesktop::new();
    let mut ground = TestHost::on_desktop(&desktop, containments()[0]);
    let session = ground.start(desktop.entry(&["sleep", "600"]));
    ground.host.show_window(&session.session_id, WindowDisplay::Fullscreen);
    let mut stranger = Command::new("foot")
        .args(["sleep", "600"])
        .env("WAYLAND_DISPLAY", desktop.home().join("wayland-1"))
        .env("XDG_RUNTIME_DIR", desktop.home())
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_until("the window of a stranger", || desktop.windows().len() == 1);
    ground.assert_no_event(Duration::from_millis(500));
    assert!(!desktop.windows()[0].is_fullscreen);
    // The same program, but of the session.
    let own = ground.start(desktop.entry(&["foot", "sleep", "600"]));
    ground.host.show_window(&own.session_id, WindowDisplay::Foreground);
    await_window(&mut ground, &own);
    wait_until("window in front", || desktop.windows().get(1).is_some_and(|window| window.is_focused));
    assert!(desktop.windows().iter().all(|window| !window.is_fullscreen));
    for session in [session, own] {
        ground.stop(&session, TEST_TIMEOUT);
    }
    stranger.kill().unwrap();
    stranger.wait().unwrap();
}

#[test]
fn a_session_outlives_sway_but_not_its_time_and_a_later_sway_is_found() {
    let mut desktop = SwayDesktop::new();
    let mut ground = TestHost::on_desktop(&desktop, containments()[0]);
    let capable = |ground: &TestHost| {
        let all = ground.host.capabilities();
        let windows = [all.can_observe_window_ready, all.can_force_foreground, all.can_force_fullscreen];
        assert!(windows.iter().all(|can| *can == windows[0]));
        let missing = ground.host.limitations().iter().any(|sentence| sentence.starts_with("Windows are"));
        assert_eq!(missing, !windows[0], "{:?}", ground.host.limitations());
        windows[0]
    };
    assert!(capable(&ground));
    let (session, processes) = start_tux_paint(&mut ground, &desktop);
    desktop.kill();
    match ground.next_event() {
        HostEvent::Problem { session_id: None, detail } => assert!(detail.contains("gone away"), "{detail}"),
        event => panic!("{event:?}"),
    }
    assert!(!capable(&ground));
    let status = ground.stop(&session, SHORT_GRACE);
    assert_eq!(status, ExitStatus { code: None, signal: Some(9) });
    assert_eq!(alive(&processes), [0; 0]);
    desktop.start();
    wait_until("another connection", || capable(&ground));
    let session = ground.start(desktop.entry(&["foot", "sleep", "600"]));
    await_window(&mut ground, &session);
    ground.stop(&session, TEST_TIMEOUT);
}

#[test]
fn a_sway_of_our_own_is_started_again_when_it_dies_and_ends_with_us() {
    let desktop = SwayDesktop::prepare();
    // A PID namespace would hide from Sway whose its windows are.
    let strongest = if is_root() { Containment::Cgroup } else { Containment::PidNamespace };
    let mut ground = TestHost::with_options(|options| {
        options.containment = Some(strongest);
        options.socket_folder = desktop.home();
    });
    let start = CompositorConfig::Start { argv: desktop.argv() };
    ground.apply_rules(PolicyRules { compositor: Some(start), ..PolicyRules::default() });
    let mut earlier = 0;
    for _ in 0..2 {
        let connected = |ground: &TestHost| ground.host.capabilities().can_force_fullscreen;
        wait_until("a Sway", || connected(&ground));
        let session = ground.start(desktop.entry(&["foot", "sleep", "600"]));
        ground.host.show_window(&session.session_id, WindowDisplay::Fullscreen);
        await_window(&mut ground, &session);
        let socket = own_socket(&desktop);
        wait_until("fullscreen window", || windows_at(&socket).iter().any(|window| window.is_fullscreen));
        ground.stop(&session, TEST_TIMEOUT);
        let sway = listener_pid(&socket);
        assert_ne!(sway, earlier);
        earlier = sway;
        Command::new("kill").args(["-9", &sway.to_string()]).status().unwrap();
        match ground.next_event() {
            HostEvent::Problem { session_id: None, .. } => assert!(!connected(&ground)),
            event => panic!("{event:?}"),
        }
    }
    wait_until("a third Sway", || ground.host.capabilities().can_force_fullscreen);
    let processes = process_tree(listener_pid(&own_socket(&desktop)));
    assert_eq!(processes.len(), 1, "{processes:?}");
    drop(ground);
    assert_eq!(alive(&processes), [0; 0]);
    let sockets = desktop.home().read_dir().unwrap().flatten();
    assert_eq!(sockets.filter(|file| file.file_name().to_string_lossy().starts_with("shepherd-")).count(), 0);
}

#[test]
fn a_program_that_is_started_while_sway_comes_up_finds_it() {
    let desktop = SwayDesktop::prepare();
    let mut ground = TestHost::with_options(|options| options.socket_folder = desktop.home());
    let start = CompositorConfig::Start { argv: desktop.argv() };
    ground.apply_rules(PolicyRules { compositor: Some(start), ..PolicyRules::default() });
    let session = ground.start(desktop.entry(&["foot", "sleep", "600"]));
    await_window(&mut ground, &session);
    ground.stop(&session, TEST_TIMEOUT);
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
fn what_is_missing_is_said_with_its_cure() {
    let check = |compositor: Option<CompositorConfig>, environment: &[(&str, &str)], expected: &str| {
        let mut ground = TestHost::with_options(|options| {
            options.environment =
                environment.iter().map(|(name, value)| (name.into(), value.into())).collect();
        });
        let wanted = compositor.is_some();
        ground.apply_rules(PolicyRules { compositor, ..PolicyRules::default() });
        if wanted {
            assert!(matches!(ground.next_event(), HostEvent::Problem { session_id: None, .. }));
        }
        let said = ground.host.limitations();
        let expected = format!("Windows are neither noticed nor brought to the front: {expected}.");
        assert!(said.contains(&expected), "{said:#?}");
        // Without windows everything else is as ever.
        let session = ground.start(crate::harness::entry(process(&["true"])));
        ground.host.show_window(&session.session_id, WindowDisplay::Fullscreen);
        assert_eq!(ground.wait_for_exit(&session), ExitStatus { code: Some(0), signal: None });
    };
    check(None, &[], "the policy names no `[compositor]`");
    check(
        Some(CompositorConfig::Connect { socket: Some("/nonexistent/sway".into()) }),
        &[],
        "no Sway answers at `/nonexistent/sway` (No such file or directory (os error 2)); start one there, or name \
         another socket",
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
        "no Sway of the daemon's own user runs; start one, or name its socket under `[compositor]`",
    );
    check(
        Some(CompositorConfig::Start { argv: vec!["no-such-sway".to_owned()] }),
        &[],
        "there is no program `no-such-sway`; install it, or give its whole path",
    );
    check(
        Some(CompositorConfig::Start { argv: vec!["false".to_owned()] }),
        &[],
        "the Sway that was started has ended; its log says why",
    );
}
