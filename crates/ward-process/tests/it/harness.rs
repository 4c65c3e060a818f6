//! Shared helpers of the tests: the test doubles, the supervisors of this host, and a check for surviving
//! processes that doesn't use the crate under test.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use ward_process::{
    Containment, EscapeePolicy, ProcessIdentity, ProcessSpec, ProcessTree, ReattachError, Supervisor, TreeId,
    TreeRecord,
};

use crate::containments::test_program;
pub(crate) use crate::containments::{containments, holding_containments, is_root};

/// Time limit of every wait. It is long enough for the slowest machine, and reached only if a test fails.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) fn fake_child() -> PathBuf {
    test_program("fake-child", env!("CARGO_BIN_EXE_fake-child"))
}

pub(crate) fn fake_supervisor() -> PathBuf {
    test_program("fake-supervisor", env!("CARGO_BIN_EXE_fake-supervisor"))
}

pub(crate) fn supervisor(containment: Containment) -> Supervisor {
    Supervisor::with_containment(containment).unwrap()
}

/// A run of `fake-child`, recognisable by a sleep time on its command line that no other run has.
pub(crate) struct TestRun {
    token: String,
    pub(crate) id: TreeId,
}

impl TestRun {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let process = std::process::id();
        Self {
            token: format!("9{process:07}{number:04}"),
            id: format!("test-{process}-{number}").parse().unwrap(),
        }
    }

    /// Replaces `FOREVER` in a script by `arrive` and the sleep of this run.
    pub(crate) fn script(&self, script: &str) -> String {
        script.replace("FOREVER", &format!("arrive; sleep {}", self.token))
    }

    pub(crate) fn spec(&self, script: &str) -> ProcessSpec {
        ProcessSpec::new(fake_child()).args([self.script(script)])
    }

    pub(crate) fn spawn(&self, supervisor: &Supervisor, script: &str) -> ProcessTree {
        supervisor.spawn(self.id.clone(), self.spec(script)).unwrap()
    }

    /// Returns the living processes of this run, found by their command line without the crate under test.
    pub(crate) fn survivors(&self) -> Vec<i32> {
        let processes = std::fs::read_dir("/proc").unwrap().flatten();
        let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
        pids.filter(|pid| self.is_member(*pid)).collect()
    }

    fn is_member(&self, pid: i32) -> bool {
        let process = PathBuf::from(format!("/proc/{pid}"));
        if self.is_running(&process) {
            return true;
        }
        // A process whose first thread has ended looks like a zombie, but its other threads may run.
        let threads = std::fs::read_dir(process.join("task")).into_iter().flatten().flatten();
        threads.into_iter().any(|thread| self.is_running(&thread.path()))
    }

    /// Returns true if the folder in `/proc` belongs to a process or thread of this run that has not ended.
    fn is_running(&self, folder: &Path) -> bool {
        let read = |file: &str| std::fs::read(folder.join(file)).unwrap_or_default();
        let command = String::from_utf8_lossy(&read("cmdline")).into_owned();
        let stat = String::from_utf8_lossy(&read("stat")).into_owned();
        let state = stat.rsplit(") ").next().and_then(|rest| rest.chars().next());
        command.contains(&self.token) && !matches!(state, None | Some('Z' | 'X'))
    }

    /// Returns the number of living processes of this run that have reached an `arrive` in their script.
    pub(crate) fn count_sleeping(&self) -> usize {
        let name = |pid| std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        self.survivors().into_iter().filter(|pid| name(*pid).ends_with("!\n")).count()
    }

    /// Waits until `count` processes have arrived.
    pub(crate) fn wait_until_sleeping(&self, count: usize) {
        wait_until(&format!("{count} arrivals"), || self.count_sleeping() >= count);
    }

    /// Returns the directory of the tree's cgroup, which exists only if the tree has one.
    pub(crate) fn group(&self) -> PathBuf {
        let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
        let mount = mounts.lines().find(|line| line.split(' ').nth(2) == Some("cgroup2"));
        let mount = mount.and_then(|line| line.split(' ').nth(1)).unwrap_or("/nonexistent");
        let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap();
        let own = groups.lines().find_map(|line| line.strip_prefix("0::")).unwrap_or("/");
        let own = own.strip_suffix("/supervisor").unwrap_or(own);
        PathBuf::from(format!("{mount}{own}/ward-{}", self.id))
    }

    /// Waits until all processes have ended and another supervisor finds the tree gone. That supervisor removes the
    /// empty cgroup.
    pub(crate) fn wait_until_gone(&self, record: &TreeRecord) {
        wait_until("the end of all members", || self.survivors().is_empty());
        let supervisor = supervisor(record.containment);
        wait_until("the end of the tree", || {
            matches!(supervisor.reattach(record), Err(ReattachError::Gone(_)))
        });
    }

    pub(crate) fn assert_none_left(&self) {
        // The supervisor returns only when no member is left, so this check doesn't wait.
        assert_eq!(self.survivors(), Vec::<i32>::new());
    }
}

impl Drop for TestRun {
    /// Kills the processes of a failed test, and checks that a successful test leaves neither zombies nor a
    /// cgroup.
    fn drop(&mut self) {
        for pid in self.survivors() {
            let _ = Command::new("kill").args(["-9", &pid.to_string()]).status();
        }
        if !std::thread::panicking() {
            let supervisor = supervisor(Containment::ProcessGroup);
            wait_until("the removal of zombies and cgroups", || {
                supervisor.clean_up();
                zombies().is_empty() && !self.group().exists()
            });
        }
    }
}

/// Returns the pids of this process's zombie children.
pub(crate) fn zombies() -> Vec<String> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten();
    let children =
        tasks.map(|task| std::fs::read_to_string(task.path().join("children")).unwrap_or_default());
    let is_zombie = |pid: &String| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('Z'))
    };
    children.collect::<String>().split_whitespace().map(str::to_owned).filter(is_zombie).collect()
}

/// Returns the number of voluntary context switches of this thread, one for each time it has slept.
pub(crate) fn context_switches() -> u64 {
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    line.unwrap().trim().parse().unwrap()
}

/// Starts `fake-supervisor` and returns its process and the line that it prints.
pub(crate) fn start_supervisor_process(
    run: &TestRun,
    containment: Containment,
    how: &str,
    script: &str,
) -> (Child, String) {
    let mut process = Command::new(fake_supervisor())
        .args([&format!("{containment:?}"), how, run.id.as_str()])
        .arg(fake_child())
        .arg(run.script(script))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
    (process, line)
}

/// Starts `fake-supervisor` with the tree of `run`, and returns its process and the tree's record.
pub(crate) fn start_tree(
    run: &TestRun,
    containment: Containment,
    how: &str,
    script: &str,
) -> (Child, TreeRecord) {
    let (process, line) = start_supervisor_process(run, containment, how, script);
    let fields: Vec<&str> = line.split_whitespace().collect();
    let root = ProcessIdentity { pid: fields[0].parse().unwrap(), start_time: fields[1].parse().unwrap() };
    let record = TreeRecord {
        id: run.id.clone(),
        containment,
        root: Some(root).filter(|root| root.pid != 0),
        boot: fields[2].to_owned(),
        cgroup: fields[3].parse().ok().filter(|inode| *inode != 0),
        cgroup_limits: Vec::new(),
        escapees: if fields[4] == "keeper" { EscapeePolicy::Held } else { EscapeePolicy::LetGo },
        identity: None,
        private_folder: None,
    };
    (process, record)
}

pub(crate) fn kill(mut process: Child) {
    process.kill().unwrap();
    process.wait().unwrap();
}

pub(crate) fn wait_until(what: &str, condition: impl FnMut() -> bool) {
    assert!(becomes_true_within(PATIENCE, condition), "timeout after {PATIENCE:?} while waiting for {what}");
}

/// Waits until a condition holds, and returns false if it doesn't within this time. Every other wait uses this one.
pub(crate) fn becomes_true_within(limit: Duration, mut condition: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + limit;
    while !condition() {
        if Instant::now() >= deadline {
            return false;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    true
}
