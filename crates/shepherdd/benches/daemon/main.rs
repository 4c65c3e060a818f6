//! Benchmarks of the daemon: the real program with a real policy, in its own folder.
//!
//! Arguments choose benchmarks by name; without arguments, all of them run.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a benchmark that can't run has nothing to report")]

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use ward_bench::{BenchmarkBaseline, BenchmarkLimit, BenchmarkRow};

mod bench_daemon;
mod expiry;
mod grace;
mod idle;
mod launch;
mod listing;
mod program;
mod requests;
mod sessions;
mod start;
mod tree;

/// The benchmarks by name.
const PARTS: [(&str, fn()); 9] = [
    ("start", start::measure),
    ("requests", requests::measure),
    ("launch", launch::measure),
    ("tree", tree::measure),
    ("expiry", expiry::measure),
    ("listing", listing::measure),
    ("grace", grace::measure),
    ("sessions", sessions::measure),
    ("idle", idle::measure),
];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    match arguments.as_slice() {
        [mode, file] if mode == program::AWAIT_SIGNAL => return program::await_signal(file.as_ref()),
        [mode, file] if mode == program::IGNORE_SIGNAL => return program::ignore_signal(file.as_ref()),
        _ => {}
    }
    // Hundreds of clients need hundreds of descriptors.
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum }).unwrap();
    for (name, measure) in PARTS {
        if arguments.is_empty() || arguments.iter().any(|wanted| wanted == name) {
            measure();
        }
    }
}

/// Reports a row under the name of the daemon.
fn report(bench: &str, unit: &str, figure: f64, baseline: Option<(&str, f64)>, bar: BenchmarkLimit) {
    let baseline = baseline.map(|(name, figure)| BenchmarkBaseline { name: name.to_owned(), figure });
    let row =
        BenchmarkRow { bench: format!("daemon: {bench}"), unit: unit.to_owned(), figure, baseline, bar };
    ward_bench::report(&row).unwrap();
}
