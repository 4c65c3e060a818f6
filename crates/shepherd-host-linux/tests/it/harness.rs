//! Shared set-up of the tests: hosts, entries, test doubles, and a search for survivors that doesn't use the host's code.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use shepherd_api::EntryKind;
use shepherd_core::UserDisplay;
use shepherd_core::policy::{
    AvailabilityPolicy, EntrySlot, LimitsPolicy, Policy, PolicyEntry, PolicyRules, RunPolicy, TimeCost,
    WarningPolicy,
};
use shepherd_host_api::{ExitStatus, HostAdapter, HostEvent, HostEvents, HostSpawnRequest, HostStopRequest};
use shepherd_host_linux::{LinuxHost, LinuxHostOptions};
use shepherd_util::{ProfileId, SessionId};
use tempfile::TempDir;
use ward_process::Containment;

use crate::containments::test_program;
pub(crate) use crate::containments::{containments, holding_containments, is_root};

/// The longest wait of a test: long enough for the slowest machine, and reached only by a failing test.
pub(crate) const TEST_TIMEOUT: Duration = Duration::from_secs(60);

/// The grace for programs that ignore the request to end.
pub(crate) const SHORT_GRACE: Duration = Duration::from_millis(300);

pub(crate) fn fake_entry() -> PathBuf {
    test_program("fake-entry", env!("CARGO_BIN_EXE_fake-entry"))
}

pub(crate) fn fake_daemon_host() -> PathBuf {
    test_program("fake-daemon-host", env!("CARGO_BIN_EXE_fake-daemon-host"))
}

pub(crate) fn new_session() -> SessionId {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos();
    let number = u128::from(COUNT.fetch_add(1, Ordering::Relaxed));
    SessionId::from_random(now << 64 | u128::from(std::process::id()) << 32 | number)
}

pub(crate) fn process(argv: &[&str]) -> EntryKind {
    let argv = argv.iter().map(|word| (*word).to_owned()).collect();
    EntryKind::Process { argv, env: BTreeMap::new(), cwd: None }
}

/// Returns an entry that runs the test program `fake-entry` with a script.
pub(crate) fn script(script: &str) -> PolicyEntry {
    entry(process(&[fake_entry().to_str().unwrap(), script]))
}

pub(crate) fn entry(kind: EntryKind) -> PolicyEntry {
    PolicyEntry {
        entry_id: "game".parse().unwrap(),
        label: "A game".to_owned(),
        icon_ref: None,
        kind,
        profiles: None,
        availability: AvailabilityPolicy::Always,
        limits: LimitsPolicy::default(),
        warnings: WarningPolicy::default(),
        disabled: None,
        budgets: Vec::new(),
        cost: TimeCost::Counts,
        earns: None,
        slot: EntrySlot::Foreground,
        unlock: None,
        run: RunPolicy::default(),
    }
}

/// A host with its own state folder, and its events.
pub(crate) struct TestHost {
    /// Declared first, so that it is dropped before the folder that it writes to.
    pub(crate) host: LinuxHost,
    pub(crate) events: HostEvents,
    pub(crate) folder: TempDir,
}

impl TestHost {
    pub(crate) fn new(containment: Containment) -> Self {
        Self::with_options(|options| options.containment = Some(containment))
    }

    pub(crate) fn with_options(change: impl FnOnce(&mut LinuxHostOptions)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut options = LinuxHostOptions::new(folder.path().join("state"));
        change(&mut options);
        let mut host = LinuxHost::new(options).unwrap();
        let events = host.subscribe();
        Self { host, events, folder }
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    pub(crate) fn apply_rules(&mut self, rules: PolicyRules) {
        self.host.apply_policy(&Policy::new(rules).unwrap());
    }

    pub(crate) fn spawn(&mut self, entry: PolicyEntry) -> SessionId {
        self.spawn_from(None, entry)
    }

    fn spawn_from(&mut self, display: Option<UserDisplay>, entry: PolicyEntry) -> SessionId {
        let session_id = new_session();
        let profile = ProfileId::default();
        self.host.spawn(HostSpawnRequest { session_id: session_id.clone(), entry, profile, display });
        session_id
    }

    /// Starts a program, and waits until it runs.
    pub(crate) fn start(&mut self, entry: PolicyEntry) -> StartedProgram {
        self.start_from(None, entry)
    }

    /// Starts a program from a desktop with this display, and waits until the program runs.
    pub(crate) fn start_from(&mut self, display: Option<UserDisplay>, entry: PolicyEntry) -> StartedProgram {
        let session_id = self.spawn_from(display, entry);
        match self.next_event() {
            HostEvent::Spawned { session_id: spawned, output, shortcomings, .. } => {
                assert_eq!(spawned, session_id);
                StartedProgram { session_id, output: output.unwrap(), shortcomings }
            }
            event => panic!("{event:?}"),
        }
    }

    /// Tries to start a program that can't be started, and returns the error message.
    pub(crate) fn spawn_failure(&mut self, entry: PolicyEntry) -> String {
        let session_id = self.spawn(entry);
        match self.next_event() {
            HostEvent::SpawnFailed { session_id: failed, failure } => {
                assert_eq!(failed, session_id);
                assert_eq!(self.host.recorded_sessions(), []);
                failure.detail
            }
            event => panic!("{event:?}"),
        }
    }

    pub(crate) fn request_stop(&mut self, session: &StartedProgram, grace: Duration) {
        self.host.stop(HostStopRequest { session_id: session.session_id.clone(), grace });
    }

    pub(crate) fn stop(&mut self, session: &StartedProgram, grace: Duration) -> ExitStatus {
        self.request_stop(session, grace);
        self.wait_for_exit(session)
    }

    pub(crate) fn wait_for_exit(&mut self, session: &StartedProgram) -> ExitStatus {
        match self.next_event() {
            HostEvent::Exited { session_id, status } => {
                assert_eq!(session_id, session.session_id);
                status
            }
            event => panic!("{event:?}"),
        }
    }

    pub(crate) fn next_event(&mut self) -> HostEvent {
        let mut found = None;
        wait_until("event", || {
            found = self.events.try_recv().ok();
            found.is_some()
        });
        found.unwrap()
    }

    /// Waits until the logs of ended sessions are complete and their handles are removed.
    pub(crate) fn wait_for_cleanup(&self) {
        wait_until("cleanup", || self.host.recorded_sessions().is_empty());
    }

    /// Checks that no event comes for this long.
    pub(crate) fn assert_no_event(&mut self, length: Duration) {
        let mut event = None;
        becomes_true_within(length, || {
            event = self.events.try_recv().ok();
            event.is_some()
        });
        assert_eq!(event, None);
    }
}

pub(crate) struct StartedProgram {
    pub(crate) session_id: SessionId,
    pub(crate) output: PathBuf,
    pub(crate) shortcomings: Vec<String>,
}

impl StartedProgram {
    pub(crate) fn output(&self) -> String {
        std::fs::read_to_string(&self.output).unwrap_or_default()
    }

    pub(crate) fn wait_for_output(&self, text: &str) {
        wait_until(&format!("`{text}` in the output"), || self.output().contains(text));
    }
}

/// A script whose processes are found by the length of their sleep, which is unique to this script.
pub(crate) struct MarkedScript {
    /// The length of the sleep, in milliseconds.
    sleep: String,
    program: PathBuf,
    /// The folder of a copy of the program that every user can execute.
    folder: Option<TempDir>,
}

impl MarkedScript {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let sleep = format!("9{:07}{:04}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        Self { sleep, program: fake_entry(), folder: None }
    }

    /// Uses a copy of the test double that other users can execute, wherever the original was built.
    pub(crate) fn for_all_users() -> Self {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        let program = folder.path().join("fake-entry");
        std::fs::copy(fake_entry(), &program).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let mut marked = Self::new();
        (marked.program, marked.folder) = (program, Some(folder));
        marked
    }

    /// Returns a path beside the test double. If the double is for all users, all of them can see the file.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.program.with_file_name(name)
    }

    /// Returns an entry for a script. `FOREVER` in the script becomes the unique sleep; a process that reaches it has arrived.
    pub(crate) fn entry(&self, text: &str) -> PolicyEntry {
        entry(process(&[self.program.to_str().unwrap(), &self.script(text)]))
    }

    /// Returns an entry that runs as another user if the test runs as root.
    pub(crate) fn entry_of_another_user(&self, text: &str) -> PolicyEntry {
        let user = is_root().then(|| "nobody".to_owned());
        PolicyEntry { run: RunPolicy { user, ..RunPolicy::default() }, ..self.entry(text) }
    }

    pub(crate) fn script(&self, text: &str) -> String {
        text.replace("FOREVER", &format!("arrive; sleep {}", self.sleep))
    }

    /// Returns the living processes of this script. They are found by their command line, not by the host's own code.
    pub(crate) fn survivors(&self) -> Vec<i32> {
        let processes = std::fs::read_dir("/proc").unwrap().flatten();
        let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
        pids.filter(|pid| self.is_member(*pid)).collect()
    }

    fn is_member(&self, pid: i32) -> bool {
        let read = |file: &str| std::fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
        let command = String::from_utf8_lossy(&read("cmdline")).into_owned();
        let stat = String::from_utf8_lossy(&read("stat")).into_owned();
        let state = stat.rsplit(") ").next().and_then(|rest| rest.chars().next());
        let is_double =
            command.starts_with(self.program.to_str().unwrap()) || command.starts_with("/proc/self/exe");
        is_double && command.contains(&self.sleep) && !matches!(state, None | Some('Z' | 'X'))
    }

    pub(crate) fn wait_for_arrivals(&self, count: usize) {
        let name = |pid| std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        let arrived = || self.survivors().into_iter().filter(|pid| name(*pid).ends_with("!\n")).count();
        wait_until(&format!("{count} arrivals"), || arrived() >= count);
    }

    pub(crate) fn assert_none_left(&self) {
        // The host reports the end when no process is left, so this doesn't wait.
        assert_eq!(self.survivors(), Vec::<i32>::new());
    }
}

impl Drop for MarkedScript {
    /// A failed test must not leave its processes behind.
    fn drop(&mut self) {
        for pid in self.survivors() {
            let _ = std::process::Command::new("kill").args(["-9", &pid.to_string()]).status();
        }
    }
}

pub(crate) fn wait_until(what: &str, condition: impl FnMut() -> bool) {
    assert!(becomes_true_within(TEST_TIMEOUT, condition), "still waiting for {what} after {TEST_TIMEOUT:?}");
}

/// Checks that a condition keeps holding for this long.
pub(crate) fn assert_stays(what: &str, length: Duration, mut condition: impl FnMut() -> bool) {
    assert!(!becomes_true_within(length, || !condition()), "not for {length:?}: {what}");
}

/// Waits until a condition holds. Returns false if it doesn't hold within this time.
pub(crate) fn becomes_true_within(limit: Duration, mut condition: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + limit;
    while !condition() {
        if Instant::now() >= deadline {
            return false;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    true
}

/// Waits until all threads of the host sleep, and then checks that none of them wakes up for this long (S4.7).
pub(crate) fn assert_no_thread_wakes(length: Duration) {
    const QUIET: Duration = Duration::from_millis(200);
    let mut counts = context_switches();
    let mut since = Instant::now();
    wait_until("the threads of the host to fall asleep", || {
        let now = context_switches();
        if now != counts {
            (counts, since) = (now, Instant::now());
        }
        since.elapsed() >= QUIET
    });
    assert_stays("no thread of the host wakes up", length, || context_switches() == counts);
}

/// Writes an executable shell script.
pub(crate) fn write_script(path: &Path, text: &str) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::write(path, format!("#!/bin/sh\n{text}\n")).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// Returns the context switches of each thread of the host. They don't change while all threads sleep.
pub(crate) fn context_switches() -> Vec<(String, Vec<String>)> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten();
    let mut found: Vec<_> = tasks
        .filter_map(|task| {
            let name = std::fs::read_to_string(task.path().join("comm")).ok()?;
            let status = std::fs::read_to_string(task.path().join("status")).ok()?;
            let counts =
                status.lines().filter(|line| line.contains("ctxt_switches")).map(str::to_owned).collect();
            name.starts_with("host-").then_some((name, counts))
        })
        .collect();
    found.sort();
    found
}
