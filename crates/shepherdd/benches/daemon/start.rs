//! Benchmark of a start with a year of usage: from `exec` to the first answered hello.

use std::time::Duration;

use shepherd_core::StoreWrite;
use shepherd_store::conformance::sample;
use shepherd_store::{SqliteStore, Store};
use shepherd_util::{Clock, SystemClock};
use ward_bench::{BenchmarkLimit, median, millis, timed};

use crate::bench_daemon::{BenchDaemon, family_policy};
use crate::report;

const ROUNDS: usize = 15;
const ENTRIES: usize = 100;
const CHILDREN: [&str; 2] = ["anna", "ben"];
/// The counters of each child on each day.
const USED_A_DAY: i32 = 30;
/// Sessions of a family in a day, with four lines each: launched, started, warned, ended.
const LINES_A_DAY: i32 = 10 * 4;
const DAYS: i32 = 365;
const SECONDS_A_DAY: i64 = 24 * 60 * 60;

pub(crate) fn measure() {
    let mut daemon = BenchDaemon::empty(|_| family_policy(ENTRIES));
    write_year_of_usage(&daemon);
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        let ((), took) = timed(|| daemon.start());
        times.push(millis(took));
        daemon.stop();
    }
    let name = format!("start to ready, {ENTRIES} entries and a year of use (median)");
    report(&name, "ms", median(&mut times), None, BenchmarkLimit::AtMost(50.0));
}

/// Writes a year of usage as the daemon itself would.
fn write_year_of_usage(daemon: &BenchDaemon) {
    let today = SystemClock.now().wall;
    let (mut store, _) = SqliteStore::open(&daemon.data(), today).unwrap();
    let last = i32::try_from(today.as_second() / SECONDS_A_DAY).unwrap();
    for day in 0..DAYS {
        let usage = CHILDREN.into_iter().flat_map(|child| (0..USED_A_DAY).map(move |entry| (child, entry)));
        let usage = usage.map(|(child, number)| StoreWrite::AddUsage {
            key: sample::usage_key(
                child,
                sample::entry_counter(&format!("entry-{number:02}")),
                last - DAYS + day,
            ),
            amount: Duration::from_millis(1_234_567),
        });
        let lines = (0..LINES_A_DAY).map(|line| {
            let number = u64::try_from(day * LINES_A_DAY + line).unwrap_or_default();
            StoreWrite::AppendAudit(Box::new(sample::note_event(number)))
        });
        store.apply(&usage.chain(lines).collect::<Vec<_>>()).unwrap();
    }
}
