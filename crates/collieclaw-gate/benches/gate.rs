//! The bars of the gate: typical lines a second, lines that were made to be slow, and the two numbers of C7.3c.
//!
//! The bars are for one core, so it is the processor's time that counts: a busy machine changes little.
#![expect(clippy::print_stderr, reason = "a benchmark tells its progress there")]

#[path = "../tests/it/blocked_lines.rs"]
mod blocked_lines;
#[path = "../tests/it/changing_lines.rs"]
mod changing_lines;
#[path = "../tests/it/harmless_lines.rs"]
mod harmless_lines;
#[path = "../tests/it/high_lines.rs"]
mod high_lines;
#[path = "../tests/it/hostile_lines.rs"]
mod hostile_lines;
#[path = "../tests/it/looking_lines.rs"]
mod looking_lines;
#[path = "../tests/it/slow_lines.rs"]
mod slow_lines;
#[path = "../tests/it/world.rs"]
mod world;

use std::hint::black_box;
use std::time::Duration;

use collieclaw_gate::shell::LONGEST_LINE;
use collieclaw_gate::{Autonomy, judge_shell};
use rustix::time::{ClockId, clock_gettime};
use ward_bench::{Bar, Row, median, report};

use crate::blocked_lines::BLOCKED;
use crate::changing_lines::CHANGES;
use crate::harmless_lines::{DECIDED, LISTED_TOO};
use crate::high_lines::HIGH;
use crate::looking_lines::LOOKS;
use crate::world::{World, policy};

const ROUNDS: usize = 41;
const SLOW_ROUNDS: usize = 5;

/// Of the longest line.
const SHARES: [usize; 8] = [1, 2, 4, 8, 16, 64, 128, 256];

/// What the gate must manage on one core.
const LINES_A_SECOND: f64 = 50_000.0;
const SLOWEST_MILLIS: f64 = 50.0;

fn main() -> std::io::Result<()> {
    typical()?;
    slow()?;
    both_directions()
}

fn typical() -> std::io::Result<()> {
    let (policy, world) = (policy(LISTED_TOO), World::new());
    let lines: Vec<_> = LOOKS.iter().chain(CHANGES).collect();
    let mut rates = Vec::new();
    for _ in 0..ROUNDS {
        let seconds = processor_seconds(|| {
            for line in &lines {
                black_box(judge_shell(line, Autonomy::Supervised, &policy, &world));
            }
        });
        rates.push(count(lines.len()) / seconds);
    }
    report(&Row {
        bench: "gate: typical shell lines".into(),
        unit: "lines/s".into(),
        figure: median(&mut rates),
        baseline: None,
        bar: Bar::AtLeast(LINES_A_SECOND),
    })
}

/// Lines of many kinds and sizes, of which the slowest counts: the largest ones may be refused at a glance.
fn slow() -> std::io::Result<()> {
    let (policy, world) = (policy(LISTED_TOO), World::new());
    let mut slowest = 0.0_f64;
    for kind in slow_lines::KINDS {
        let times = SHARES.map(|share| {
            let line = kind.line(LONGEST_LINE / share);
            let judge = || _ = black_box(judge_shell(&line, Autonomy::Full, &policy, &world));
            median(&mut [(); SLOW_ROUNDS].map(|()| processor_seconds(judge) * 1_000.0))
        });
        let time = times.into_iter().fold(0.0, f64::max);
        eprintln!("{time:6.1} ms  {}", kind.name);
        slowest = slowest.max(time);
    }
    report(&Row {
        bench: format!("gate: slowest of {} kinds of hostile lines up to 1 MiB", slow_lines::KINDS.len()),
        unit: "ms".into(),
        figure: slowest,
        baseline: None,
        bar: Bar::AtMost(SLOWEST_MILLIS),
    })
}

/// C7.3c: right in both directions.
fn both_directions() -> std::io::Result<()> {
    let harmless = format!("{} (and {} by decision)", LOOKS.len() + CHANGES.len(), DECIDED.len());
    let rows = [
        ("hostile lines that pass", hostile_lines::passed().len(), (BLOCKED.len() + HIGH.len()).to_string()),
        ("harmless lines refused", harmless_lines::refused().len(), harmless),
    ];
    for (line, reason) in DECIDED {
        eprintln!("refused by decision: {line}: {reason}");
    }
    for (what, figure, of) in rows {
        report(&Row {
            bench: format!("gate: {what}, of {of}"),
            unit: "lines".into(),
            figure: count(figure),
            baseline: None,
            bar: Bar::AtMost(0.0),
        })?;
    }
    Ok(())
}

/// How long this thread was at work for it.
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
