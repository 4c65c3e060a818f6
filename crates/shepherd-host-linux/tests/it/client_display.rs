//! The display of the desktop from which a program is launched (S6.8). On a compositor of the host: `sway_x11.rs`.

use std::collections::BTreeMap;

use shepherd_api::{ClientDisplay, EntryKind};
use shepherd_core::UserDisplay;
use shepherd_core::policy::{PolicyEntry, RunPolicy};

use crate::harness::{TestHost, entry, is_root, process};

/// The variables that name displays.
const WATCHED: &[&str] = &["DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "XDG_RUNTIME_DIR"];

/// Returns the display of a client of this user.
pub(crate) fn client_display(uid: u32) -> Option<UserDisplay> {
    let named = ClientDisplay {
        wayland: Some(format!("/run/user/{uid}/wayland-7")),
        x11: Some(":77".to_owned()),
        x11_authority: Some("/home/anna/.Xauthority".to_owned()),
    };
    UserDisplay::from_client(&named, uid)
}

/// Returns a host whose own environment has a display.
fn host_with_display() -> TestHost {
    TestHost::with_options(|options| {
        options.environment =
            [("DISPLAY", ":1"), ("XAUTHORITY", "/root/keys"), ("XDG_RUNTIME_DIR", "/run/daemon")]
                .map(|(name, value)| (name.into(), value.into()))
                .into();
    })
}

/// Runs `env` and returns the variables about displays.
fn displays_of(test_host: &mut TestHost, display: Option<UserDisplay>, entry: PolicyEntry) -> Vec<String> {
    let session = test_host.start_from(display, entry);
    test_host.wait_for_exit(&session);
    test_host.wait_for_cleanup();
    let output = session.output();
    let is_watched = |line: &&str| line.split_once('=').is_some_and(|(name, _)| WATCHED.contains(&name));
    let mut found: Vec<String> = output.lines().filter(is_watched).map(str::to_owned).collect();
    found.sort();
    found
}

fn own_uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

#[test]
fn a_program_of_the_same_user_gets_the_display_of_the_client() {
    let uid = own_uid();
    let found = displays_of(&mut host_with_display(), client_display(uid), entry(process(&["env"])));
    let runtime = format!("XDG_RUNTIME_DIR=/run/user/{uid}");
    let expected =
        ["DISPLAY=:77", "WAYLAND_DISPLAY=wayland-7", "XAUTHORITY=/home/anna/.Xauthority", runtime.as_str()];
    assert_eq!(found, expected);
}

#[test]
fn a_program_of_another_user_does_not() {
    let mut test_host = host_with_display();
    let daemons = ["DISPLAY=:1", "XAUTHORITY=/root/keys", "XDG_RUNTIME_DIR=/run/daemon"];
    let of_another_user = client_display(own_uid() + 1);
    assert_eq!(displays_of(&mut test_host, of_another_user, entry(process(&["env"]))), daemons);
    assert_eq!(displays_of(&mut test_host, None, entry(process(&["env"]))), daemons);
    if is_root() {
        let run = RunPolicy { user: Some("nobody".to_owned()), ..RunPolicy::default() };
        let child = PolicyEntry { run, ..entry(process(&["env"])) };
        let of_root = displays_of(&mut test_host, client_display(0), child.clone());
        assert_eq!(of_root, ["DISPLAY=:1"], "an administrator's own screen is not the child's");
        let of_child = displays_of(&mut test_host, client_display(65_534), child);
        assert_eq!(of_child[..2], ["DISPLAY=:77", "WAYLAND_DISPLAY=wayland-7"]);
    }
}

#[test]
fn variables_of_the_entry_come_first() {
    let env = BTreeMap::from([("XAUTHORITY".to_owned(), "/srv/keys".to_owned())]);
    let kind = EntryKind::Process { argv: vec!["env".to_owned()], env, cwd: None };
    let found = displays_of(&mut host_with_display(), client_display(own_uid()), entry(kind));
    assert_eq!(found[..3], ["DISPLAY=:77", "WAYLAND_DISPLAY=wayland-7", "XAUTHORITY=/srv/keys"]);
}
