//! The daemon's own log on standard error (S13.1). Events of sessions are in the audit log, not here.
//!
//! The reader of standard error may stop reading or go away: a terminal, a pipe, a journal. Only a thread of its own
//! waits for the reader, and no failure here causes a panic.

mod format;
mod panics;
mod thread;

use std::io::IsTerminal;
use std::os::fd::AsFd;
use std::time::Duration;

use tracing_subscriber::EnvFilter;

use format::{JournalPriorityFormat, JsonLineFormat};
pub(crate) use panics::abort_on_panic;
use thread::LogThread;
pub(crate) use thread::{LogQueue, lost_line_count};

/// The default filter.
const DEFAULT_FILTER: &str = "info";

/// The time that the end of the process waits for the last lines.
pub(crate) const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

/// The format of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LogFormat {
    Text,
    /// Text for the journal, with a priority and without a time.
    Journal,
    Json,
}

/// Starts logging with the filter `SHEPHERD_LOG` in the format `SHEPHERD_LOG_FORMAT`.
pub(crate) fn start() -> std::io::Result<LogQueue> {
    let stderr = std::io::stderr();
    let queue = LogThread::start(stderr.as_fd().try_clone_to_owned()?.into())?;
    let (filter, filter_fault) = parse_filter(std::env::var_os("SHEPHERD_LOG"));
    let (format, format_fault) = parse_format(std::env::var_os("SHEPHERD_LOG_FORMAT"));
    let writer = queue.clone();
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_target(false)
        .with_ansi(stderr.is_terminal())
        // Such errors would be printed, and a failed print panics.
        .log_internal_errors(false)
        .with_writer(move || writer.clone());
    let set = match format {
        LogFormat::Text => lines.try_init(),
        LogFormat::Journal => {
            lines.without_time().with_ansi(false).map_event_format(JournalPriorityFormat).try_init()
        }
        LogFormat::Json => lines.event_format(JsonLineFormat).try_init(),
    };
    // A program that embeds the daemon may have its own logger.
    set.ok();
    for fault in [filter_fault, format_fault].into_iter().flatten() {
        tracing::warn!("{fault}");
    }
    Ok(queue)
}

/// Returns the filter, and the fault of the requested one.
fn parse_filter(asked: Option<std::ffi::OsString>) -> (EnvFilter, Option<String>) {
    let default = || EnvFilter::new(DEFAULT_FILTER);
    let Some(asked) = asked.filter(|asked| !asked.is_empty()) else { return (default(), None) };
    let asked = asked.to_string_lossy();
    match EnvFilter::builder().parse(&asked) {
        Ok(filter) => (filter, None),
        Err(error) => {
            let fault = format!(
                "SHEPHERD_LOG is `{asked}`, which is not a valid filter ({error}); using `{DEFAULT_FILTER}`"
            );
            (default(), Some(fault))
        }
    }
}

/// Returns the format, and the fault of the requested one.
fn parse_format(asked: Option<std::ffi::OsString>) -> (LogFormat, Option<String>) {
    let usual = if stderr_is_journal() { LogFormat::Journal } else { LogFormat::Text };
    let asked = asked.unwrap_or_default();
    match &*asked.to_string_lossy() {
        "" => (usual, None),
        "text" => (LogFormat::Text, None),
        "json" => (LogFormat::Json, None),
        other => {
            (usual, Some(format!("SHEPHERD_LOG_FORMAT is `{other}`, which is neither `text` nor `json`")))
        }
    }
}

/// Returns whether standard error is the stream that systemd names. A process that inherited the variable may write
/// elsewhere.
fn stderr_is_journal() -> bool {
    let Ok(stream) = std::env::var("JOURNAL_STREAM") else { return false };
    rustix::fs::fstat(std::io::stderr())
        .is_ok_and(|stat| stream == format!("{}:{}", stat.st_dev, stat.st_ino))
}
