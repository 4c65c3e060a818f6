//! Benchmarks of stopping: the time from the request to the first signal, and the time until a large tree is gone.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a benchmark that can't run has nothing to report")]
#![expect(clippy::print_stdout, reason = "the signalled program reports to the benchmark")]
#![expect(unsafe_code, reason = "waiting for a signal is a C interface")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use shepherd_api::EntryKind;
use shepherd_core::policy::{
    AvailabilityPolicy, EntrySlot, LimitsPolicy, PolicyEntry, RunPolicy, TimeCost, WarningPolicy,
};
use shepherd_host_api::{HostAdapter, HostEvent, HostEvents, HostSpawnRequest, HostStopRequest};
use shepherd_host_linux::{LinuxHost, LinuxHostOptions};
use shepherd_util::{ProfileId, SessionId};
use ward_bench::{BenchmarkBaseline, BenchmarkLimit, BenchmarkRow, median, millis, percentile, report};
use ward_process::Containment;

/// Five hundred processes, a quarter of them in their own sessions.
const LARGE_TREE: &str = "fork 125 [ setsid; sleep 600000 ]; fork 374 [ sleep 600000 ]; sleep 600000";

/// The argument that makes this program wait for the signal itself.
const AWAIT_SIGNAL: &str = "await-signal";

fn main() {
    if std::env::args().any(|argument| argument == AWAIT_SIGNAL) {
        return report_signal_time();
    }
    for containment in ward_process::probe().available() {
        first_signal(containment);
        if containment == Containment::Cgroup {
            kill_against_bare_write();
        }
    }
}

fn report_signal_time() {
    // SAFETY: all calls use a signal set on this stack. The signal is blocked before "ready" makes the benchmark send
    // it.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, libc::SIGTERM);
        libc::sigprocmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut());
        println!("ready");
        let mut signal = 0;
        libc::sigwait(&raw const set, &raw mut signal);
    }
    println!("{}", now());
}

/// Returns nanoseconds on a clock that all processes share.
fn now() -> i64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes to a timespec on this stack.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

fn first_signal(containment: Containment) {
    let mut bench = BenchHost::new(containment);
    let program = std::env::current_exe().unwrap();
    let mut samples: Vec<f64> = (0..200)
        .map(|_| {
            let (session_id, log) = bench.start(&program, AWAIT_SIGNAL);
            wait_for(|| lines(&log) == 1);
            let ordered = now();
            bench.stop(&session_id, Duration::from_secs(60));
            wait_for(|| lines(&log) == 2);
            let output = std::fs::read_to_string(&log).unwrap();
            let arrived: i64 = output.lines().nth(1).unwrap().parse().unwrap();
            millis(Duration::from_nanos((arrived - ordered).unsigned_abs()))
        })
        .collect();
    for (name, percent, bar) in [("median", 50.0, 5.0), ("p99", 99.0, 20.0)] {
        let bench = format!("host: order to signal, {name} ({containment})");
        let figure = percentile(&mut samples, percent);
        report(&BenchmarkRow {
            bench,
            unit: "ms".into(),
            figure,
            baseline: None,
            bar: BenchmarkLimit::AtMost(bar),
        })
        .unwrap();
    }
}

fn kill_against_bare_write() {
    let mut bench = BenchHost::new(Containment::Cgroup);
    let (mut ours, mut bare) = (Vec::new(), Vec::new());
    for _ in 0..9 {
        let (session_id, group) = bench.start_large_tree();
        let start = Instant::now();
        bench.stop(&session_id, Duration::ZERO);
        ours.push(millis(start.elapsed()));
        drop(group);

        let (_, group) = bench.start_large_tree();
        let start = Instant::now();
        std::fs::write(group.join("cgroup.kill"), "1").unwrap();
        let events = || std::fs::read_to_string(group.join("cgroup.events")).unwrap_or_default();
        while events().contains("populated 1") {
            std::thread::sleep(Duration::from_micros(200));
        }
        bare.push(millis(start.elapsed()));
        bench.await_exit();
    }
    let baseline = BenchmarkBaseline { name: "bare write to cgroup.kill".into(), figure: median(&mut bare) };
    report(&BenchmarkRow {
        bench: "host: tree of 500 gone".into(),
        unit: "ms".into(),
        figure: median(&mut ours),
        baseline: Some(baseline),
        bar: BenchmarkLimit::RatioAtMost(2.0),
    })
    .unwrap();
}

struct BenchHost {
    host: LinuxHost,
    events: HostEvents,
    _folder: tempfile::TempDir,
}

impl BenchHost {
    fn new(containment: Containment) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut options = LinuxHostOptions::new(folder.path().to_owned());
        options.containment = Some(containment);
        let mut host = LinuxHost::new(options).unwrap();
        let events = host.subscribe();
        Self { host, events, _folder: folder }
    }

    fn start(&mut self, program: &Path, argument: &str) -> (SessionId, PathBuf) {
        let session_id = SessionId::from_random(now().unsigned_abs().into());
        let argv = vec![program.to_str().unwrap().to_owned(), argument.to_owned()];
        let request = HostSpawnRequest {
            session_id: session_id.clone(),
            entry: entry(argv),
            profile: ProfileId::default(),
            display: None,
        };
        self.host.spawn(request);
        match self.events.blocking_recv() {
            Some(HostEvent::Spawned { output: Some(log), .. }) => (session_id, log),
            event => panic!("{event:?}"),
        }
    }

    /// Starts a large tree, and returns its session and its cgroup.
    fn start_large_tree(&mut self) -> (SessionId, PathBuf) {
        let (session_id, _) = self.start(Path::new(env!("CARGO_BIN_EXE_fake-entry")), LARGE_TREE);
        let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
        let mount = mounts.lines().find(|line| line.split(' ').nth(2) == Some("cgroup2")).unwrap();
        let mount = PathBuf::from(mount.split(' ').nth(1).unwrap());
        let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap();
        let own = groups.lines().find_map(|line| line.strip_prefix("0::/")).unwrap();
        let own = own.strip_suffix("supervisor").unwrap_or(own);
        let group = mount.join(own).join(format!("ward-{session_id}"));
        let count =
            || std::fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default().lines().count();
        wait_for(|| count() >= 500);
        (session_id, group)
    }

    fn stop(&mut self, session_id: &SessionId, grace: Duration) {
        self.host.stop(HostStopRequest { session_id: session_id.clone(), grace });
        self.await_exit();
    }

    fn await_exit(&mut self) {
        match self.events.blocking_recv() {
            Some(HostEvent::Exited { .. }) => {}
            event => panic!("{event:?}"),
        }
    }
}

fn lines(log: &Path) -> usize {
    std::fs::read_to_string(log).unwrap_or_default().lines().count()
}

fn wait_for(mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < Duration::from_secs(60), "timed out after 60 s");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn entry(argv: Vec<String>) -> PolicyEntry {
    PolicyEntry {
        entry_id: "bench".parse().unwrap(),
        label: "bench".to_owned(),
        icon_ref: None,
        kind: EntryKind::Process { argv, env: BTreeMap::new(), cwd: None },
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
