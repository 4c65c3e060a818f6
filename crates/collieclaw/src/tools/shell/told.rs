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
pub(crate) enum LineEnd {
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
pub(crate) fn code(exit: Exit) -> i32 {
    match exit {
        Exit::Code(code) => code,
        Exit::Signal(signal) => 128 + signal,
        Exit::Unknown => 128,
    }
}

pub(super) fn told(end: LineEnd, stdout: &Collected, stderr: &Collected, most: usize) -> ToolResult {
    let (output, truncated) = output(stdout, stderr, most);
    let mut result = ToolResult::done(output);
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
    result.with("stdout_bytes", stdout.total).with("stderr_bytes", stderr.total).with("truncated", truncated)
}

/// Both streams, told apart, within the bound, and whether something is missing. What went wrong gets a quarter of it at
/// least.
fn output(stdout: &Collected, stderr: &Collected, most: usize) -> (String, bool) {
    let [all_out, all_err] = [stdout, stderr].map(|stream| Shown::new(stream, usize::MAX));
    let whole = joined(&all_out, &all_err);
    if all_out.missing == 0 && all_err.missing == 0 && whole.len() <= most {
        return (whole, false);
    }
    let room = most.saturating_sub(WORDS);
    let for_stderr = all_err.text.len().min((room / 4).max(room.saturating_sub(all_out.text.len())));
    let shown = [Shown::new(stdout, room - for_stderr.min(room)), Shown::new(stderr, for_stderr)];
    let [out, err] = shown.map(Shown::with_note);
    (joined(&out, &err), out.missing + err.missing > 0)
}

fn joined(stdout: &Shown, stderr: &Shown) -> String {
    let mut output = stdout.text.clone();
    if !stderr.text.is_empty() {
        if !(output.is_empty() || output.ends_with('\n')) {
            output.push('\n');
        }
        output.push_str(STDERR);
        output.push_str(&stderr.text);
    }
    output
}

/// The first part of a stream, as text.
struct Shown {
    text: String,
    /// How many of the bytes that were printed are not in it.
    missing: u64,
}

impl Shown {
    /// At most so many bytes of text. What is no text takes more place in it than it had.
    fn new(stream: &Collected, most: usize) -> Self {
        let mut text = String::new();
        let mut shown = 0;
        for chunk in stream.bytes.utf8_chunks() {
            let valid = chunk.valid();
            let (fits, rest) = valid.split_at(valid.floor_char_boundary(most - text.len()));
            text.push_str(fits);
            shown += fits.len();
            let invalid = chunk.invalid();
            if !rest.is_empty() || most - text.len() < char::REPLACEMENT_CHARACTER.len_utf8() {
                break;
            }
            if !invalid.is_empty() {
                text.push(char::REPLACEMENT_CHARACTER);
                shown += invalid.len();
            }
        }
        Self { text, missing: stream.total.saturating_sub(shown as u64) }
    }

    /// With the words that say how much is missing.
    fn with_note(mut self) -> Self {
        if self.missing > 0 {
            self.text.push_str(&format!("\n[{} more bytes are not shown]\n", self.missing));
        }
        self
    }
}

/// What of the sandbox is in force: `full`, or what is missing.
pub(crate) fn level(tree: &Tree) -> String {
    words(&missing(tree))
}

pub(super) fn words(missing: &[String]) -> String {
    if missing.is_empty() { "full".to_owned() } else { format!("without {}", missing.join(", ")) }
}

/// What of the sandbox, the limits and the containment is missing around a tree.
pub(super) fn missing(tree: &Tree) -> Vec<String> {
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
    missing
}

pub(super) fn is_not_kept(report: &LimitReport) -> bool {
    matches!(report.kept, Kept::Not { .. })
}
