//! The only module that writes answers: text for people, JSON for programs.

use std::io::{self, IsTerminal, Write};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use collieclaw_agent::events::{AgentEvent, EventFormat, EventLevel, EventSink};
use serde::Serialize;
use serde_json::{Value, json};
use ward_cli::{OutputFormat, WriteStatus, to_json_document};
use ward_diag::{ErrorChain, FaultReport, ReportStyle};
use ward_terminal::{TextTone, escape_lines, paint};

use super::environment;
use super::failure::CommandFailure;
use super::wiring;

#[derive(Clone, Copy)]
pub(crate) struct OutputPrinter {
    format: OutputFormat,
    log: EventFormat,
}

/// True once an answer was written: a command writes at most one JSON answer.
static HAS_ANSWERED: AtomicBool = AtomicBool::new(false);

static WRITE_STATUS: Mutex<WriteStatus> = Mutex::new(WriteStatus::Open);

impl OutputPrinter {
    pub(crate) fn new(format: OutputFormat) -> Self {
        Self { format, log: environment::log_format() }
    }

    pub(crate) fn logs_json(&self) -> bool {
        self.log == EventFormat::Json
    }

    pub(crate) fn is_json(&self) -> bool {
        self.format == OutputFormat::Json
    }

    /// Writes an answer: `text` for people, `value` for programs.
    pub(crate) fn print_answer(&self, value: &impl Serialize, text: impl FnOnce() -> String) {
        let answer = match self.format {
            OutputFormat::Text => text(),
            OutputFormat::Json => to_json_document(value),
        };
        HAS_ANSWERED.store(true, Ordering::Relaxed);
        if !answer.is_empty() {
            self.print_line(&answer);
        }
    }

    pub(crate) fn print_line(&self, text: &str) {
        // `anstream` removes colours if the output isn't a terminal.
        let mut out = anstream::stdout().lock();
        record_write(writeln!(out, "{}", text.trim_end_matches('\n')).and_then(|()| out.flush()));
    }

    /// Returns an error if any answer could not be written. Commands that already failed report their own error instead.
    pub(crate) fn check_written(&self) -> Result<(), CommandFailure> {
        let written = WRITE_STATUS.lock().map_or(Ok(()), |mut status| status.take_failure());
        written.map_err(CommandFailure::io("write the answer"))
    }

    /// Writes text from a model or tool: unchanged to a pipe, with escape sequences made visible at a terminal.
    pub(crate) fn print_untrusted(&self, text: &str) -> Result<(), CommandFailure> {
        let mut out = io::stdout().lock();
        let mut shown = if out.is_terminal() { escape_lines(text) } else { text.to_owned() };
        if !shown.ends_with('\n') {
            shown.push('\n');
        }
        out.write_all(shown.as_bytes())
            .and_then(|()| out.flush())
            .map_err(CommandFailure::io("write the answer"))
    }

    /// Writes bytes unchanged, for files and pipes.
    pub(crate) fn print_bytes(&self, bytes: &[u8]) {
        let mut out = io::stdout().lock();
        record_write(out.write_all(bytes).and_then(|()| out.flush()));
    }

    /// Writes a remark to standard error.
    pub(crate) fn print_remark(&self, text: &str) {
        match self.log {
            EventFormat::Json => json_event_log().emit(AgentEvent::Remark { what: text.trim_end() }),
            EventFormat::Human => drop(writeln!(anstream::stderr().lock(), "{text}")),
        }
    }

    /// Reports a failure; with JSON output, the failure becomes the answer if none was written.
    pub(crate) fn print_failure(&self, failure: &CommandFailure) {
        let report = match failure {
            CommandFailure::Config { report }
            | CommandFailure::Sop { report }
            | CommandFailure::Manifest { report } => Some(&**report),
            _ => None,
        };
        if let Some(report) = report.filter(|_| self.is_json()) {
            self.print_answer(report, String::new);
        }
        if self.is_json() && !HAS_ANSWERED.load(Ordering::Relaxed) {
            let mut error =
                json!({ "code": failure.error_code(), "message": ErrorChain(failure).to_string() });
            if let (Some(cure), Value::Object(members)) = (failure.help(), &mut error) {
                members.insert("help".to_owned(), cure.into());
            }
            self.print_answer(&json!({ "error": error }), String::new);
        }
        match self.log {
            EventFormat::Json => log_failure(failure, report),
            EventFormat::Human => show_failure(failure, report),
        }
    }
}

fn show_failure(failure: &CommandFailure, report: Option<&FaultReport>) {
    let mut err = anstream::stderr().lock();
    if let Some(report) = report {
        let style = if io::stderr().is_terminal() { ReportStyle::Coloured } else { ReportStyle::Plain };
        let _ = writeln!(err, "{}", report.render(style));
    }
    let error = paint(TextTone::Bad, "error");
    let _ = writeln!(err, "{error}: {}", escape_lines(&ErrorChain(failure).to_string()));
    if let Some(cure) = failure.help() {
        let _ = writeln!(err, "{}: {cure}", paint(TextTone::Strong, "help"));
    }
}

fn log_failure(failure: &CommandFailure, report: Option<&FaultReport>) {
    let events = json_event_log();
    for what in report.map(FaultReport::lines).unwrap_or_default() {
        events.emit(AgentEvent::Trouble { what: &what });
    }
    let error = ErrorChain(failure).to_string();
    events.emit(AgentEvent::CommandFailed {
        code: failure.error_code(),
        error: &error,
        help: failure.help(),
    });
}

/// Returns the failure as JSON for programs that read standard error.
fn json_event_log() -> EventSink {
    EventSink::new(EventFormat::Json, EventLevel::Info, wiring::stderr())
}

fn record_write(written: io::Result<()>) {
    if let Ok(mut status) = WRITE_STATUS.lock() {
        status.record(written);
    }
}

/// Formats a time in UTC, in whole seconds.
pub(crate) fn format_timestamp(moment: jiff::Timestamp) -> String {
    moment.strftime("%Y-%m-%d %H:%M:%S").to_string()
}
