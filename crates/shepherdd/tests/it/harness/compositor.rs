//! A real Sway without a screen, which the daemon starts itself.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use super::ShepherddFixture;

/// Sway refuses to run as root, so root runs it as this user.
const NOBODY_UID: u32 = 65_534;

/// The configuration of Sway, and a home folder for Sway and its programs.
pub(crate) struct SwayFixture {
    folder: TempDir,
}

impl SwayFixture {
    pub(crate) fn new() -> Self {
        for program in ["sway", "swaymsg", "foot", "grim"] {
            assert_installed(program);
        }
        let screen = Self { folder: TempDir::with_prefix("sway-").unwrap() };
        std::fs::set_permissions(screen.folder.path(), PermissionsExt::from_mode(0o755)).unwrap();
        std::fs::create_dir(screen.home()).unwrap();
        // Some programs refuse a home folder that others can read.
        std::fs::set_permissions(screen.home(), PermissionsExt::from_mode(0o700)).unwrap();
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(screen.home(), Some(NOBODY_UID), Some(NOBODY_UID)).unwrap();
        }
        let text = "output HEADLESS-1 mode 320x240@60Hz position 0 0\nxwayland disable\n";
        std::fs::write(screen.configuration(), text).unwrap();
        screen
    }

    /// Adds lines to Sway's configuration.
    pub(crate) fn configure(&self, lines: &str) {
        let text = std::fs::read_to_string(self.configuration()).unwrap();
        std::fs::write(self.configuration(), text + lines).unwrap();
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    pub(crate) fn configuration(&self) -> PathBuf {
        self.folder.path().join("config")
    }

    fn display(&self) -> PathBuf {
        self.home().join("wayland-1")
    }

    /// Returns a policy with one entry that has these settings.
    pub(crate) fn policy(&self, entry: &str) -> String {
        let (lend, user) = match rustix::process::geteuid().is_root() {
            true => (
                format!(r#""setpriv", "--reuid={NOBODY_UID}", "--regid={NOBODY_UID}", "--clear-groups", "#),
                "user = \"nobody\"",
            ),
            false => (String::new(), ""),
        };
        let (home, config) = (self.home(), self.configuration());
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
{user}
display = "fullscreen"
always = true
{entry}
"#
        )
    }

    /// Returns a screenshot, or nothing while there is no screen.
    pub(crate) fn screenshot(&self) -> Vec<u8> {
        let mut grim = Command::new("grim");
        grim.args(["-t", "ppm", "-"]).env("WAYLAND_DISPLAY", self.display()).output().unwrap().stdout
    }
}

/// Fails if a program is missing.
pub(crate) fn assert_installed(program: &str) {
    let path = Path::new("/usr/bin").join(program);
    assert!(path.exists(), "no {program}: `cargo xtask setup` installs it");
}

/// Returns the path of the socket of the daemon's Sway.
pub(crate) fn ipc_socket(fixture: &ShepherddFixture) -> PathBuf {
    let prefix = format!("shepherd-compositor-{}-", fixture.daemon_pid().as_raw_nonzero());
    let files = Path::new("/tmp").read_dir().unwrap().flatten();
    let mut own = files.filter(|file| file.file_name().to_string_lossy().starts_with(&prefix));
    own.next().unwrap().path()
}

/// Returns the process whose window fills the screen, according to `swaymsg`.
pub(crate) fn fullscreen_window(socket: &Path) -> Option<i32> {
    let tree = Command::new("swaymsg").arg("-s").arg(socket).args(["-r", "-t", "get_tree"]).output().unwrap();
    let mut left = vec![serde_json::from_slice::<Value>(&tree.stdout).unwrap()];
    while let Some(node) = left.pop() {
        if let Some(pid) = node["pid"].as_i64().filter(|_| node["fullscreen_mode"] == 1) {
            return i32::try_from(pid).ok();
        }
        let inner = ["nodes", "floating_nodes"].iter().filter_map(|key| node[key].as_array()).flatten();
        left.extend(inner.cloned());
    }
    None
}
