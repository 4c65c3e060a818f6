//! Ending a tree of hundreds of processes (S6.2).

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use shepherd_ipc::BlockingClient;
use ward_bench::{BenchmarkLimit, median, millis};

use crate::bench_daemon::{BenchDaemon, await_end, await_start, entry, force_stop, launch, wait_for};
use crate::report;

const PROCESSES: usize = 500;
const ROUNDS: usize = 7;
/// The file that the script creates when all its processes run.
const GROWN: &str = "grown";
/// How often the cgroup is checked, for the daemon and for the baseline.
const POLL_INTERVAL: Duration = Duration::from_micros(200);

pub(crate) fn measure() {
    let script =
        format!("i=1; while [ $i -lt {PROCESSES} ]; do sleep 600 & i=$((i+1)); done; touch \"$0\"; wait");
    let mut daemon = BenchDaemon::empty(|folder| {
        let grown = folder.join(GROWN);
        let argv = ["sh", "-c", &script, grown.to_str().unwrap()];
        entry("crowd", &argv, "max_run = \"1h\"\nwarnings = []")
    });
    daemon.start();
    let mut client = daemon.subscriber();
    let (mut ours, mut bare, mut reported) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let group = grow(&daemon, &mut client);
        let start = Instant::now();
        force_stop(&mut client);
        if let Some(group) = &group {
            wait_for("the tree is gone", POLL_INTERVAL, || is_empty(group));
            ours.push(millis(start.elapsed()));
        }
        await_end(&mut client);
        reported.push(millis(start.elapsed()));

        if let Some(group) = grow(&daemon, &mut client) {
            let start = Instant::now();
            std::fs::write(group.join("cgroup.kill"), "1").unwrap();
            wait_for("the tree is gone", POLL_INTERVAL, || is_empty(&group));
            bare.push(millis(start.elapsed()));
        } else {
            force_stop(&mut client);
        }
        await_end(&mut client);
    }
    let name = format!("tree of {PROCESSES} gone after stop_current");
    if ours.is_empty() {
        let name = format!("{name}, no cgroup here: until reported");
        report(&name, "ms", median(&mut reported), None, BenchmarkLimit::AtMost(1_000.0));
    } else {
        let baseline = Some(("bare write to cgroup.kill", median(&mut bare)));
        report(&name, "ms", median(&mut ours), baseline, BenchmarkLimit::RatioAtMost(2.0));
    }
}

/// Starts a whole tree. Returns its cgroup if the daemon could create one.
fn grow(daemon: &BenchDaemon, client: &mut BlockingClient) -> Option<PathBuf> {
    let grown = daemon.folder().join(GROWN);
    let _ = std::fs::remove_file(&grown);
    let session = launch(client, "crowd");
    await_start(client);
    wait_for("the tree has grown", Duration::from_millis(5), || grown.exists());
    let group = own_group(daemon.pid())?.join(format!("ward-{}", session.session_id));
    group.join("cgroup.kill").exists().then_some(group)
}

/// Returns the cgroup in which a daemon creates the cgroups of its sessions.
fn own_group(daemon: u32) -> Option<PathBuf> {
    let mounts = std::fs::read_to_string("/proc/self/mounts").ok()?;
    let mount = mounts.lines().find(|line| line.split(' ').nth(2) == Some("cgroup2"))?;
    let groups = std::fs::read_to_string(format!("/proc/{daemon}/cgroup")).ok()?;
    let own = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let own = own.strip_suffix("supervisor").unwrap_or(own);
    Some(PathBuf::from(mount.split(' ').nth(1)?).join(own))
}

/// A group that has been removed is empty, too.
fn is_empty(group: &Path) -> bool {
    !std::fs::read_to_string(group.join("cgroup.events")).unwrap_or_default().contains("populated 1")
}
