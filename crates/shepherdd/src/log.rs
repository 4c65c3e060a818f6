//! The daemon's own log, to standard error (S13.1). What happened to sessions is in the audit log, not here.
//!
//! Whoever is behind standard error may stop reading or go away: a terminal, a pipe, a journal. So nothing here waits
//! for it but a thread of its own, and nothing here panics because of it.

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

/// What is logged, if it is not said.
const DEFAULT_FILTER: &str = "info";

/// How long the end of the process waits for its last words to be taken.
pub(crate) const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

/// How a line looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LogFormat {
    /// For people.
    Text,
    /// For the journal, which has a clock of its own and wants to know how bad it is.
    Journal,
    /// For programs.
    Json,
}

/// Logs from now on what `SHEPHERD_LOG` asks for, in the format of `SHEPHERD_LOG_FORMAT`.
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
        // They would be printed, and a print that fails panics.
        .log_internal_errors(false)
        .with_writer(move || writer.clone());
    let set = match format {
        LogFormat::Text => lines.try_init(),
        LogFormat::Journal => {
            lines.without_time().with_ansi(false).map_event_format(JournalPriorityFormat).try_init()
        }
        LogFormat::Json => lines.event_format(JsonLineFormat).try_init(),
    };
    // Whoever embeds us may log by other means.
    set.ok();
    for fault in [filter_fault, format_fault].into_iter().flatten() {
        tracing::warn!("{fault}");
    }
    Ok(queue)
}

/// The filter, and what is wrong with the one that was asked for.
fn parse_filter(asked: Option<std::ffi::OsString>) -> (EnvFilter, Option<String>) {
    let default = || EnvFilter::new(DEFAULT_FILTER);
    let Some(asked) = asked.filter(|asked| !asked.is_empty()) else { return (default(), None) };
    let asked = asked.to_string_lossy();
    match EnvFilter::builder().parse(&asked) {
        Ok(filter) => (filter, None),
        Err(error) => {
            let fault = format!(
                "SHEPHERD_LOG is `{asked}`, which is no filter ({error}); logging `{DEFAULT_FILTER}`"
            );
            (default(), Some(fault))
        }
    }
}

/// The format, and what is wrong with the one that was asked for.
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

/// Whether standard error is what systemd says it is. Who inherited the variable and writes elsewhere has no journal.
fn stderr_is_journal() -> bool {
    let Ok(stream) = std::env::var("JOURNAL_STREAM") else { return false };
    rustix::fs::fstat(std::io::stderr())
        .is_ok_and(|stat| stream == format!("{}:{}", stat.st_dev, stat.st_ino))
}
