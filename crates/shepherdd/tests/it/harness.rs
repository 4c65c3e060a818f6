//! The shared set-up of the tests: a daemon in a folder of its own, policies, and waiting.

use std::path::{Path, PathBuf};
use std::process::{Child, Command as Program, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use shepherd_api::{
    ApiError, Command, CommandReply, DaemonStateSnapshot, EndReason, EventKind, SessionPhase, SessionView,
    StopMode,
};
use shepherd_ipc::{BlockingClient, CallError, ClientOptions, ServerPush};
use shepherd_util::SessionId;
use tempfile::TempDir;

pub(crate) mod compositor;
mod policies;
mod processes;
mod records;
mod waiting;

pub(crate) use policies::{policy, sleep_entry, stubborn_entry};
use processes::parent_of;
pub(crate) use processes::{ObservedProcess, is_alive, process_tree, processes_with, survivors};
pub(crate) use waiting::{assert_stays, becomes_true_within, call_at_allowed_rate, wait_until};

/// The longest wait of a test: long enough for the slowest machine, and reached only by a failing test.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// The longest wait at the end of a test. The daemon is killed after it.
const CLEANUP_TIMEOUT: Duration = Duration::from_secs(5);

/// Returns the path of a program of this crate. An archive of test binaries runs in another place than it was built in.
pub(crate) fn program(name: &str, built: &str) -> PathBuf {
    std::env::var_os(format!("NEXTEST_BIN_EXE_{name}")).map_or_else(|| built.into(), PathBuf::from)
}

/// A folder with a policy, and a daemon on it that can be killed and started again.
///
/// `TOKEN` in a policy is replaced by a number that no other fixture has. Programs of the policy sleep that long, and are
/// recognised by it. The daemon's time zone is one in which it is about noon, so that no test runs over midnight.
pub(crate) struct ShepherddFixture {
    folder: TempDir,
    token: String,
    daemon: Option<Child>,
    wrapper: Vec<String>,
    /// By default, programs run as the user of the tests, even if that is root.
    options: Vec<String>,
    variables: Vec<(String, String)>,
    socket: PathBuf,
    policy_file: &'static str,
}

impl ShepherddFixture {
    /// Creates a folder with this policy, without starting the daemon.
    pub(crate) fn new(policy: &str) -> Self {
        Self::in_folder(TempDir::with_prefix("shepherdd-").unwrap(), policy)
    }

    /// Creates the folder in memory, if the system has a file system for that: for tests that would mostly wait for the
    /// disk.
    pub(crate) fn in_memory(policy: &str) -> Self {
        match TempDir::with_prefix_in("shepherdd-", "/dev/shm") {
            Ok(folder) => Self::in_folder(folder, policy),
            Err(_) => Self::new(policy),
        }
    }

    fn in_folder(folder: TempDir, policy: &str) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let token = format!("9{:07}{:04}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let socket = folder.path().join("socket");
        let wrapper = Vec::new();
        let variables = vec![("TZ".to_owned(), zone_at_noon())];
        let options = vec!["--allow-root".to_owned()];
        let policy_file = "policy.toml";
        let fixture = Self { folder, token, daemon: None, wrapper, options, variables, socket, policy_file };
        fixture.write_policy(policy);
        fixture
    }

    /// Creates a folder with this policy, and starts the daemon.
    pub(crate) fn running(policy: &str) -> Self {
        let mut fixture = Self::new(policy);
        fixture.start();
        fixture
    }

    /// Starts the daemon through this command, such as `unshare`.
    pub(crate) fn with_wrapper(mut self, wrapper: &[&str]) -> Self {
        self.wrapper = wrapper.iter().map(|word| (*word).to_owned()).collect();
        self
    }

    /// Delays each write and sync of the daemon. The daemon stays our child, because the tracer is a separate process
    /// (`strace -D`).
    pub(crate) fn on_a_slow_disk(self, delay: Duration) -> Self {
        let delay = format!("delay_enter={}", delay.as_micros());
        self.with_injected_fault("pwrite64,fsync,fdatasync", &delay)
    }

    /// Delays these system calls of the daemon, or makes them fail (`strace --inject`).
    pub(crate) fn with_injected_fault(self, calls: &str, what: &str) -> Self {
        let (trace, inject) = (format!("trace={calls}"), format!("inject={calls}:{what}"));
        self.with_wrapper(&["strace", "-D", "-f", "-qq", "-o", "/dev/null", "-e", &trace, "-e", &inject])
    }

    /// Starts the daemon without the options for tests.
    pub(crate) fn without_options(mut self) -> Self {
        self.options.clear();
        self
    }

    /// Makes writes to the heartbeat file fail, and no others.
    pub(crate) fn without_heartbeat(self) -> Self {
        let path = self.data().join("shepherd.pulse").display().to_string();
        let inject = "inject=pwrite64:error=EIO";
        self.with_wrapper(&["strace", "-D", "-f", "-qq", "-o", "/dev/null", "-P", &path, "-e", inject])
    }

    /// Starts the daemon with another boot id, as after a reboot.
    pub(crate) fn after_reboot(self) -> Self {
        let boot = self.folder().join("boot");
        std::fs::write(&boot, "3f1c1e9a-5d0b-4c57-9f0e-0a8a5c1d2b3e\n").unwrap();
        let mount =
            format!("mount --bind {} /proc/sys/kernel/random/boot_id && exec \"$0\" \"$@\"", boot.display());
        self.with_wrapper(&in_mount_namespace(&["sh", "-c", &mount]))
    }

    /// Starts the daemon with a boot clock that is ahead, as after a suspend of this length.
    pub(crate) fn after_suspend(self, length: Duration) -> Self {
        let user: &[&str] = if rustix::process::geteuid().is_root() { &[] } else { &["--map-root-user"] };
        let length = length.as_secs().to_string();
        self.with_wrapper(&[&["unshare"], user, &["--time", "--boottime", &length]].concat())
    }

    /// Sets an environment variable of the daemon.
    pub(crate) fn with_variable(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Lets the daemon listen at this path.
    pub(crate) fn with_socket(mut self, socket: PathBuf) -> Self {
        self.socket = socket;
        self
    }

    /// Gives the daemon another policy file.
    pub(crate) fn with_policy_file(mut self, name: &'static str) -> Self {
        self.policy_file = name;
        self
    }

    /// Adds options to the daemon's command line.
    pub(crate) fn with_options(mut self, options: &[&str]) -> Self {
        self.options.extend(options.iter().map(|option| (*option).to_owned()));
        self
    }

    /// The daemon is started without this option from now on.
    pub(crate) fn without_option(mut self, option: &str) -> Self {
        self.options.retain(|known| known != option);
        self
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn policy_path(&self) -> PathBuf {
        self.folder().join(self.policy_file)
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.folder().join("data")
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.socket.clone()
    }

    /// Returns what the daemon has logged so far.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.folder().join("log")).unwrap_or_default()
    }

    pub(crate) fn write_policy(&self, policy: &str) {
        std::fs::write(self.policy_path(), self.fill_token(policy)).unwrap();
    }

    /// Replaces `TOKEN` in a policy.
    pub(crate) fn fill_token(&self, policy: &str) -> String {
        policy.replace("TOKEN", &self.token)
    }

    /// Returns the daemon's command without options.
    pub(crate) fn bare_command(&self) -> Program {
        let daemon = program("shepherdd", env!("CARGO_BIN_EXE_shepherdd"));
        match self.wrapper.split_first() {
            Some((first, rest)) => {
                let mut command = Program::new(first);
                command.args(rest).arg(daemon);
                command
            }
            None => Program::new(daemon),
        }
    }

    /// Returns the daemon's command with all options.
    pub(crate) fn command(&self) -> Program {
        let mut command = self.bare_command();
        command.args(&self.options).arg("--policy").arg(self.policy_path());
        command.arg("--data-dir").arg(self.data()).arg("--socket").arg(self.socket());
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Starts the daemon.
    pub(crate) fn spawn(&mut self) {
        let log =
            std::fs::OpenOptions::new().create(true).append(true).open(self.folder().join("log")).unwrap();
        self.spawn_logging_to(log.into());
    }

    fn spawn_logging_to(&mut self, log: Stdio) {
        let mut command = self.command();
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn();
        let child = child.unwrap_or_else(|error| panic!("{command:?}: {error}; run `cargo xtask setup`"));
        self.daemon = Some(child);
    }

    /// Starts the daemon and waits until it answers.
    pub(crate) fn start(&mut self) {
        self.spawn();
        self.wait_until_ready();
    }

    /// Starts the daemon with another target for its log, and waits until it answers.
    pub(crate) fn start_logging_to(&mut self, log: Stdio) {
        self.spawn_logging_to(log);
        self.wait_until_ready();
    }

    fn wait_until_ready(&mut self) {
        let options = self.client_options();
        let answers = becomes_true_within(PATIENCE, || {
            let ended = self.daemon.as_mut().unwrap().try_wait().unwrap();
            assert!(ended.is_none(), "the daemon ended with {ended:?}:\n{}", self.log());
            BlockingClient::connect(&options).is_ok()
        });
        assert!(answers, "the daemon does not answer:\n{}", self.log());
    }

    pub(crate) fn daemon_pid(&self) -> Pid {
        Pid::from_child(self.daemon.as_ref().unwrap())
    }

    /// Kills the daemon with SIGKILL.
    pub(crate) fn kill(&mut self) {
        let mut daemon = self.daemon.take().unwrap();
        daemon.kill().unwrap();
        daemon.wait().unwrap();
    }

    /// Sends SIGTERM to the daemon, and waits for its end.
    pub(crate) fn end(&mut self) -> std::process::ExitStatus {
        kill_process(self.daemon_pid(), Signal::TERM).unwrap();
        self.wait()
    }

    /// Waits for the end of the daemon.
    pub(crate) fn wait(&mut self) -> std::process::ExitStatus {
        self.daemon.take().unwrap().wait().unwrap()
    }

    fn client_options(&self) -> ClientOptions {
        ClientOptions::new(self.socket(), "test")
    }

    /// Opens a connection.
    pub(crate) fn client(&self) -> BlockingClient {
        BlockingClient::connect(&self.client_options())
            .unwrap_or_else(|error| panic!("{error}:\n{}", self.log()))
    }

    /// Opens a connection that gets events.
    pub(crate) fn subscriber(&self) -> EventSubscriber {
        let mut client = self.client();
        let snapshot = client.subscribe().unwrap();
        EventSubscriber { client, snapshot }
    }

    pub(crate) fn call(&self, command: Command) -> Result<CommandReply, CallError> {
        self.client().call(command)
    }

    pub(crate) fn state(&self) -> DaemonStateSnapshot {
        match self.call(Command::GetState {}) {
            Ok(CommandReply::State { snapshot }) => snapshot,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn launch(&self, entry: &str) -> SessionView {
        match self.call(Command::Launch { entry_id: entry.parse().unwrap(), profile: None, display: None }) {
            Ok(CommandReply::Launched { session }) => session,
            other => panic!("{other:?}\n{}", self.log()),
        }
    }

    /// Returns why an entry can't be launched.
    pub(crate) fn refusal(&self, entry: &str) -> ApiError {
        match self.call(Command::Launch { entry_id: entry.parse().unwrap(), profile: None, display: None }) {
            Err(CallError::Refused(error)) => error,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn stop(&self, mode: StopMode) -> Result<CommandReply, CallError> {
        self.call(Command::StopCurrent { mode, session_id: None })
    }

    /// Waits until the daemon reports no session, and checks that no process of it is left.
    pub(crate) fn wait_until_idle(&self) {
        wait_until("the session ends", || self.state().session.is_none());
        self.assert_no_processes_left();
    }

    /// Kills a program of this fixture, and waits for the end of all of them.
    pub(crate) fn kill_program(&self, pid: i32) {
        kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
        wait_until("the end of the program", || self.program_pids().is_empty());
    }

    /// Returns the living processes of this fixture's programs. They are found by their command line, not by the daemon.
    pub(crate) fn program_pids(&self) -> Vec<i32> {
        processes_with(&self.token)
    }

    /// Waits until a program of this fixture runs and the daemon knows it, and returns its pid.
    pub(crate) fn wait_for_program(&self) -> i32 {
        let mut found = Vec::new();
        wait_until("a program runs", || {
            found = self.program_pids();
            !found.is_empty()
        });
        // The program runs a moment before the daemon knows.
        wait_until("the daemon knows that it runs", || !self.is_launching());
        found[0]
    }

    fn is_launching(&self) -> bool {
        let Ok(mut client) = BlockingClient::connect(&self.client_options()) else { return false };
        let state = client.call(Command::GetState {});
        let launching = |session: &SessionView| session.phase == SessionPhase::Launching;
        matches!(state, Ok(CommandReply::State { snapshot }) if snapshot.session.as_ref().is_some_and(launching))
    }

    /// Checks that no program is left, and waits for the end of the keepers.
    pub(crate) fn assert_no_processes_left(&self) {
        assert_eq!(self.program_pids(), Vec::<i32>::new());
        let folder = self.folder().to_str().unwrap();
        let daemon = self.daemon.as_ref().map(|daemon| Pid::from_child(daemon).as_raw_nonzero().get());
        let of_daemon = |pid: &i32| {
            Some(*pid) == daemon || parent_of(*pid) == daemon.filter(|_| !self.wrapper.is_empty())
        };
        wait_until("the keepers leave", || processes_with(folder).iter().all(of_daemon));
    }
}

/// Returns a command that runs in its own mount namespace. An ordinary user needs a user namespace for that.
pub(crate) fn in_mount_namespace<'a>(command: &[&'a str]) -> Vec<&'a str> {
    let namespaces: &[&str] =
        if rustix::process::geteuid().is_root() { &["--mount"] } else { &["--map-root-user", "--mount"] };
    [&["unshare"], namespaces, command].concat()
}

/// Returns a time zone in which it is now between 12:00 and 13:00.
fn zone_at_noon() -> String {
    let hour = jiff::Timestamp::now().to_zoned(jiff::tz::TimeZone::UTC).hour();
    // The names have the sign of POSIX: `Etc/GMT+3` is three hours behind UTC.
    format!("Etc/GMT{:+}", hour - 12)
}

impl Drop for ShepherddFixture {
    /// Ends the session and the daemon, also after a failed test.
    fn drop(&mut self) {
        if let Some(mut daemon) = self.daemon.take() {
            if let Ok(mut client) = BlockingClient::connect(&self.client_options()) {
                let _ = client.call(Command::StopCurrent { mode: StopMode::Force, session_id: None });
                let has_session = |state: &_| matches!(state, Ok(CommandReply::State { snapshot }) if snapshot.session.is_some());
                becomes_true_within(CLEANUP_TIMEOUT, || !has_session(&client.call(Command::GetState {})));
            }
            // A compositor without a session ends only with a daemon that ends in order.
            if let Some(pid) = i32::try_from(daemon.id()).ok().and_then(Pid::from_raw) {
                let _ = kill_process(pid, Signal::TERM);
            }
            becomes_true_within(CLEANUP_TIMEOUT, || !matches!(daemon.try_wait(), Ok(None)));
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
    }
}

/// A client that gets events, and the state at the time of its subscription.
pub(crate) struct EventSubscriber {
    pub(crate) client: BlockingClient,
    pub(crate) snapshot: DaemonStateSnapshot,
}

impl EventSubscriber {
    /// Waits for the end of a session, and returns its reason.
    pub(crate) fn wait_for_end(&mut self, session: &SessionId) -> EndReason {
        self.wait_for(|event| match event {
            EventKind::SessionEnded { session_id, end } if session_id == session => Some(end.clone()),
            _ => None,
        })
    }

    /// Waits for the first event for which `wanted` returns a value.
    pub(crate) fn wait_for<T>(&mut self, mut wanted: impl FnMut(&EventKind) -> Option<T>) -> T {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.client.next_push(Some(left)).expect("an event in time") {
                ServerPush::Event(event) => {
                    if let Some(found) = wanted(&event.kind) {
                        return found;
                    }
                }
                other => panic!("{other:?}"),
            }
        }
    }
}
