//! The daemon with a real Sway that it starts itself: a program is shown, fills the screen, and ends with its time
//! (S6.7, S13.5), and so does what it has Sway start (S13.6).

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use shepherd_api::{EndReason, EventKind, SessionView};
use tempfile::TempDir;

use crate::harness::{Household, Subscriber, processes_with, until};

/// Sway refuses to be root: root lends it to this user.
const NOBODY: u32 = 65_534;

/// A home for Sway and its programs, and its configuration.
struct Screen {
    folder: TempDir,
}

impl Screen {
    fn new() -> Self {
        for program in ["sway", "swaymsg", "foot", "grim"] {
            let path = Path::new("/usr/bin").join(program);
            assert!(path.exists(), "no {program}: `cargo xtask setup` installs it");
        }
        let screen = Self { folder: TempDir::with_prefix("sway-").unwrap() };
        std::fs::set_permissions(screen.folder.path(), PermissionsExt::from_mode(0o755)).unwrap();
        std::fs::create_dir(screen.home()).unwrap();
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(screen.home(), Some(NOBODY), Some(NOBODY)).unwrap();
        }
        let text = "output HEADLESS-1 mode 320x240@60Hz position 0 0\nxwayland disable\n";
        std::fs::write(screen.configuration(), text).unwrap();
        screen
    }

    /// Further lines of Sway's configuration.
    fn configure(&self, lines: &str) {
        let text = std::fs::read_to_string(self.configuration()).unwrap();
        std::fs::write(self.configuration(), text + lines).unwrap();
    }

    fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    fn configuration(&self) -> PathBuf {
        self.folder.path().join("config")
    }

    fn display(&self) -> PathBuf {
        self.home().join("wayland-1")
    }
}

/// With one entry that runs for six seconds.
fn policy(screen: &Screen, argv: &str) -> String {
    let (lend, user) = match rustix::process::geteuid().is_root() {
        true => (
            format!(r#""setpriv", "--reuid={NOBODY}", "--regid={NOBODY}", "--clear-groups", "#),
            "user = \"nobody\"",
        ),
        false => (String::new(), ""),
    };
    let (home, config) = (screen.home(), screen.configuration());
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
argv = {argv}
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
    let screen = Screen::new();
    let (home, display) = (screen.home(), screen.display());
    let argv = format!(r#"["foot", "sh", "-c", "while :; do sleep 1; done", "{}"]"#, home.display());
    let mut household = Household::new(&policy(&screen, &argv)).with_variable("SHEPHERD_LOG", "debug");
    household.start();
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
    let end = end_of(&mut listener, &session);
    assert_eq!(end, EndReason::Expired);
    assert_eq!(processes_with(home), [0; 0]);
    assert!(!has_fullscreen_window(&socket));
    household.end();
    assert!(!socket.exists() && picture(&display).is_empty(), "Sway ends with the daemon");
}

/// What a program has Sway start is in no session, and nowhere below one. The bar was there before.
pub(crate) fn a_program_that_sway_was_made_to_start_ends_with_the_session() {
    let screen = Screen::new();
    let (bar, note) = (screen.home().join("bar"), screen.home().join("socket"));
    std::fs::write(&bar, "").unwrap();
    screen.configure(&format!("exec exec tail -f {}\n", bar.display()));
    let script = format!("swaymsg -s $(cat {}) exec 'exec sleep TOKEN'; exec sleep 600", note.display());
    let mut household = Household::new(&policy(&screen, &format!(r#"["sh", "-c", "{script}"]"#)));
    household.start();
    until("the daemon starts Sway", || !picture(&screen.display()).is_empty());
    let bars = || processes_with(bar.to_str().unwrap());
    until("Sway starts its bar", || bars().len() == 1);
    let resident = bars();
    std::fs::write(&note, ipc_socket(&household).to_str().unwrap()).unwrap();
    let mut listener = household.subscriber();
    let session = household.launch("terminal");
    let game = household.filled("sleep\0TOKEN");
    until("Sway starts the game", || !processes_with(&game).is_empty());
    let end = end_of(&mut listener, &session);
    assert_eq!(end, EndReason::Expired);
    assert_eq!(household.players(), [0; 0]);
    assert_eq!(bars(), resident);
    household.end();
}

fn end_of(listener: &mut Subscriber, session: &SessionView) -> EndReason {
    listener.wait_for(|event| match event {
        EventKind::SessionEnded { session_id, end } if *session_id == session.session_id => Some(end.clone()),
        _ => None,
    })
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
