//! Writes to the terminal: coloured text for people, JSON for scripts. No other module prints, except the live view.

use std::io::Write;

use rustix::termios::tcgetwinsize;
use serde::Serialize;
use serde_json::json;
use shepherd_util::ErrorChain;
use ward_cli::{OutputFormat, WriteStatus, to_json_document, to_json_line};
use ward_terminal::{TextTone, escape_lines, paint};

use crate::context::DisplaySettings;
use crate::error::ShepherdCliError;
use crate::humanize;

/// The width used if neither the terminal nor `COLUMNS` gives one.
const DEFAULT_WIDTH: usize = 80;

pub(crate) struct ConsoleOutput {
    format: OutputFormat,
    written: WriteStatus,
}

impl ConsoleOutput {
    pub(crate) fn new(format: OutputFormat) -> Self {
        Self { format, written: WriteStatus::Open }
    }

    pub(crate) fn format(&self) -> OutputFormat {
        self.format
    }

    /// Returns the width of the terminal, or of `COLUMNS` if there is no terminal.
    pub(crate) fn width(&self) -> usize {
        let terminal = tcgetwinsize(std::io::stdout()).ok().map(|size| usize::from(size.ws_col));
        let from_variable = || std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
        terminal.filter(|columns| *columns > 0).or_else(from_variable).unwrap_or(DEFAULT_WIDTH).clamp(40, 200)
    }

    /// Prints the result of a command: `text` for people, `value` as indented JSON for scripts.
    pub(crate) fn print_result(&mut self, value: &impl Serialize, text: impl FnOnce(&mut Self)) {
        match self.format {
            OutputFormat::Text => text(self),
            OutputFormat::Json => self.print_line(&to_json_document(value)),
        }
    }

    /// Prints one item of a stream: `text` for people, `value` as one line of JSON for scripts.
    pub(crate) fn print_stream_item(&mut self, value: &impl Serialize, text: impl FnOnce(&mut Self)) {
        match self.format {
            OutputFormat::Text => text(self),
            OutputFormat::Json => self.print_line(&to_json_line(value)),
        }
    }

    /// Returns false once a write has failed, so that endless commands stop when nobody reads their output.
    pub(crate) fn is_open(&self) -> bool {
        self.written.is_open()
    }

    /// Returns an error if a result could not be written. A closed pipe is not an error: its reader has all it wanted.
    pub(crate) fn check_written(&mut self) -> Result<(), ShepherdCliError> {
        self.written.take_failure().map_err(ShepherdCliError::io("write the output"))
    }

    pub(crate) fn print_heading(&mut self, text: &str) {
        self.print_line(&format!("\n{}", paint(TextTone::Strong, text)));
    }

    pub(crate) fn print_line(&mut self, text: &str) {
        // `anstream` removes the colours unless the output is a terminal.
        self.written.record(writeln!(anstream::stdout().lock(), "{text}"));
    }

    /// Writes bytes unchanged, for a file or a pipe.
    pub(crate) fn write_bytes(&mut self, bytes: &[u8]) {
        let mut output = std::io::stdout().lock();
        self.written.record(output.write_all(bytes).and_then(|()| output.flush()));
    }

    /// Prints a remark to standard error, so that it stays out of pipes.
    pub(crate) fn print_note(&mut self, text: &str) {
        let _ = writeln!(anstream::stderr().lock(), "{text}");
    }

    pub(crate) fn print_marked(&mut self, tone: TextTone, mark: &str, text: &str) {
        self.print_line(&format!("  {} {text}", paint(tone, mark)));
    }

    /// Prints an error with its causes, then the faults of a policy if there are any, then the help line.
    pub(crate) fn print_error(&mut self, failure: &ShepherdCliError, display: &DisplaySettings) {
        if let (OutputFormat::Json, ShepherdCliError::Refused(refused)) = (self.format, failure) {
            self.print_result(&json!({ "error": refused.error }), |_| {});
        }
        let mut error_output = anstream::stderr().lock();
        let error = paint(TextTone::Bad, "error");
        match failure {
            ShepherdCliError::Refused(refused) if !refused.error.reasons.is_empty() => {
                for reason in &refused.error.reasons {
                    let _ = writeln!(error_output, "{error}: {}", humanize::reason(reason, display));
                }
            }
            _ => {
                let _ = writeln!(error_output, "{error}: {}", escape_lines(&ErrorChain(failure).to_string()));
            }
        }
        if let ShepherdCliError::Refused(refused) = failure {
            for fault in &refused.error.faults {
                let _ = writeln!(error_output, "{}", escape_lines(fault.trim_end()));
            }
        }
        if let Some(help) = failure.help() {
            let _ = writeln!(error_output, "{}: {}", paint(TextTone::Strong, "help"), escape_lines(&help));
        }
    }
}
