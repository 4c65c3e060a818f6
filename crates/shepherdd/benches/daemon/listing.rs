//! Long lists: their own time, and ends on time while a client asks for them without pause (S13.3b).

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use shepherd_api::{Command, CommandReply};
use shepherd_ipc::{BlockingClient, CallError};
use ward_bench::{BenchmarkLimit, median, millis, percentile, timed};

use crate::bench_daemon::BenchDaemon;
use crate::expiry::{measure_sessions, nap_entries};
use crate::report;

const ENTRIES: usize = 10_000;
/// Below the number of lists that a client may ask for at once.
const ROUNDS: usize = 21;
const SESSIONS: usize = 40;

pub(crate) fn measure() {
    let mut daemon = BenchDaemon::empty(|folder| nap_entries(folder) + &all_day_entries());
    daemon.start();
    let mut client = daemon.client();
    let mut times: Vec<f64> = (0..ROUNDS).map(|_| millis(timed(|| list(&mut client).unwrap()).1)).collect();
    let name = format!("list of {ENTRIES} entries that are open all day (median)");
    report(&name, "ms", median(&mut times), None, BenchmarkLimit::AtMost(20.0));
    let mut alone = measure_sessions(&daemon, 0, SESSIONS);
    let is_over = AtomicBool::new(false);
    let mut late = std::thread::scope(|scope| {
        let asker = scope.spawn(|| list_until(&mut client, &is_over));
        let late = measure_sessions(&daemon, 0, SESSIONS);
        is_over.store(true, Ordering::Relaxed);
        assert!(asker.join().unwrap() > SESSIONS, "the client asked all the time");
        late
    });
    for (name, percent, bar) in [("median", 50.0, 5.0), ("p99", 99.0, 20.0)] {
        let baseline = Some(("without the client", percentile(&mut alone.signals, percent)));
        let name = format!("signal after a deadline, while a client lists {ENTRIES} entries ({name})");
        report(&name, "ms", percentile(&mut late.signals, percent), baseline, BenchmarkLimit::AtMost(bar));
    }
}

fn list(client: &mut BlockingClient) -> Result<usize, CallError> {
    match client.call(Command::ListEntries { at_time: None, profile: None })? {
        CommandReply::Entries { entries, .. } => {
            assert!(entries.len() > ENTRIES, "the daemon has read the policy");
            Ok(entries.len())
        }
        other => panic!("{other:?}"),
    }
}

/// Asks as fast as the rate limit allows, and returns the number of lists.
fn list_until(client: &mut BlockingClient, is_over: &AtomicBool) -> usize {
    let mut lists = 0;
    while !is_over.load(Ordering::Relaxed) {
        match list(client) {
            Ok(_) => lists += 1,
            Err(_) => std::thread::sleep(Duration::from_millis(5)),
        }
    }
    lists
}

/// Returns entries as short as they can be, because a policy has at most a megabyte.
fn all_day_entries() -> String {
    let hours = "windows=[{days=\"all\",from=\"00:00\",to=\"24:00\"}]";
    let entry = |number| format!("[[entries]]\nid=\"e{number:05}\"\nargv=[\"a\"]\n{hours}\n");
    (0..ENTRIES).map(entry).collect()
}
