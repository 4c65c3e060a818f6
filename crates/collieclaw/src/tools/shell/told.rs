//! What is told of a line that ran.

use std::time::Duration;

use ward_process::{Exit, Kept, LimitReport, Tree};

use super::super::{End, ToolResult};
use super::collect::Collected;

/// What stands between what was printed and what went wrong.
const STDERR: &str = "[stderr]\n";

/// Room for the words that say how much is missing.
const WORDS: usize = 128;

/// How a line ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineEnd {
    /// All of it that was to run has run.
    Ran(Exit),
    /// Its time was up.
    TimedOut(Duration),
    /// The emergency stop, or the operator.
    Cancelled,
    /// More processes than a line may have.
    TooMany(usize),
}

/// The number that a shell would give.
pub(super) fn code(exit: Exit) -> i32 {
    match exit {
        Exit::Code(code) => code,
        Exit::Signal(signal) => 128 + signal,
        Exit::Unknown => 128,
    }
}

pub(super) fn told(end: LineEnd, stdout: &Collected, stderr: &Collected, most: usize) -> ToolResult {
    let mut result = ToolResult::done(output(stdout, stderr, most));
    match end {
        LineEnd::Ran(Exit::Signal(signal)) => result = result.with("signal", signal),
        LineEnd::Ran(exit) => result = result.with("exit_code", code(exit)),
        LineEnd::TimedOut(limit) => {
            result.end = End::Failed(format!("it took longer than {} s and was ended", limit.as_secs_f64()));
            result = result.with("timed_out", true);
        }
        LineEnd::Cancelled => result.end = End::Cancelled,
        LineEnd::TooMany(limit) => {
            result.end = End::Failed(format!("it had more than {limit} processes at once and was ended"));
        }
    }
    let cut = result.output.len() < usize::try_from(stdout.total + stderr.total).unwrap_or(usize::MAX);
    result.with("stdout_bytes", stdout.total).with("stderr_bytes", stderr.total).with("truncated", cut)
}

/// Both streams, told apart, within the bound. What went wrong gets a quarter of it at least.
fn output(stdout: &Collected, stderr: &Collected, most: usize) -> String {
    let room = most.saturating_sub(WORDS);
    let for_stderr = stderr.bytes.len().min((room / 4).max(room.saturating_sub(stdout.bytes.len())));
    let mut output = shown(stdout, room - for_stderr.min(room));
    if stderr.total > 0 {
        if !(output.is_empty() || output.ends_with('\n')) {
            output.push('\n');
        }
        output.push_str(STDERR);
        output.push_str(&shown(stderr, for_stderr));
    }
    output
}

/// The first bytes of a stream as text, and how much is missing.
fn shown(stream: &Collected, most: usize) -> String {
    let bytes = stream.bytes.get(..most.min(stream.bytes.len())).unwrap_or_default();
    let mut text = String::from_utf8_lossy(bytes).into_owned();
    // What is no text takes three times the place.
    text.truncate(text.floor_char_boundary(most));
    let missing = stream.total.saturating_sub(bytes.len() as u64);
    if missing > 0 {
        text.push_str(&format!("\n[{missing} more bytes are not shown]\n"));
    }
    text
}

/// What of the sandbox is in force: `full`, or what is missing.
pub(super) fn level(tree: &Tree) -> String {
    let mut missing: Vec<String> = Vec::new();
    match tree.sandbox_report() {
        None => missing.push("everything".to_owned()),
        Some(report) => {
            let lacking = report.parts().into_iter().filter(|(_, part)| !part.holds());
            missing.extend(lacking.map(|(name, _)| name.to_owned()));
        }
    }
    let not_kept = tree.limit_reports().iter().filter(|report| is_not_kept(report));
    missing.extend(not_kept.map(|report| format!("limit of {}", report.limit)));
    if tree.containment().is_escapable() {
        missing.push("sure end of all processes".to_owned());
    }
    if missing.is_empty() { "full".to_owned() } else { format!("without {}", missing.join(", ")) }
}

pub(super) fn is_not_kept(report: &LimitReport) -> bool {
    matches!(report.kept, Kept::Not { .. })
}
