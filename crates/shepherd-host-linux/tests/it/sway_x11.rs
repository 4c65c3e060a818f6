//! X11 programs on a Sway that the host started: they find Xwayland without any setting in the policy (S6.7).

use std::collections::BTreeMap;

use shepherd_api::EntryKind;
use shepherd_core::policy::{CompositorConfig, PolicyEntry, PolicyRules, WindowDisplay};
use shepherd_host_api::HostAdapter;
use ward_process::Containment;

use crate::client_display::client_display;
use crate::harness::{SHORT_GRACE, TestHost, is_root, wait_until};
use crate::sway::{await_window, own_socket};
use crate::sway_desktop::{SwayDesktop, windows_at};

/// Returns an entry with no variable but a home that can be written.
pub(crate) fn entry_with_home(desktop: &SwayDesktop, argv: &[&str]) -> PolicyEntry {
    let entry = desktop.entry(argv);
    let EntryKind::Process { argv, mut env, cwd } = entry.kind else { unreachable!() };
    env.retain(|name, _| name == "HOME");
    PolicyEntry { kind: EntryKind::Process { argv, env, cwd }, ..entry }
}

pub(crate) fn host_with_own_sway(desktop: &SwayDesktop) -> TestHost {
    let mut test_host = TestHost::with_options(|options| {
        // An X11 program tells Sway its process id, which is another one inside a PID namespace.
        options.containment = Some(if is_root() { Containment::Cgroup } else { Containment::Subreaper });
        options.socket_folder = desktop.home();
    });
    let start = CompositorConfig::Start { argv: desktop.argv(), user: None };
    test_host.apply_rules(PolicyRules { compositor: Some(start), ..PolicyRules::default() });
    test_host
}

/// Returns true if this user has an account. Xwayland lets its own user in by name, so it refuses everybody if its user
/// has none, as in the tests' run as an ordinary user.
pub(crate) fn has_account() -> bool {
    let own = rustix::process::getuid().as_raw().to_string();
    let accounts = std::fs::read_to_string("/etc/passwd").unwrap();
    accounts.lines().any(|account| account.split(':').nth(2) == Some(&own))
}

#[test]
fn an_x11_program_shows_a_window_and_fills_the_screen() {
    assert_fills_the_screen("dosbox");
}

/// The game of the installation guide.
#[test]
fn tuxmath_shows_a_window_and_fills_the_screen() {
    assert_fills_the_screen("tuxmath");
}

fn assert_fills_the_screen(program: &str) {
    let desktop = SwayDesktop::prepare();
    desktop.enable_xwayland();
    let mut test_host = host_with_own_sway(&desktop);
    // The program starts while Sway is starting, and Xwayland starts with the program.
    let session = test_host.start(entry_with_home(&desktop, &[program]));
    if !has_account() {
        test_host.wait_for_exit(&session);
        test_host.wait_for_cleanup();
        let output = session.output();
        // SDL 1.2 doesn't show Xwayland's own words.
        let refusals = ["Authorization required", "Couldn't initialize SDL"];
        assert!(refusals.iter().any(|refusal| output.contains(refusal)), "{output}");
        return;
    }
    test_host.host.show_window(&session.session_id, WindowDisplay::Fullscreen);
    await_window(&mut test_host, &session);
    let socket = own_socket(&desktop);
    wait_until("fullscreen window", || {
        windows_at(&socket).iter().any(|window| window.is_fullscreen && window.is_x11)
    });
    test_host.stop(&session, SHORT_GRACE);
    wait_until("the window is gone", || windows_at(&socket).is_empty());
}

#[test]
fn programs_get_both_displays_and_without_xwayland_only_one() {
    for is_enabled in [true, false] {
        let desktop = SwayDesktop::prepare();
        if is_enabled {
            desktop.enable_xwayland();
        }
        let mut test_host = host_with_own_sway(&desktop);
        // The display of a client's desktop doesn't replace the compositor's (S6.8).
        let session =
            test_host.start_from(client_display(desktop.uid()), entry_with_home(&desktop, &["env"]));
        test_host.wait_for_exit(&session);
        test_host.wait_for_cleanup();
        let output = session.output();
        let environment: BTreeMap<&str, &str> =
            output.lines().filter_map(|line| line.split_once('=')).collect();
        let wayland = desktop.home().join("wayland-1");
        assert_eq!(environment.get("WAYLAND_DISPLAY").copied(), wayland.to_str(), "{output}");
        let display = environment.get("DISPLAY").copied().and_then(|name| name.strip_prefix(':'));
        let display: Option<u32> = display.map(|number| number.parse().unwrap());
        assert_eq!(display.is_some(), is_enabled, "{output}");
        assert_eq!(environment.get("XAUTHORITY"), None, "{output}");
    }
}
