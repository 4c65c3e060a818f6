//! The result of a line for the model and the receipt.

use std::time::Duration;

use ward_process::{LimitEnforcement, LimitReport, ProcessExit, ProcessTree};

use super::super::ToolResult;
use super::super::memory_watch::describe_exceeded_memory;
use super::output_capture::CapturedStream;

/// The heading between standard output and standard error.
const STDERR_HEADING: &str = "[stderr]\n";

/// Space for the note that says how much was left out.
const NOTE_BYTES: usize = 128;

/// The end of a shell line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LineEnd {
    /// All commands that had to run have run.
    Exited(ProcessExit),
    TimedOut(Duration),
    /// The cancel flag was raised, by the emergency stop or the operator.
    Cancelled,
    /// The line had more than this many processes.
    TooManyProcesses(usize),
    /// The processes of the line used more than this many bytes of memory together.
    TooMuchMemory(u64),
}

/// Returns the exit code as a shell reports it.
pub(crate) fn exit_code(exit: ProcessExit) -> i32 {
    match exit {
        ProcessExit::Code(code) => code,
        ProcessExit::Signal(signal) => 128 + signal,
        ProcessExit::Unknown => 128,
    }
}

/// Returns the result of a line that ended like this, without its output.
pub(super) fn format_end(end: LineEnd) -> ToolResult {
    let done = ToolResult::done("");
    match end {
        LineEnd::Exited(ProcessExit::Signal(signal)) => done.with_metadata("signal", signal),
        LineEnd::Exited(exit) => done.with_metadata("exit_code", exit_code(exit)),
        LineEnd::TimedOut(limit) => {
            let limit = limit.as_secs_f64();
            ToolResult::failed(format!("the command took longer than {limit} s and was killed"))
                .with_metadata("timed_out", true)
        }
        LineEnd::Cancelled => ToolResult::cancelled(),
        LineEnd::TooManyProcesses(limit) => {
            ToolResult::failed(format!("the command had more than {limit} processes at once and was killed"))
        }
        LineEnd::TooMuchMemory(limit) => ToolResult::failed(describe_exceeded_memory("the command", limit)),
    }
}

/// Joins both streams within the size limit, and returns true if something was left out. Standard error gets
/// at least a quarter of the space.
pub(super) fn format_output(
    stdout: &CapturedStream,
    stderr: &CapturedStream,
    max_bytes: usize,
) -> (String, bool) {
    let [all_out, all_err] = [stdout, stderr].map(|stream| StreamExcerpt::new(stream, usize::MAX));
    let whole = join_streams(&all_out, &all_err);
    if all_out.missing == 0 && all_err.missing == 0 && whole.len() <= max_bytes {
        return (whole, false);
    }
    let space = max_bytes.saturating_sub(NOTE_BYTES);
    let for_stderr = all_err.text.len().min((space / 4).max(space.saturating_sub(all_out.text.len())));
    let out = StreamExcerpt::with_both_ends(stdout, space - for_stderr.min(space));
    let err = StreamExcerpt::with_both_ends(stderr, for_stderr);
    (join_streams(&out, &err), out.missing + err.missing > 0)
}

fn join_streams(stdout: &StreamExcerpt, stderr: &StreamExcerpt) -> String {
    let mut output = stdout.text.clone();
    if !stderr.text.is_empty() {
        if !(output.is_empty() || output.ends_with('\n')) {
            output.push('\n');
        }
        output.push_str(STDERR_HEADING);
        output.push_str(&stderr.text);
    }
    output
}

/// The first part of a stream, as text.
struct StreamExcerpt {
    text: String,
    /// The number of printed bytes that are not part of `text`.
    missing: u64,
}

impl StreamExcerpt {
    /// Takes at most `max_bytes` of text. Invalid UTF-8 is replaced, which may need more bytes than it had.
    fn new(stream: &CapturedStream, max_bytes: usize) -> Self {
        let mut text = String::new();
        let mut shown = 0;
        for chunk in stream.bytes.utf8_chunks() {
            let valid = chunk.valid();
            let (fits, rest) = valid.split_at(valid.floor_char_boundary(max_bytes - text.len()));
            text.push_str(fits);
            shown += fits.len();
            let invalid = chunk.invalid();
            if !rest.is_empty() || max_bytes - text.len() < char::REPLACEMENT_CHARACTER.len_utf8() {
                break;
            }
            if !invalid.is_empty() {
                text.push(char::REPLACEMENT_CHARACTER);
                shown += invalid.len();
            }
        }
        Self { text, missing: stream.total.saturating_sub(shown as u64) }
    }

    /// Takes the beginning and the end, with the number of missing bytes between them. The end of an output often has
    /// its result, such as the summary of a test run.
    fn with_both_ends(stream: &CapturedStream, max_bytes: usize) -> Self {
        let whole = Self::new(stream, max_bytes);
        if whole.missing == 0 {
            return whole;
        }
        let tail_bytes = max_bytes / 3;
        let head = Self::new(stream, max_bytes - tail_bytes);
        let shown = usize::try_from(stream.total - head.missing).unwrap_or(usize::MAX);
        let tail = TailExcerpt::new(&stream.last_bytes(shown, tail_bytes), tail_bytes);
        let missing = head.missing - tail.source_bytes as u64;
        let text = format!("{}\n[{missing} more bytes are not shown]\n{}", head.text, tail.text);
        Self { text, missing }
    }
}

/// The last part of a stream, as text.
struct TailExcerpt {
    text: String,
    /// The number of printed bytes that `text` shows.
    source_bytes: usize,
}

impl TailExcerpt {
    /// Takes at most `max_bytes` of text from the end, starting with a line if one starts in the first half. Invalid
    /// UTF-8 is replaced.
    fn new(bytes: &[u8], max_bytes: usize) -> Self {
        // The first character may have been cut.
        let is_inside_character = |byte: &&u8| **byte & 0b1100_0000 == 0b1000_0000;
        let start = bytes.iter().take(3).take_while(is_inside_character).count();
        let mut letters: Vec<(char, usize)> = Vec::new();
        for chunk in bytes.get(start..).unwrap_or_default().utf8_chunks() {
            letters.extend(chunk.valid().chars().map(|letter| (letter, letter.len_utf8())));
            let invalid = chunk.invalid().len();
            letters.extend((invalid > 0).then_some((char::REPLACEMENT_CHARACTER, invalid)));
        }
        let mut space = max_bytes;
        let fits = |(letter, _): &&(char, usize)| {
            let left = space.checked_sub(letter.len_utf8());
            space = left.unwrap_or_default();
            left.is_some()
        };
        let count = letters.iter().rev().take_while(fits).count();
        let mut shown = letters.get(letters.len() - count..).unwrap_or_default();
        let line_end = shown.iter().take(count / 2).position(|(letter, _)| *letter == '\n');
        shown = line_end.and_then(|at| shown.get(at + 1..)).unwrap_or(shown);
        Self {
            text: shown.iter().map(|(letter, _)| letter).collect(),
            source_bytes: shown.iter().map(|(_, bytes)| bytes).sum(),
        }
    }
}

/// Returns the level of the sandbox: `full`, or a list of the missing parts.
#[must_use]
pub fn sandbox_level(tree: &ProcessTree) -> String {
    describe_missing(&missing_protections(tree))
}

pub(super) fn describe_missing(missing: &[String]) -> String {
    if missing.is_empty() { "full".to_owned() } else { format!("without {}", missing.join(", ")) }
}

/// Returns the parts of the sandbox, the limits and the containment that are missing around a tree.
pub(super) fn missing_protections(tree: &ProcessTree) -> Vec<String> {
    let mut missing: Vec<String> = Vec::new();
    match tree.sandbox_report() {
        None => missing.push("everything".to_owned()),
        Some(report) => {
            let lacking = report.parts().into_iter().filter(|(_, part)| !part.is_enforced());
            missing.extend(lacking.map(|(name, _)| name.to_owned()));
        }
    }
    let not_kept = tree.limit_reports().iter().filter(|report| is_unenforced(report));
    missing.extend(not_kept.map(|report| format!("limit of {}", report.limit)));
    if tree.containment().is_escapable() {
        missing.push("reliable kill of all processes".to_owned());
    }
    missing
}

pub(super) fn is_unenforced(report: &LimitReport) -> bool {
    matches!(report.kept, LimitEnforcement::Not { .. })
}
