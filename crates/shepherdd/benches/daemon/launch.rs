//! Benchmarks of a launch without its disk writes, and of requests while a program ignores SIGTERM.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

use shepherd_api::{Command, StopMode};
use ward_bench::{BenchmarkLimit, median, millis, percentile, timed};

use crate::bench_daemon::{BenchDaemon, await_end, await_start, entry, force_stop, launch, wait_for};
use crate::program::{compile_first_instruction, since_boot};
use crate::report;

const LAUNCHES: usize = 40;
/// The bytes of a line of the audit log.
const LINE: usize = 400;
/// The bytes of a transaction in the write-ahead log: three pages with their headers.
const TRANSACTION: usize = 3 * (4_096 + 24);
/// The bytes of the number of the last batch, which overwrites the previous number.
const NUMBER: usize = 512;
/// The time for the last writes of the previous session, which must not slow down the next launch.
const SETTLE: Duration = Duration::from_millis(100);
/// Shorter than the program's grace of ten seconds.
const RESISTS: Duration = Duration::from_secs(4);
/// The file in which a program records its first instruction.
const BEGUN: &str = "begun";
/// A script that starts fifty processes and ignores SIGTERM.
const STUBBORN: &str = "trap '' TERM; i=1; while [ $i -lt 50 ]; do sleep 600 & i=$((i+1)); done; wait";

pub(crate) fn measure() {
    let nap = entry("nap", &["sleep", "600"], "max_run = \"1h\"\nwarnings = []");
    let stubborn = entry("stubborn", &["sh", "-c", STUBBORN], "max_run = \"1h\"\nwarnings = []");
    let mut daemon = BenchDaemon::empty(|folder| {
        let program = compile_first_instruction(folder);
        let argv = [program.to_str().unwrap(), folder.join(BEGUN).to_str().unwrap()].map(str::to_owned);
        let prompt = entry("prompt", &argv.each_ref().map(String::as_str), "max_run = \"1h\"\nwarnings = []");
        format!("{nap}{stubborn}{prompt}")
    });
    daemon.start();
    launches(&daemon);
    first_instructions(&daemon);
    measure_during_slow_stop(&daemon);
}

fn launches(daemon: &BenchDaemon) {
    let mut client = daemon.subscriber();
    let mut disk = BaselineDisk::new(daemon.folder());
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

/// Measures from the command until the program runs.
fn first_instructions(daemon: &BenchDaemon) {
    let mut client = daemon.subscriber();
    let (mut disk, begun) = (BaselineDisk::new(daemon.folder()), daemon.folder().join(BEGUN));
    let (mut launching, mut syncing) = (Vec::new(), Vec::new());
    for _ in 0..LAUNCHES {
        let ordered = since_boot();
        launch(&mut client, "prompt");
        await_start(&mut client);
        wait_for("the program runs", Duration::from_millis(1), || {
            begun.metadata().is_ok_and(|file| file.len() == 8)
        });
        let instruction = std::fs::read(&begun).unwrap().try_into().map(u64::from_ne_bytes).unwrap();
        launching.push(millis(Duration::from_nanos(instruction) - ordered));
        force_stop(&mut client);
        await_end(&mut client);
        std::fs::remove_file(&begun).unwrap();
        std::thread::sleep(SETTLE);
        let ((), took) = timed(|| disk.write_as_a_launch());
        syncing.push(millis(took));
    }
    let baseline = Some(("its writes and fsyncs alone", median(&mut syncing)));
    let name = "launch to the program's first instruction (median)";
    report(name, "ms", median(&mut launching), baseline, BenchmarkLimit::AtMost(2.8));
}

/// Makes the same data durable as a launch, without the daemon: a transaction, a log line and a batch number.
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

fn measure_during_slow_stop(daemon: &BenchDaemon) {
    let mut client = daemon.subscriber();
    launch(&mut client, "stubborn");
    await_start(&mut client);
    std::thread::sleep(Duration::from_millis(300));
    let mut asker = daemon.client();
    client.call(Command::StopCurrent { mode: StopMode::Graceful, session_id: None }).unwrap();
    let (start, mut samples) = (Instant::now(), Vec::new());
    while start.elapsed() < RESISTS {
        let (reply, took) = timed(|| asker.call(Command::GetState {}));
        reply.unwrap();
        samples.push(millis(took));
        // Stay below the rate limit of a client.
        std::thread::sleep(Duration::from_millis(1));
    }
    // Measure during the kill as well.
    force_stop(&mut client);
    while client.call(Command::GetState {}).is_ok_and(has_session) {
        let (reply, took) = timed(|| asker.call(Command::GetState {}));
        reply.unwrap();
        samples.push(millis(took));
    }
    let name = "get_state while a program ignores SIGTERM (p99)";
    report(name, "ms", percentile(&mut samples, 99.0), None, BenchmarkLimit::AtMost(5.0));
}

fn has_session(reply: shepherd_api::CommandReply) -> bool {
    matches!(reply, shepherd_api::CommandReply::State { snapshot } if snapshot.session.is_some())
}
