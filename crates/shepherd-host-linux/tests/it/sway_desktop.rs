//! A real Sway without a screen, whose windows the tests list with `swaymsg` and not with the host's code.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use shepherd_api::EntryKind;
use shepherd_core::policy::{CompositorConfig, PolicyEntry, PolicyRules, RunPolicy};
use shepherd_host_api::HostAdapter as _;
use tempfile::TempDir;

use crate::harness::{TestHost, entry, is_root, wait_until};

/// Sway refuses to run as root. If the tests run as root, Sway and the programs run as this user.
const USER: &str = "nobody";

/// A headless Sway, and a home folder for its programs.
pub(crate) struct SwayDesktop {
    sway: Option<Child>,
    folder: TempDir,
}

impl SwayDesktop {
    /// Creates the folder, without starting Sway.
    pub(crate) fn prepare() -> Self {
        for program in ["sway", "swaymsg", "foot", "tuxpaint", "chromium"] {
            assert_installed(program);
        }
        let desktop = Self { sway: None, folder: TempDir::with_prefix("sway-").unwrap() };
        std::fs::set_permissions(desktop.folder.path(), PermissionsExt::from_mode(0o755)).unwrap();
        std::fs::create_dir(desktop.home()).unwrap();
        std::fs::set_permissions(desktop.home(), PermissionsExt::from_mode(0o700)).unwrap();
        if is_root() {
            std::os::unix::fs::chown(desktop.home(), Some(65_534), Some(65_534)).unwrap();
        }
        let config =
            "output HEADLESS-1 mode 1280x720@60Hz position 0 0\ndefault_border none\nxwayland disable\n";
        std::fs::write(desktop.folder.path().join("config"), config).unwrap();
        desktop
    }

    /// Adds lines to the configuration of Sway.
    pub(crate) fn configure(&self, lines: &str) {
        let file = std::fs::OpenOptions::new().append(true).open(self.folder.path().join("config"));
        file.unwrap().write_all(lines.as_bytes()).unwrap();
    }

    /// Lets Sway start Xwayland for X11 programs.
    pub(crate) fn enable_xwayland(&self) {
        for program in ["Xwayland", "dosbox", "tuxmath"] {
            assert_installed(program);
        }
        // Xwayland refuses the folder if another user has created it. A system with X11 has it from its start.
        let sockets = Path::new("/tmp/.X11-unix");
        if is_root() && std::fs::create_dir(sockets).is_ok() {
            std::fs::set_permissions(sockets, PermissionsExt::from_mode(0o1777)).unwrap();
        }
        self.configure("xwayland enable\n");
    }

    pub(crate) fn new() -> Self {
        let mut desktop = Self::prepare();
        desktop.start();
        desktop
    }

    pub(crate) fn start(&mut self) {
        let _ = std::fs::remove_file(self.socket());
        let argv = self.argv();
        let (program, args) = argv.split_first().unwrap();
        let log = std::fs::File::create(self.folder.path().join("log")).unwrap();
        let sway = Command::new(program)
            .args(args)
            .env("SWAYSOCK", self.socket())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn();
        self.sway = Some(sway.unwrap());
        wait_until("Sway", || UnixStream::connect(self.socket()).is_ok());
    }

    /// Returns the command line that starts Sway as the right user.
    pub(crate) fn argv(&self) -> Vec<String> {
        let as_user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
        let home = self.home().display().to_string();
        let mut argv: Vec<String> =
            as_user.iter().filter(|_| is_root()).map(|&word| word.to_owned()).collect();
        argv.extend(["env".to_owned(), format!("HOME={home}"), format!("XDG_RUNTIME_DIR={home}")]);
        let headless = ["WLR_BACKENDS=headless", "WLR_LIBINPUT_NO_DEVICES=1", "WLR_RENDERER=pixman"];
        argv.extend(headless.map(str::to_owned));
        argv.extend(["sway".to_owned(), "-c".to_owned()]);
        argv.push(self.folder.path().join("config").display().to_string());
        argv
    }

    /// Kills Sway with `SIGKILL`.
    pub(crate) fn kill(&mut self) {
        let mut sway = self.sway.take().unwrap();
        sway.kill().unwrap();
        sway.wait().unwrap();
    }

    /// Returns the user of Sway and of the programs.
    pub(crate) fn uid(&self) -> u32 {
        self.home().metadata().unwrap().uid()
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.home().join("sway.sock")
    }

    /// Returns rules that name this compositor.
    pub(crate) fn rules(&self) -> PolicyRules {
        PolicyRules {
            compositor: Some(CompositorConfig::Connect { socket: Some(self.socket()) }),
            ..PolicyRules::default()
        }
    }

    /// Returns an entry for a program. The host, not the entry, tells the program its display.
    pub(crate) fn entry(&self, argv: &[&str]) -> PolicyEntry {
        let home = self.home().display().to_string();
        let env = [
            ("HOME", home.as_str()),
            ("XDG_RUNTIME_DIR", &home),
            ("SDL_VIDEODRIVER", "wayland"),
            ("SDL_AUDIODRIVER", "dummy"),
            ("LIBGL_ALWAYS_SOFTWARE", "1"),
        ];
        let env: BTreeMap<_, _> = env.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let argv = argv.iter().map(|word| (*word).to_owned()).collect();
        let user = is_root().then(|| USER.to_owned());
        let run = RunPolicy { user, ..RunPolicy::default() };
        PolicyEntry { run, ..entry(EntryKind::Process { argv, env, cwd: None }) }
    }

    /// Returns all windows, as `swaymsg` lists them.
    pub(crate) fn windows(&self) -> Vec<DesktopWindow> {
        windows_at(&self.socket())
    }
}

fn assert_installed(program: &str) {
    let is_in = |folder: &str| Path::new(folder).join(program).exists();
    assert!(is_in("/usr/bin") || is_in("/usr/games"), "no {program}: `cargo xtask setup` installs it");
}

impl Drop for SwayDesktop {
    fn drop(&mut self) {
        if self.sway.is_some() {
            self.kill();
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DesktopWindow {
    pub(crate) pid: i32,
    pub(crate) is_fullscreen: bool,
    pub(crate) is_focused: bool,
    /// Set if the window came through Xwayland.
    pub(crate) is_x11: bool,
}

/// Returns the windows of a Sway, in the order in which they were opened.
pub(crate) fn windows_at(socket: &Path) -> Vec<DesktopWindow> {
    let shown =
        Command::new("swaymsg").arg("-s").arg(socket).args(["-r", "-t", "get_tree"]).output().unwrap();
    let mut found = Vec::new();
    collect(&serde_json::from_slice(&shown.stdout).unwrap_or_default(), &mut found);
    found.sort_by_key(|(id, _)| *id);
    found.into_iter().map(|(_, window)| window).collect()
}

fn collect(node: &Value, found: &mut Vec<(i64, DesktopWindow)>) {
    if let Some(pid) = node["pid"].as_i64() {
        let (is_fullscreen, is_focused) = (node["fullscreen_mode"] == 1, node["focused"] == true);
        let (pid, is_x11) = (i32::try_from(pid).unwrap(), node["shell"] == "xwayland");
        let window = DesktopWindow { pid, is_fullscreen, is_focused, is_x11 };
        found.push((node["id"].as_i64().unwrap(), window));
    }
    for inner in ["nodes", "floating_nodes"].iter().filter_map(|key| node[key].as_array()).flatten() {
        collect(inner, found);
    }
}

/// Returns a process and all its descendants, each with its start time.
pub(crate) fn process_tree(pid: i32) -> Vec<(i32, String)> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let all: Vec<(i32, i32, String)> = processes
        .filter_map(|process| {
            let pid: i32 = process.file_name().to_str()?.parse().ok()?;
            let (parent, start) = parent_and_start(pid)?;
            Some((pid, parent, start))
        })
        .collect();
    let mut found: Vec<(i32, String)> =
        all.iter().filter(|(process, ..)| *process == pid).map(pid_and_start).collect();
    let mut next = 0;
    while let Some((parent, _)) = found.get(next).cloned() {
        found
            .extend(all.iter().filter(|(_, process_parent, _)| *process_parent == parent).map(pid_and_start));
        next += 1;
    }
    found
}

fn pid_and_start((pid, _, start): &(i32, i32, String)) -> (i32, String) {
    (*pid, start.clone())
}

/// Returns the processes that are still alive.
pub(crate) fn alive(processes: &[(i32, String)]) -> Vec<i32> {
    let lives = |(pid, start): &&(i32, String)| parent_and_start(*pid).is_some_and(|(_, now)| now == *start);
    processes.iter().filter(lives).map(|(pid, _)| *pid).collect()
}

/// Returns the parent and the start time of a process, unless it is a zombie.
fn parent_and_start(pid: i32) -> Option<(i32, String)> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields: Vec<&str> = text.rsplit_once(") ")?.1.split(' ').collect();
    (fields[0] != "Z" && fields[0] != "X").then(|| (fields[1].parse().unwrap(), fields[19].to_owned()))
}

impl TestHost {
    /// Returns a host that is connected to the desktop's Sway.
    pub(crate) fn on_desktop(desktop: &SwayDesktop, containment: ward_process::Containment) -> Self {
        let mut test_host = Self::new(containment);
        test_host.apply_rules(desktop.rules());
        wait_until("a connection", || test_host.host.capabilities().can_force_fullscreen);
        test_host
    }
}
