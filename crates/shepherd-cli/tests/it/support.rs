//! Helpers that run the program, a private daemon and a terminal.

pub(crate) mod fake_daemon;
pub(crate) mod terminal;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

/// Longest wait for a condition, on a busy machine.
pub(crate) const WAIT_TIMEOUT: Duration = Duration::from_secs(20);

pub(crate) fn program() -> OsString {
    std::env::var_os("NEXTEST_BIN_EXE_shepherd").unwrap_or_else(|| env!("CARGO_BIN_EXE_shepherd").into())
}

/// Returns a time zone in which it is now between 12:00 and 13:00, so that no test runs over midnight.
pub(crate) fn zone_at_noon() -> String {
    let hour = jiff::Timestamp::now().to_zoned(jiff::tz::TimeZone::UTC).hour();
    // The names have the sign of POSIX: `Etc/GMT+3` is three hours behind UTC.
    format!("Etc/GMT{:+}", hour - 12)
}

/// Returns a policy with these entries, whose sessions end with the daemon.
macro_rules! policy {
    ($($part:tt)*) => { concat!("config_version = 1\non_shutdown = \"end-sessions\"\n", $($part)*) };
}
pub(crate) use policy;

/// An entry that is always available, with its id, its label, its command line and further settings.
macro_rules! entry {
    ($id:literal, $label:literal, $argv:literal, $settings:literal) => {
        concat!(
            "\n[[entries]]\nid = \"",
            $id,
            "\"\nlabel = \"",
            $label,
            "\"\nargv = ",
            $argv,
            "\nalways = true\n",
            $settings,
            "\n"
        )
    };
}
pub(crate) use entry;

/// An entry that is switched off.
macro_rules! disabled_entry {
    () => {
        crate::support::entry!("off", "Switched off", r#"["true"]"#, r#"disabled = "broken""#)
    };
}
pub(crate) use disabled_entry;

/// Returns a command for the program, without environment variables that could lead it to another daemon or display.
pub(crate) fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(program());
    let daemon = ["SHEPHERD_SOCKET", "SHEPHERD_POLICY", "SHEPHERD_DATA", "COLUMNS"];
    for variable in daemon.iter().chain(&["DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY"]) {
        command.env_remove(variable);
    }
    command
        .env("TZ", zone_at_noon())
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Waits until a condition holds.
pub(crate) fn wait_until(what: &str, condition: impl FnMut() -> bool) {
    assert!(becomes_true_in_time(condition), "not within {WAIT_TIMEOUT:?}: {what}");
}

/// Waits until a condition holds, and returns false if it doesn't in time. Every other wait uses this one.
pub(crate) fn becomes_true_in_time(mut condition: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + WAIT_TIMEOUT;
    while !condition() {
        if Instant::now() >= deadline {
            return false;
        }
        std::thread::sleep(Duration::from_millis(30));
    }
    true
}

/// A private daemon: `shepherd up` in a temporary folder.
pub(crate) struct CliTestDaemon {
    pub(crate) folder: TempDir,
    child: Option<Child>,
}

impl CliTestDaemon {
    /// Starts a daemon with this policy, or with the starter policy that it writes itself.
    pub(crate) fn start(policy: Option<&str>) -> Self {
        let folder = tempfile::Builder::new().prefix("sh-").tempdir_in("/tmp").unwrap();
        if let Some(policy) = policy {
            std::fs::write(folder.path().join("policy.toml"), policy).unwrap();
        }
        let mut daemon = Self { folder, child: None };
        daemon.restart();
        daemon
    }

    /// Starts a daemon that believes to be root and can't switch to any other user, as in a container that was set up
    /// wrongly.
    pub(crate) fn start_in_user_namespace(policy: &str) -> Self {
        let folder = tempfile::Builder::new().prefix("sh-").tempdir_in("/tmp").unwrap();
        std::fs::write(folder.path().join("policy.toml"), policy).unwrap();
        let mut daemon = Self { folder, child: None };
        let mut command = Command::new("unshare");
        command.arg("--map-root-user").arg(program());
        daemon.start_with(command);
        daemon
    }

    pub(crate) fn restart(&mut self) {
        self.start_with(command(&[]));
    }

    fn start_with(&mut self, mut command: Command) {
        let paths = [
            ("--policy", self.path("policy.toml")),
            ("--data-dir", self.path("data")),
            ("--socket", self.socket()),
        ];
        command.args(["up", "--allow-root"]);
        for (option, path) in &paths {
            command.arg(option).arg(path);
        }
        let log = std::fs::File::create(self.path("log")).unwrap();
        self.child = Some(command.stdout(Stdio::null()).stderr(log).spawn().unwrap());
        let socket = self.socket();
        wait_until("the daemon comes up", || std::os::unix::net::UnixStream::connect(&socket).is_ok());
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.path("socket")
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        run_at(&self.socket(), arguments)
    }

    /// Runs a command that must succeed, and returns its JSON output.
    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        let output = self.run(&[arguments, &["--output", "json"]].concat());
        assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{arguments:?}: {error}"))
    }

    /// Runs a command that must succeed, and returns its text output.
    pub(crate) fn run_text(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(output.status.success(), "{arguments:?}: {}{}", text(&output.stdout), text(&output.stderr));
        text(&output.stdout)
    }

    pub(crate) fn stop(&mut self) {
        let Some(mut child) = self.child.take() else { return };
        let pid = rustix::process::Pid::from_child(&child);
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        if becomes_true_in_time(|| matches!(child.try_wait(), Ok(Some(_)))) {
            return;
        }
        let _ = child.kill();
        let _ = child.wait();
    }
}

impl Drop for CliTestDaemon {
    fn drop(&mut self) {
        self.stop();
    }
}

pub(crate) fn run_at(socket: &Path, arguments: &[&str]) -> Output {
    command(arguments).arg("--socket").arg(socket).output().unwrap()
}
