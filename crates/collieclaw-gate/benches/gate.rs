//! Benchmarks of the gate: typical lines per second, the slowest hostile line, and the two error counts of
//! C7.3c.
//!
//! The limits apply to a single core, so the benchmark measures CPU time, which a busy machine hardly
//! changes.
#![expect(clippy::print_stderr, reason = "a benchmark reports its progress on standard error")]

#[path = "../tests/it/blocked_cases.rs"]
mod blocked_cases;
#[path = "../tests/it/harmless_cases.rs"]
mod harmless_cases;
#[path = "../tests/it/high_risk_cases.rs"]
mod high_risk_cases;
#[path = "../tests/it/hostile_cases.rs"]
mod hostile_cases;
#[path = "../tests/it/modifying_cases.rs"]
mod modifying_cases;
#[path = "../tests/it/readonly_cases.rs"]
mod readonly_cases;
#[path = "../tests/it/slow_cases.rs"]
mod slow_cases;
#[path = "../tests/it/test_machine.rs"]
mod test_machine;

use std::hint::black_box;
use std::time::Duration;

use collieclaw_gate::shell::LONGEST_LINE;
use collieclaw_gate::{AutonomyLevel, judge_shell};
use rustix::time::{ClockId, clock_gettime};
use ward_bench::{BenchmarkLimit, BenchmarkRow, median, report};

use crate::blocked_cases::BLOCKED_LINES;
use crate::harmless_cases::{EXTRA_ALLOWED, REFUSED_BY_DECISION};
use crate::high_risk_cases::HIGH_RISK_LINES;
use crate::modifying_cases::MODIFYING_LINES;
use crate::readonly_cases::READ_ONLY_LINES;
use crate::test_machine::{GateTestMachine, policy};

const ROUNDS: usize = 41;
const SLOW_ROUNDS: usize = 5;

/// Divisors of the maximum line length: a slow line is measured at each of these sizes.
const SIZE_DIVISORS: [usize; 8] = [1, 2, 4, 8, 16, 64, 128, 256];

const MIN_LINES_PER_SECOND: f64 = 50_000.0;
const MAX_SLOW_LINE_MILLIS: f64 = 50.0;

fn main() -> std::io::Result<()> {
    bench_typical_lines()?;
    bench_slow_lines()?;
    bench_false_decisions()
}

fn bench_typical_lines() -> std::io::Result<()> {
    let (policy, machine) = (policy(EXTRA_ALLOWED), GateTestMachine::new());
    let lines: Vec<_> = READ_ONLY_LINES.iter().chain(MODIFYING_LINES).collect();
    let mut rates = Vec::new();
    for _ in 0..ROUNDS {
        let seconds = processor_seconds(|| {
            for line in &lines {
                black_box(judge_shell(line, AutonomyLevel::Supervised, &policy, &machine));
            }
        });
        rates.push(count(lines.len()) / seconds);
    }
    report(&BenchmarkRow {
        bench: "gate: typical shell lines".into(),
        unit: "lines/s".into(),
        figure: median(&mut rates),
        baseline: None,
        bar: BenchmarkLimit::AtLeast(MIN_LINES_PER_SECOND),
    })
}

/// Measures lines of many kinds and sizes, and reports the slowest. The largest lines aren't always the
/// slowest, because the gate may refuse them early.
fn bench_slow_lines() -> std::io::Result<()> {
    let (policy, machine) = (policy(EXTRA_ALLOWED), GateTestMachine::new());
    let mut slowest = 0.0_f64;
    for kind in slow_cases::SLOW_LINE_KINDS {
        let times = SIZE_DIVISORS.map(|divisor| {
            let line = kind.line(LONGEST_LINE / divisor);
            let judge = || _ = black_box(judge_shell(&line, AutonomyLevel::Full, &policy, &machine));
            median(&mut [(); SLOW_ROUNDS].map(|()| processor_seconds(judge) * 1_000.0))
        });
        let time = times.into_iter().fold(0.0, f64::max);
        eprintln!("{time:6.1} ms  {}", kind.name);
        slowest = slowest.max(time);
    }
    report(&BenchmarkRow {
        bench: format!(
            "gate: slowest of {} kinds of hostile lines up to 1 MiB",
            slow_cases::SLOW_LINE_KINDS.len()
        ),
        unit: "ms".into(),
        figure: slowest,
        baseline: None,
        bar: BenchmarkLimit::AtMost(MAX_SLOW_LINE_MILLIS),
    })
}

/// Counts the hostile lines that pass and the harmless lines that are refused (C7.3c).
fn bench_false_decisions() -> std::io::Result<()> {
    let harmless = format!(
        "{} (and {} by decision)",
        READ_ONLY_LINES.len() + MODIFYING_LINES.len(),
        REFUSED_BY_DECISION.len()
    );
    let rows = [
        (
            "hostile lines that pass",
            hostile_cases::passed_lines().len(),
            (BLOCKED_LINES.len() + HIGH_RISK_LINES.len()).to_string(),
        ),
        ("harmless lines refused", harmless_cases::refused_lines().len(), harmless),
    ];
    for (line, reason) in REFUSED_BY_DECISION {
        eprintln!("refused by decision: {line}: {reason}");
    }
    for (what, figure, of) in rows {
        report(&BenchmarkRow {
            bench: format!("gate: {what}, of {of}"),
            unit: "lines".into(),
            figure: count(figure),
            baseline: None,
            bar: BenchmarkLimit::AtMost(0.0),
        })?;
    }
    Ok(())
}

/// Returns the CPU time that this thread spends on the work.
fn processor_seconds(work: impl FnOnce()) -> f64 {
    let start = clock_gettime(ClockId::ThreadCPUTime);
    work();
    let time = clock_gettime(ClockId::ThreadCPUTime) - start;
    Duration::try_from(time).unwrap_or_default().as_secs_f64()
}

#[expect(clippy::cast_precision_loss, reason = "a table has no more lines than an f64 counts")]
fn count(lines: usize) -> f64 {
    lines as f64
}
