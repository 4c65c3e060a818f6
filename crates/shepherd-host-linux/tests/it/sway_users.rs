//! A Sway that runs as a user of its own (S6.7, S13.6): programs of other users show windows on it while their session runs,
//! and can't make it start anything.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use shepherd_core::policy::{CompositorConfig, PolicyEntry, PolicyRules, RunPolicy};
use shepherd_host_api::{HostAdapter, HostEvent, HostStopRequest};
use ward_process::Containment;

use crate::harness::{
    SHORT_GRACE, StartedProgram, TEST_TIMEOUT, TestHost, is_root, wait_until, write_script,
};
use crate::sway::{await_window, listener_pid};
use crate::sway_desktop::{SwayDesktop, alive, process_tree, windows_at};
use crate::sway_x11::entry_with_home;

/// The user of Sway, the user of entries, and a user without a session, as every Debian system has them.
const COMPOSITOR_USER: &str = "nobody";
const PLAYER: &str = "games";
const OTHER_USER: &str = "daemon";

/// A desktop whose Sway runs as [`COMPOSITOR_USER`], with a home for [`PLAYER`].
struct SharedDesktop {
    desktop: SwayDesktop,
    /// Declared here, so that its socket folder goes after the host.
    folder: PathBuf,
}

impl SharedDesktop {
    fn new() -> Self {
        let desktop = SwayDesktop::prepare();
        desktop.enable_xwayland();
        let folder = desktop.folder().join("sockets");
        let home = desktop.folder().join("player");
        for path in [&folder, &home] {
            std::fs::create_dir(path).unwrap();
            std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
        }
        let [user, group] = ["-u", "-g"].map(|flag| number_of(flag, PLAYER));
        std::os::unix::fs::chown(&home, Some(user), Some(group)).unwrap();
        Self { desktop, folder }
    }

    fn rules(&self) -> PolicyRules {
        let argv = ["sway", "-c", self.desktop.folder().join("config").to_str().unwrap()].map(str::to_owned);
        let start = CompositorConfig::Start { argv: argv.into(), user: Some(COMPOSITOR_USER.to_owned()) };
        PolicyRules { compositor: Some(start), ..PolicyRules::default() }
    }

    fn host(&self, state: &Path) -> TestHost {
        let mut test_host = TestHost::with_options(|options| {
            options.state_folder = state.to_owned();
            options.containment = Some(Containment::Cgroup);
            options.socket_folder = self.folder.clone();
            options.environment = headless();
        });
        test_host.apply_rules(self.rules());
        wait_until("a Sway", || test_host.host.capabilities().can_force_fullscreen);
        test_host
    }

    /// Returns an entry of [`PLAYER`], with no variable but its home.
    fn entry(&self, argv: &[&str]) -> PolicyEntry {
        let entry = entry_with_home(&self.desktop, argv);
        let shepherd_api::EntryKind::Process { argv, mut env, cwd } = entry.kind else { unreachable!() };
        env.insert("HOME".to_owned(), self.desktop.folder().join("player").to_str().unwrap().to_owned());
        let run = RunPolicy { user: Some(PLAYER.to_owned()), ..RunPolicy::default() };
        PolicyEntry { kind: shepherd_api::EntryKind::Process { argv, env, cwd }, run, ..entry }
    }

    /// Returns the folders of Sway whose names end like this.
    fn folders_of_sway(&self, part: &str) -> Vec<PathBuf> {
        let files = self.folder.read_dir().unwrap().flatten().map(|file| file.path());
        files.filter(|path| path.to_str().unwrap().ends_with(&format!("-{part}"))).collect()
    }

    /// Returns the only folder of Sway whose name ends like this.
    fn folder_of_sway(&self, part: &str) -> PathBuf {
        let mut found = self.folders_of_sway(part);
        assert_eq!(found.len(), 1, "{found:?}");
        found.remove(0)
    }

    fn ipc_socket(&self) -> PathBuf {
        self.folder_of_sway("control").join("sway.sock")
    }

    fn wayland_socket(&self) -> PathBuf {
        self.folder_of_sway("display").join("wayland-1")
    }
}

fn headless() -> Vec<(std::ffi::OsString, std::ffi::OsString)> {
    let headless =
        [("WLR_BACKENDS", "headless"), ("WLR_LIBINPUT_NO_DEVICES", "1"), ("WLR_RENDERER", "pixman")];
    headless.map(|(name, value)| (name.into(), value.into())).into()
}

fn number_of(flag: &str, user: &str) -> u32 {
    let shown = Command::new("id").args([flag, user]).output().unwrap().stdout;
    String::from_utf8(shown).unwrap().trim().parse().unwrap()
}

/// Runs a program as a user, outside of any session.
fn run_as(user: &str, argv: &[&str]) -> Output {
    let ids = [("--reuid", "-u"), ("--regid", "-g")];
    let ids = ids.map(|(option, flag)| format!("{option}={}", number_of(flag, user)));
    Command::new("setpriv").args(ids).arg("--clear-groups").args(argv).output().unwrap()
}

/// Returns whether a user outside of any session can connect to a Wayland socket, without saying anything.
fn connects_to_wayland(user: &str, socket: &Path) -> bool {
    let script = "import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])";
    run_as(user, &["/usr/bin/python3", "-c", script, socket.to_str().unwrap()]).status.success()
}

/// Returns whether Xwayland accepts a connection of a user.
fn connects_to_x11(user: &str, display: &str) -> bool {
    let script = "import socket, sys\ns = socket.socket(socket.AF_UNIX)\n\
                  s.connect('/tmp/.X11-unix/X' + sys.argv[1][1:])\n\
                  s.send(b'l\\0\\x0b' + bytes(9))\nsys.exit(s.recv(1)[0] != 1)";
    run_as(user, &["/usr/bin/python3", "-c", script, display]).status.success()
}

fn assert_fully_capable(session: &StartedProgram) {
    let windows = |sentence: &&String| sentence.contains("windows");
    assert_eq!(session.shortcomings.iter().filter(windows).collect::<Vec<_>>(), Vec::<&String>::new());
}

/// Starts a program that waits, and returns it with its X11 display.
fn start_waiting(test_host: &mut TestHost, shared: &SharedDesktop) -> (StartedProgram, String) {
    let session = test_host.start(shared.entry(&["sh", "-c", "echo display $DISPLAY; exec sleep 600"]));
    session.wait_for_output("display :");
    let display = session.output().trim().rsplit(' ').next().unwrap().to_owned();
    (session, display)
}

/// An ordinary user's host can't start Sway as another user, and says so.
fn assert_only_root_can_share() {
    let mut test_host = TestHost::with_options(|options| options.environment = headless());
    let start = CompositorConfig::Start { argv: vec!["sway".to_owned()], user: Some(PLAYER.to_owned()) };
    test_host.apply_rules(PolicyRules { compositor: Some(start), ..PolicyRules::default() });
    assert!(matches!(test_host.next_event(), HostEvent::Problem { session_id: None, .. }));
    let expected = "Windows can't be detected or brought to the front: only root can start the compositor as user \
                    `games`; run the daemon as root, or remove `user`.";
    let limitations = test_host.host.limitations();
    assert!(limitations.iter().any(|sentence| sentence == expected), "{limitations:#?}");
}

#[test]
fn programs_of_another_user_show_wayland_and_x11_windows() {
    if !is_root() {
        return assert_only_root_can_share();
    }
    let (shared, state) = (SharedDesktop::new(), tempfile::tempdir().unwrap());
    let mut test_host = shared.host(state.path());
    // Xwayland ends with a session, and starts again for the next one.
    for argv in [&["foot", "sleep", "600"][..], &["dosbox"], &["dosbox"]] {
        let session = test_host.start(shared.entry(argv));
        assert_fully_capable(&session);
        await_window(&mut test_host, &session);
        let window = windows_at(&shared.ipc_socket()).remove(0);
        let owner =
            std::os::unix::fs::MetadataExt::uid(&std::fs::metadata(format!("/proc/{}", window.pid)).unwrap());
        assert_eq!(owner, number_of("-u", PLAYER));
        test_host.stop(&session, SHORT_GRACE);
        wait_until("the window is gone", || windows_at(&shared.ipc_socket()).is_empty());
    }
    let sway = listener_pid(&shared.ipc_socket());
    let owner = std::os::unix::fs::MetadataExt::uid(&std::fs::metadata(format!("/proc/{sway}")).unwrap());
    assert_eq!(owner, number_of("-u", COMPOSITOR_USER));
    drop(test_host);
    assert_eq!(shared.folder.read_dir().unwrap().count(), 0, "the folders of Sway are removed");
}

#[test]
fn the_displays_are_open_to_the_user_of_a_session_while_it_runs_and_to_no_other() {
    if !is_root() {
        return assert_only_root_can_share();
    }
    let (shared, state) = (SharedDesktop::new(), tempfile::tempdir().unwrap());
    let mut test_host = shared.host(state.path());
    let wayland = shared.wayland_socket();
    assert!(connects_to_wayland(COMPOSITOR_USER, &wayland));
    assert!(!connects_to_wayland(PLAYER, &wayland));
    let (first, display) = start_waiting(&mut test_host, &shared);
    let (second, _) = start_waiting(&mut test_host, &shared);
    [&first, &second].into_iter().for_each(assert_fully_capable);
    for (user, expected) in [(PLAYER, true), (OTHER_USER, false)] {
        assert_eq!(connects_to_wayland(user, &wayland), expected, "{user}");
        assert_eq!(connects_to_x11(user, &display), expected, "{user}");
    }
    let open = || (connects_to_wayland(PLAYER, &wayland), connects_to_x11(PLAYER, &display));
    test_host.stop(&first, TEST_TIMEOUT);
    // The second session of the same user keeps its access.
    std::thread::sleep(std::time::Duration::from_millis(200));
    assert_eq!(open(), (true, true));
    test_host.stop(&second, TEST_TIMEOUT);
    wait_until("the displays are closed", || open() == (false, false));
    assert!(connects_to_wayland(COMPOSITOR_USER, &wayland));
    // The access of a program that could not be started is taken back, too.
    test_host.spawn_failure(shared.entry(&["/nonexistent/program"]));
    wait_until("the displays are closed", || open() == (false, false));
}

#[test]
fn a_program_of_another_user_can_not_send_commands_to_sway() {
    if !is_root() {
        return assert_only_root_can_share();
    }
    let (shared, state) = (SharedDesktop::new(), tempfile::tempdir().unwrap());
    let mut test_host = shared.host(state.path());
    let (socket, mark) = (shared.ipc_socket(), shared.desktop.home().join("mark"));
    let sway = listener_pid(&socket);
    let attack = shared.desktop.folder().join("attack");
    write_script(&attack, ATTACK);
    let argv = [&attack, &socket, &mark, &shared.folder].map(|path| path.to_str().unwrap());
    let session = test_host.start(shared.entry(&[&argv[..], &[&sway.to_string()]].concat()));
    test_host.wait_for_exit(&session);
    test_host.wait_for_cleanup();
    let output = session.output();
    assert!(output.ends_with("tried everything\n"), "{output}");
    assert!(!output.contains("BREACH"), "{output}");
    assert!(!mark.exists());
    // The same command of somebody who may send it works, and Sway is unharmed.
    assert_eq!(listener_pid(&socket), sway);
    let exec = format!("exec touch {}", mark.display());
    Command::new("swaymsg").arg("-s").arg(&socket).arg(exec).output().unwrap();
    wait_until("the program of Sway", || mark.exists());
}

/// Arguments: the IPC socket, a file that Sway's user could create, the folder of Sway's folders, Sway's process id. The
/// program knows all of them, though in reality it would have to guess.
const ATTACK: &str = r#"
socket=$1 mark=$2 folders=$3 sway=$4
control=$(dirname "$socket") display=$(dirname "$WAYLAND_DISPLAY")
try() { "$@" && echo "BREACH: $*"; }
send() { try swaymsg -s "$1" exec "touch $mark"; }
connect() { try /usr/bin/python3 -c 'import socket, sys; socket.socket(socket.AF_UNIX).connect(eval(sys.argv[1]))' "$1"; }
send "$socket"
SWAYSOCK=$socket try swaymsg exec "touch $mark"
I3SOCK=$socket try swaymsg exec "touch $mark"
XDG_RUNTIME_DIR=$display try swaymsg exec "touch $mark"
ln -s "$socket" "$HOME/link" && send "$HOME/link"
ln -s "$control" "$HOME/folder" && send "$HOME/folder/sway.sock"
ln "$socket" "$HOME/hard" && send "$HOME/hard"
for process in "$sway" $(pgrep -x Xwayland); do
  send "/proc/$process/root$socket"
  send "/proc/$process/cwd$socket"
  try ls "/proc/$process/fd/"
  try cat "/proc/$process/environ"
  try kill -0 "$process"
done
send "$display/../$(basename "$control")/sway.sock"
connect "'$socket'"
connect "'\0$socket'"
try grep -E '@.*(sway|shepherd-compositor)' /proc/net/unix
try ls "$control"
try cd "$control"
try ls "$display"
try touch "$display/file"
try touch "$folders/file"
try mv "$control" "$folders/moved"
try mv "$display" "$folders/moved"
try mv "$WAYLAND_DISPLAY" "$display/moved"
try rm -f "$WAYLAND_DISPLAY"
try chmod 777 "$control"
try chmod 777 "$socket"
try setfacl -m "u:$(id -u):rwx" "$control"
try unshare -r -m sh -c "mount --bind $control /mnt && swaymsg -s /mnt/sway.sock exec 'touch $mark'"
try unshare -r swaymsg -s "$socket" exec "touch $mark"
echo tried everything
"#;

#[test]
fn a_session_keeps_its_window_and_its_access_when_the_host_ends() {
    if !is_root() {
        return assert_only_root_can_share();
    }
    let (shared, state) = (SharedDesktop::new(), tempfile::tempdir().unwrap());
    let mut first = shared.host(state.path());
    let session = first.start(shared.entry(&["foot", "sleep", "600"]));
    await_window(&mut first, &session);
    let (socket, wayland) = (shared.ipc_socket(), shared.wayland_socket());
    let sway = process_tree(listener_pid(&socket));
    drop(first);
    assert_eq!(windows_at(&socket).len(), 1);
    let mut next = shared.host(state.path());
    assert_eq!(process_tree(listener_pid(&shared.ipc_socket())), sway);
    next.host.reattach(&session.session_id, None);
    assert!(matches!(next.next_event(), HostEvent::Reattached { .. }));
    assert_eq!(next.next_event(), HostEvent::WindowReady { session_id: session.session_id.clone() });
    assert!(connects_to_wayland(PLAYER, &wayland));
    next.host.stop(HostStopRequest { session_id: session.session_id, grace: TEST_TIMEOUT });
    // Sway is replaced after a session that was reattached, and its folders go with it.
    wait_until("the end of Sway", || alive(&sway).is_empty() && !wayland.exists() && !socket.exists());
    // The host may report the ended Sway for another moment, so the folder of the next one has to be there too.
    wait_until("another Sway", || {
        !shared.folders_of_sway("display").is_empty() && next.host.capabilities().can_force_fullscreen
    });
    assert!(!connects_to_wayland(PLAYER, &shared.wayland_socket()));
}
