//! A test agent: a home, a workspace, and the real program.

use std::io::{Read, Write};
use std::ops::{Deref, DerefMut};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::process::Pid;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use serde_json::Value;
use tempfile::TempDir;

/// A generous timeout, because the machine may be busy.
pub(crate) const TEST_TIMEOUT: Duration = Duration::from_secs(60);

pub(crate) fn program() -> PathBuf {
    std::env::var_os("NEXTEST_BIN_EXE_collieclaw")
        .unwrap_or_else(|| env!("CARGO_BIN_EXE_collieclaw").into())
        .into()
}

pub(crate) struct TestAgent {
    folder: TempDir,
}

/// A child process that is killed when this value is dropped.
pub(crate) struct ChildGuard(pub(crate) Child);

impl Deref for ChildGuard {
    type Target = Child;

    fn deref(&self) -> &Child {
        &self.0
    }
}

impl DerefMut for ChildGuard {
    fn deref_mut(&mut self) -> &mut Child {
        &mut self.0
    }
}

impl Drop for ChildGuard {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The result of a program: its exit code and both output streams.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AgentOutput {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl AgentOutput {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error} in {self:?}"))
    }
}

impl TestAgent {
    /// Creates an agent after `init`.
    pub(crate) fn new() -> Self {
        let test_agent = Self::empty();
        let init = test_agent.run(&["init"]);
        assert_eq!(init.code, 0, "{init:?}");
        test_agent
    }

    /// Creates an agent after `init`, in a new folder below this one.
    pub(crate) fn new_in(parent: &Path) -> Self {
        let test_agent = Self { folder: tempfile::tempdir_in(parent).unwrap() };
        let init = test_agent.run(&["init"]);
        assert_eq!(init.code, 0, "{init:?}");
        test_agent
    }

    pub(crate) fn empty() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    /// Replaces a text in the configuration.
    pub(crate) fn with_config_change(self, from: &str, to: &str) -> Self {
        let config = std::fs::read_to_string(self.home().join("config.toml")).unwrap();
        assert!(config.contains(from), "no `{from}` in {config}");
        std::fs::write(self.home().join("config.toml"), config.replacen(from, to, 1)).unwrap();
        self
    }

    /// Sets the level to `full`, so that no approval is needed.
    pub(crate) fn with_full_autonomy(self) -> Self {
        self.with_config_change("autonomy = \"supervised\"", "autonomy = \"full\"")
    }

    /// Lets the model run a `sleep` of this length. Only a stop or a cancel ends it before a test fails.
    pub(crate) fn with_sleeping_model(self, seconds: &str) -> Self {
        // `sleep` is not in the list of allowed commands; `full` runs it.
        self.with_full_autonomy()
            .with_config_change("shell_timeout = \"15s\"", "shell_timeout = \"10m\"")
            .with_config_change("tool_timeout = \"30s\"", "tool_timeout = \"10m\"")
            .with_mock_fixture(&format!(
                "[[round]]\n[[round.call]]\ntool = \"shell\"\nargs = {{ command = \"sleep {seconds}\" }}\n\n\
                 [[round]]\nexpect = {{ tool_result_contains = \"stop\" }}\ntext = \"Tools are stopped.\"\n"
            ))
    }

    /// Sets the script of the mock.
    pub(crate) fn with_mock_fixture(self, fixture: &str) -> Self {
        std::fs::write(self.path().join("fixture.toml"), fixture).unwrap();
        self
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.path().join(".collieclaw")
    }

    pub(crate) fn workspace(&self) -> PathBuf {
        self.path().join("collieclaw-workspace")
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(program());
        command.args(arguments).env_clear().env("HOME", self.path()).env("PATH", "/usr/bin:/bin");
        command.env("TZ", noon_time_zone());
        // The home of the user can't be a workspace, so the agent works in the one of the configuration.
        command.current_dir(self.path());
        let fixture = self.path().join("fixture.toml");
        if fixture.exists() {
            command.env("COLLIECLAW_MOCK_FIXTURE", fixture);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Returns the command, started by another program with its own arguments.
    pub(crate) fn command_through(&self, other: &str, others: &[&str], arguments: &[&str]) -> Command {
        let inner = self.command(arguments);
        let mut command = Command::new(other);
        command.args(others).arg(inner.get_program()).args(inner.get_args()).env_clear();
        command.current_dir(self.path());
        command.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> AgentOutput {
        agent_output(self.command(arguments).output().unwrap())
    }

    /// Runs a command at a terminal: waits for each text, then types the other one. Standard output is a pipe.
    pub(crate) fn at_terminal(&self, arguments: &[&str], dialog: &[(&str, &str)]) -> AgentOutput {
        Self::run_at_terminal(self.command(arguments), dialog)
    }

    /// Runs a prepared command at a terminal in the same way.
    pub(crate) fn run_at_terminal(mut command: Command, dialog: &[(&str, &str)]) -> AgentOutput {
        let mut terminal = AgentTerminal::open();
        command.stdin(terminal.slave()).stderr(terminal.slave());
        let mut child = command.spawn().unwrap();
        drop(command);
        terminal.close_slave();
        for (shown, typed) in dialog {
            terminal.wait_for(shown);
            terminal.type_in(typed);
        }
        let mut out = String::new();
        child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
        let code = wait_for_exit(&mut child);
        AgentOutput { code, out, err: terminal.read_to_end() }
    }

    pub(crate) fn call_tool(&self, tool: &str, arguments: &str) -> AgentOutput {
        self.run(&["tool", "run", tool, "--json", arguments])
    }

    /// Returns the output of a successful call.
    pub(crate) fn call_output(&self, tool: &str, arguments: &str) -> String {
        let done = self.call_tool(tool, arguments);
        assert_eq!(done.code, 0, "{done:?}");
        done.out.trim_end().to_owned()
    }

    /// Checks that a call fails with this text, and that its receipt says so.
    pub(crate) fn assert_call_fails(&self, tool: &str, arguments: &str, expected: &str) -> AgentOutput {
        let done = self.call_tool(tool, arguments);
        assert_eq!(done.code, 1, "{done:?}");
        assert!(done.err.contains(expected), "{expected}: {}", done.err);
        let receipt = self.last_receipt();
        let words = (receipt["status"].as_str(), receipt["reason_code"].as_str());
        assert_eq!(words, (Some("failed"), Some("tool-failed")));
        done
    }

    pub(crate) fn last_receipt(&self) -> Value {
        self.receipts().pop().expect("a receipt")
    }

    /// Returns the receipts, oldest first.
    pub(crate) fn receipts(&self) -> Vec<Value> {
        match self.run(&["receipt", "list", "--output", "json"]).json() {
            Value::Array(receipts) => receipts,
            other => panic!("{other}"),
        }
    }

    /// Returns the reason codes in the whole log; `receipt list` shows only the newest receipts.
    pub(crate) fn all_receipt_reasons(&self) -> Vec<String> {
        let log = std::fs::read_to_string(self.home().join("tool_receipts.log")).unwrap();
        let reason = |line: &str| {
            let receipt: Value = serde_json::from_str(line).unwrap();
            receipt["reason_code"].as_str().unwrap().to_owned()
        };
        log.lines().map(reason).collect()
    }

    /// Returns tool, status and reason of every receipt.
    pub(crate) fn receipt_summaries(&self) -> Vec<[String; 3]> {
        let word = |receipt: &Value, name: &str| receipt[name].as_str().unwrap().to_owned();
        let words = |receipt: &Value| ["tool", "status", "reason_code"].map(|name| word(receipt, name));
        self.receipts().iter().map(words).collect()
    }
}

/// Returns a value of `TZ` for a time zone where it is about noon. Usage is counted by local days, so a test that runs
/// across midnight would see two of them.
pub(crate) fn noon_time_zone() -> String {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let hour = i64::try_from(since_epoch.as_secs() / 3600 % 24).unwrap();
    // POSIX counts hours west of Greenwich.
    format!("NOON{}", hour - 12)
}

/// Returns a length for `sleep`, in seconds, that nothing else on this machine uses.
pub(crate) fn unique_sleep_seconds() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    format!("7{:07}{:03}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

/// Returns whether a `sleep` of this length runs anywhere on the machine.
pub(crate) fn is_sleep_running(seconds: &str) -> bool {
    count_sleeps(seconds) > 0
}

/// Counts the processes on the machine that are a `sleep` of this length.
pub(crate) fn count_sleeps(seconds: &str) -> usize {
    let line = format!("sleep\0{seconds}\0");
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.filter_map(|process| std::fs::read(process.path().join("cmdline")).ok());
    lines.filter(|read| read == line.as_bytes()).count()
}

/// Waits until a `sleep` of this length has started. A program that starts one goes on a moment before `/proc` shows its
/// command line.
pub(crate) fn wait_for_sleep(seconds: &str) {
    wait_until(&format!("`sleep {seconds}` runs"), || is_sleep_running(seconds));
}

/// Waits until no `sleep` of this length runs any more.
pub(crate) fn wait_for_end_of_sleep(seconds: &str) {
    wait_until(&format!("`sleep {seconds}` has ended"), || !is_sleep_running(seconds));
}

/// Waits until a condition holds, or panics with the condition it waited for.
pub(crate) fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    wait_for_value(what, || condition().then_some(()));
}

/// Waits until there is a value, or panics with the condition it waited for.
pub(crate) fn wait_for_value<T>(what: &str, mut value: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + TEST_TIMEOUT;
    loop {
        if let Some(value) = value() {
            return value;
        }
        assert!(Instant::now() < deadline, "waited {} s until {what}", TEST_TIMEOUT.as_secs());
        // The interval between two looks at something that can't wake us.
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Waits until a thread of this process is blocked in the kernel.
pub(crate) fn wait_until_blocked(thread: Pid) {
    let stat = format!("/proc/self/task/{}/stat", thread.as_raw_nonzero());
    wait_until("the thread is blocked", || {
        let stat = std::fs::read_to_string(&stat).unwrap();
        // The state follows the name, which is in parentheses.
        stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('S'))
    });
}

pub(crate) fn agent_output(output: std::process::Output) -> AgentOutput {
    AgentOutput {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Returns the exit code, or -1 after a signal. Panics after a timeout.
pub(crate) fn wait_for_exit(child: &mut Child) -> i32 {
    /// Kills a process that has not ended in time.
    struct KillOnPanic<'c>(&'c mut Child);

    impl Drop for KillOnPanic<'_> {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    let child = KillOnPanic(child);
    let exit = wait_for_value(&format!("process {} has ended", child.0.id()), || child.0.try_wait().unwrap());
    exit.code().unwrap_or(-1)
}

/// A pseudo-terminal.
pub(crate) struct AgentTerminal {
    master: std::fs::File,
    slave: Option<OwnedFd>,
    bytes: Receiver<Vec<u8>>,
    seen: Vec<u8>,
}

impl AgentTerminal {
    pub(crate) fn open() -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let flags = rustix::fs::OFlags::RDWR | rustix::fs::OFlags::NOCTTY | rustix::fs::OFlags::CLOEXEC;
        let slave = rustix::fs::open(name, flags, rustix::fs::Mode::empty()).unwrap();
        let master = std::fs::File::from(master);
        let (sender, bytes) = channel();
        let mut reader = master.try_clone().unwrap();
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            let mut was_closed = false;
            loop {
                match reader.read(&mut buffer) {
                    Ok(count @ 1..) if sender.send(buffer[..count].to_vec()).is_ok() => was_closed = false,
                    // Reading from a terminal without users gives an error, but sometimes too early: the kernel looks for
                    // output first and for users afterwards, and the last user may write and leave in between. The next
                    // read finds that output.
                    Ok(0) | Err(_) if !was_closed => was_closed = true,
                    _ => break,
                }
            }
        });
        Self { master, slave: Some(slave), bytes, seen: Vec::new() }
    }

    pub(crate) fn slave(&self) -> OwnedFd {
        self.slave.as_ref().unwrap().try_clone().unwrap()
    }

    /// Closes our copy of the terminal, so that only the program holds it.
    pub(crate) fn close_slave(&mut self) {
        self.slave = None;
    }

    /// Returns the output up to and including the text.
    pub(crate) fn wait_for(&mut self, text: &str) -> String {
        self.wait_until(text, |seen| seen.find(text).map(|at| at + text.len()))
    }

    /// Returns the output up to the position that `end` finds, or panics after a timeout.
    pub(crate) fn wait_until(&mut self, text: &str, end: impl Fn(&str) -> Option<usize>) -> String {
        self.wait_until_or_closed(text, end)
            .unwrap_or_else(|seen| panic!("the terminal was closed before it showed `{text}`: {seen:?}"))
    }

    /// Returns the output up to the position that `end` finds, or the rest of the output as an error if all
    /// users have closed the terminal before. Panics after a timeout.
    pub(crate) fn wait_until_or_closed(
        &mut self,
        text: &str,
        end: impl Fn(&str) -> Option<usize>,
    ) -> Result<String, String> {
        let deadline = Instant::now() + TEST_TIMEOUT;
        loop {
            let seen = String::from_utf8_lossy(&self.seen).into_owned();
            if let Some(end) = end(&seen) {
                let (until, rest) = seen.split_at(end);
                self.seen = rest.as_bytes().to_vec();
                return Ok(until.to_owned());
            }
            let left = deadline.saturating_duration_since(Instant::now());
            match self.bytes.recv_timeout(left) {
                Ok(bytes) => self.seen.extend(bytes),
                Err(RecvTimeoutError::Disconnected) => return Err(seen),
                Err(RecvTimeoutError::Timeout) => {
                    panic!("waited {} s for `{text}` on a terminal with {seen:?}", TEST_TIMEOUT.as_secs())
                }
            }
        }
    }

    pub(crate) fn type_in(&mut self, text: &str) {
        self.master.write_all(text.as_bytes()).unwrap();
    }

    /// Returns the rest of the output, once all users have closed the terminal.
    pub(crate) fn read_to_end(mut self) -> String {
        while let Ok(bytes) = self.bytes.recv_timeout(TEST_TIMEOUT) {
            self.seen.extend(bytes);
        }
        String::from_utf8_lossy(&self.seen).into_owned()
    }
}
