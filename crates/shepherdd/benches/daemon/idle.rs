//! The cost of an idle daemon: wake-ups and memory (S4.7).

use std::time::Duration;

use ward_bench::BenchmarkLimit;

use crate::bench_daemon::{BenchDaemon, await_start, entry, family_policy, launch};
use crate::report;

/// The limit is for one minute.
const WATCHED: Duration = Duration::from_secs(60);
/// The time for clean-up after a start or a launch, which does not count as idling.
const SETTLE: Duration = Duration::from_secs(3);
const SINGLE_DIGITS: f64 = 9.0;

pub(crate) fn measure() {
    let nap = entry("nap", &["sleep", "600"], "max_run = \"30m\"\nwarnings = [{ before = \"5m\" }]");
    let idle = BenchDaemon::new(&nap);
    let busy = BenchDaemon::new(&nap);
    let large = BenchDaemon::new(&family_policy(1_000));
    let mut client = busy.subscriber();
    launch(&mut client, "nap");
    await_start(&mut client);
    drop(client);
    std::thread::sleep(SETTLE);
    let watched = [("idle", &idle), ("idle with a session", &busy)];
    let before = watched.map(|(_, daemon)| switches(daemon.pid()));
    std::thread::sleep(WATCHED);
    for ((name, daemon), before) in watched.into_iter().zip(before) {
        let switches = switches(daemon.pid()).saturating_sub(before);
        let name = format!("{name}: context switches in a minute");
        report(&name, "", f64::from(switches), None, BenchmarkLimit::AtMost(SINGLE_DIGITS));
    }
    for (name, daemon, bar) in
        [("idle", &idle, 7.0), ("idle with a session", &busy, 15.0), ("1,000 entries", &large, 25.0)]
    {
        report(
            &format!("{name}: resident memory"),
            "MB",
            resident(daemon.pid()),
            None,
            BenchmarkLimit::AtMost(bar),
        );
    }
}

/// Returns the voluntary and involuntary context switches of all threads.
fn switches(process: u32) -> u32 {
    let threads = std::fs::read_dir(format!("/proc/{process}/task")).unwrap();
    let of_thread = |status: String| -> u32 {
        let lines = status.lines().filter_map(|line| line.split_once("voluntary_ctxt_switches:"));
        lines.map(|(_, count)| count.trim().parse::<u32>().unwrap()).sum()
    };
    // A thread may exit meanwhile.
    threads
        .filter_map(|thread| std::fs::read_to_string(thread.ok()?.path().join("status")).ok())
        .map(of_thread)
        .sum()
}

fn resident(process: u32) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    let kibibytes: f64 = line.trim().trim_end_matches(" kB").parse().unwrap();
    kibibytes * 1_024.0 / 1_000_000.0
}
