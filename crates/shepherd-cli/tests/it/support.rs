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

/// Returns a command for the program, without environment variables that could lead it to another daemon.
pub(crate) fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(program());
    for variable in ["SHEPHERD_SOCKET", "SHEPHERD_POLICY", "SHEPHERD_DATA", "COLUMNS"] {
        command.env_remove(variable);
    }
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Waits until a condition holds.
pub(crate) fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + WAIT_TIMEOUT;
    while !condition() {
        assert!(Instant::now() < deadline, "not within {WAIT_TIMEOUT:?}: {what}");
        std::thread::sleep(Duration::from_millis(30));
    }
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

    pub(crate) fn restart(&mut self) {
        let paths = [
            ("--policy", self.path("policy.toml")),
            ("--data-dir", self.path("data")),
            ("--socket", self.socket()),
        ];
        let mut command = command(&["up", "--allow-root"]);
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
        let deadline = Instant::now() + WAIT_TIMEOUT;
        while Instant::now() < deadline {
            if let Ok(Some(_)) = child.try_wait() {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
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
