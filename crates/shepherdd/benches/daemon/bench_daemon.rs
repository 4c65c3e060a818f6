//! A daemon in a folder of its own.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command as Program, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use shepherd_api::{Command, CommandReply, Event, EventKind, SessionView, StopMode};
use shepherd_ipc::{BlockingClient, ClientOptions, ServerPush};
use tempfile::TempDir;

/// The longest wait; only a failed benchmark reaches it.
const WAIT_TIMEOUT: Duration = Duration::from_secs(60);

/// The beginning of every policy. Sessions end with the daemon, so that no process is left behind.
const HEAD: &str = "config_version = 1\non_shutdown = \"end-sessions\"\nstop_grace = \"10s\"\n";

pub(crate) struct BenchDaemon {
    folder: TempDir,
    daemon: Option<Child>,
}

impl BenchDaemon {
    /// Creates a folder with a policy. `entries` gets the folder and returns the entries. The daemon does not run yet.
    pub(crate) fn empty(entries: impl FnOnce(&Path) -> String) -> Self {
        let folder = TempDir::with_prefix("shepherdd-bench-").unwrap();
        let policy = format!("{HEAD}{}", entries(folder.path()));
        std::fs::write(folder.path().join("policy.toml"), policy).unwrap();
        Self { folder, daemon: None }
    }

    /// Creates a folder with a policy, and starts the daemon.
    pub(crate) fn new(entries: &str) -> Self {
        let mut daemon = Self::empty(|_| entries.to_owned());
        daemon.start();
        daemon
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.folder().join("data")
    }

    /// Starts the daemon and returns when it has answered a hello.
    pub(crate) fn start(&mut self) {
        let (folder, options) = (self.folder.path(), self.options());
        let log = std::fs::File::create(folder.join("log")).unwrap();
        let mut daemon = Program::new(env!("CARGO_BIN_EXE_shepherdd"));
        daemon.arg("--allow-root").arg("--policy").arg(folder.join("policy.toml"));
        daemon.arg("--data-dir").arg(self.data()).arg("--socket").arg(&options.socket);
        let daemon = daemon.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn().unwrap();
        self.daemon = Some(daemon);
        wait_for("the daemon answers", Duration::from_micros(200), || {
            BlockingClient::connect(&options).is_ok()
        });
    }

    /// Sends SIGTERM, and waits until the daemon has exited.
    pub(crate) fn stop(&mut self) {
        if let Some(mut daemon) = self.daemon.take() {
            kill_process(Pid::from_child(&daemon), Signal::TERM).unwrap();
            daemon.wait().unwrap();
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.daemon.as_ref().unwrap().id()
    }

    pub(crate) fn options(&self) -> ClientOptions {
        ClientOptions::new(self.folder().join("socket"), "bench")
    }

    pub(crate) fn client(&self) -> BlockingClient {
        BlockingClient::connect(&self.options()).unwrap()
    }

    /// Opens this number of connections that send only the hello.
    pub(crate) fn idle_clients(&self, count: usize) -> Vec<BlockingClient> {
        (0..count).map(|_| self.client()).collect()
    }

    pub(crate) fn subscriber(&self) -> BlockingClient {
        let mut client = self.client();
        client.subscribe().unwrap();
        client
    }
}

impl Drop for BenchDaemon {
    fn drop(&mut self) {
        if self.daemon.is_some() {
            // A program that ignores SIGTERM would delay the exit.
            let _ = self.client().call(Command::StopCurrent { mode: StopMode::Force, session_id: None });
            self.stop();
        }
    }
}

pub(crate) fn launch(client: &mut BlockingClient, entry: &str) -> SessionView {
    match client.call(Command::Launch { entry_id: entry.parse().unwrap(), profile: None, display: None }) {
        Ok(CommandReply::Launched { session }) => session,
        other => panic!("{other:?}"),
    }
}

/// Waits for an event for which `wanted` returns a value.
pub(crate) fn await_event<T>(client: &mut BlockingClient, mut wanted: impl FnMut(&Event) -> Option<T>) -> T {
    loop {
        match client.next_push(Some(WAIT_TIMEOUT)).unwrap() {
            ServerPush::Event(event) => {
                if let Some(found) = wanted(&event) {
                    return found;
                }
            }
            other => panic!("{other:?}"),
        }
    }
}

pub(crate) fn await_start(client: &mut BlockingClient) {
    await_event(client, |event| matches!(event.kind, EventKind::SessionStarted { .. }).then_some(()));
}

pub(crate) fn await_end(client: &mut BlockingClient) {
    await_event(client, |event| matches!(event.kind, EventKind::SessionEnded { .. }).then_some(()));
}

pub(crate) fn force_stop(client: &mut BlockingClient) {
    client.call(Command::StopCurrent { mode: StopMode::Force, session_id: None }).unwrap();
}

/// Checks a condition repeatedly until it holds.
pub(crate) fn wait_for(what: &str, pause: Duration, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + WAIT_TIMEOUT;
    while !is_so() {
        assert!(Instant::now() < deadline, "never: {what}");
        std::thread::sleep(pause);
    }
}

/// Returns a policy of two children with this number of entries, which use all common settings.
pub(crate) fn family_policy(entries: usize) -> String {
    let mut text = String::from(
        "[profiles.anna]\n[profiles.ben]\n[budgets.games]\ndaily = { weekdays = \"1h\", weekends = \"2h\" }\n",
    );
    for number in 0..entries {
        let _ = write!(
            text,
            "\n[[entries]]\nid = \"entry-{number:02}\"\nlabel = \"Game {number}\"\nicon = \"game-{number}\"\n\
             argv = [\"/usr/games/game-{number}\", \"--fullscreen\"]\nenv = {{ LANG = \"C.UTF-8\" }}\n\
             profiles = [\"anna\", \"ben\"]\nbudgets = [\"games\"]\n\
             max_run = \"45m\"\ndaily_quota = \"1h\"\ncooldown_after_run = \"10m\"\n\
             windows = [\n  {{ days = \"weekdays\", from = \"15:00\", to = \"18:30\" }},\n  \
             {{ days = [\"sat\", \"sun\"], from = \"09:00\", to = \"12:00\" }},\n]\n\
             warnings = [{{ before = \"5m\" }}, {{ before = \"1m\", severity = \"critical\" }}]\n",
        );
    }
    text
}

/// Returns an entry that is always open, with further lines.
pub(crate) fn entry(id: &str, argv: &[&str], lines: &str) -> String {
    format!("\n[[entries]]\nid = \"{id}\"\nargv = {argv:?}\nalways = true\n{lines}\n")
}
