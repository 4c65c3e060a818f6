//! Launches from a child's desktop: the program is shown there, without any setting in the policy (S6.8).

use std::io::Write as _;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command as Program, Stdio};

use jiff::Timestamp;
use rustix::process::{Pid, Signal, geteuid, kill_process};
use serde_json::Value;
use shepherd_api::{
    ApiError, ClientDisplay, Command, CommandReply, ErrorCode, Millis, SessionPhase, SessionView,
};
use shepherd_util::SessionId;
use tempfile::TempDir;

use crate::support::fake_daemon::FakeDaemon;
use crate::support::{CliTestDaemon, command, program, text, wait_until};

/// The child, if the tests run as root. Sway refuses to run as root.
const CHILD_UID: u32 = 65_534;

/// A child's desktop: a Sway with Xwayland that knows nothing of Shepherd.
struct ChildDesktop {
    folder: TempDir,
    sway: Child,
}

impl ChildDesktop {
    fn start() -> Self {
        let folder = tempfile::Builder::new().prefix("desk-").tempdir_in("/tmp").unwrap();
        let path = |name: &str| folder.path().join(name);
        let set_mode =
            |path: &Path, mode| std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
        set_mode(folder.path(), 0o755);
        std::fs::create_dir(path("home")).unwrap();
        set_mode(&path("home"), 0o700);
        if geteuid().is_root() {
            std::os::unix::fs::chown(path("home"), Some(CHILD_UID), Some(CHILD_UID)).unwrap();
            // Xwayland refuses the folder if another user has created it. A system with X11 has it from its start.
            let sockets = Path::new("/tmp/.X11-unix");
            if std::fs::create_dir(sockets).is_ok() {
                set_mode(sockets, 0o1777);
            }
        }
        // Without `-ac`, Xwayland refuses a user without an account, as in the tests' run as an ordinary user.
        let mut xwayland = std::fs::File::create(path("xwayland")).unwrap();
        xwayland.write_all(b"#!/bin/sh\nexec Xwayland \"$@\" -ac\n").unwrap();
        drop(xwayland);
        set_mode(&path("xwayland"), 0o755);
        let note = path("home").join("display");
        let config = format!(
            "output HEADLESS-1 mode 1280x720@60Hz position 0 0\nxwayland enable\nexec 'echo $DISPLAY > {}'\n",
            note.display()
        );
        std::fs::write(path("config"), config).unwrap();
        let sway = as_child(Path::new("sway"))
            .arg("-c")
            .arg(path("config"))
            .env("HOME", path("home"))
            .env("XDG_RUNTIME_DIR", path("home"))
            .env("SWAYSOCK", path("home").join("sway.sock"))
            .envs([
                ("WLR_BACKENDS", "headless"),
                ("WLR_LIBINPUT_NO_DEVICES", "1"),
                ("WLR_RENDERER", "pixman"),
            ])
            .env("WLR_XWAYLAND", path("xwayland"))
            .env_remove("WAYLAND_DISPLAY")
            .env_remove("DISPLAY")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(std::fs::File::create(path("log")).unwrap())
            .spawn()
            .unwrap_or_else(|error| panic!("sway: {error}; run `cargo xtask setup`"));
        let desktop = Self { folder, sway };
        wait_until("Sway starts", || UnixStream::connect(desktop.socket()).is_ok());
        wait_until("Sway has an X11 display", || desktop.read_display().starts_with(':'));
        desktop
    }

    fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    fn socket(&self) -> PathBuf {
        self.home().join("sway.sock")
    }

    /// Returns the `DISPLAY` of the programs on this desktop.
    fn read_display(&self) -> String {
        std::fs::read_to_string(self.home().join("display")).unwrap_or_default().trim().to_owned()
    }

    /// Returns the number of X11 windows, as `swaymsg` lists them.
    fn x11_windows(&self) -> usize {
        let mut swaymsg = Program::new("swaymsg");
        let tree = swaymsg.arg("-s").arg(self.socket()).args(["-r", "-t", "get_tree"]).output().unwrap();
        let mut left = vec![serde_json::from_slice::<Value>(&tree.stdout).unwrap_or_default()];
        let mut count = 0;
        while let Some(node) = left.pop() {
            count += usize::from(node["shell"] == "xwayland");
            let inner = ["nodes", "floating_nodes"].iter().filter_map(|key| node[key].as_array()).flatten();
            left.extend(inner.cloned());
        }
        count
    }
}

impl Drop for ChildDesktop {
    /// Sway removes the sockets of its displays if it ends in order.
    fn drop(&mut self) {
        let _ = kill_process(Pid::from_child(&self.sway), Signal::TERM);
        let _ = self.sway.wait();
    }
}

/// Returns a command that runs as the child.
fn as_child(program: &Path) -> Program {
    if !geteuid().is_root() {
        return Program::new(program);
    }
    let mut command = Program::new("setpriv");
    command.args([
        format!("--reuid={CHILD_UID}"),
        format!("--regid={CHILD_UID}"),
        "--clear-groups".to_owned(),
    ]);
    command.arg(program);
    command
}

/// Starts a daemon whose only entry is the game of the installation guide.
fn daemon_with_game(desktop: &ChildDesktop) -> CliTestDaemon {
    let profile = if geteuid().is_root() { "accounts = [\"nobody\"]" } else { "" };
    let daemon = CliTestDaemon::start(Some(&format!(
        r#"
config_version = 1
on_shutdown = "end-sessions"
stop_grace = "1s"

[profiles.anna]
{profile}

[[entries]]
id = "tuxmath"
label = "Maths"
argv = ["tuxmath"]
env = {{ HOME = "{}", SDL_AUDIODRIVER = "dummy" }}
always = true
"#,
        desktop.home().display()
    )));
    std::fs::set_permissions(daemon.folder.path(), PermissionsExt::from_mode(0o755)).unwrap();
    daemon
}

#[test]
fn a_game_is_shown_on_the_desktop_from_which_it_was_launched() {
    let desktop = ChildDesktop::start();
    let daemon = daemon_with_game(&desktop);
    // Other users may have no access to the place where the program was built.
    let shepherd = daemon.path("shepherd");
    std::fs::copy(program(), &shepherd).unwrap();
    std::fs::set_permissions(&shepherd, PermissionsExt::from_mode(0o755)).unwrap();
    let launch = |display: Option<String>| {
        let mut launch = as_child(&shepherd);
        launch.env_clear().env("PATH", "/usr/bin:/bin").args(["launch", "tuxmath", "--socket"]);
        launch.arg(daemon.socket()).envs(display.map(|display| ("DISPLAY", display)));
        let output = launch.output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
    };
    let is_idle = || daemon.json(&["status"])["snapshot"]["session"].is_null();
    launch(None);
    wait_until("the game ends, because it finds no screen", is_idle);
    assert_eq!(desktop.x11_windows(), 0);
    launch(Some(desktop.read_display()));
    wait_until("the game has a window", || {
        assert!(!is_idle(), "{}", daemon.run_text(&["log"]));
        desktop.x11_windows() == 1
    });
    daemon.run_text(&["stop", "--force"]);
    wait_until("the window is gone", || desktop.x11_windows() == 0);
}

fn launched() -> Result<CommandReply, ApiError> {
    Ok(CommandReply::Launched {
        session: SessionView {
            session_id: SessionId::from_random(1),
            entry_id: "racing".parse().unwrap(),
            label: "Racing".to_owned(),
            profile: "anna".parse().unwrap(),
            slot: Default::default(),
            counting: Default::default(),
            phase: SessionPhase::Launching,
            warned: None,
            started_at: Timestamp::UNIX_EPOCH,
            hours_end: None,
            ran: None,
            remaining: Some(Millis(600_000)),
        },
    })
}

/// A list of entries, with which the name of the entry is looked up.
fn listed() -> Result<CommandReply, ApiError> {
    let profile = "anna".parse().unwrap();
    Ok(CommandReply::Entries { at: Timestamp::UNIX_EPOCH, profile, entries: Vec::new() })
}

/// Returns the launches that a daemon has received.
fn received_launches(daemon: &FakeDaemon) -> Vec<Command> {
    let mut commands = daemon.received_commands();
    commands.retain(|command| matches!(command, Command::Launch { .. }));
    commands
}

fn launch_racing(display: Option<ClientDisplay>) -> Command {
    Command::Launch { entry_id: "racing".parse().unwrap(), profile: None, display }
}

#[test]
fn a_launch_names_the_display_and_nothing_else_of_the_environment() {
    let desktop = [
        ("WAYLAND_DISPLAY", "wayland-0"),
        ("XDG_RUNTIME_DIR", "/run/user/1001"),
        ("DISPLAY", ":0"),
        ("XAUTHORITY", "/home/anna/.Xauthority"),
        ("LD_PRELOAD", ""),
        ("XDG_CURRENT_DESKTOP", "GNOME"),
    ];
    let daemon = FakeDaemon::with_replies(vec![listed(), launched()]);
    let mut launch = command(&["launch", "racing", "--output", "json", "--socket"]);
    assert!(launch.arg(daemon.socket()).envs(desktop).output().unwrap().status.success());
    let display = ClientDisplay {
        wayland: Some("/run/user/1001/wayland-0".to_owned()),
        x11: Some(":0".to_owned()),
        x11_authority: Some("/home/anna/.Xauthority".to_owned()),
    };
    assert_eq!(received_launches(&daemon), [launch_racing(Some(display))]);
}

#[test]
fn an_older_daemon_gets_the_launch_without_a_display() {
    // S10.1: it refuses a field that it doesn't know.
    let refused =
        ApiError::new(ErrorCode::InvalidCommand, "The command can't be read: unknown field `display`.");
    let daemon = FakeDaemon::with_replies(vec![listed(), Err(refused), launched()]);
    let mut launch = command(&["launch", "racing", "--output", "json", "--socket"]);
    let output = launch.arg(daemon.socket()).env("DISPLAY", ":0").output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let display = ClientDisplay { x11: Some(":0".to_owned()), ..ClientDisplay::default() };
    assert_eq!(received_launches(&daemon), [launch_racing(Some(display)), launch_racing(None)]);
    let daemon = FakeDaemon::with_replies(vec![listed(), launched()]);
    assert!(
        command(&["launch", "racing", "--output", "json", "--socket"])
            .arg(daemon.socket())
            .output()
            .unwrap()
            .status
            .success()
    );
    assert_eq!(received_launches(&daemon), [launch_racing(None)], "no desktop, no display");
}
