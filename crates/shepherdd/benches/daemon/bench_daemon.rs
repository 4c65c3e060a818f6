//! A daemon in a folder of its own.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command as Program, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use shepherd_api::{Command, CommandReply, Event, EventKind, SessionView, StopMode};
use shepherd_ipc::{BlockingClient, ClientOptions, ServerPush};
use tempfile::TempDir;

/// Nothing waits that long unless it has failed.
const WAIT_TIMEOUT: Duration = Duration::from_secs(60);

/// What every policy here begins with: nothing is left behind.
const HEAD: &str = "config_version = 1\non_shutdown = \"end-sessions\"\nstop_grace = \"10s\"\n";

pub(crate) struct BenchDaemon {
    folder: TempDir,
    daemon: Option<Child>,
}

impl BenchDaemon {
    /// A folder with the entries that are made for it; nothing runs yet.
    pub(crate) fn empty(entries: impl FnOnce(&Path) -> String) -> Self {
        let folder = TempDir::with_prefix("shepherdd-bench-").unwrap();
        let policy = format!("{HEAD}{}", entries(folder.path()));
        std::fs::write(folder.path().join("policy.toml"), policy).unwrap();
        Self { folder, daemon: None }
    }

    /// With the daemon running.
    pub(crate) fn new(entries: &str) -> Self {
        let mut house = Self::empty(|_| entries.to_owned());
        house.start();
        house
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

    /// SIGTERM, and the end.
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

    /// So many connections that say hello and nothing else.
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
            // What resists would hold up the end.
            let _ = self.client().call(Command::StopCurrent { mode: StopMode::Force });
            self.stop();
        }
    }
}

pub(crate) fn launch(client: &mut BlockingClient, entry: &str) -> SessionView {
    match client.call(Command::Launch { entry_id: entry.parse().unwrap(), profile: None }) {
        Ok(CommandReply::Launched { session }) => session,
        other => panic!("{other:?}"),
    }
}

/// The next event that `wanted` makes something of.
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
    client.call(Command::StopCurrent { mode: StopMode::Force }).unwrap();
}

/// Looks again and again, with a pause in between.
pub(crate) fn wait_for(what: &str, pause: Duration, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + WAIT_TIMEOUT;
    while !is_so() {
        assert!(Instant::now() < deadline, "never: {what}");
        std::thread::sleep(pause);
    }
}

/// So many entries with everything that a family writes, for two children.
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

/// An entry that is always open, with these lines besides.
pub(crate) fn entry(id: &str, argv: &[&str], lines: &str) -> String {
    format!("\n[[entries]]\nid = \"{id}\"\nargv = {argv:?}\nalways = true\n{lines}\n")
}
