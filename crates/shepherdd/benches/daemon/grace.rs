//! The time that a stubborn program outlives its grace.

use std::path::Path;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use shepherd_api::{Command, StopMode};
use ward_bench::{BenchmarkLimit, median, millis};

use crate::bench_daemon::{BenchDaemon, await_end, await_start, entry, launch, wait_for};
use crate::program::{IGNORE_SIGNAL, SignalReport, since_boot};
use crate::report;

/// Daemons that run side by side, because a grace is mostly waiting.
const DAEMONS: usize = 3;
const STOPS: usize = 3;
const GRACE: Duration = Duration::from_secs(5);
/// The file in which a program records its id, and when it was signalled.
const SIGNALS: &str = "signals";

pub(crate) fn measure() {
    let threads: Vec<_> = (0..DAEMONS).map(|_| std::thread::spawn(measure_one_daemon)).collect();
    let mut late: Vec<f64> = threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
    let name = format!("end of a stubborn program after its grace of {} s (median)", GRACE.as_secs());
    report(&name, "ms", median(&mut late), None, BenchmarkLimit::AtMost(1.0));
}

fn measure_one_daemon() -> Vec<f64> {
    let mut daemon = BenchDaemon::empty(stubborn_entry);
    daemon.start();
    let mut client = daemon.subscriber();
    let stops = (0..STOPS).map(|_| {
        let signals = daemon.folder().join(SIGNALS);
        let _ = std::fs::remove_file(&signals);
        launch(&mut client, "stubborn");
        await_start(&mut client);
        wait_for("the program runs", Duration::from_millis(1), || signals.exists());
        client.call(Command::StopCurrent { mode: StopMode::Graceful, session_id: None }).unwrap();
        wait_for("the program is signalled", Duration::from_millis(1), || {
            SignalReport::read(&signals).is_some()
        });
        let SignalReport { pid, signalled } = SignalReport::read(&signals).unwrap();
        let program = pidfd_open(Pid::from_raw(pid).unwrap(), PidfdFlags::empty()).unwrap();
        poll(&mut [PollFd::new(&program, PollFlags::IN)], None).unwrap();
        let outlived = since_boot() - signalled;
        await_end(&mut client);
        millis(outlived) - millis(GRACE)
    });
    stops.collect()
}

fn stubborn_entry(folder: &Path) -> String {
    let (program, signals) = (std::env::current_exe().unwrap(), folder.join(SIGNALS));
    let argv = [program.to_str().unwrap(), IGNORE_SIGNAL, signals.to_str().unwrap()];
    entry(
        "stubborn",
        &argv,
        &format!("max_run = \"1h\"\nwarnings = []\nstop_grace = \"{}s\"", GRACE.as_secs()),
    )
}
