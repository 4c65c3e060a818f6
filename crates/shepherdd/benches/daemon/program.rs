//! The programs of entries: this benchmark itself, and a program that records its first instruction.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The argument that makes this benchmark wait for the signal.
pub(crate) const AWAIT_SIGNAL: &str = "await-signal";

/// The argument that makes this benchmark record the signal and go on.
pub(crate) const IGNORE_SIGNAL: &str = "ignore-signal";

/// A program without libraries that appends the time since boot, in nanoseconds, to the file that its argument names.
const FIRST_INSTRUCTION: &str = include_str!("first_instruction.c");

/// Returns the time since boot, on the clock of the daemon's deadlines.
pub(crate) fn since_boot() -> Duration {
    Duration::try_from(clock_gettime(ClockId::Boottime)).unwrap()
}

/// Waits for SIGTERM, and appends the time of the signal to a file, in nanoseconds since boot.
pub(crate) fn await_signal(file: &Path) {
    with_signal(async |mut terminate| {
        terminate.recv().await;
        append(file, &since_boot().as_nanos().to_string());
    });
}

/// Records its id, and the time of each signal.
pub(crate) fn ignore_signal(file: &Path) {
    with_signal(async |mut terminate| {
        append(file, &std::process::id().to_string());
        while terminate.recv().await.is_some() {
            append(file, &since_boot().as_nanos().to_string());
        }
    });
}

fn with_signal(work: impl AsyncFnOnce(Signal)) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { work(signal(SignalKind::terminate()).unwrap()).await });
}

fn append(file: &Path, line: &str) {
    let mut file = std::fs::OpenOptions::new().create(true).append(true).open(file).unwrap();
    writeln!(file, "{line}").unwrap();
}

/// The record of [`ignore_signal`] with its first signal.
pub(crate) struct SignalReport {
    pub(crate) pid: i32,
    /// Since boot.
    pub(crate) signalled: Duration,
}

impl SignalReport {
    /// Returns `None` before the first signal.
    pub(crate) fn read(file: &Path) -> Option<Self> {
        let text = std::fs::read_to_string(file).ok()?;
        let (pid, signals) = text.split_once('\n')?;
        let signalled = Duration::from_nanos(signals.split_once('\n')?.0.parse().unwrap());
        Some(Self { pid: pid.parse().unwrap(), signalled })
    }
}

/// Compiles the program that records its first instruction.
pub(crate) fn compile_first_instruction(folder: &Path) -> PathBuf {
    let (source, program) = (folder.join("first_instruction.c"), folder.join("first-instruction"));
    std::fs::write(&source, FIRST_INSTRUCTION).unwrap();
    let options = ["-O1", "-static", "-nostdlib", "-ffreestanding", "-fno-stack-protector", "-o"];
    let status = Command::new("cc").args(options).arg(&program).arg(&source).status().unwrap();
    assert!(status.success(), "cc compiles the program");
    program
}
