//! The program that is signalled: this benchmark itself, as an entry.

use std::io::Write;
use std::path::Path;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use tokio::signal::unix::{SignalKind, signal};

/// The argument that makes this benchmark wait for the signal.
pub(crate) const AWAIT_SIGNAL: &str = "await-signal";

/// Returns the time since boot, on the clock of the daemon's deadlines.
pub(crate) fn since_boot() -> Duration {
    Duration::try_from(clock_gettime(ClockId::Boottime)).unwrap()
}

/// Waits for SIGTERM, and appends the time of the signal to a file, in nanoseconds since boot.
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
