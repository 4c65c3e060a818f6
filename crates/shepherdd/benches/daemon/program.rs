//! The program that is signalled: this benchmark itself, as an entry.

use std::io::Write;
use std::path::Path;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use tokio::signal::unix::{SignalKind, signal};

/// The argument with which this program is the one that is signalled.
pub(crate) const AWAIT_SIGNAL: &str = "await-signal";

/// Time since boot, on the clock that the daemon's deadlines are on.
pub(crate) fn since_boot() -> Duration {
    Duration::try_from(clock_gettime(ClockId::Boottime)).unwrap()
}

/// Waits for SIGTERM and adds the moment, in nanoseconds since boot, to a file.
pub(crate) fn await_signal(file: &Path) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut terminate = signal(SignalKind::terminate()).unwrap();
        terminate.recv().await;
    });
    let moment = since_boot().as_nanos();
    let mut file = std::fs::OpenOptions::new().create(true).append(true).open(file).unwrap();
    writeln!(file, "{moment}").unwrap();
}
