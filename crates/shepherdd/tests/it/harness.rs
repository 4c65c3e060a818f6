//! A daemon in a folder of its own, and what tests ask of it.

use std::path::{Path, PathBuf};
use std::process::{Child, Command as Program, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use shepherd_api::{
    ApiError, Command, CommandReply, DaemonStateSnapshot, EventKind, SessionPhase, SessionView, StopMode,
};
use shepherd_ipc::{BlockingClient, CallError, ClientOptions, ServerPush};
use tempfile::TempDir;

pub(crate) mod compositor;
mod processes;
mod records;

use processes::parent_of;
pub(crate) use processes::{ObservedProcess, is_alive, process_tree, processes_with, survivors};

/// Long enough for the slowest machine; nothing waits that long unless it has failed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// A program of this crate. An archive of test binaries is run in another place than it was built in.
pub(crate) fn program(name: &str, built: &str) -> PathBuf {
    std::env::var_os(format!("NEXTEST_BIN_EXE_{name}")).map_or_else(|| built.into(), PathBuf::from)
}

/// A folder with a policy, and a daemon on it that can be killed and started again.
///
/// `TOKEN` in a policy is a number that no other household has: the endless sleep of its programs, by which they can
/// be told from all others.
pub(crate) struct ShepherddFixture {
    folder: TempDir,
    token: String,
    daemon: Option<Child>,
    wrapper: Vec<String>,
    /// Tests run as whoever started them, and so do their programs, unless a test is about that.
    options: Vec<String>,
    variables: Vec<(String, String)>,
    socket: PathBuf,
}

impl ShepherddFixture {
    /// A folder with this policy; nothing runs yet.
    pub(crate) fn new(policy: &str) -> Self {
        Self::in_folder(TempDir::with_prefix("shepherdd-").unwrap(), policy)
    }

    /// The same in memory, if the system has a file system for that, where waiting for a disk would be most of the
    /// time.
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
        let (wrapper, variables) = Default::default();
        let options = vec!["--allow-root".to_owned()];
        let household = Self { folder, token, daemon: None, wrapper, options, variables, socket };
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
    pub(crate) fn with_wrapper(mut self, wrapper: &[&str]) -> Self {
        self.wrapper = wrapper.iter().map(|word| (*word).to_owned()).collect();
        self
    }

    /// Every step of making something durable takes so much longer. It stays our own child: whoever slows it down is a
    /// process apart.
    pub(crate) fn on_a_slow_disk(self, delay: Duration) -> Self {
        let delay = format!("delay_enter={}", delay.as_micros());
        self.with_injected_fault("pwrite64,fsync,fdatasync", &delay)
    }

    /// These system calls of the daemon, on its way and at work, are met with something else.
    pub(crate) fn with_injected_fault(self, calls: &str, what: &str) -> Self {
        let (trace, inject) = (format!("trace={calls}"), format!("inject={calls}:{what}"));
        self.with_wrapper(&["strace", "-D", "-f", "-qq", "-o", "/dev/null", "-e", &trace, "-e", &inject])
    }

    /// The daemon is as it is where nobody tries it out.
    pub(crate) fn without_options(mut self) -> Self {
        self.options.clear();
        self
    }

    /// The file of the last sign of life can't be written, and everything else can.
    pub(crate) fn without_heartbeat(self) -> Self {
        let path = self.data().join("shepherd.pulse").display().to_string();
        let inject = "inject=pwrite64:error=EIO";
        self.with_wrapper(&["strace", "-D", "-f", "-qq", "-o", "/dev/null", "-P", &path, "-e", inject])
    }

    /// The daemon gets this variable.
    pub(crate) fn with_variable(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The daemon listens there.
    pub(crate) fn with_socket(mut self, socket: PathBuf) -> Self {
        self.socket = socket;
        self
    }

    /// The daemon is started with these options as well.
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
        self.folder().join("policy.toml")
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.folder().join("data")
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.socket.clone()
    }

    /// What the daemon has logged so far.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.folder().join("log")).unwrap_or_default()
    }

    pub(crate) fn write_policy(&self, policy: &str) {
        std::fs::write(self.policy_path(), self.fill_token(policy)).unwrap();
    }

    /// A policy with this household's number in it.
    pub(crate) fn fill_token(&self, policy: &str) -> String {
        policy.replace("TOKEN", &self.token)
    }

    /// The daemon, without options.
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

    /// The command line of the daemon.
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

    /// The same with another place for the log than a file of ours.
    pub(crate) fn start_logging_to(&mut self, log: Stdio) {
        self.spawn_logging_to(log);
        self.wait_until_ready();
    }

    fn wait_until_ready(&mut self) {
        let deadline = Instant::now() + PATIENCE;
        while BlockingClient::connect(&self.client_options()).is_err() {
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
        kill_process(self.daemon_pid(), Signal::TERM).unwrap();
        self.wait()
    }

    /// The end, after whatever brings it about.
    pub(crate) fn wait(&mut self) -> std::process::ExitStatus {
        self.daemon.take().unwrap().wait().unwrap()
    }

    fn client_options(&self) -> ClientOptions {
        ClientOptions::new(self.socket(), "test")
    }

    /// A new connection.
    pub(crate) fn client(&self) -> BlockingClient {
        BlockingClient::connect(&self.client_options())
            .unwrap_or_else(|error| panic!("{error}:\n{}", self.log()))
    }

    /// A connection that gets events.
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
        match self.call(Command::Launch { entry_id: entry.parse().unwrap(), profile: None }) {
            Ok(CommandReply::Launched { session }) => session,
            other => panic!("{other:?}\n{}", self.log()),
        }
    }

    /// Why an entry can't be launched.
    pub(crate) fn refusal(&self, entry: &str) -> ApiError {
        match self.call(Command::Launch { entry_id: entry.parse().unwrap(), profile: None }) {
            Err(CallError::Refused(error)) => error,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn stop(&self, mode: StopMode) -> Result<CommandReply, CallError> {
        self.call(Command::StopCurrent { mode })
    }

    /// Waits until nothing runs, by the daemon's account and by that of the kernel.
    pub(crate) fn wait_until_idle(&self) {
        wait_until("the session ends", || self.state().session.is_none());
        self.assert_no_processes_left();
    }

    /// Living processes of this household's programs, found by their command line and nothing of ours.
    pub(crate) fn program_pids(&self) -> Vec<i32> {
        processes_with(&self.token)
    }

    /// Waits until a program of this household runs.
    pub(crate) fn wait_for_program(&self) -> i32 {
        let mut found = Vec::new();
        wait_until("a program runs", || {
            found = self.program_pids();
            !found.is_empty()
        });
        // It runs a moment before the daemon, if there is one, knows.
        wait_until("the daemon knows that it runs", || !self.is_launching());
        found[0]
    }

    fn is_launching(&self) -> bool {
        let Ok(mut client) = BlockingClient::connect(&self.client_options()) else { return false };
        let state = client.call(Command::GetState {});
        let launching = |session: &SessionView| session.phase == SessionPhase::Launching;
        matches!(state, Ok(CommandReply::State { snapshot }) if snapshot.session.as_ref().is_some_and(launching))
    }

    /// No program, and nothing that watched over one: the daemon has no copies of itself.
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

/// A command in a mount namespace of its own, which an ordinary user may have within a user namespace.
pub(crate) fn in_mount_namespace<'a>(command: &[&'a str]) -> Vec<&'a str> {
    let namespaces: &[&str] =
        if rustix::process::geteuid().is_root() { &["--mount"] } else { &["--map-root-user", "--mount"] };
    [&["unshare"], namespaces, command].concat()
}

impl Drop for ShepherddFixture {
    /// Nothing outlives a test: what a session left is ended by a daemon that is told to.
    fn drop(&mut self) {
        if let Some(mut daemon) = self.daemon.take() {
            if let Ok(mut client) = BlockingClient::connect(&self.client_options()) {
                let _ = client.call(Command::StopCurrent { mode: StopMode::Force });
                let deadline = Instant::now() + Duration::from_secs(5);
                while Instant::now() < deadline {
                    match client.call(Command::GetState {}) {
                        Ok(CommandReply::State { snapshot }) if snapshot.session.is_some() => {
                            std::thread::sleep(Duration::from_millis(5));
                        }
                        _ => break,
                    }
                }
            }
            // Asked first: what has no session ends only with a daemon that ends in order.
            if let Some(pid) = i32::try_from(daemon.id()).ok().and_then(Pid::from_raw) {
                let _ = kill_process(pid, Signal::TERM);
            }
            let deadline = Instant::now() + Duration::from_secs(5);
            while matches!(daemon.try_wait(), Ok(None)) && Instant::now() < deadline {
                std::thread::sleep(Duration::from_millis(5));
            }
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
    }
}

/// A client that listens.
pub(crate) struct EventSubscriber {
    pub(crate) client: BlockingClient,
    pub(crate) snapshot: DaemonStateSnapshot,
}

impl EventSubscriber {
    /// The next event that `wanted` makes something of; others are passed over.
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

/// Waits until something is so.
pub(crate) fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
