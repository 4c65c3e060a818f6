//! A daemon in a folder of its own, and what tests ask of it.

use std::path::{Path, PathBuf};
use std::process::{Child, Command as Program, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use shepherd_api::{Command, DaemonStateSnapshot, EventKind, Reply, SessionView, StopMode};
use shepherd_ipc::{CallError, Client, ClientOptions, Pushed};
use tempfile::TempDir;

/// Long enough for the slowest machine; nothing waits that long unless it has failed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// A program of this crate. An archive of test binaries is run in another place than it was built in.
pub(crate) fn program(name: &str, built: &str) -> PathBuf {
    std::env::var_os(format!("NEXTEST_BIN_EXE_{name}")).map_or_else(|| built.into(), PathBuf::from)
}

/// A folder with a policy, and a daemon on it that can be killed and started again.
pub(crate) struct Household {
    folder: TempDir,
    daemon: Option<Child>,
    wrapper: Vec<String>,
    variables: Vec<(String, String)>,
}

impl Household {
    /// A folder with this policy; nothing runs yet.
    pub(crate) fn new(policy: &str) -> Self {
        let folder = TempDir::with_prefix("shepherdd-").unwrap();
        let household = Self { folder, daemon: None, wrapper: Vec::new(), variables: Vec::new() };
        household.write_policy(policy);
        household
    }

    /// With the daemon running.
    pub(crate) fn running(policy: &str) -> Self {
        let mut household = Self::new(policy);
        household.start();
        household
    }

    /// The daemon is started by this command, such as `unshare`.
    pub(crate) fn under(mut self, wrapper: &[&str]) -> Self {
        self.wrapper = wrapper.iter().map(|word| (*word).to_owned()).collect();
        self
    }

    /// The daemon gets this variable.
    pub(crate) fn with_variable(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn policy_path(&self) -> PathBuf {
        self.folder().join("policy.toml")
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.folder().join("data")
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.folder().join("socket")
    }

    /// What the daemon has logged so far.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.folder().join("log")).unwrap_or_default()
    }

    pub(crate) fn write_policy(&self, policy: &str) {
        std::fs::write(self.policy_path(), policy).unwrap();
    }

    /// The command line of the daemon.
    pub(crate) fn command(&self) -> Program {
        let daemon = program("shepherdd", env!("CARGO_BIN_EXE_shepherdd"));
        let mut command = match self.wrapper.split_first() {
            Some((first, rest)) => {
                let mut command = Program::new(first);
                command.args(rest).arg(daemon);
                command
            }
            None => Program::new(daemon),
        };
        command.arg("--policy").arg(self.policy_path());
        command.arg("--data-dir").arg(self.data()).arg("--socket").arg(self.socket());
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Starts the daemon and waits until it answers.
    pub(crate) fn start(&mut self) {
        let log =
            std::fs::OpenOptions::new().create(true).append(true).open(self.folder().join("log")).unwrap();
        let child = self.command().stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn().unwrap();
        self.daemon = Some(child);
        let deadline = Instant::now() + PATIENCE;
        while Client::connect(&self.client_options()).is_err() {
            let ended = self.daemon.as_mut().unwrap().try_wait().unwrap();
            assert!(ended.is_none(), "the daemon ended with {ended:?}:\n{}", self.log());
            assert!(Instant::now() < deadline, "the daemon does not answer:\n{}", self.log());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    pub(crate) fn daemon_pid(&self) -> Pid {
        Pid::from_child(self.daemon.as_ref().unwrap())
    }

    /// `kill -9`.
    pub(crate) fn kill(&mut self) {
        let mut daemon = self.daemon.take().unwrap();
        daemon.kill().unwrap();
        daemon.wait().unwrap();
    }

    /// SIGTERM, and the end.
    pub(crate) fn end(&mut self) -> std::process::ExitStatus {
        let mut daemon = self.daemon.take().unwrap();
        kill_process(Pid::from_child(&daemon), Signal::TERM).unwrap();
        daemon.wait().unwrap()
    }

    fn client_options(&self) -> ClientOptions {
        ClientOptions::new(self.socket(), "test")
    }

    /// A new connection.
    pub(crate) fn client(&self) -> Client {
        Client::connect(&self.client_options()).unwrap_or_else(|error| panic!("{error}:\n{}", self.log()))
    }

    /// A connection that gets events.
    pub(crate) fn subscriber(&self) -> Subscriber {
        let mut client = self.client();
        let snapshot = client.subscribe().unwrap();
        Subscriber { client, snapshot }
    }

    pub(crate) fn call(&self, command: Command) -> Result<Reply, CallError> {
        self.client().call(command)
    }

    pub(crate) fn state(&self) -> DaemonStateSnapshot {
        match self.call(Command::GetState {}) {
            Ok(Reply::State { snapshot }) => snapshot,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn launch(&self, entry: &str) -> SessionView {
        match self.call(Command::Launch { entry_id: entry.parse().unwrap(), profile: None }) {
            Ok(Reply::Launched { session }) => session,
            other => panic!("{other:?}\n{}", self.log()),
        }
    }

    pub(crate) fn stop(&self, mode: StopMode) -> Result<Reply, CallError> {
        self.call(Command::StopCurrent { mode })
    }
}

impl Drop for Household {
    /// Nothing outlives a test: what a session left is ended by a daemon that is told to.
    fn drop(&mut self) {
        if let Some(mut daemon) = self.daemon.take() {
            if let Ok(mut client) = Client::connect(&self.client_options()) {
                let _ = client.call(Command::StopCurrent { mode: StopMode::Force });
                let deadline = Instant::now() + Duration::from_secs(5);
                while Instant::now() < deadline {
                    match client.call(Command::GetState {}) {
                        Ok(Reply::State { snapshot }) if snapshot.session.is_some() => {
                            std::thread::sleep(Duration::from_millis(5));
                        }
                        _ => break,
                    }
                }
            }
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
    }
}

/// A client that listens.
pub(crate) struct Subscriber {
    pub(crate) client: Client,
    pub(crate) snapshot: DaemonStateSnapshot,
}

impl Subscriber {
    /// The next event that `wanted` makes something of; others are passed over.
    pub(crate) fn wait_for<T>(&mut self, mut wanted: impl FnMut(&EventKind) -> Option<T>) -> T {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.client.pushed(Some(left)).expect("an event in time") {
                Pushed::Event(event) => {
                    if let Some(found) = wanted(&event.kind) {
                        return found;
                    }
                }
                other => panic!("{other:?}"),
            }
        }
    }
}

/// Whether a process of this number is there and not a zombie.
pub(crate) fn is_alive(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(") ").next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with(['Z', 'X']))
}

/// Waits until something is so.
pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The number that a program wrote into a file.
pub(crate) fn pid_in(path: &Path) -> i32 {
    let mut found = None;
    until(&format!("a number in {}", path.display()), || {
        found = std::fs::read_to_string(path).ok().and_then(|text| text.trim().parse().ok());
        found.is_some()
    });
    found.unwrap()
}
