//! The daemon with a real Sway that it starts itself: a program is shown, fills the screen, and ends with its time
//! (S6.7, S13.5).

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use shepherd_api::{EndReason, EventKind};
use tempfile::TempDir;

use crate::harness::{Household, processes_with, until};

/// Sway refuses to be root: root lends it to this user.
const NOBODY: u32 = 65_534;

fn policy(home: &Path, config: &Path) -> String {
    let (lend, user) = match rustix::process::geteuid().is_root() {
        true => (
            format!(r#""setpriv", "--reuid={NOBODY}", "--regid={NOBODY}", "--clear-groups", "#),
            "user = \"nobody\"",
        ),
        false => (String::new(), ""),
    };
    let (home, config) = (home.display(), config.display());
    format!(
        r#"
config_version = 1

[compositor]
start = [
  {lend}"env", "HOME={home}", "XDG_RUNTIME_DIR={home}", "WLR_BACKENDS=headless",
  "WLR_LIBINPUT_NO_DEVICES=1", "WLR_RENDERER=pixman", "sway", "-c", "{config}",
]

[[entries]]
id = "terminal"
argv = ["foot", "sh", "-c", "while :; do sleep 1; done", "{home}"]
env = {{ HOME = "{home}", XDG_RUNTIME_DIR = "{home}" }}
{user}
display = "fullscreen"
always = true
max_run = "6s"
"#
    )
}

#[test]
fn a_program_fills_the_screen_until_its_time_is_over() {
    for program in ["sway", "swaymsg", "foot", "grim"] {
        let path = Path::new("/usr/bin").join(program);
        assert!(path.exists(), "no {program}: `cargo xtask setup` installs it");
    }
    let folder = TempDir::with_prefix("sway-").unwrap();
    std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let (home, config) = (folder.path().join("home"), folder.path().join("config"));
    std::fs::create_dir(&home).unwrap();
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(&home, Some(NOBODY), Some(NOBODY)).unwrap();
    }
    let text = "output HEADLESS-1 mode 320x240@60Hz position 0 0\nxwayland disable\n";
    std::fs::write(&config, text).unwrap();
    let mut household = Household::new(&policy(&home, &config)).with_variable("SHEPHERD_LOG", "debug");
    household.start();
    let display = home.join("wayland-1");
    until("the daemon starts Sway", || !picture(&display).is_empty());
    let empty = picture(&display);
    let mut listener = household.subscriber();
    let session = household.launch("terminal");
    until("its window is noticed", || household.log().contains("shows its window"));
    let lacks_windows = |sentence: &String| sentence.starts_with("Windows are");
    assert!(!household.health().limitations.iter().any(lacks_windows));
    let socket = ipc_socket(&household);
    until("it fills the screen", || has_fullscreen_window(&socket));
    until("it is seen", || picture(&display) != empty);
    let home = home.to_str().unwrap();
    assert_eq!(processes_with(home).len(), 2, "a terminal and its shell");
    let end = listener.wait_for(|event| match event {
        EventKind::SessionEnded { session_id, end } if *session_id == session.session_id => Some(end.clone()),
        _ => None,
    });
    assert_eq!(end, EndReason::Expired);
    assert_eq!(processes_with(home), [0; 0]);
    assert!(!has_fullscreen_window(&socket));
    household.end();
    assert!(!socket.exists() && picture(&display).is_empty(), "Sway ends with the daemon");
}

/// What is on the screen; nothing while there is none.
fn picture(display: &Path) -> Vec<u8> {
    let grim = Command::new("grim").args(["-t", "ppm", "-"]).env("WAYLAND_DISPLAY", display).output();
    grim.unwrap().stdout
}

/// Where the Sway of this daemon listens.
fn ipc_socket(household: &Household) -> PathBuf {
    let prefix = format!("shepherd-compositor-{}-", household.daemon_pid().as_raw_nonzero());
    let files = Path::new("/tmp").read_dir().unwrap().flatten();
    let mut own = files.filter(|file| file.file_name().to_string_lossy().starts_with(&prefix));
    own.next().unwrap().path()
}

/// As Sway's own program sees it.
fn has_fullscreen_window(socket: &Path) -> bool {
    let tree = Command::new("swaymsg").arg("-s").arg(socket).args(["-r", "-t", "get_tree"]).output().unwrap();
    let mut left = vec![serde_json::from_slice::<Value>(&tree.stdout).unwrap()];
    while let Some(node) = left.pop() {
        if node["pid"].is_i64() && node["fullscreen_mode"] == 1 {
            return true;
        }
        let inner = ["nodes", "floating_nodes"].iter().filter_map(|key| node[key].as_array()).flatten();
        left.extend(inner.cloned());
    }
    false
}
