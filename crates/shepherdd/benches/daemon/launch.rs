//! Beginning and ending: what a launch takes beyond the disk, and that nobody waits for a program that resists.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

use shepherd_api::{Command, StopMode};
use ward_bench::{BenchmarkLimit, median, millis, percentile, timed};

use crate::bench_daemon::{BenchDaemon, await_end, await_start, entry, force_stop, launch};
use crate::report;

const LAUNCHES: usize = 40;
/// A line of the audit log.
const LINE: usize = 400;
/// A transaction in the write-ahead log: three pages with their headers.
const TRANSACTION: usize = 3 * (4_096 + 24);
/// The number of the last batch, written over the one before.
const NUMBER: usize = 512;
/// What the session before leaves to be written is none of the next launch's.
const SETTLE: Duration = Duration::from_millis(100);
/// Within the program's grace of ten seconds.
const RESISTS: Duration = Duration::from_secs(4);
/// Fifty processes that a signal does not impress.
const STUBBORN: &str = "trap '' TERM; i=1; while [ $i -lt 50 ]; do sleep 600 & i=$((i+1)); done; wait";

pub(crate) fn measure() {
    let nap = entry("nap", &["sleep", "600"], "max_run = \"1h\"\nwarnings = []");
    let stubborn = entry("stubborn", &["sh", "-c", STUBBORN], "max_run = \"1h\"\nwarnings = []");
    let house = BenchDaemon::new(&format!("{nap}{stubborn}"));
    launches(&house);
    measure_during_slow_stop(&house);
}

fn launches(house: &BenchDaemon) {
    let mut client = house.subscriber();
    let mut disk = BaselineDisk::new(house.folder());
    let (mut launching, mut syncing) = (Vec::new(), Vec::new());
    for _ in 0..LAUNCHES {
        let (_, took) = timed(|| launch(&mut client, "nap"));
        launching.push(millis(took));
        await_start(&mut client);
        force_stop(&mut client);
        await_end(&mut client);
        std::thread::sleep(SETTLE);
        let ((), took) = timed(|| disk.write_as_a_launch());
        syncing.push(millis(took));
    }
    let syncs = median(&mut syncing);
    let beyond = median(&mut launching) - syncs;
    let baseline = Some(("its writes and fsyncs alone, taken off", syncs));
    report(
        "launch, round trip (median) beyond its fsyncs",
        "ms",
        beyond,
        baseline,
        BenchmarkLimit::AtMost(10.0),
    );
}

/// What a launch makes durable before it is answered, without the daemon: a transaction, a line and a number.
struct BaselineDisk {
    transactions: File,
    log: File,
    number: File,
}

impl BaselineDisk {
    fn new(folder: &Path) -> Self {
        let open = |name| File::create(folder.join(name)).unwrap();
        Self { transactions: open("bare.wal"), log: open("bare.log"), number: open("bare.head") }
    }

    fn write_as_a_launch(&mut self) {
        self.transactions.write_all(&[b'x'; TRANSACTION]).unwrap();
        self.transactions.sync_all().unwrap();
        self.log.write_all(&[b'x'; LINE]).unwrap();
        self.log.sync_data().unwrap();
        self.number.write_all_at(&[b'x'; NUMBER], 0).unwrap();
        self.number.sync_data().unwrap();
    }
}

fn measure_during_slow_stop(house: &BenchDaemon) {
    let mut client = house.subscriber();
    launch(&mut client, "stubborn");
    await_start(&mut client);
    std::thread::sleep(Duration::from_millis(300));
    let mut asker = house.client();
    client.call(Command::StopCurrent { mode: StopMode::Graceful }).unwrap();
    let (start, mut samples) = (Instant::now(), Vec::new());
    while start.elapsed() < RESISTS {
        let (reply, took) = timed(|| asker.call(Command::GetState {}));
        reply.unwrap();
        samples.push(millis(took));
        // Slower than what one client may ask.
        std::thread::sleep(Duration::from_millis(1));
    }
    // And through the kill itself.
    force_stop(&mut client);
    while client.call(Command::GetState {}).is_ok_and(has_session) {
        let (reply, took) = timed(|| asker.call(Command::GetState {}));
        reply.unwrap();
        samples.push(millis(took));
    }
    let name = "get_state while a program resists its end (p99)";
    report(name, "ms", percentile(&mut samples, 99.0), None, BenchmarkLimit::AtMost(5.0));
}

fn has_session(reply: shepherd_api::CommandReply) -> bool {
    matches!(reply, shepherd_api::CommandReply::State { snapshot } if snapshot.session.is_some())
}
